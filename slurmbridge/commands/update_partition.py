"""What may `scontrol create partition` and `scontrol update partition` set, and what is the partition afterwards?

Follows scontrol(1), "Specifications for create, update, and delete commands, partitions". Values arrive typed; the text
is read by `parse_value` where the command is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import durations, hostlist, slurm_conf_preempt
from slurmbridge.model.cluster import Partition
from slurmbridge.model.states import PartitionState
from slurmbridge.model.units import UNLIMITED

Answer = Partition | SlurmErrno


class PartitionField(msgspec.Struct, frozen=True, kw_only=True):
    """`words`: the complaint's list of what is acceptable (kinds yes_no, state, oversubscribe)."""

    key: str
    typed: str
    field: str = ""
    least: int = 3


FIELDS = (
    PartitionField(key="MaxTime", typed="minutes", field="max_time", least=4),
    PartitionField(key="DefaultTime", typed="minutes", field="default_time", least=8),
    PartitionField(key="MaxCPUsPerNode", typed="limit", field="max_cpus_per_node", least=4),
    PartitionField(key="MaxCPUsPerSocket", typed="limit", field="max_cpus_per_socket", least=11),
    PartitionField(key="MaxNodes", typed="limit", field="max_nodes", least=4),
    PartitionField(key="MinNodes", typed="count", field="min_nodes", least=2),
    PartitionField(key="Default", typed="yes_no", field="default", least=7),
    PartitionField(key="DisableRootJobs", typed="yes_no", field="disable_root_jobs", least=1),
    PartitionField(key="ExclusiveUser", typed="yes_no", field="exclusive_user", least=10),
    PartitionField(key="ExclusiveTopo", typed="yes_no", field="exclusive_topo", least=10),
    PartitionField(key="Hidden", typed="yes_no", field="hidden", least=1),
    PartitionField(key="LLN", typed="yes_no", field="lln", least=1),
    PartitionField(key="RootOnly", typed="yes_no", field="root_only", least=3),
    PartitionField(key="ReqResv", typed="yes_no", field="req_resv", least=3),
    PartitionField(key="OverSubscribe", typed="oversubscribe", field="oversubscribe", least=5),
    PartitionField(key="Shared", typed="oversubscribe", field="oversubscribe", least=2),
    PartitionField(key="OverTimeLimit", typed="limit", field="over_time_limit", least=5),
    PartitionField(key="PreemptMode", typed="mode", field="preempt_mode", least=3),
    PartitionField(key="PriorityJobFactor", typed="count", field="priority_job_factor", least=9),
    PartitionField(key="PriorityTier", typed="count", field="priority_tier", least=9),
    PartitionField(key="Priority", typed="count", field="priority_tier", least=3),
    PartitionField(key="State", typed="state", field="state", least=2),
    PartitionField(key="Nodes", typed="nodes", least=1),
    PartitionField(key="AllowGroups", typed="names", field="allow_groups", least=6),
    PartitionField(key="AllowAccounts", typed="names", field="allow_accounts", least=6),
    PartitionField(key="AllowQos", typed="names", field="allow_qos", least=6),
    PartitionField(key="DenyAccounts", typed="names", field="deny_accounts", least=5),
    PartitionField(key="DenyQos", typed="names", field="deny_qos", least=5),
    PartitionField(key="Alternate", typed="alternate", least=3),
    PartitionField(key="PowerDownOnIdle", typed="idle", least=2),
    PartitionField(key="AllocNodes", typed="text", field="alloc_nodes", least=5),
    PartitionField(key="GraceTime", typed="seconds", field="grace_time", least=5),
    PartitionField(key="DefMemPerCPU", typed="limit", field="def_mem_per_cpu", least=10),
    PartitionField(key="DefMemPerNode", typed="limit", field="def_mem_per_node", least=10),
    PartitionField(key="MaxMemPerCPU", typed="limit", field="max_mem_per_cpu", least=10),
    PartitionField(key="MaxMemPerNode", typed="limit", field="max_mem_per_node", least=10),
    PartitionField(key="JobDefaults", typed="text", field="job_defaults", least=5),
    PartitionField(key="QOS", typed="text", field="qos", least=3),
    PartitionField(key="Topology", typed="text", field="topology", least=3),
    PartitionField(key="TresBillingWeights", typed="text", field="tres_billing_weights", least=5),
)  # fmt: skip
WITHOUT_EFFECT = ("alternate", "idle")
"""Jobs stay in the partition that they asked for, and nodes are not switched off; slurm.conf may say both, too."""
BY_KEY = {field.key: field for field in FIELDS}
_COMPLAINTS = {
    "yes_no": "Acceptable {key} values are YES and NO",
    "state": "Acceptable State values are UP, DOWN, DRAIN and INACTIVE",
    "oversubscribe": "Acceptable OverSubscribe values are NO, EXCLUSIVE, YES:#, and FORCE:#",
}


def find_field(text: str) -> PartitionField | None:
    """By name or a beginning that is long enough; case does not count."""
    word = text.lower()
    exact = next((field for field in FIELDS if field.key.lower() == word), None)
    return exact or next((f for f in FIELDS if len(word) >= f.least and f.key.lower().startswith(word)), None)


def parse_value(field: PartitionField, text: str, typed: str) -> Any:
    """The typed value, or LangError whose message has the lines of scontrol's complaint. `typed`: the whole word."""
    try:
        return _READERS[field.typed](text)
    except _Said as error:
        raise LangError(str(error), text=text) from error
    except (LangError, ValueError) as error:
        second = _COMPLAINTS.get(field.typed, "").format(key=field.key)
        colon = ":" if second or field.typed == "mode" else ""
        raise LangError("\n".join(filter(None, (f"Invalid input{colon} {typed}", second))), text=text) from error


class _Said(ValueError):
    """A complaint with words of its own."""


def _mode(text: str) -> str:
    """OFF keeps the partition's jobs from being preempted."""
    mode = slurm_conf_preempt.parse_mode(text)
    if mode is None:
        raise ValueError(text)
    if "GANG" in mode.split(","):
        raise _Said("PreemptMode=GANG is a cluster-wide option and cannot be set at partition level")
    return mode


def _seconds(text: str) -> int:
    try:
        return _count(text)
    except ValueError as error:
        raise _Said(f"Invalid GraceTime value: {text}") from error


def _minutes(text: str) -> int | None:
    value = durations.parse_minutes(text)
    return None if value == UNLIMITED else value


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 10:
        raise ValueError(text)
    return int(text)


def _limit(text: str) -> int | None:
    return None if text.upper() in ("UNLIMITED", "INFINITE", "-1", "NONE") else _count(text)


def _yes_no(text: str) -> bool:
    if text.upper() not in ("YES", "NO"):
        raise ValueError(text)
    return text.upper() == "YES"


def _oversubscribe(text: str) -> str:
    word, colon, number = text.upper().partition(":")
    if word not in ("NO", "EXCLUSIVE", "YES", "FORCE") or (colon and not number.isdecimal()):
        raise ValueError(text)
    return f"{word}:{number or 4}" if word in ("YES", "FORCE") else word


def _state(text: str) -> str:
    return PartitionState(text.upper()).value


def _names(text: str) -> tuple[str, ...]:
    return () if text.upper() == "ALL" else tuple(name for name in text.split(",") if name)


def _yes_no_only(text: str) -> None:
    """Nodes are not switched off: taken, and without effect."""
    _yes_no(text)


_READERS: dict[str, Callable[[str], Any]] = {
    "minutes": _minutes, "count": _count, "limit": _limit, "yes_no": _yes_no, "oversubscribe": _oversubscribe,
    "state": _state, "names": _names, "nodes": str, "text": str, "mode": _mode, "seconds": _seconds,
    "alternate": str, "idle": _yes_no_only,
}  # fmt: skip


def apply_partition_update(
    present: Partition | None, name: str, fields: Sequence[tuple[str, Any]], known: Iterable[str]
) -> Answer:
    """The partition after all changes; `present` None: a new one, as Slurm makes it. `known`: node names, in order."""
    names = list(known)
    changed = present if present is not None else Partition(name=name, min_nodes=1)
    for key, value in fields:
        field = BY_KEY.get(key)
        if field is None:
            return SlurmErrno.NOT_SUPPORTED
        if field.typed in WITHOUT_EFFECT:
            continue
        if field.typed == "nodes":
            members = _members(value, changed.nodes, names)
            if isinstance(members, SlurmErrno):
                return members
            changed = replace(changed, nodes=members, nodes_text=value)
        elif field.typed == "state":
            changed = replace(changed, state=PartitionState(value))
        else:
            changed = replace(changed, **{field.field: value})
    return changed


def _members(text: str, old: tuple[str, ...], known: list[str]) -> tuple[str, ...] | SlurmErrno:
    """`n[1-2]`, ALL, or `+n3`, `-n4` against the nodes it has."""
    if text.upper() == "ALL":
        return tuple(known)
    wanted = dict.fromkeys(old if text[:1] in ("+", "-") else ())
    try:
        for word in hostlist.expand(text):
            sign, name = (word[0], word[1:]) if word[0] in "+-" else ("+", word)
            if name not in known:
                return SlurmErrno.INVALID_NODE_NAME
            if sign == "+":
                wanted[name] = None
            else:
                wanted.pop(name, None)
    except LangError:
        return SlurmErrno.INVALID_NODE_NAME
    order = {name: place for place, name in enumerate(known)}
    return tuple(sorted(wanted, key=lambda name: order[name]))
