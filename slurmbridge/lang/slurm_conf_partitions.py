"""Which partitions do the PartitionName lines describe?

Follows slurm.conf(5): `PartitionName=DEFAULT` sets what later lines start from, `Nodes=` takes host lists, node sets and
ALL. Times become minutes, sizes MiB; None means no limit. Knows nothing of jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from slurmbridge.lang import slurm_conf_preempt
from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_lines import ConfLine, Pair
from slurmbridge.lang.slurm_conf_nodes import Nodes, members
from slurmbridge.model.cluster import Partition
from slurmbridge.model.states import PartitionState

BY_TIER = "partitions say how their jobs are preempted only with PreemptType=preempt/partition_prio"
WITHOUT_EFFECT = {
    "alternate": "jobs stay in the partition that they asked for",
    "cpubind": "tasks are bound as their step asks",
    "powerdownonidle": "nodes are not switched off",
    "resumetimeout": "nodes are not switched on",
    "suspendtimeout": "nodes are not switched off",
    "selecttypeparameters": "the cluster's SelectTypeParameters hold for every partition",
}
SHOWN_ONLY = {
    "gracetime": BY_TIER,
    "maxcpuspersocket": "CPUs of a node are not limited by socket",
    "preemptmode": BY_TIER,
    "suspendtime": "nodes are not switched off",
}
"""Kept for `scontrol show partition`, without effect."""
_STATES = {"up": "UP", "down": "DOWN", "drain": "DRAIN", "drained": "DRAIN", "inactive": "INACTIVE"}


def _everyone(pair: Pair) -> tuple[str, ...]:
    return () if pair.value.upper() == "ALL" else values.names(pair)


def _state(pair: Pair) -> PartitionState:
    word = _STATES.get(pair.value.lower())
    if word is None:
        raise pair.error(f'Bad value "{pair.value}" for {pair.key}')
    return PartitionState(word)


def _default_time(pair: Pair) -> int | None:
    return None if pair.value.upper() == "NONE" else values.minutes(pair)


def _oversubscribe(pair: Pair) -> str:
    word, _, number = pair.value.upper().partition(":")
    if word not in ("NO", "EXCLUSIVE", "YES", "FORCE") or (number and not number.isdecimal()):
        raise pair.error(f'Bad value "{pair.value}" for OverSubscribe (use NO, YES, FORCE)')
    return f"{word}:{number or 4}" if word in ("YES", "FORCE") else word


def _exclusive(pair: Pair) -> tuple[tuple[str, Any], ...]:
    word = pair.value.upper()
    found = {"NO": (), "NODE": (("oversubscribe", "EXCLUSIVE"),), "USER": (("exclusive_user", True),),
             "TOPO": (("exclusive_topo", True),)}.get(word)  # fmt: skip
    if found is None:
        raise pair.error(f'Bad value "{pair.value}" for Exclusive= (use NO, NODE, USER, TOPO)')
    return found


def _over_time(pair: Pair) -> int | None:
    return values.number(pair, values.MAX_SMALL)


def _memory(pair: Pair) -> int | None:
    """MiB; 0 means no limit."""
    return values.number(pair) or None


def _text(pair: Pair) -> str:
    return pair.value


def _count(pair: Pair) -> int:
    return values.count(pair)


def _suspend_time(pair: Pair) -> int | None:
    return values.number(pair)


_FIELDS: dict[str, tuple[str, Callable[[Pair], Any]]] = {
    "allocnodes": ("alloc_nodes", _text),
    "allowaccounts": ("allow_accounts", _everyone),
    "allowgroups": ("allow_groups", _everyone),
    "allowqos": ("allow_qos", _everyone),
    "default": ("default", values.switch),
    "defaulttime": ("default_time", _default_time),
    "defmempercpu": ("def_mem_per_cpu", _memory),
    "defmempernode": ("def_mem_per_node", _memory),
    "denyaccounts": ("deny_accounts", values.names),
    "denyqos": ("deny_qos", values.names),
    "disablerootjobs": ("disable_root_jobs", values.switch),
    "exclusiveuser": ("exclusive_user", values.switch),
    "exclusivetopo": ("exclusive_topo", values.switch),
    "gracetime": ("grace_time", _count),
    "hidden": ("hidden", values.switch),
    "lln": ("lln", values.switch),
    "maxcpuspernode": ("max_cpus_per_node", values.number),
    "maxcpuspersocket": ("max_cpus_per_socket", values.number),
    "maxmempercpu": ("max_mem_per_cpu", _memory),
    "maxmempernode": ("max_mem_per_node", _memory),
    "maxnodes": ("max_nodes", values.number),
    "maxtime": ("max_time", values.minutes),
    "minnodes": ("min_nodes", _count),
    "oversubscribe": ("oversubscribe", _oversubscribe),
    "shared": ("oversubscribe", _oversubscribe),
    "overtimelimit": ("over_time_limit", _over_time),
    "preemptmode": ("preempt_mode", slurm_conf_preempt.read_mode),
    "priorityjobfactor": ("priority_job_factor", _count),
    "prioritytier": ("priority_tier", _count),
    "qos": ("qos", _text),
    "reqresv": ("req_resv", values.switch),
    "rootonly": ("root_only", values.switch),
    "state": ("state", _state),
    "suspendtime": ("suspend_time", _suspend_time),
    "topology": ("topology", _text),
    "tresbillingweights": ("tres_billing_weights", _text),
}


def read_partitions(
    lines: Iterable[ConfLine], nodes: Nodes, sets: dict[str, tuple[str, ...]], notes: list[tuple[str, int, str]]
) -> tuple[Partition, ...]:
    """In file order. The last one with Default=YES is the default. Raises ConfigError with the line."""
    default = Partition(name="DEFAULT")
    found: dict[str, Partition] = {}
    for line in lines:
        part = _read_line(line, default, nodes, sets, notes)
        if line.head.value.lower() == "default":
            default = part
            continue
        if part.name in found:
            raise line.head.error(f"Duplicated PartitionName {part.name} in the config file")
        if part.default:
            found = {name: msgspec.structs.replace(each, default=False) for name, each in found.items()}
        found[part.name] = msgspec.structs.replace(part, index=len(found))
    return tuple(found.values())


def _read_line(
    line: ConfLine,
    default: Partition,
    nodes: Nodes,
    sets: dict[str, tuple[str, ...]],
    notes: list[tuple[str, int, str]],
) -> Partition:
    changes: dict[str, Any] = {"name": line.head.value}
    for pair in line.pairs[1:]:
        key = pair.key.lower()
        if key in SHOWN_ONLY:
            notes.append((pair.file, pair.line, f"PartitionName {pair.key}"))
        if key == "nodes":
            changes["nodes"], changes["nodes_text"] = members(pair, nodes, sets), pair.value
        elif key == "exclusive":
            changes.update(_exclusive(pair))
        elif key == "priority":
            changes["priority_tier"] = changes["priority_job_factor"] = values.count(pair, values.MAX_SMALL)
        elif key in ("defcpupergpu", "defmempergpu"):
            values.count(pair)
            word = f"{'DefCpuPerGPU' if key == 'defcpupergpu' else 'DefMemPerGPU'}={pair.value}"
            changes["job_defaults"] = ",".join(filter(None, (changes.get("job_defaults", ""), word)))
        elif key in WITHOUT_EFFECT:
            notes.append((pair.file, pair.line, f"PartitionName {pair.key}"))
        elif key in _FIELDS:
            field, read = _FIELDS[key]
            changes[field] = read(pair)
        else:
            raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
    return msgspec.structs.replace(default, **changes)
