"""topology.conf and topology.yaml: switches, blocks, several topologies, and what is wrong with them."""

from __future__ import annotations

import pytest

from slurmbridge.errors import ConfigError
from slurmbridge.lang.slurm_conf import read_cluster, why_without_effect
from slurmbridge.model.cluster import ClusterConfig

TREE = "SwitchName=s0 Nodes=t[1-4]\nSwitchName=s1 Nodes=t[5-8] LinkSpeed=100\nSwitchName=top Switches=s[0-1]\n"
BLOCKS = "BlockName=b1 Nodes=t[1-2]\nBlockName=b2 Nodes=t[3-4]\nBlockName=b3 Nodes=t[5-6]\nBlockSizes=2,4\n"
YAML = """---
- topology: one
  cluster_default: true
  tree:
    switches:
      - switch: root
        children: s[1-2]
      - switch: s1
        nodes: t[1-4]
      - switch: s2
        nodes: t[5-8]
- topology: two
  block:
    block_sizes:
      - 4
      - 8
    blocks:
      - block: b1
        nodes: t[1-4]
      - block: b2
        nodes: t[5-8]
- topology: three
  flat: true
"""


def cluster(plugin: str = "tree", conf: str = "", yaml: str = "", partition: str = "", more: str = "") -> ClusterConfig:
    text = f"ClusterName=c\nTopologyPlugin=topology/{plugin}\n{more}NodeName=t[1-8]\nPartitionName=p Nodes=ALL {partition}\n"
    files = {"/e/slurm.conf": text}
    if conf:
        files["/e/topology.conf"] = conf
    if yaml:
        files["/e/topology.yaml"] = yaml
    return read_cluster(files, "/e/slurm.conf", cpus=1, memory_mib=1)


def test_a_switch_has_the_nodes_of_all_switches_below_it_and_a_level_above_them() -> None:
    (found,) = cluster(conf=TREE).topologies
    assert [(unit.name, unit.level, len(unit.nodes), unit.children, unit.link_speed) for unit in found.units] == [
        ("s0", 0, 4, (), 1), ("s1", 0, 4, (), 100), ("top", 1, 8, ("s0", "s1"), 1),
    ]  # fmt: skip
    assert found.addresses(["t6"]) == {"t6": ("top.s1.t6", "switch.switch.node")}


def test_blocks_are_joined_with_their_neighbours_as_far_as_they_go_round() -> None:
    (found,) = cluster("block", BLOCKS).topologies
    assert [(unit.name, unit.level, unit.nodes) for unit in found.units][2:] == [
        ("b3", 0, ("t5", "t6")), ("b[1-2]", 1, ("t1", "t2", "t3", "t4")),
    ]  # fmt: skip
    assert found.block_sizes == (2, 4)
    assert found.addresses(["t4"]) == {"t4": ("b2.t4", "block.node")}


def test_topology_yaml_comes_first_and_has_several_topologies_for_partitions_to_name() -> None:
    config = cluster("tree", TREE, YAML, "Topology=two")
    assert [(each.name, each.kind) for each in config.topologies] == [
        ("one", "tree"),
        ("two", "block"),
        ("three", "flat"),
    ]
    mine, cluster_wide = config.topology_of(config.partitions[0]), config.topology_of(None)
    assert mine is not None and mine.name == "two" and cluster_wide is not None and cluster_wide.name == "one"
    assert ("/e/topology.conf", 1, "topology.conf") in config.without_effect


@pytest.mark.parametrize(
    ("conf", "line", "message"),
    [
        ("SwitchName=a Nodes=t1\nSwitchName=a Nodes=t2\n", 2, "Switch (a) has already been defined"),
        ("SwitchName=a Nodes=t1\nSwitchName=b Switches=a,c\n", 2, "Switch configuration b has invalid child (c)"),
        ("SwitchName=a Nodes=t1 Foo=1\n", 1, "Parsing error at unrecognized key: Foo"),
        ("Nodes=t1\n", 1, "Parsing error at unrecognized key: Nodes"),
        ("SwitchName=a Nodes=t1\nSwitchName=b Switches=a Nodes=t2\n", 2, "switch b has both child switches and nodes"),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", 1, "Switch configuration is not a tree"),
        ("SwitchName=a Nodes=t1\nSwitchName=b Switches=a\nSwitchName=c Switches=a\n", 3, "Switch configuration is not a tree"),
        ("BlockName=a Nodes=t1\n", 0, "No switches configured, failed to create context for topology plugin"),
        ("SwitchName=a Nodes=t[1-\n", 1, "Invalid node name (t[1-) in a"),
    ],
)  # fmt: skip
def test_mistakes_are_told_with_their_line_in_slurms_words(conf: str, line: int, message: str) -> None:
    with pytest.raises(ConfigError) as fault:
        cluster(conf=conf)
    assert (fault.value.line, fault.value.message) == (line, message)


@pytest.mark.parametrize("sizes", ["3,7", "2,6", "4,4", "x", "0", "4,2"])
def test_block_sizes_grow_by_powers_of_two(sizes: str) -> None:
    with pytest.raises(ConfigError, match="Invalid BlockSizes value"):
        cluster("block", f"BlockName=a Nodes=t[1-8]\nBlockSizes={sizes}\n")


@pytest.mark.parametrize(
    ("yaml", "line"),
    [
        ("- topology: a\n  tree:\n    switches:\n      - switch: s\n        nodez: t1\n", 5),
        ("- topology: a\n  flat: true\n  tree: {}\n", 1),
        ("- topology: a\n  flat: true\n- topology: a\n  flat: true\n", 3),
        ("- flat: true\n", 1),
        ("- topology: [\n", 2),
        ("- topology: a\n  block:\n    block_sizes: [2, 3]\n    blocks:\n      - block: b\n        nodes: t1\n", 3),
    ],
)
def test_mistakes_in_yaml_are_told_with_their_line(yaml: str, line: int) -> None:
    with pytest.raises(ConfigError) as fault:
        cluster(yaml=yaml)
    assert fault.value.line == line


def test_what_slurm_warns_about_is_listed() -> None:
    config = cluster(conf="SwitchName=a Nodes=t[1-4],zz\nSwitchName=b Nodes=t[4-6]\n")
    assert [text for _, _, text in config.without_effect] == [
        "Invalid hostnames in switch configuration: zz",
        "Multiple leaf switches contain nodes: t4",
        "switches lack access to 2 nodes: t[7-8]",
        "TOPOLOGY: no switch can reach all nodes through its descendants",
    ]


def test_what_has_no_effect_is_listed_with_its_reason() -> None:
    config = cluster("ring", more="TopologyParam=TopoOptional,SwitchAsNodeRank\n")
    assert [(key, bool(why_without_effect(key))) for _, _, key in config.without_effect] == [
        ("TopologyPlugin topology/ring", True), ("TopologyParam SwitchAsNodeRank", True),
    ]  # fmt: skip
    assert any("without topology.conf" in key for _, _, key in cluster("tree").without_effect)


def test_a_partition_names_a_topology_that_is_there() -> None:
    with pytest.raises(ConfigError, match="topology other is not in"):
        cluster(yaml=YAML, partition="Topology=other")
