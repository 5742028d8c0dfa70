"""Which topologies does a topology.yaml describe? Follows topology.yaml(5) of Slurm 26.05; errors carry their line."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

from slurmbridge.errors import ConfigError
from slurmbridge.lang.topology_conf import Remark, Unit, block, read_sizes, tree
from slurmbridge.model.topology import Topology

KINDS = ("tree", "block", "flat", "ring", "torus3d")


class _Reader:
    """Errors with file and line."""

    def __init__(self, file: str) -> None:
        self.file = file

    def wrong(self, node: yaml.Node, message: str) -> ConfigError:
        return ConfigError(message, file=self.file, line=node.start_mark.line + 1)

    def fields(self, node: yaml.Node, known: Sequence[str]) -> dict[str, yaml.Node]:
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, "expected a dictionary")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.value not in known:
                raise self.wrong(key, f"Parsing error at unrecognized key: {getattr(key, 'value', '')}")
            found[key.value] = value
        return found

    def items(self, node: yaml.Node | None) -> list[yaml.Node]:
        if node is None:
            return []
        if not isinstance(node, yaml.SequenceNode):
            raise self.wrong(node, "expected a list")
        return list(node.value)

    def text(self, node: yaml.Node | None) -> str:
        if node is None:
            return ""
        if isinstance(node, yaml.SequenceNode):
            return ",".join(self.text(each) for each in node.value)
        if not isinstance(node, yaml.ScalarNode):
            raise self.wrong(node, "expected a text")
        return "" if node.tag == "tag:yaml.org,2002:null" else str(node.value)

    def units(self, node: yaml.Node | None, name: str) -> list[Unit]:
        found = []
        for each in self.items(node):
            fields = self.fields(each, (name, "children", "nodes"))
            found.append(
                Unit(
                    name=self.text(fields.get(name)), file=self.file, line=each.start_mark.line + 1,
                    nodes=self.text(fields.get("nodes")), children=self.text(fields.get("children")), link_speed=0,
                )
            )  # fmt: skip
        return found


def read_yaml(text: str, file: str, nodes: Sequence[str], remarks: list[Remark]) -> tuple[Topology, ...]:
    """All topologies of the file, in its order."""
    reader = _Reader(file)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark is not None else 1
        raise ConfigError(str(fault.problem), file=file, line=line) from fault
    except yaml.YAMLError as fault:
        raise ConfigError(str(fault), file=file, line=1) from fault
    found: list[Topology] = []
    for each in reader.items(root):
        fields = reader.fields(each, ("topology", "cluster_default", *KINDS))
        name = reader.text(fields.get("topology"))
        if not name or any(known.name == name for known in found):
            raise reader.wrong(each, "each topology needs a name of its own")
        kinds = [kind for kind in KINDS if kind in fields]
        if len(kinds) != 1:
            raise reader.wrong(each, f"topology {name} must have exactly one type")
        made = _topology(reader, name, kinds[0], fields[kinds[0]], nodes, remarks)
        chosen = reader.text(fields.get("cluster_default")).lower() in ("true", "yes", "on", "1")
        first = chosen and not any(known.cluster_default for known in found)
        found.append(
            Topology(
                name=name, kind=made.kind, cluster_default=first, units=made.units, block_sizes=made.block_sizes
            )
        )  # fmt: skip
    return tuple(found)


def _topology(
    reader: _Reader, name: str, kind: str, node: yaml.Node, nodes: Sequence[str], remarks: list[Remark]
) -> Topology:
    if kind == "tree":
        fields = reader.fields(node, ("switches",))
        switches = reader.units(fields.get("switches"), "switch")
        if not switches:
            raise reader.wrong(node, "No switches configured, failed to create context for topology plugin")
        return tree(name, switches, (), nodes, remarks)
    if kind == "block":
        fields = reader.fields(node, ("block_sizes", "blocks"))
        blocks = reader.units(fields.get("blocks"), "block")
        if not blocks:
            raise reader.wrong(node, "No blocks configured, failed to create context for topology plugin")
        sizes_at = fields.get("block_sizes")
        words = [reader.text(each) for each in reader.items(sizes_at)]
        sizes = read_sizes(words, lambda message: reader.wrong(sizes_at or node, message))
        return block(name, blocks, sizes, nodes, remarks)
    if kind in ("ring", "torus3d"):
        remarks.append(
            (reader.file, node.start_mark.line + 1, f"topology {name}: jobs are placed as if all nodes were near")
        )
    return Topology(name=name)
