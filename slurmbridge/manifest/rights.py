"""Which rights does the daemon need on a cluster, and for what? One table, which the chart, `doctor` and tests read.

Follows "Authorization" and "Using RBAC Authorization" of the Kubernetes documentation: a request is a verb on a resource of
an API group, in one namespace or in all. Jobs need no right at all: their pods' service account has none.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from slurmbridge.model.pods import Json


class Where(enum.Enum):
    JOBS = "namespace"  # in the namespace of the jobs: a Role
    CLUSTER = "cluster"  # in all namespaces, or on what is in none: a ClusterRole


class Right(msgspec.Struct, frozen=True, kw_only=True):
    """Verbs on one resource."""

    where: Where
    resource: str  # pods, pods/log
    verbs: tuple[str, ...]
    group: str = ""
    why: str  # what it is for
    without: str = ""  # what is missing without it; empty: no job can run


BAD_DEVICES: Final = "jobs get devices that have a taint"

RIGHTS: Final[tuple[Right, ...]] = (
    Right(
        where=Where.JOBS, resource="pods", verbs=("create", "delete", "get", "list", "patch", "watch"),
        why="runs are pods",
    ),
    Right(
        where=Where.JOBS, resource="services", verbs=("create", "delete", "get", "list", "watch"),
        why="ranks of a gang find each other by a headless service",
    ),
    Right(
        where=Where.JOBS, resource="events", verbs=("list",), why="why a pod does not start",
        without="pods that cannot start end after a while without the reason",
    ),
    Right(
        where=Where.JOBS, resource="pods/log", verbs=("get",), why="which device a holder of shared devices was given",
        without="parts of GPUs cannot be given to jobs",
    ),
    Right(
        where=Where.JOBS, resource="persistentvolumeclaims", verbs=("get",), why="whether volumes of partitions are there",
        without="doctor cannot tell whether volumes of partitions are there",
    ),
    Right(
        where=Where.JOBS, resource="namespaces", verbs=("get",), why="the level of pod security of the jobs' namespace",
        without="doctor cannot tell which pods the namespace admits",
    ),
    Right(
        where=Where.CLUSTER, resource="nodes", verbs=("get", "list", "watch"),
        why="nodes, their size, devices and health",
    ),
    Right(
        where=Where.CLUSTER, resource="nodes", verbs=("patch",), why="a drained node is cordoned, so that nobody uses it",
        without="nodes that are drained here are still used by others",
    ),
    Right(
        where=Where.CLUSTER, resource="pods", verbs=("list", "watch"), why="what others hold on the nodes",
        without="jobs are placed where pods of others have taken the room, and then fail to start",
    ),
    Right(
        where=Where.CLUSTER, group="resource.k8s.io", resource="resourceslices", verbs=("list", "watch"),
        why="devices that their drivers say are bad", without=BAD_DEVICES,
    ),
    Right(
        where=Where.CLUSTER, group="resource.k8s.io", resource="devicetaintrules", verbs=("list", "watch"),
        why="devices that somebody says are bad", without=BAD_DEVICES,
    ),
    Right(
        where=Where.CLUSTER, group="authentication.k8s.io", resource="tokenreviews", verbs=("create",),
        why="pods prove by their token which run they are of",
    ),
)  # fmt: skip
"""What runs with these may do nothing else: no secrets, no exec, no writing outside the jobs' namespace but to nodes."""


EVERYBODYS: Final = frozenset({("create", "authorization.k8s.io", "selfsubjectaccessreviews")})
"""What clusters allow to all users, besides reading which APIs there are (roles system:basic-user, system:discovery)."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What an API server asks its authorizers about a request."""

    verb: str
    resource: str  # with its subresource; empty: a path that is no resource's
    group: str = ""
    namespace: str = ""


_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def asked(method: str, path: str, query: Mapping[str, object] | None = None) -> Asked:
    """Of a request, as RequestInfo of the API server reads it."""
    words = path.strip("/").split("/")
    if words[:1] == ["api"] and len(words) > 2:
        group, rest = "", words[2:]
    elif words[:1] == ["apis"] and len(words) > 3:
        group, rest = words[1], words[3:]
    else:
        return Asked(verb=method.lower(), resource="")
    namespace = ""
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        rest = rest[2:] if len(rest) > 2 else rest
    is_one = len(rest) > 1
    verb = _VERBS.get(method) or ("get" if is_one else "list")
    if verb == "list" and str((query or {}).get("watch", "")) in ("true", "1"):
        verb = "watch"
    if verb == "delete" and not is_one:
        verb = "deletecollection"
    return Asked(verb=verb, resource="/".join((rest[0], *rest[2:])), group=group, namespace=namespace)


def covers(right: Right, request: Asked) -> bool:
    return (
        right.group == request.group
        and right.resource == request.resource
        and request.verb in right.verbs
        and (right.where is Where.CLUSTER or bool(request.namespace))
    )


def is_allowed(request: Asked, rights: Sequence[Right] = RIGHTS) -> bool:
    """By the table, or to whoever is known to the cluster at all."""
    key = (request.verb, request.group, request.resource)
    return key in EVERYBODYS or not request.resource or any(covers(right, request) for right in rights)


def rules(where: Where, rights: Sequence[Right] = RIGHTS) -> list[dict[str, Json]]:
    """As `rules` of a Role or ClusterRole."""
    return [
        {"apiGroups": [right.group], "resources": [right.resource], "verbs": list(right.verbs)}
        for right in rights
        if right.where is where
    ]
