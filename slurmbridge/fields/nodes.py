"""Which columns has `sinfo`? A row is a group of equal nodes of one partition (or of several).

Follows sinfo(1), sections FORMAT and --Format. A field's `match` says what must be equal for two nodes to share a row;
fields without one are merged into ranges and sums, as in Slurm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from slurmbridge.fields import states, text
from slurmbridge.fields.layout import Field, Registry
from slurmbridge.fields.view import View
from slurmbridge.lang import durations
from slurmbridge.model.cluster import Node, Partition
from slurmbridge.model.states import NodeBase, NodeFlag

_NULL = "(null)"
_UNKNOWN = "Unknown"


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes that share a row, and the first partition they were seen in. No nodes: an empty partition's row."""

    partition: Partition
    nodes: tuple[Node, ...] = ()


Getter = Callable[[NodeGroup, View], str]


Key = tuple[object, ...]


def matchers(names: Iterable[str], exact: bool) -> tuple[Callable[[Node], Key], Callable[[Partition], Key]]:
    """What two nodes, and their partitions, must have in common to be one row, given the columns shown."""
    shown = list(names)
    of_node = [_MATCH_NODE[name] for name in shown if name in _MATCH_NODE]
    of_partition = [_MATCH_PARTITION[name] for name in shown if name in _MATCH_PARTITION]
    if exact:
        of_node += [_EXACT[name] for name in shown if name in _EXACT]
    return (
        lambda node: tuple([get(node) for get in of_node]),
        lambda partition: tuple([get(partition) for get in of_partition]),
    )


def _used(node: Node) -> tuple[int, int, int, int]:
    """CPUs allocated, idle, other, total."""
    total, held = node.conf.cpus, node.alloc_cpus
    out = node.base is NodeBase.DOWN or bool(node.flags & {NodeFlag.DRAIN, NodeFlag.FAIL})
    rest = total - held
    elsewhere = rest if out else min(node.others.cpus, rest)
    return (0, 0, total, total) if node.base is NodeBase.DOWN else (held, rest - elsewhere, elsewhere, total)


def _kind(node: Node) -> int:
    """0 allocated, 1 idle, 2 other: which count of NODES(A/I/O/T) a node is in."""
    if node.base is NodeBase.DOWN:
        return 2
    if node.base in (NodeBase.ALLOCATED, NodeBase.MIXED) or NodeFlag.COMPLETING in node.flags:
        return 0
    if node.flags & {NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.NOT_RESPONDING}:
        return 2
    return 1 if node.base is NodeBase.IDLE else 2


def node_counts(group: NodeGroup) -> tuple[int, int, int, int]:
    kinds = [_kind(node) for node in group.nodes]
    return kinds.count(0), kinds.count(1), kinds.count(2), len(kinds)


def cpu_sums(group: NodeGroup) -> tuple[int, int, int, int]:
    """CPUs allocated, idle, other, total."""
    used = [_used(node) for node in group.nodes]
    allocated, idle, other, total = (sum(each[at] for each in used) for at in range(4))
    return allocated, idle, other, total


def _cpu_counts(group: NodeGroup) -> str:
    return "/".join(map(str, cpu_sums(group)))


def _least(values: Iterable[int]) -> str:
    """A number, with `+` when some have more; 0 of nothing."""
    found = list(values)
    if not found:
        return "0"
    return f"{min(found)}+" if max(found) > min(found) else str(min(found))


def _span(values: Iterable[str | None], order: Callable[[str], float]) -> str:
    found = [value for value in values if value is not None]
    if not found:
        return "N/A"
    low, high = min(found, key=order), max(found, key=order)
    return low if low == high else f"{low}-{high}"


def _first(group: NodeGroup, get: Callable[[Node], str], missing: str = _NULL) -> str:
    return (get(group.nodes[0]) or missing) if group.nodes else missing


def state_word(group: NodeGroup) -> str:
    return states.node_word(group.nodes[0]).lower() if group.nodes else "n/a"


def state_code(group: NodeGroup) -> str:
    return states.node_code(group.nodes[0]) if group.nodes else "n/a"


def host_names(group: NodeGroup) -> str:
    return text.fold(tuple(node.name for node in group.nodes)) if group.nodes else ""


def partition_name(partition: Partition) -> str:
    """With the star of the default partition."""
    return partition.name + "*" if partition.default else partition.name


def job_size(partition: Partition) -> str:
    least, most = max(partition.min_nodes, 1), partition.max_nodes
    if most is None:
        return f"{least}-infinite"
    return str(least) if least == most else f"{least}-{most}"


def time_text(minutes: int | None, missing: str) -> str:
    return missing if minutes is None else durations.render_short(minutes * 60)


def gres_used(node: Node) -> str:
    """`gpu:a100:2(IDX:0-1)` per type; `(null)` without devices."""
    if not node.conf.devices:
        return _NULL
    busy = {index: milli for index, milli, _ in node.alloc_devices if milli}
    kinds: dict[tuple[str, str], list[int]] = {}
    for device in node.conf.devices:
        held = kinds.setdefault((device.name, device.type), [])
        if device.index in busy:
            held.append(device.index)
    parts = []
    for (name, kind), held in kinds.items():
        label = f"{name}:{kind}" if kind else name
        indexes = text.index_text(held) if held else "N/A"
        parts.append(f"{label}:{_amount(sum(busy[index] for index in held))}(IDX:{indexes})")
    return ",".join(parts)


def _amount(milli: int) -> str:
    return f"{milli / 1000:g}"


def reason_user(group: NodeGroup, view: View, *, long: bool) -> str:
    node = group.nodes[0] if group.nodes else None
    if node is None or not node.reason or node.reason_uid is None:
        return "root" if node is None and not long else ("root(0)" if node is None else _UNKNOWN)
    name = view.user(node.reason_uid)
    return f"{name}({node.reason_uid})" if long else name


def _share(partition: Partition) -> str:
    word = partition.oversubscribe.upper()
    return "EXCLUSIVE" if word.startswith("EXCL") else word


def _lower_list(values: tuple[str, ...]) -> str:
    return ",".join(values) or "all"


def _part(get: Callable[[Partition], str]) -> Getter:
    return lambda group, view: get(group.partition)


def preempt_mode(partition: Partition, view: View) -> str:
    return (partition.preempt_mode or view.config.preempt_mode).upper()


def _f(name: str, letter: str, heading: str, get: Getter, *also: str) -> Field[NodeGroup]:
    return Field(name, letter, heading, get, also)


def _load(node: Node) -> str | None:
    return None if node.cpu_load is None else f"{node.cpu_load:.2f}"


def _free(node: Node) -> str | None:
    return None if node.free_memory is None else str(node.free_memory)


def _stamp(group: NodeGroup, view: View) -> str:
    node = group.nodes[0] if group.nodes else None
    return view.time(node.reason_time if node is not None and node.reason else None, _UNKNOWN)


FIELDS: tuple[Field[NodeGroup], ...] = (
    _f("AllocMem", "", "ALLOCMEM", lambda g, v: _first(g, lambda n: str(n.alloc_memory), "0")),
    _f("AllocNodes", "S", "ALLOCNODES", _part(lambda p: "all" if p.alloc_nodes in ("", "ALL") else p.alloc_nodes)),
    _f("Available", "a", "AVAIL", _part(lambda p: p.state.value.lower())),
    _f("Cluster", "V", "CLUSTER", lambda g, v: "N/A"),
    _f("Comment", "", "COMMENT", lambda g, v: _first(g, lambda n: n.comment)),
    _f("Cores", "Y", "CORES", lambda g, v: _least(n.conf.cores_per_socket for n in g.nodes)),
    _f("CPUs", "c", "CPUS", lambda g, v: _least(n.conf.cpus for n in g.nodes)),
    _f("CPUsLoad", "O", "CPU_LOAD", lambda g, v: _span((_load(n) for n in g.nodes), float)),
    _f("CPUsState", "C", "CPUS(A/I/O/T)", lambda g, v: _cpu_counts(g)),
    _f("DefaultTime", "L", "DEFAULTTIME", _part(lambda p: time_text(p.default_time, "n/a"))),
    _f("Disk", "d", "TMP_DISK", lambda g, v: _least(n.conf.tmp_disk for n in g.nodes)),
    _f("Extra", "", "EXTRA", lambda g, v: _first(g, lambda n: n.extra)),
    _f("Features", "f", "AVAIL_FEATURES", lambda g, v: _first(g, lambda n: ",".join(n.conf.features))),
    _f("features_act", "b", "ACTIVE_FEATURES", lambda g, v: _first(g, lambda n: ",".join(n.features_active))),
    _f("FreeMem", "e", "FREE_MEM", lambda g, v: _span((_free(n) for n in g.nodes), float)),
    _f("Gres", "G", "GRES", lambda g, v: _first(g, lambda n: n.conf.gres)),
    _f("GresUsed", "", "GRES_USED", lambda g, v: _first(g, gres_used)),
    _f("Groups", "g", "GROUPS", _part(lambda p: _lower_list(p.allow_groups))),
    _f("MaxCPUsPerNode", "B", "MAX_CPUS_PER_NODE", _part(lambda p: "UNLIMITED" if p.max_cpus_per_node is None else str(p.max_cpus_per_node))),
    _f("Memory", "m", "MEMORY", lambda g, v: _least(n.conf.real_memory for n in g.nodes)),
    _f("NodeAddr", "o", "NODE_ADDR", lambda g, v: _first(g, lambda n: n.conf.address or n.name, "")),
    _f("NodeAI", "A", "NODES(A/I)", lambda g, v: "/".join(map(str, node_counts(g)[:2]))),
    _f("NodeAIOT", "F", "NODES(A/I/O/T)", lambda g, v: "/".join(map(str, node_counts(g)))),
    _f("NodeHost", "n", "HOSTNAMES", lambda g, v: _first(g, lambda n: n.conf.host or n.name, "")),
    _f("NodeList", "N", "NODELIST", lambda g, v: host_names(g)),
    _f("Nodes", "D", "NODES", lambda g, v: str(len(g.nodes))),
    _f("OverSubscribe", "h", "OVERSUBSCRIBE", _part(_share), "Share"),
    _f("Partition", "P", "PARTITION", _part(partition_name)),
    _f("PartitionName", "R", "PARTITION", _part(lambda p: p.name)),
    _f("Port", "", "PORT", lambda g, v: _first(g, lambda n: str(n.conf.port), "0")),
    _f("PreemptMode", "M", "PREEMPT_MODE", lambda g, v: preempt_mode(g.partition, v)),
    _f("PriorityJobFactor", "I", "PRIO_JOB_FACTOR", _part(lambda p: str(p.priority_job_factor))),
    _f("PriorityTier", "p", "PRIO_TIER", _part(lambda p: str(p.priority_tier))),
    _f("Reason", "E", "REASON", lambda g, v: _first(g, lambda n: n.reason, "none")),
    _f("Reservation", "i", "RESERVATION", lambda g, v: ""),
    _f("Root", "r", "ROOT", _part(lambda p: "yes" if p.root_only else "no")),
    _f("Size", "s", "JOB_SIZE", _part(job_size)),
    _f("Sockets", "X", "SOCKETS", lambda g, v: _least(n.conf.sockets for n in g.nodes)),
    _f("SocketCoreThread", "z", "S:C:T", lambda g, v: _sct(g)),
    _f("StateCompact", "t", "STATE", lambda g, v: state_code(g)),
    _f("StateComplete", "", "STATECOMPLETE", lambda g, v: _first(g, lambda n: states.node_complete(n).lower(), "n/a")),
    _f("StateLong", "T", "STATE", lambda g, v: state_word(g)),
    _f("Threads", "Z", "THREADS", lambda g, v: _least(n.conf.threads_per_core for n in g.nodes)),
    _f("Time", "l", "TIMELIMIT", _part(lambda p: time_text(p.max_time, "infinite"))),
    _f("TimeStamp", "H", "TIMESTAMP", _stamp),
    _f("User", "u", "USER", lambda g, v: reason_user(g, v, long=False)),
    _f("UserLong", "U", "USER", lambda g, v: reason_user(g, v, long=True)),
    _f("Version", "v", "VERSION", lambda g, v: VERSION if g.nodes else "N/A"),
    _f("Weight", "w", "WEIGHT", lambda g, v: _least(n.conf.weight for n in g.nodes)),
)  # fmt: skip

VERSION = "26.05.5"


def _sct(group: NodeGroup) -> str:
    if not group.nodes:
        return "0:0:0"
    confs = [node.conf for node in group.nodes]
    return ":".join(
        (
            _least(c.sockets for c in confs),
            _least(c.cores_per_socket for c in confs),
            _least(c.threads_per_core for c in confs),
        )
    )


# Column -> what must be equal within a row, of the node and of the partition.
_MATCH_NODE: dict[str, Callable[[Node], object]] = {
    "AllocMem": lambda n: n.alloc_memory,
    "Comment": lambda n: n.comment,
    "Extra": lambda n: n.extra,
    "Features": lambda n: n.conf.features,
    "features_act": lambda n: n.features_active,
    "Gres": lambda n: n.conf.gres,
    "GresUsed": lambda n: gres_used(n),
    "NodeAddr": lambda n: n.name,
    "NodeHost": lambda n: n.name,
    "Port": lambda n: n.conf.port,
    "Reason": lambda n: n.reason,
    "StateCompact": lambda n: states.node_word(n),
    "StateComplete": lambda n: states.node_complete(n),
    "StateLong": lambda n: states.node_word(n),
    "TimeStamp": lambda n: n.reason_time if n.reason else None,
    "User": lambda n: n.reason_uid if n.reason else None,
    "UserLong": lambda n: n.reason_uid if n.reason else None,
}
_MATCH_PARTITION: dict[str, Callable[[Partition], object]] = {
    "AllocNodes": lambda p: p.alloc_nodes,
    "Available": lambda p: p.state,
    "DefaultTime": lambda p: p.default_time,
    "Groups": lambda p: p.allow_groups,
    "MaxCPUsPerNode": lambda p: p.max_cpus_per_node,
    "OverSubscribe": lambda p: p.oversubscribe,
    "Partition": lambda p: p.name,
    "PartitionName": lambda p: p.name,
    "PreemptMode": lambda p: p.preempt_mode,
    "PriorityJobFactor": lambda p: p.priority_job_factor,
    "PriorityTier": lambda p: p.priority_tier,
    "Root": lambda p: p.root_only,
    "Size": lambda p: (p.min_nodes, p.max_nodes),
    "Time": lambda p: p.max_time,
}
# Columns that --exact keeps apart too.
_EXACT: dict[str, Callable[[Node], object]] = {
    "Cores": lambda n: n.conf.cores_per_socket,
    "CPUs": lambda n: n.conf.cpus,
    "CPUsLoad": lambda n: n.cpu_load,
    "Disk": lambda n: n.conf.tmp_disk,
    "FreeMem": lambda n: n.free_memory,
    "Memory": lambda n: n.conf.real_memory,
    "Sockets": lambda n: n.conf.sockets,
    "SocketCoreThread": lambda n: (n.conf.sockets, n.conf.cores_per_socket, n.conf.threads_per_core),
    "Threads": lambda n: n.conf.threads_per_core,
    "Weight": lambda n: n.conf.weight,
}

REGISTRY: Registry[NodeGroup] = Registry(
    FIELDS,
    complaint="Invalid node format specification: ",
    named_complaint="sinfo: error: Invalid job format specification: ",
)
HELP_LETTERS = "SaVYcOCLdfbeGGgBmoAFnNDhPRMIpEirsXztTZlHuUvw"
