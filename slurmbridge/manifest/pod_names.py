"""What are the pods of a run called, and how is a pod known as one of ours?

Names have all that finds them again (design: one name per instance, job, restart and rank); labels select them; what may
be any text is an annotation. Follows "Object Names and IDs" and "Labels and Selectors" of the Kubernetes documentation.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.model.pods import Json, Manifest
from slurmbridge.model.run import RunKey

DOMAIN = "slurmbridge.io"
INSTANCE, JOB, RESTART, RANK, UID = (f"{DOMAIN}/{word}" for word in ("instance", "job", "restart", "rank", "uid"))
ROLE = f"{DOMAIN}/role"  # only of what is no pod of a job: "device"
HASH, EPOCH, RANKS = f"{DOMAIN}/spec-hash", f"{DOMAIN}/epoch", f"{DOMAIN}/ranks"
JOB_NAME, USER, ACCOUNT, PARTITION, COMMENT = (
    f"{DOMAIN}/{word}" for word in ("job-name", "user", "account", "partition", "comment")
)
CORDON = f"{DOMAIN}/cordon"
"""Annotation of a node that was cordoned for `scontrol update state=drain`: only such a cordon is taken back."""
HOLD = f"{DOMAIN}/run"
"""Finalizer of a run's pods: until it is taken away a pod that is deleted, by whomever, can still be seen to have ended."""

LONGEST_LABEL = 63
LONGEST_INSTANCE = 20
_INSTANCE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_POD = re.compile(r"sb-(?P<instance>[a-z0-9-]+)-(?P<job>\d+)-(?P<restart>\d+)-(?P<rank>\d+)")


class PodName(msgspec.Struct, frozen=True):
    instance: str
    key: RunKey
    rank: int


def instance_of(cluster: str) -> str:
    """A cluster's name as a part of names: as it is if it can be one, else a readable piece and a hash."""
    if len(cluster) <= LONGEST_INSTANCE and _INSTANCE.fullmatch(cluster):
        return cluster
    plain = re.sub(r"[^a-z0-9]+", "-", cluster.lower()).strip("-")[: LONGEST_INSTANCE - 7].strip("-")
    return f"{plain}-{_digest(cluster)[:6]}" if plain else f"c{_digest(cluster)[:6]}"


def pod_name(instance: str, key: RunKey, rank: int) -> str:
    return f"{run_name(instance, key)}-{rank}"


def run_name(instance: str, key: RunKey) -> str:
    """Also that of the service by which the ranks of a run find each other."""
    return f"sb-{instance}-{key.job_id}-{key.restarts}"


def read_pod_name(name: str) -> PodName | None:
    found = _POD.fullmatch(name)
    if found is None:
        return None
    key = RunKey(int(found["job"]), int(found["restart"]))
    read = PodName(found["instance"], key, int(found["rank"]))
    return read if pod_name(read.instance, key, read.rank) == name else None  # 007 is not 7


def labels(instance: str, key: RunKey, rank: int | None = None, uid: int | None = None) -> dict[str, str]:
    """Without rank and uid: what selects a run's pods."""
    found = {INSTANCE: instance, JOB: str(key.job_id), RESTART: str(key.restarts)}
    if rank is not None:
        found[RANK] = str(rank)
    if uid is not None:
        found[UID] = str(uid)
    return found


def selector(chosen: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in chosen.items())


def host_names(nodes: Sequence[str]) -> tuple[str, ...]:
    """The host name of each rank: the first label of its node's name, the whole name where two would be the same."""
    first = [host_label(node.partition(".")[0]) for node in nodes]
    return tuple(
        short if first.count(short) == 1 else host_label(node.replace(".", "-"))
        for node, short in zip(nodes, first, strict=True)
    )


def host_label(text: str) -> str:
    """A text as a label of DNS: what does not fit is cut and told apart by a hash."""
    plain = re.sub(r"[^a-z0-9-]", "-", text.lower()).strip("-")
    if plain and plain == text.lower() and len(plain) <= LONGEST_LABEL:
        return plain
    plain = plain[: LONGEST_LABEL - 7].strip("-")
    return f"{plain}-{_digest(text)[:6]}" if plain else f"n{_digest(text)[:6]}"


def spec_hash(manifest: Mapping[str, Json]) -> str:
    """Of everything in it, whatever the order of its keys."""
    return hashlib.sha256(msgspec.json.encode(manifest, order="sorted")).hexdigest()[:16]


def sealed(manifest: Manifest, epoch: str) -> Manifest:
    """The object with its hash and its run's epoch in annotations: what tells ours from another of the same name."""
    metadata = manifest["metadata"]
    assert isinstance(metadata, Mapping)
    told = metadata.get("annotations") or {}
    assert isinstance(told, Mapping)
    annotations: Manifest = {**told, HASH: spec_hash(manifest), EPOCH: epoch}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
