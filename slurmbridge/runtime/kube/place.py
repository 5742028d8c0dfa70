"""Which cluster is it, in which namespace do jobs live, what may the daemon do there, and how do pods reach it?

All of it is found out once, before the daemon serves: what would keep jobs from running is an error then, with the name of
what is missing. Follows "Accessing the API from a Pod", "Organizing Cluster Access Using kubeconfig Files" and
SelfSubjectAccessReview of the Kubernetes documentation. Blocks.
"""

from __future__ import annotations

import ipaddress
import os
import random
import re
import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import urlsplit

import kubernetes.config
import msgspec

from slurmbridge.errors import RuntimeFault
from slurmbridge.manifest.rights import RIGHTS, Right, Where
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Backoff, Kind
from slurmbridge.runtime.kube.objects import Object

OWN_NAMESPACE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
OWN_SERVER = "KUBERNETES_SERVICE_HOST"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
IMAGE_VOLUMES = (1, 35)
"""From this release on a cluster has them without being asked to."""
THREADS = 8
BACKOFF = Backoff(first=0.2, longest=2.0)

Answer = TypeVar("Answer")


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster that answers."""

    api: Api
    namespace: str
    namespace_uid: str = ""  # empty: we may not look at it
    inside: bool  # we run in a pod of it
    release: tuple[int, int]

    @property
    def has_image_volumes(self) -> bool:
        return self.release >= IMAGE_VOLUMES


def find(kubeconfig: str | None, namespace: str | None, *, within: float = 0.0) -> Place:
    """The cluster of a file, of the pod that we run in, or of the user's own file. RuntimeFault: there is none, or it does
    not answer, also when it is asked again for `within` seconds."""
    inside = kubeconfig is None and OWN_SERVER in os.environ and os.path.exists(OWN_NAMESPACE)
    if kubeconfig is not None and not os.path.isfile(kubeconfig):
        raise RuntimeFault(f"{kubeconfig}: no such file")
    api = Api.find(kubeconfig)
    try:
        release = _persist(lambda: _release(api), within)
        chosen = namespace or _namespace(kubeconfig, inside)
        uid = _persist(lambda: _seek(api, chosen), within)
    except ApiFault as fault:
        api.close()
        raise RuntimeFault(f"the cluster at {api.server} is of no use: {fault.message}") from fault
    except RuntimeFault:
        api.close()
        raise
    return Place(api=api, namespace=chosen, namespace_uid=uid, inside=inside, release=release)


def _persist(attempt: Callable[[], Answer], within: float) -> Answer:
    """An API server that is busy or starts is no reason to give up at once."""
    end, tries = time.monotonic() + within, 0
    while True:
        try:
            return attempt()
        except ApiFault as fault:
            pause = BACKOFF.delay(tries, random.random(), fault)
            if not fault.kind.passes or time.monotonic() + pause > end:
                raise
        time.sleep(pause)
        tries += 1


def _release(api: Api) -> tuple[int, int]:
    said: dict[str, Any] = msgspec.json.decode(api.get("/version"))
    numbers = [re.match(r"\d*", str(said.get(word, ""))) for word in ("major", "minor")]
    major, minor = (int(found.group() or 0) if found else 0 for found in numbers)
    return major, minor


def _namespace(kubeconfig: str | None, inside: bool) -> str:
    """That of our pod, or of the context in use; "default" where none is said."""
    if inside:
        with open(OWN_NAMESPACE, encoding="utf-8") as file:
            return file.read().strip()
    _, context = kubernetes.config.list_kube_config_contexts(kubeconfig)  # type: ignore[no-untyped-call]
    return str(context.get("context", {}).get("namespace") or "default")


def _seek(api: Api, namespace: str) -> str:
    """Its uid, as far as we may know. RuntimeFault: it is not there."""
    try:
        found = msgspec.json.decode(api.get(f"/api/v1/namespaces/{namespace}"), type=Object)
        return found.metadata.uid
    except ApiFault as fault:
        if fault.kind is Kind.GONE:
            raise RuntimeFault(f"the cluster at {api.server} has no namespace {namespace}") from fault
        if fault.kind is not Kind.FORBIDDEN:
            raise
        return ""


# ---- rights


class Lack(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs that we may not use though something needs them."""

    right: Right
    verbs: tuple[str, ...]

    def __str__(self) -> str:
        name = f"{self.right.resource}.{self.right.group}" if self.right.group else self.right.resource
        where = "in all namespaces" if self.right.where is Where.CLUSTER else "in the namespace of jobs"
        return f"{', '.join(self.verbs)} of {name} {where} ({self.right.why})"


def lacks(place: Place, rights: Sequence[Right] = RIGHTS, *, within: float = 0.0) -> list[Lack]:
    """What we may not do. ApiFault: nobody can tell, also after `within` seconds."""
    asked = [(right, verb) for right in rights for verb in right.verbs]
    with ThreadPoolExecutor(THREADS) as pool:
        allowed = list(pool.map(lambda each: _persist(lambda: _may(place, *each), within), asked))
    missing = {each for each, yes in zip(asked, allowed, strict=True) if not yes}
    found = []
    for right in rights:
        verbs = tuple(verb for verb in right.verbs if (right, verb) in missing)
        if verbs:
            found.append(Lack(right=right, verbs=verbs))
    return found


def check(place: Place, *, within: float = 0.0) -> list[Lack]:
    """Of those that jobs can do without; RuntimeFault: others are missing too."""
    found = lacks(place, within=within)
    needed = [lack for lack in found if not lack.right.without]
    if needed:
        named = "; ".join(map(str, needed))
        raise RuntimeFault(f"rights are missing at {place.api.server}, namespace {place.namespace}: {named}")
    return found


def _may(place: Place, right: Right, verb: str) -> bool:
    resource, _, part = right.resource.partition("/")
    attributes = {"verb": verb, "group": right.group, "resource": resource}
    if part:
        attributes["subresource"] = part
    if right.where is Where.JOBS:
        attributes["namespace"] = place.namespace
        if resource == "namespaces":
            attributes["name"] = place.namespace
    body = {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }  # fmt: skip
    answer: dict[str, Any] = msgspec.json.decode(place.api.create(REVIEWS, body))
    return bool(answer.get("status", {}).get("allowed"))


# ---- our own address


def own_address(server: str) -> str:
    """Of the interface over which we reach the API server; empty: nobody else reaches that one."""
    parts = urlsplit(server)
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM
        )[0]  # fmt: skip
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            address = str(probe.getsockname()[0]).partition("%")[0]
    except OSError:
        return ""
    return "" if ipaddress.ip_address(address).is_loopback else address
