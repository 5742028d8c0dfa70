"""Who submits, and what submission needs to know of the cluster as it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from slurmbridge.model.cluster import Node
from slurmbridge.model.job import JobSpec
from slurmbridge.model.plan import Reservation


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """The submitting process, as the daemon knows it. `argv` is the whole command line as typed."""

    uid: int
    gid: int
    user: str
    group: str
    groups: tuple[int, ...] = ()
    host: str = "localhost"
    sid: int = 0
    cwd: str = "/"
    umask: int = 0o022
    argv: tuple[str, ...] = ()
    is_operator: bool = False


class Resolved(msgspec.Struct, frozen=True, kw_only=True):
    """An accepted job. `reason`, `reason_text`: why it will wait in spite of that; empty when nothing is known yet."""

    spec: JobSpec
    warnings: tuple[str, ...] = ()
    reason: str = ""
    reason_text: str = ""


class Cluster(Protocol):
    """Reads of the controller's memory that submission needs."""

    def nodes(self) -> Sequence[Node]: ...
    def node(self, name: str) -> Node | None: ...
    def reservations(self) -> Iterable[Reservation]: ...
    def user_name(self, uid: int) -> str: ...
    def group_name(self, gid: int) -> str: ...
    def groups_of(self, user: str) -> Sequence[str]: ...
