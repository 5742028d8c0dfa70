"""Which nodes do the NodeName, NodeSet and DownNodes lines describe?

Follows slurm.conf(5) and gres.conf(5): `NodeName=DEFAULT` sets what later lines start from, one line describes many
nodes by a host list, whose addresses, host names and ports run along; devices come from gres.conf, matched with what
`Gres=` promises. Knows neither partitions nor the state of a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

from slurmbridge.errors import ConfigError
from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_gres import GresLine, devices_of, is_configured
from slurmbridge.lang.slurm_conf_lines import ConfLine, Pair
from slurmbridge.model.cluster import NodeConf

_SMALL_COUNTS = {
    "boards": "boards",
    "sockets": "sockets",
    "corespersocket": "cores_per_socket",
    "threadspercore": "threads_per_core",
    "corespeccount": "core_spec_count",
}
_COUNTS = {"realmemory": "real_memory", "tmpdisk": "tmp_disk", "weight": "weight", "memspeclimit": "mem_spec_limit"}
_RUNNING = {"nodeaddr": "address", "nodehostname": "host"}
STATES = ("UNKNOWN", "IDLE", "DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE", "CLOUD", "EXTERNAL")
WITHOUT_EFFECT = {
    "bcastaddr": "sbcast goes by the node's address",
    "cpubind": "tasks are bound as their step asks",
    "cpuspeclist": "CPUs are set aside by CoreSpecCount",
    "gresconf": "devices are those of gres.conf",
    "parameters": "slurmd's own settings",
    "restrictedcorespergpu": "cores are not kept back for GPUs",
    "suspendtime": "nodes are not switched off",
    "topology": "switches are those of topology.conf",
    "tresweights": "nodes are chosen by Weight",
}


class NodeLine(msgspec.Struct, kw_only=True):
    """What one NodeName line says so far; copied from the DEFAULT line."""

    counts: dict[str, int] = {}
    cpus: int | None = None
    sockets_per_board: int | None = None
    running: dict[str, Pair] = {}
    port: Pair | None = None
    features: tuple[str, ...] = ()
    gres: str = ""
    gres_pair: Pair | None = None
    reason: str = ""
    state: str = "UNKNOWN"


class Nodes(msgspec.Struct, kw_only=True):
    """All nodes in file order, and what was noticed on the way."""

    confs: dict[str, NodeConf] = {}
    without_effect: list[tuple[str, int, str]] = []


def read_nodes(lines: Iterable[ConfLine], gres: Sequence[GresLine], gres_types: Sequence[str]) -> Nodes:
    """From the NodeName lines, in order. Raises ConfigError with the line."""
    found = Nodes()
    default = NodeLine()
    for line in lines:
        read = _read_line(line, default, found.without_effect)
        if line.head.value.lower() == "default":
            default = read
            continue
        _expand_line(line.head, read, found, gres, gres_types)
    return found


def _read_line(line: ConfLine, default: NodeLine, notes: list[tuple[str, int, str]]) -> NodeLine:
    read = msgspec.structs.replace(default, counts=dict(default.counts), running=dict(default.running))
    for pair in line.pairs[1:]:
        key = pair.key.lower()
        if key in _SMALL_COUNTS:
            read.counts[_SMALL_COUNTS[key]] = values.count(pair, values.MAX_SMALL)
        elif key in _COUNTS:
            read.counts[_COUNTS[key]] = values.count(pair)
        elif key in _RUNNING:
            read.running[_RUNNING[key]] = pair
        elif key in WITHOUT_EFFECT:
            notes.append((pair.file, pair.line, f"NodeName {pair.key}"))
        elif key in _SETTERS:
            _SETTERS[key](read, pair)
        else:
            raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
    return read


def _set_cpus(read: NodeLine, pair: Pair) -> None:
    read.cpus = values.count(pair, values.MAX_SMALL)


def _set_sockets_per_board(read: NodeLine, pair: Pair) -> None:
    read.sockets_per_board = values.count(pair, values.MAX_SMALL)


def _set_features(read: NodeLine, pair: Pair) -> None:
    read.features = values.names(pair)


def _set_gres(read: NodeLine, pair: Pair) -> None:
    read.gres, read.gres_pair = pair.value, pair


def _set_reason(read: NodeLine, pair: Pair) -> None:
    read.reason = pair.value


def _set_state(read: NodeLine, pair: Pair) -> None:
    words = pair.value.upper().split("+")
    if any(word not in STATES for word in words):
        raise pair.error(f"Invalid state {pair.value} for node")
    read.state = "+".join(words)


def _set_port(read: NodeLine, pair: Pair) -> None:
    read.port = pair


_SETTERS: dict[str, Callable[[NodeLine, Pair], None]] = {
    "cpus": _set_cpus,
    "procs": _set_cpus,
    "socketsperboard": _set_sockets_per_board,
    "feature": _set_features,
    "features": _set_features,
    "gres": _set_gres,
    "reason": _set_reason,
    "state": _set_state,
    "port": _set_port,
}


def _layout(read: NodeLine, head: Pair, notes: list[tuple[str, int, str]]) -> dict[str, int]:
    """CPUs, boards, sockets, cores and threads, the missing ones inferred."""
    counts = {key: max(value, 1) for key, value in read.counts.items() if key in _SMALL_COUNTS.values()}
    boards = counts.get("boards", 1)
    cores, threads = counts.get("cores_per_socket", 1), counts.get("threads_per_core", 1)
    sockets = counts.get("sockets", 0) or (read.sockets_per_board or 0) * boards
    if not sockets:
        sockets = max((read.cpus or 1) // (cores * threads), boards)
    cpus = read.cpus or sockets * cores * threads
    if cpus not in (sockets * cores * threads, sockets * cores):
        notes.append(
            (head.file, head.line, f"NodeName {head.value} CPUs={cpus} (not Sockets*CoresPerSocket*ThreadsPerCore)")
        )
        cpus = sockets * cores * threads
    return {
        "cpus": cpus, "boards": boards, "sockets": sockets, "cores_per_socket": cores, "threads_per_core": threads,
    }  # fmt: skip


def _along(pair: Pair | None, names: Sequence[str], key: str) -> Sequence[str]:
    """One text per name: the names themselves, one text for all, or as many as names."""
    if pair is None:
        return names
    given = values.hosts(pair)
    if len(given) == 1:
        return given * len(names)
    if len(given) != len(names):
        raise pair.error(f"{key} count must equal that of NodeName records or there must be no more than one")
    return given


def _ports(pair: Pair | None, names: Sequence[str]) -> Sequence[int]:
    if pair is None:
        return [6818] * len(names)
    texts = _along(pair, names, "Port")
    if any(not text.isdecimal() or int(text) > values.MAX_SMALL for text in texts):
        raise pair.error(f"Invalid Port {pair.value}")
    return [int(text) for text in texts]


def _expand_line(head: Pair, read: NodeLine, found: Nodes, gres: Sequence[GresLine], gres_types: Sequence[str]) -> None:
    names = values.hosts(head)
    if not names:
        raise head.error("NodeName is empty")
    if read.gres_pair is not None:
        problem = is_configured(read.gres, gres_types)
        if problem:
            raise read.gres_pair.error(f"Invalid GRES configured on node {head.value}: {problem}")
    layout = _layout(read, head, found.without_effect)
    addresses = _along(read.running.get("address"), names, "NodeAddr")
    hosts = _along(read.running.get("host"), names, "NodeHostname")
    ports = _ports(read.port, names)
    plain = {key: value for key, value in read.counts.items() if key not in layout}
    for name, address, host, port in zip(names, addresses, hosts, ports, strict=True):
        if name in found.confs:
            raise head.error(f"Duplicated NodeName {name} in the config file")
        devices, shortage = devices_of(name, read.gres, gres)
        conf = NodeConf(
            name=name, address=address, host=host, port=port, features=read.features, gres=read.gres, devices=devices,
            state="DRAIN" if shortage else read.state, reason=shortage or read.reason, index=len(found.confs),
        )  # fmt: skip
        found.confs[name] = msgspec.structs.replace(conf, **layout, **plain)


def read_node_sets(lines: Iterable[ConfLine], nodes: Nodes) -> dict[str, tuple[str, ...]]:
    """Names of each NodeSet: those listed and those that have the feature."""
    sets: dict[str, tuple[str, ...]] = {}
    for line in lines:
        members: list[str] = []
        for pair in line.pairs[1:]:
            if pair.key.lower() == "nodes":
                members += _all_or_listed(pair, nodes)
            elif pair.key.lower() in ("feature", "features"):
                members += [conf.name for conf in nodes.confs.values() if pair.value in conf.features]
            else:
                raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
        if line.head.value in sets:
            raise line.head.error(f"Duplicated NodeSet {line.head.value} in the config file")
        sets[line.head.value] = tuple(dict.fromkeys(members))
    return sets


def _all_or_listed(pair: Pair, nodes: Nodes) -> tuple[str, ...]:
    if pair.value.upper() == "ALL":
        return tuple(nodes.confs)
    listed = values.hosts(pair)
    unknown = [name for name in listed if name not in nodes.confs]
    if unknown:
        raise pair.error(f"Invalid node name specified: {unknown[0]}")
    return listed


def members(pair: Pair, nodes: Nodes, sets: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Nodes of a partition's `Nodes=`, node sets resolved, in configuration order."""
    if pair.value.upper() == "ALL":
        return tuple(nodes.confs)
    wanted: dict[str, None] = {}
    for name in values.hosts(pair):
        for each in sets.get(name, (name,)):
            if each not in nodes.confs:
                raise pair.error(f"Invalid node name specified: {each}")
            wanted[each] = None
    return tuple(sorted(wanted, key=lambda name: nodes.confs[name].index))


def read_down_nodes(lines: Iterable[ConfLine], nodes: Nodes) -> tuple[tuple[tuple[str, ...], str, str], ...]:
    """(names, state, reason) of each DownNodes line."""
    down = []
    for line in lines:
        state, reason = "DOWN", ""
        for pair in line.pairs[1:]:
            if pair.key.lower() == "state":
                state = pair.value.upper()
                if state not in ("DOWN", "DRAIN", "FAIL", "FAILING", "FUTURE"):
                    raise pair.error(f"Invalid state {pair.value} for DownNodes")
            elif pair.key.lower() == "reason":
                reason = pair.value
            else:
                raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
        down.append((_all_or_listed(line.head, nodes), state, reason))
    return tuple(down)


__all__ = ["ConfigError", "Nodes", "members", "read_down_nodes", "read_node_sets", "read_nodes"]
