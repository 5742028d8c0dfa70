"""Site files: pools, placement, and what a wrong file is told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.commands.check_config import report
from slurmbridge.errors import ConfigError
from slurmbridge.lang.site_cluster import on_cluster
from slurmbridge.lang.site_file import read_site, with_site
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.model.cluster import ClusterConfig, Pool, Scheduling

CONF = """\
ClusterName=c
NodeName=n[1-6] CPUs=4
PartitionName=a Nodes=n[1-3] Default=YES
PartitionName=b Nodes=ALL LLN=YES
"""


def cluster(text: str) -> ClusterConfig:
    config = read_cluster({"slurm.conf": CONF}, "slurm.conf", cpus=1, memory_mib=1)
    return with_site(config, read_site(text, "site.yaml"))


def test_pools_are_disjoint_sets_of_nodes_in_the_order_of_the_configuration() -> None:
    config = cluster(
        "pools:\n"
        "  gpu:\n    nodes: n[5,2]\n    placement: spread\n    devicePlacement: spread\n"
        '  big: {nodes: "n[3-4]"}\n'
    )
    assert config.pools == (
        Pool(name="gpu", nodes=("n2", "n5"), placement="spread", device_placement="spread"),
        Pool(name="big", nodes=("n3", "n4")),
    )


def test_nodes_that_are_in_no_pool_are_the_pool_default() -> None:
    config = cluster("pools:\n  gpu:\n    nodes: n[1-2]\n")
    assert [(pool.name, pool.nodes) for pool in config.all_pools] == [
        ("gpu", ("n1", "n2")),
        ("default", ("n3", "n4", "n5", "n6")),
    ]
    named = cluster("pools:\n  gpu: {nodes: n1}\n  default: {nodes: n2, placement: spread}\n")
    assert named.all_pools[1] == Pool(name="default", nodes=("n2", "n3", "n4", "n5", "n6"), placement="spread")


def test_without_a_pool_there_is_one_of_all_nodes_and_none_is_empty() -> None:
    assert [pool.name for pool in cluster("").all_pools] == ["default"]
    assert len(cluster("").all_pools[0].nodes) == 6
    assert [pool.name for pool in cluster("pools: {all: {nodes: 'n[1-6]'}}").all_pools] == ["all"]


def test_spreading_a_partition_is_its_LLN() -> None:
    chosen = cluster("defaults: {placement: spread}\npartitions: {b: {placement: binpack}}\n")
    assert [partition.lln for partition in chosen.partitions] == [True, False]
    assert [partition.lln for partition in cluster("pools:\n").partitions] == [False, True]


def test_fields_of_pods_are_listed_with_the_reason() -> None:
    config = cluster("defaults:\n  image: ubuntu\npartitions:\n  a:\n    nodeSelector: {x: y}\n    gpuSharing: mps\n")
    assert [note[1:] for note in config.without_effect] == [
        (2, "defaults image"), (5, "partitions nodeSelector"), (6, "partitions gpuSharing"),
    ]  # fmt: skip
    assert "site.yaml:2: defaults image has no effect here: jobs on virtual nodes are processes" in report(config)


def test_check_config_tells_the_pools() -> None:
    told = report(cluster("pools: {gpu: {nodes: 'n[1-2]'}}")).splitlines()
    assert told[-2:] == ["pool gpu: n[1-2], placement binpack", "pool default: n[3-6], placement binpack"]
    assert "pool" not in report(cluster(""))


def test_how_jobs_are_ordered_is_said_in_scheduling() -> None:
    config = cluster("scheduling:\n  order: fair\n  backfill: shortest\n  promise: claim\n  history: 0.5\n")
    assert config.scheduling == Scheduling(order="fair", backfill="shortest", promise="claim", history=0.5)
    said = "order fair, backfill shortest, promise claim, nodes configured, promised idle, history 0.5"
    assert report(config).splitlines()[-1] == f"scheduling: {said}"
    assert cluster("scheduling: {history: 0}").scheduling == Scheduling(history=0.0)
    assert cluster("scheduling:\n").scheduling == cluster("").scheduling == Scheduling()
    assert "scheduling" not in report(cluster(""))


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("pools:\n  gpu: {nodes: n9}\n", 2, "there is no node 'n9'"),
        ("pools:\n  g: {nodes: n1}\n  h:\n    nodes: n[1-2]\n", 3, "node n1 is in pool g already"),
        ("pools:\n  g:\n    node: n1\n", 3, "pool g has no field 'node'"),
        ("pools:\n  g:\n    nodes: n1\n    nodeSelector: {a: b}\n", 2, "both nodes and nodeSelector"),
        ("pools:\n  g: {}\n", 2, "neither nodes nor nodeSelector"),
        ("pools:\n  g:\n", 2, "neither nodes nor nodeSelector"),
        ("pools:\n  g: {nodeSelector: {a: b}}\n", 2, "virtual nodes have no labels"),
        ("pools:\n  g: {nodes: n1, placement: random}\n", 2, "binpack or spread, not 'random'"),
        ("pools:\n  g: {nodes: n1}\n  g: {nodes: n2}\n", 3, "g is there twice"),
        ("pools:\n  'a b': {nodes: n1}\n", 2, "is no name for a pool"),
        ("pools:\n  g: {nodes: 'n['}\n", 2, "is no host list"),
        ("pools:\n  g: {nodes: [n1, n2]}\n", 2, "nodes of pool g is not a text"),
        ("pools: 3\n", 1, "pools is not a mapping"),
        ("pools:\n- gpu\n", 2, "pools is not a mapping"),
        ("pools:\n  g: {nodes: n[1-2]}\n", 2, "a host list is written in quotes"),
        ("\npool:\n  g: {nodes: n1}\n", 2, "there is no section 'pool'"),
        ("partitions:\n  c: {image: x}\n", 2, "there is no partition 'c'"),
        ("partitions:\n  a:\n    imag: x\n", 3, "partition a has no field 'imag'"),
        ("defaults: {placement: 1}\n", 1, "binpack or spread, not '1'"),
        ("scheduling:\n  order: best\n", 2, "order of scheduling is auto, plain or fair, not 'best'"),
        ("scheduling:\n  backfill: 3\n", 2, "backfill of scheduling is priority, shortest or aged, not '3'"),
        ("scheduling:\n\n  history: -1\n", 3, "history of scheduling is a number of at least 0, not '-1'"),
        ("scheduling: {history: nan}\n", 1, "not 'nan'"),
        ("scheduling: {history: inf}\n", 1, "not 'inf'"),
        ("scheduling: {history: []}\n", 1, "history of scheduling is not a text"),
        (
            "scheduling:\n  ordr: fair\n",
            2,
            "scheduling has no field 'ordr'; fields are order, backfill, promise, nodes, promised, history",
        ),
        ("scheduling: fair\n", 1, "scheduling is not a mapping"),
        ("{" * 100_000, 0, "nested too deep"),
        ("a: b: c\n", 1, "not allowed here"),
        ("- 1\n", 1, "the file is not a mapping"),
        ("x: 1\na\x00b: 1\n", 2, "special characters are not allowed"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        cluster(text)
    assert said in caught.value.message
    assert (caught.value.file, caught.value.line) == ("site.yaml", line)


@given(st.text(alphabet="abn1:{}[]-,&*!|>#'\" \n\t?%@`pols", max_size=60))
def test_any_text_is_a_site_file_or_a_ConfigError(text: str) -> None:
    try:
        cluster(text)
    except ConfigError as fault:
        assert fault.message


def test_check_config_tells_which_nodes_of_a_cluster_a_partition_takes() -> None:
    site = read_site(
        "partitions:\n  all: {}\n  gpu:\n    nodeSelector: {kind: gpu}\n    tolerations: [{key: x/y, operator: Exists}]\n"
        "    resources: {rdma/ib: 1}\npools:\n  fast: {nodeSelector: {kind: gpu}}\n",
        "site.yaml",
    )
    assert report(on_cluster(None, site)).splitlines() == [
        "nodes of a cluster, 0 declared, 2 partitions",
        "partition all: all nodes",
        "partition gpu: all nodes with kind=gpu; tolerates x/y; needs rdma/ib: 1",
        "pool fast: kind=gpu, placement binpack",
    ]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("nodes: {features: x}", 1, "features is not a list"),
        ("nodes:\n  topology: [a, a]", 2, "topology has a twice"),
        ("nodes:\n  features:\n    - {feature: f}", 3, "has no label"),
        ("nodes:\n  features:\n    - {label: l, feature: '9 9'}", 3, "no name of a feature"),
        ("nodes:\n  sockets: a b", 2, "no name of a label"),
        ("nodes:\n  domain: A_b", 2, "no domain"),
        ("nodes:\n  gpuTypes: {X: 'a b'}", 2, "no type of a GPU"),
        ("nodes:\n  colour: red", 2, "there is no field 'colour'"),
        ("nodes:\n  weight: w\n  weight: v", 3, "weight is there twice"),
        ("nodes: 3", 1, "nodes is not a mapping"),
    ],
)
def test_what_is_wrong_of_a_clusters_nodes_is_told_with_its_line(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_site(text, "site.yaml")
    assert caught.value.line == line and said in str(caught.value)


def test_topology_of_a_file_and_of_labels_do_not_go_together() -> None:
    files = {
        "slurm.conf": "ClusterName=c\nTopologyPlugin=topology/tree\nNodeName=n1 CPUs=4\n",
        "topology.conf": "SwitchName=s Nodes=n1\n",
    }
    config = read_cluster(files, "slurm.conf", cpus=0, memory_mib=0)
    with pytest.raises(ConfigError) as caught:
        on_cluster(config, read_site("nodes:\n  topology: [rack]\n", "site.yaml"))
    assert (caught.value.file, caught.value.line) == ("site.yaml", 2)


def test_rules_of_a_clusters_nodes_have_no_effect_on_virtual_ones() -> None:
    config = cluster("nodes:\n  topology: [rack]\n")
    assert [note[1:] for note in config.without_effect] == [(2, "nodes topology")]
    assert "virtual nodes are those of slurm.conf" in report(config)
