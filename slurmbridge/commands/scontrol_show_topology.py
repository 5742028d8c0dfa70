"""What do `scontrol show topology [NAME] [node=NODES] [unit=UNIT]` and `scontrol show topoconf` print?

Layout and wording as observed on Slurm 26.05; scontrol(1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.scontrol_jobs import complain
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist
from slurmbridge.model.topology import Topology, TopologyUnit

DEFAULT = "default"
"""The name of the only topology where there is no topology.yaml."""
_UNIT_WORDS = ("unit", "switch", "block")
_KINDS = ("block", "flat", "ring", "torus3d", "tree")


def show_topology(eyes: Eyes, words: Sequence[str]) -> Command:
    """`words`: what follows the entity."""
    name = unit = nodes = ""
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key.lower() == "node":
            nodes = value
        elif equals and key.lower() in _UNIT_WORDS:
            unit = value
        elif equals:
            yield Print(f"Unknown argument {word}\n", 2)
            return 0
        elif name:
            yield Print(f"Too many arguments ({word}), the topology name ({name}) is already defined\n", 2)
            return 0
        else:
            name = word
    found = _chosen(eyes, name)
    if found is None:
        if name in ("", DEFAULT) and not eyes.site.config.topologies:
            return 0  # none is configured
        yield from complain(eyes, "slurm_load_topo error: Requested topology configuration is not available")
        return 0
    if found.kind == "flat":
        return 0
    shown = _matching(found, unit, nodes)
    if not shown:
        kind = "switch" if found.kind == "tree" else "block"
        named = f" named {unit}" if unit else ""
        of_nodes = f" with nodes {nodes}" if nodes else ""
        yield from complain(eyes, f"scontrol: error: Topology information contains no {kind}{named}{of_nodes}")
        return 0
    for number, each in shown:
        yield Print((_switch(each) if found.kind == "tree" else _block(found, each, number)) + "\n")
    return 0


def show_topoconf(eyes: Eyes) -> Command:
    """topology.yaml as it was read; without one, as Slurm does, the name of the only topology."""
    lines = ["%YAML 1.1", "---"]
    topologies = eyes.site.config.topologies
    if not topologies or [each.name for each in topologies] == [DEFAULT]:
        topologies = (Topology(name=DEFAULT),)
    for each in topologies:
        lines += [f"- topology: {each.name}", f"  cluster_default: {str(each.cluster_default).lower()}"]
        for kind in _KINDS:
            mine = list(_as_yaml(each)) if kind == each.kind and each.name != DEFAULT else ["{}"]
            lines += [f"  {kind}: {mine[0]}".rstrip(), *mine[1:]]
    yield Print("\n".join([*lines, "..."]) + "\n")
    return 0


def _as_yaml(topology: Topology) -> Iterator[str]:
    if topology.kind == "flat":
        yield "true"
        return
    yield ""
    if topology.kind == "block":
        yield "    block_sizes:"
        yield from (f"    - {size}" for size in topology.block_sizes)
    word, fields = ("switch", ("children", "nodes")) if topology.kind == "tree" else ("block", ("nodes",))
    yield f"    {word}es:" if word == "switch" else f"    {word}s:"
    for unit in topology.units:
        if topology.kind == "block" and unit.level:
            continue
        yield f"    - {word}: {unit.name}"
        texts = {"children": unit.children_text, "nodes": unit.nodes_text}
        yield from (f"      {field}: {texts[field]}".rstrip() for field in fields)


def _chosen(eyes: Eyes, name: str) -> Topology | None:
    config = eyes.site.config
    if name:
        return next((each for each in config.topologies if each.name == name), None)
    return config.topology_of(None)


def _matching(topology: Topology, unit: str, nodes: str) -> list[tuple[int, TopologyUnit]]:
    try:
        wanted = set(hostlist.expand(nodes)) if nodes else set()
    except LangError:
        return []
    return [
        (number, each)
        for number, each in enumerate(topology.units)
        if (not unit or each.name == unit) and (not wanted or wanted <= set(each.nodes))
    ]


def _switch(unit: TopologyUnit) -> str:
    line = f"SwitchName={unit.name} Level={unit.level} LinkSpeed={unit.link_speed} Nodes={hostlist.compress_sorted(unit.nodes)}"
    return f"{line} Switches={unit.children_text}" if unit.children else line


def _block(topology: Topology, unit: TopologyUnit, number: int) -> str:
    key = "AggregatedBlock" if unit.level else "BlockName"
    nodes = f" Nodes={hostlist.compress_sorted(unit.nodes)}" if unit.nodes else ""
    return f"{key}={unit.name} BlockIndex={number}{nodes} BlockSize={topology.block_sizes[unit.level]}"
