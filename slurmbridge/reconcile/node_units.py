"""Which nodes are near to each other, by their labels? Each label is a level of switches, each of its values a switch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from slurmbridge.lang import hostlist
from slurmbridge.model.topology import Topology, TopologyUnit

Path = tuple[str, ...]
"""Values from the outermost label on."""


def topologies_of(labels: Sequence[str], nodes: Mapping[str, Mapping[str, str]]) -> tuple[Topology, ...]:
    """`labels` innermost first; `nodes`: name -> labels, in configuration order. A node without one of them hangs nowhere."""
    if not labels:
        return ()
    depth = len(labels)
    inside: dict[Path, list[str]] = {}
    for name, has in nodes.items():
        path = tuple(has.get(label, "") for label in reversed(labels))
        if not all(path):
            continue
        for length in range(1, depth + 1):
            inside.setdefault(path[:length], []).append(name)
    names = _names(list(inside))
    children: dict[Path, list[str]] = {}
    for path in inside:
        if len(path) > 1:
            children.setdefault(path[:-1], []).append(names[path])
    units = tuple(
        TopologyUnit(
            name=names[path],
            level=depth - len(path),
            nodes=tuple(members),
            children=tuple(children.get(path, ())),
            children_text=hostlist.compress(children[path]) if path in children else "",
            nodes_text=hostlist.compress(members) if len(path) == depth else "",
        )
        for path, members in sorted(inside.items(), key=lambda item: -len(item[0]))
    )
    return (Topology(kind="tree", cluster_default=True, units=units),)


def _names(paths: Sequence[Path]) -> dict[Path, str]:
    """The label's value, with those above it where it alone would not tell two units apart."""
    counts = Counter(path[-1] for path in paths)
    return {path: path[-1] if counts[path[-1]] == 1 else ".".join(path) for path in paths}
