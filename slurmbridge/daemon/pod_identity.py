"""Which daemon is this, among those that may have pods in one namespace? Said once, and kept in the state folder.

Names of pods hold the instance; pods that run look for the daemon at the port; and runs that the store knows are in one
namespace of one cluster: elsewhere they would count as never begun, and begin a second time.
"""

from __future__ import annotations

import os
import secrets

import msgspec
from msgspec.structs import replace

from slurmbridge.errors import ConfigError
from slurmbridge.manifest.pod_names import instance_of
from slurmbridge.spool.claim import write_file

FILE = "kube.json"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    instance: str
    namespace: str
    namespace_uid: str = ""  # tells its cluster from another; empty: we may not look at it
    port: int = 0  # 0: not chosen yet


def settle(state: str, cluster_name: str, namespace: str, namespace_uid: str) -> Identity:
    """That of this state folder, made if there is none. ConfigError: it is that of another namespace or cluster."""
    path = os.path.join(state, FILE)
    known = read(path)
    if known is None:
        name = instance_of(
            f"{cluster_name}-{secrets.token_hex(3)}"
        )  # two daemons never take each other's pods for theirs
        return keep(state, Identity(instance=name, namespace=namespace, namespace_uid=namespace_uid))
    if known.namespace != namespace:
        text = f"jobs of this state folder are in namespace {known.namespace}, not in {namespace}"
        raise ConfigError(f"{text}: take another state folder", file=path)
    if known.namespace_uid and namespace_uid and known.namespace_uid != namespace_uid:
        text = f"jobs of this state folder are in another cluster, or in another namespace that was called {namespace}"
        raise ConfigError(f"{text}: take another state folder, or remove this file when none of them runs", file=path)
    if namespace_uid and not known.namespace_uid:
        return keep(state, replace(known, namespace_uid=namespace_uid))
    return known


def read(path: str) -> Identity | None:
    """None: there is none. ConfigError: it cannot be read."""
    try:
        with open(path, "rb") as file:
            return msgspec.json.decode(file.read(1 << 16), type=Identity)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError) as fault:
        raise ConfigError(f"the daemon's identity on its cluster cannot be read: {fault}", file=path) from fault


def keep(state: str, identity: Identity) -> Identity:
    """On the disk when this returns."""
    path = os.path.join(state, FILE)
    try:
        write_file(path, msgspec.json.encode(identity), sync=True)
    except OSError as fault:
        raise ConfigError(fault.strerror or str(fault), file=path) from fault
    return identity
