"""Which topologies do topology.conf and topology.yaml describe?

Follows topology.conf(5) and topology.yaml(5) of Slurm 26.05: switches in a tree, or blocks that are joined by powers of two
as BlockSizes says. topology.yaml comes first: with it there may be several topologies, TopologyPlugin and topology.conf count
no more. What Slurm only warns about is returned as remarks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from slurmbridge.errors import ConfigError, LangError
from slurmbridge.lang import hostlist
from slurmbridge.lang.slurm_conf_lines import Pair, read_lines, resolve_name
from slurmbridge.model.topology import Topology, TopologyUnit

CONF, YAML = "topology.conf", "topology.yaml"
MAX_NAME = 64
_KEYS = {
    "switchname": ("switches", "nodes", "linkspeed"),
    "blockname": ("nodes",),
    "ringname": ("nodes",),
    "blocksizes": (),
}
Remark = tuple[str, int, str]


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """A switch or block as written."""

    name: str
    file: str
    line: int
    nodes: str = ""
    children: str = ""
    link_speed: int = 1

    def error(self, message: str) -> ConfigError:
        return ConfigError(message, file=self.file, line=self.line)


def read_topologies(
    files: Mapping[str, str], conf_name: str, plugin: str, nodes: Sequence[str]
) -> tuple[tuple[Topology, ...], list[Remark]]:
    """All topologies, and remarks as (file, line, text). `plugin`: TopologyPlugin; `nodes`: all nodes in configuration order."""
    remarks: list[Remark] = []
    yaml_name, plain_name = resolve_name(conf_name, YAML), resolve_name(conf_name, CONF)
    if _says_something(files.get(yaml_name, "")):
        from slurmbridge.lang.topology_yaml import read_yaml  # a parser that is slow to load, for few

        found = read_yaml(files[yaml_name], yaml_name, nodes, remarks)
        if _says_something(files.get(plain_name, "")):
            remarks.append((plain_name, 1, CONF))
        return found, remarks
    if not _says_something(files.get(plain_name, "")):
        return (), remarks
    kind = plugin.partition("/")[2]
    if kind not in ("tree", "block"):
        remarks.append((plain_name, _first_line(files[plain_name]), CONF))
        return (), remarks
    units: dict[str, list[Unit]] = {"switchname": [], "blockname": [], "ringname": []}
    sizes: tuple[int, ...] = ()
    for line in read_lines(files, plain_name):
        head = line.head
        key = head.key.lower()
        if key not in _KEYS:
            raise head.error(f"Parsing error at unrecognized key: {head.key}")
        if key == "blocksizes":
            sizes = read_sizes(head.value.split(","), head.error)
        else:
            units[key].append(_unit(line.pairs, _KEYS[key]))
    make = tree if kind == "tree" else block
    chosen = units["switchname" if kind == "tree" else "blockname"]
    if not chosen:
        what = "switches" if kind == "tree" else "blocks"
        raise ConfigError(f"No {what} configured, failed to create context for topology plugin", file=plain_name)
    made = make("default", chosen, sizes, nodes, remarks)
    return (msgspec.structs.replace(made, cluster_default=True),), remarks


def _says_something(text: str) -> bool:
    return any(line.partition("#")[0].strip() not in ("", "---") for line in text.splitlines())


def _first_line(text: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), 1) if line.partition("#")[0].strip())


def _unit(pairs: tuple[Pair, ...], keys: Sequence[str]) -> Unit:
    fields: dict[str, Any] = {"name": pairs[0].value, "file": pairs[0].file, "line": pairs[0].line}
    for pair in pairs[1:]:
        key = pair.key.lower()
        if key not in keys:
            raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
        if key == "linkspeed":
            if not pair.value.isdecimal():
                raise pair.error(f'Bad value "{pair.value}" for LinkSpeed')
            fields["link_speed"] = int(pair.value)
        else:
            fields["children" if key == "switches" else "nodes"] = pair.value
    return Unit(**fields)


def read_sizes(words: Iterable[str], error: Callable[[str], ConfigError]) -> tuple[int, ...]:
    """BlockSizes: each is a power of two larger than the first."""
    found: list[int] = []
    for word in words:
        size = int(word) if word.strip().isdecimal() else 0
        times, rest = divmod(size, found[0]) if found else (1, 0)
        if size <= 0 or rest or times & (times - 1) or (found and size <= found[-1]):
            raise error(f"Invalid BlockSizes value: {word}")
        found.append(size)
    return tuple(found)


def _expanded(unit: Unit, text: str) -> list[str]:
    try:
        return hostlist.expand(text) if text else []
    except LangError as fault:
        raise unit.error(f"Invalid node name ({text}) in {unit.name}") from fault


def _named(units: Sequence[Unit], what: str) -> dict[str, Unit]:
    found: dict[str, Unit] = {}
    for unit in units:
        if not unit.name:
            raise unit.error(f"Can't create a {what.lower()} without a name")
        if unit.name in found:
            raise unit.error(f"{what} ({unit.name}) has already been defined")
        if what == "Switch" and len(unit.name) >= MAX_NAME:
            raise unit.error(f"SwitchName ({unit.name}) must be shorter than {MAX_NAME} chars")
        found[unit.name] = unit
    return found


def _members(units: Sequence[Unit], nodes: Sequence[str], what: str, remarks: list[Remark]) -> dict[str, list[str]]:
    """The nodes of each unit that names some, in configuration order; a node belongs to the first that names it."""
    place = {name: number for number, name in enumerate(nodes)}
    owner: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for unit in units:
        names = list(nodes) if unit.nodes.upper() == "ALL" else _expanded(unit, unit.nodes)
        strange = [name for name in names if name not in place]
        twice = [name for name in names if name in place and owner.setdefault(name, unit.name) != unit.name]
        if strange:
            remarks.append(_remark(unit, f"Invalid hostnames in {what} configuration: {hostlist.compress(strange)}"))
        if twice:
            remarks.append(_remark(unit, f"Multiple leaf {what}es contain nodes: {hostlist.compress(twice)}"))
        found[unit.name] = sorted({name for name in names if owner.get(name) == unit.name}, key=place.__getitem__)
    lack = [name for name in nodes if name not in owner]
    if lack and units:
        plural = {"switch": "switches", "block": "Blocks"}[what]
        remarks.append(_remark(units[0], f"{plural} lack access to {len(lack)} nodes: {hostlist.compress(lack)}"))
    return found


def _remark(unit: Unit, text: str) -> Remark:
    return unit.file, unit.line, text


def tree(
    name: str, switches: Sequence[Unit], sizes: Sequence[int], nodes: Sequence[str], remarks: list[Remark]
) -> Topology:
    """Switches, each with the nodes of all below it; a switch's level is one above its highest child."""
    named = _named(switches, "Switch")
    children: dict[str, list[str]] = {}
    parents: dict[str, str] = {}
    for unit in switches:
        if unit.children and unit.nodes:
            raise unit.error(f"switch {unit.name} has both child switches and nodes")
        children[unit.name] = _expanded(unit, unit.children)
        for child in children[unit.name]:
            if child not in named:
                raise unit.error(f"Switch configuration {unit.name} has invalid child ({child})")
            if parents.setdefault(child, unit.name) != unit.name:
                raise unit.error("Switch configuration is not a tree")
    below = _members([unit for unit in switches if not unit.children], nodes, "switch", remarks)
    levels = dict.fromkeys(below, 0)
    place = {node: number for number, node in enumerate(nodes)}
    left = [unit for unit in switches if unit.children]
    while left:
        ready = [unit for unit in left if all(child in levels for child in children[unit.name])]
        if not ready:
            raise left[0].error("Switch configuration is not a tree")
        for unit in ready:
            inside = [node for child in children[unit.name] for node in below[child]]
            below[unit.name] = sorted(inside, key=place.__getitem__)
            levels[unit.name] = 1 + max(levels[child] for child in children[unit.name])
        left = [unit for unit in left if unit.name not in levels]
    if all(len(members) < len(nodes) for members in below.values()):
        remarks.append(_remark(switches[0], "TOPOLOGY: no switch can reach all nodes through its descendants"))
    units = tuple(
        TopologyUnit(
            name=unit.name,
            level=levels[unit.name],
            nodes=tuple(below[unit.name]),
            children=tuple(children[unit.name]),
            children_text=unit.children,
            nodes_text=unit.nodes,
            link_speed=unit.link_speed,
        )
        for unit in switches
    )
    return Topology(name=name, kind="tree", units=units)


def block(
    name: str, blocks: Sequence[Unit], sizes: Sequence[int], nodes: Sequence[str], remarks: list[Remark]
) -> Topology:
    """Base blocks in file order, then those that BlockSizes makes of neighbours."""
    named = _named(blocks, "Block")
    below = _members(blocks, nodes, "block", remarks)
    if not any(below.values()) and not sizes:
        raise blocks[0].error("Blocks do not contain any nodes and the BlockSizes are not set")
    base = min(len(members) for members in below.values() if members) if not sizes else sizes[0]
    sizes = tuple(sizes) or (base,)
    units = [TopologyUnit(name=each, nodes=tuple(below[each]), nodes_text=named[each].nodes) for each in named]
    names = list(named)
    for level, size in enumerate(sizes[1:], 1):
        count = size // base
        for first in range(0, len(names) - count + 1, count):
            inside = names[first : first + count]
            members = tuple(node for each in inside for node in below[each])
            joined = hostlist.compress(inside)
            units.append(TopologyUnit(name=joined, level=level, nodes=members, children=tuple(inside)))
    return Topology(name=name, kind="block", units=tuple(units), block_sizes=tuple(sizes))
