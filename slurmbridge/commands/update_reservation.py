"""What may `scontrol create|update|delete reservation` do, and which reservations are there afterwards?

Follows scontrol(1), "Specifications for create, update, and delete commands, reservations". Times arrive as epoch
seconds, durations as minutes. Nodes are named or counted (the first free ones of the partition); cores and GPUs by
themselves, repetition and purging are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import hostlist
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.plan import Reservation

FLAGS = (
    "MAINT", "OVERLAP", "IGNORE_JOBS", "ANY_NODES", "STATIC_ALLOC", "PART_NODES", "SPEC_NODES", "NO_HOLD_JOBS_AFTER_END",
    "FLEX", "MAGNETIC", "HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "USER_DELETE",
)  # fmt: skip
_REFUSED_FLAGS = ("HOURLY", "DAILY", "WEEKLY", "WEEKDAY", "WEEKEND", "FLEX", "MAGNETIC")
YEAR_MINUTES = 365 * 24 * 60


class Names(Protocol):
    """What is asked of the controller."""

    @property
    def config(self) -> ClusterConfig: ...
    def nodes(self) -> Sequence[Node]: ...
    def partitions(self) -> Sequence[Partition]: ...
    def user_id(self, name: str) -> int | None: ...


class ReservationField(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    typed: str  # "moment", "duration", "names", "flags", "text", "count"
    least: int = 3
    refused: bool = False


FIELDS = (
    ReservationField(key="StartTime", typed="moment", least=1),
    ReservationField(key="EndTime", typed="moment", least=1),
    ReservationField(key="Duration", typed="duration", least=1),
    ReservationField(key="NodeCnt", typed="count", least=5),
    ReservationField(key="Nodes", typed="text", least=5),
    ReservationField(key="Users", typed="names", least=1),
    ReservationField(key="Accounts", typed="names", least=1),
    ReservationField(key="PartitionName", typed="text", least=1),
    ReservationField(key="Features", typed="text", least=2),
    ReservationField(key="Licenses", typed="text", least=2),
    ReservationField(key="Flags", typed="flags", least=2),
    ReservationField(key="Comment", typed="text", least=4),
    ReservationField(key="CoreCnt", typed="count", least=5, refused=True),
    ReservationField(key="TRES", typed="text", least=1, refused=True),
    ReservationField(key="Groups", typed="names", least=1, refused=True),
    ReservationField(key="QOS", typed="names", least=1, refused=True),
    ReservationField(key="AllowedPartitions", typed="names", least=2, refused=True),
    ReservationField(key="BurstBuffer", typed="text", least=2, refused=True),
    ReservationField(key="MaxStartDelay", typed="duration", least=4, refused=True),
    ReservationField(key="Skip", typed="text", least=2, refused=True),
)


def find_field(text: str) -> ReservationField | None:
    """By name or a beginning that is long enough; case does not count."""
    word = text.lower()
    exact = next((field for field in FIELDS if field.key.lower() == word), None)
    return exact or next((f for f in FIELDS if len(word) >= f.least and f.key.lower().startswith(word)), None)


def apply_reservation(
    present: Sequence[Reservation], verb: str, name: str, fields: Sequence[tuple[str, Any]], names: Names, *, now: float
) -> tuple[tuple[Reservation, ...], str] | SlurmErrno:
    """All reservations after the change, and the name of the one that changed."""
    known = next((each for each in present if each.name == name), None)
    if verb == "delete":
        if known is None:
            return SlurmErrno.RESERVATION_INVALID
        return tuple(each for each in present if each.name != name), name
    if verb == "update":
        if known is None:
            return SlurmErrno.RESERVATION_INVALID
        after = _changed(known, fields, present, names, now)
        if isinstance(after, SlurmErrno):
            return after
        return tuple(after if each.name == name else each for each in present), name
    if known is not None:
        return SlurmErrno.RESERVATION_OVERLAP
    values = dict(fields)
    start = float(values.get("StartTime", now))
    fresh = Reservation(name=name, start_time=max(start, now), end_time=start)
    after = _changed(fresh, fields, present, names, now)
    if isinstance(after, SlurmErrno):
        return after
    if not after.name:
        after = replace(after, name=_free_name(after, present))
    return (*present, after), after.name


def _free_name(made: Reservation, present: Iterable[Reservation]) -> str:
    base = (made.users or made.accounts or ("resv",))[0].lstrip("-")
    taken = {each.name for each in present}
    number = 1
    while f"{base}_{number}" in taken:
        number += 1
    return f"{base}_{number}"


def _changed(
    old: Reservation, fields: Sequence[tuple[str, Any]], present: Sequence[Reservation], names: Names, now: float
) -> Reservation | SlurmErrno:
    values = dict(fields)
    if any((field := find_field(key)) is None or field.refused for key in values):
        return SlurmErrno.NOT_SUPPORTED
    flags = tuple(values.get("Flags", old.flags))
    if any(flag in _REFUSED_FLAGS for flag in flags):
        return SlurmErrno.NOT_SUPPORTED
    users, accounts = _merged(old.users, values.get("Users")), _merged(old.accounts, values.get("Accounts"))
    if any(names.user_id(user.lstrip("-")) is None for user in users):
        return SlurmErrno.USER_ID_MISSING
    start = float(values.get("StartTime", old.start_time))
    end = _end(old, values, start)
    if end <= start:
        return SlurmErrno.INVALID_TIME_LIMIT
    partition = values.get("PartitionName", old.partition)
    if partition and not any(each.name == partition for each in names.partitions()):
        return SlurmErrno.INVALID_PARTITION_NAME
    draft = replace(
        old, start_time=start, end_time=end, users=users, accounts=accounts, partition=partition, flags=flags,
        features=values.get("Features", old.features), licenses=values.get("Licenses", old.licenses),
        comment=values.get("Comment", old.comment),
    )  # fmt: skip
    others = [each for each in present if each.name != old.name and start < each.end_time and each.start_time < end]
    return _placed(draft, values, others, names)


def _end(old: Reservation, values: dict[str, Any], start: float) -> float:
    if "EndTime" in values:
        return float(values["EndTime"])
    if "Duration" in values:
        minutes = values["Duration"]
        return start + (YEAR_MINUTES if minutes is None else minutes) * 60
    return start + (old.end_time - old.start_time)


def _merged(old: tuple[str, ...], change: Any) -> tuple[str, ...]:
    """A list, or ("+"|"-", list) against the old one."""
    if change is None:
        return old
    sign, given = change
    if sign == "+":
        return tuple(dict.fromkeys((*old, *given)))
    if sign == "-":
        return tuple(each for each in old if each not in given)
    return tuple(given)


def _placed(
    draft: Reservation, values: dict[str, Any], others: Sequence[Reservation], names: Names
) -> Reservation | SlurmErrno:
    known = {node.name: node for node in names.nodes()}
    overlaps = {"MAINT", "OVERLAP"} & set(draft.flags)
    taken = set() if overlaps else {name for each in others for name in each.nodes}
    if "Nodes" in values:
        text = values["Nodes"]
        try:
            wanted = tuple(known) if text.upper() == "ALL" else tuple(hostlist.expand(text))
        except LangError:
            return SlurmErrno.INVALID_NODE_NAME
        if not set(wanted) <= set(known):
            return SlurmErrno.INVALID_NODE_NAME
        if taken & set(wanted):
            return SlurmErrno.RESERVATION_OVERLAP
        flags = draft.flags if "SPEC_NODES" in draft.flags else (*draft.flags, "SPEC_NODES")
        return replace(draft, nodes=wanted, flags=flags)
    if "NodeCnt" in values:
        pool = _pool(draft, names)
        free = [name for name in pool.nodes if name in known and name not in taken] if pool else []
        if len(free) < values["NodeCnt"]:
            return SlurmErrno.NODES_BUSY
        partition = draft.partition or (pool.name if pool else "")
        return replace(draft, nodes=tuple(free[: values["NodeCnt"]]), partition=partition)
    if taken & set(draft.nodes):
        return SlurmErrno.RESERVATION_OVERLAP
    return draft


def _pool(draft: Reservation, names: Names) -> Partition | None:
    """The partition whose nodes are counted: as asked, else the default one."""
    partitions = names.partitions()
    if draft.partition:
        return next((each for each in partitions if each.name == draft.partition), None)
    return next((each for each in partitions if each.default), None)
