"""Nodes, partitions, pools, devices and topology that follow from a cluster's nodes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.lang import hostlist
from slurmbridge.lang.site_cluster import on_cluster
from slurmbridge.lang.site_file import read_site
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.manifest.pod_devices import HOLDER_MIB
from slurmbridge.model.cluster import Device, NodeConf
from slurmbridge.model.fleet import FleetConfig, NodeRules
from slurmbridge.reconcile.inventory import Kept, Memo, fill, kube_names, natural
from slurmbridge.reconcile.node_devices import devices_of, gres_of, type_of
from slurmbridge.reconcile.node_others import taken_of
from slurmbridge.reconcile.node_sight import Amounts, Foreign, SeenNode, SeenTaint

GPU = "nvidia.com/gpu"
MIB = 1024


def amounts(cpu: float, memory: int = 64_000, pods: int = 110, **resources: int) -> Amounts:
    named = {name.replace("__", "/").replace("_", "."): count for name, count in resources.items()}
    return Amounts(cpu_milli=int(cpu * 1000), memory_mib=memory, pods=pods, resources=named)


def node(
    name: str, cpu: float = 16, *, labels: dict[str, str] | None = None, gpus: int = 0, taints: tuple[SeenTaint, ...] = (),
    resources: dict[str, int] | None = None, allocatable: Amounts | None = None,
) -> SeenNode:  # fmt: skip
    has = replace(amounts(cpu), resources={**({GPU: gpus} if gpus else {}), **(resources or {})})
    return SeenNode(name=name, capacity=has, allocatable=allocatable or has, labels=labels or {}, taints=taints)


def world(*nodes: SeenNode) -> dict[str, SeenNode]:
    return {each.name: each for each in nodes}


def config(site: str = "", conf: str = "") -> FleetConfig:
    said = read_site(site, "site.yaml")
    if not conf:
        return on_cluster(None, said)
    read = read_cluster({"slurm.conf": conf}, "slurm.conf", cpus=0, memory_mib=0)
    return on_cluster(replace(read, nodes=tuple(each for each in read.nodes if each.cpus)), said)


def parts(filled: FleetConfig) -> dict[str, str]:
    return {each.name: ",".join(each.nodes) for each in filled.partitions}


# ---- sizes


def test_what_the_kubelet_and_daemon_sets_keep_is_kept_as_slurm_has_it() -> None:
    seen = node("a", 16, allocatable=amounts(15.5, 60_000))
    system = Foreign(system=amounts(0.6, 1_000, pods=3))
    [conf] = fill(config(), world(seen), {"a": system}).nodes
    assert (conf.cpus, conf.core_spec_count, conf.effective_cpus) == (16, 2, 14)  # 14.9 are 14 whole ones
    assert (conf.real_memory, conf.mem_spec_limit) == (64_000, 5_000)


@settings(max_examples=200, deadline=None)
@given(
    cpu=st.integers(1, 256), kept=st.integers(0, 4000), system=st.integers(0, 8000), others=st.integers(0, 300_000),
    threads=st.sampled_from(["", "1", "2", "true", "4", "x"]), sockets=st.sampled_from(["", "1", "2", "3"]),
    memory=st.integers(1, 1 << 20), taken=st.integers(0, 1 << 20),
)  # fmt: skip
def test_jobs_never_get_more_than_pods_may_have_beside_the_others(
    cpu: int, kept: int, system: int, others: int, threads: str, sockets: str, memory: int, taken: int
) -> None:
    site = "nodes: {threadsPerCore: threads, sockets: sockets}\n"
    capacity = Amounts(cpu_milli=cpu * 1000, memory_mib=memory)
    allocatable = Amounts(cpu_milli=max(cpu * 1000 - kept, 0), memory_mib=max(memory - kept, 0))
    seen = SeenNode(
        name="a", capacity=capacity, allocatable=allocatable, labels={"threads": threads, "sockets": sockets}
    )
    foreign = Foreign(system=Amounts(cpu_milli=system), others=Amounts(cpu_milli=others, memory_mib=taken))
    [conf] = fill(config(site), world(seen), {"a": foreign}).nodes
    held = taken_of(seen, foreign, conf)
    assert conf.cpus == cpu == conf.sockets * conf.cores_per_socket * conf.threads_per_core
    assert (conf.effective_cpus - held.cpus) * 1000 <= max(allocatable.cpu_milli - system - others, 0)
    assert conf.real_memory - conf.mem_spec_limit - held.memory <= max(allocatable.memory_mib - taken, 0)
    assert held.cpus >= 0 and held.memory >= 0
    if conf.threads_per_core == 1:  # and nothing is lost but parts of CPUs
        assert conf.effective_cpus - held.cpus == max(allocatable.cpu_milli - system - others, 0) // 1000


def test_of_a_declared_node_the_declaration_counts_and_labels_add_features() -> None:
    conf = "ClusterName=c\nNodeName=n[1-2] NodeHostname=ip-[7-8] CPUs=8 RealMemory=1000 Feature=fast Weight=3\n"
    filled = fill(config(conf=conf), world(node("ip-7", labels={"topology.kubernetes.io/zone": "z1"})), {})
    first, second = filled.nodes
    assert (first.name, first.host, first.cpus, first.real_memory, first.weight) == ("n1", "ip-7", 8, 1000, 3)
    assert first.features == ("fast", "z1") and second.host == "ip-8"
    assert kube_names(filled) == {"n1": "ip-7", "n2": "ip-8"}


# ---- names


def test_names_are_the_clusters_without_the_sites_domain_and_never_two_alike() -> None:
    seen = world(node("n10.in.site"), node("n9.in.site"), node("n9"), node("x.elsewhere"))
    filled = fill(config("nodes: {domain: in.site}\n"), seen, {})
    assert [each.name for each in filled.nodes] == ["n9", "n9.in.site", "n10", "x.elsewhere"]
    assert kube_names(filled) == {"n10": "n10.in.site"}


LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,12}[a-z0-9])?", fullmatch=True)


@given(st.lists(st.lists(LABEL, min_size=1, max_size=4).map(".".join), unique=True, max_size=12))
def test_every_name_that_a_cluster_may_give_a_node_is_a_name_in_host_lists(names: list[str]) -> None:
    filled = fill(config(), world(*map(node, names)), {})
    ours = [each.name for each in filled.nodes]
    assert sorted(ours) == sorted(names)
    assert hostlist.expand(hostlist.compress(ours)) == ours
    assert ours == sorted(ours, key=natural)


# ---- partitions

SITE = """
partitions:
  all: {}
  gpu:
    nodeSelector: {kind: gpu}
    tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]
    resources: {rdma/ib: 1}
pools:
  fast: {nodeSelector: {kind: gpu}}
  few: {nodes: "a[1-2],b"}
"""
GPU_TAINT = SeenTaint(key=GPU, effect="NoSchedule")


def test_labels_say_whose_a_node_is_and_tolerations_whose_alone() -> None:
    rdma = {"rdma/ib": 8}
    seen = world(
        node("a1"), node("g1", labels={"kind": "gpu"}, resources=rdma, taints=(GPU_TAINT,)),
        node("g2", labels={"kind": "gpu"}, resources=rdma), node("g3", labels={"kind": "gpu"}),
    )  # fmt: skip
    filled = fill(config(SITE), seen, {})
    assert parts(filled) == {"all": "a1,g2,g3", "gpu": "g1,g2"}  # g3 lacks what each pod of the partition takes


def test_a_node_that_has_another_role_is_nobodys_until_it_is_tolerated() -> None:
    control = SeenTaint(key="node-role.kubernetes.io/control-plane", effect="NoSchedule")
    seen = world(node("c", taints=(control,)), node("a"))
    assert [each.name for each in fill(config("partitions: {p: {}}\n"), seen, {}).nodes] == ["a"]
    tolerant = "partitions:\n  p:\n    tolerations: [{operator: Exists}]\n"
    assert [each.name for each in fill(config(tolerant), seen, {}).nodes] == ["a", "c"]
    named = fill(config(conf="ClusterName=c\nNodeName=c CPUs=16\nPartitionName=p Nodes=c\n"), seen, {})
    assert parts(named) == {"p": "c"}  # and is drained by its taint


def test_partitions_of_slurm_conf_take_what_they_name_and_without_names_what_labels_give() -> None:
    conf = "ClusterName=c\nNodeName=a[1-2] CPUs=8\nPartitionName=some Nodes=a[1-2] Default=YES\nPartitionName=all Nodes=ALL\nPartitionName=gpu\n"
    site = "partitions: {gpu: {nodeSelector: {kind: gpu}}}\n"
    filled = fill(config(site, conf), world(node("a1"), node("x", labels={"kind": "gpu"})), {})
    assert parts(filled) == {"some": "a1,a2", "all": "a1,a2,x", "gpu": "x"}


def test_pools_are_disjoint_and_follow_labels_or_names() -> None:
    seen = world(node("a1"), node("b", labels={"kind": "gpu"}), node("c"))
    filled = fill(config(SITE), seen, {})
    assert [(each.name, each.nodes) for each in filled.all_pools] == [
        ("fast", ("b",)), ("few", ("a1",)), ("default", ("c",)),
    ]  # fmt: skip


def test_kept_nodes_stay_in_their_partitions_until_they_are_let_go() -> None:
    kept = Kept(conf=NodeConf(name="old", cpus=4), partitions=("all",))
    filled = fill(config(SITE), world(node("a")), {}, (kept,))
    assert parts(filled) == {"all": "a,old", "gpu": ""}
    assert parts(fill(filled, world(node("a")), {})) == {"all": "a", "gpu": ""}


# ---- devices


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("NVIDIA-A100-SXM4-80GB", "a100"), ("NVIDIA-H100-80GB-HBM3", "h100"), ("NVIDIA-H100-PCIe", "h100"),
        ("NVIDIA-H100-NVL", "h100"), ("NVIDIA-H200", "h200"), ("NVIDIA-GH200-480GB", "gh200"), ("NVIDIA-B200", "b200"),
        ("Tesla-T4", "t4"), ("Tesla-V100-SXM2-32GB", "v100"), ("NVIDIA-L40S", "l40s"), ("NVIDIA-A10G", "a10g"),
        ("NVIDIA-GeForce-RTX-4090", "rtx4090"), ("NVIDIA-GeForce-RTX-3080-Ti", "rtx3080ti"), ("Quadro-RTX-6000", "rtx6000"),
        ("NVIDIA-RTX-A6000", "a6000"), ("NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "a100_1g.10gb"), ("NVIDIA-A100-SXM4-40GB-SHARED", "a100"),
        ("", ""), ("NVIDIA-Graphics-Device", ""), ("Oddity", "oddity"),
    ],
)  # fmt: skip
def test_a_product_has_a_short_type(product: str, kind: str) -> None:
    assert type_of(product, NodeRules()) == kind


def test_a_sites_own_name_of_a_product_goes_before_ours() -> None:
    rules = NodeRules(gpu_types=(("NVIDIA-A100-SXM4-80GB", "big"),))
    assert type_of("NVIDIA-A100-SXM4-80GB", rules) == "big"


def gpu_labels(**more: str) -> dict[str, str]:
    return {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"} | {
        f"nvidia.com/{name.replace('_', '.')}": value for name, value in more.items()
    }


def test_devices_are_counted_from_what_the_machine_has_with_type_and_memory() -> None:
    devices = devices_of(node("g", gpus=2, labels=gpu_labels()), NodeRules(gpu_reserve=1024))
    assert devices == (
        Device(index=0, type="a100", memory_mib=80_896, resource=GPU),
        Device(index=1, type="a100", memory_mib=80_896, resource=GPU),
    )
    assert gres_of(devices) == "gpu:a100:2" and not devices[0].is_slice


def test_devices_without_labels_have_no_type() -> None:
    devices = devices_of(node("g", gpus=3), NodeRules())
    assert gres_of(devices) == "gpu:3" and {each.memory_mib for each in devices} == {0}


def test_slices_are_devices_of_their_own_and_no_part_of_a_whole_one_is_given_out_beside_them() -> None:
    labels = gpu_labels(mig_strategy="mixed") | {"nvidia.com/mig-1g.10gb.memory": "9728"}
    seen = node("g", gpus=1, labels=labels, resources={"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 1})
    devices = devices_of(seen, NodeRules(gpu_reserve=1024))
    assert gres_of(devices) == "gpu:a100:1,gpu:1g.10gb:2,gpu:3g.40gb:1"
    assert [each.index for each in devices] == [0, 1, 2, 3] and all(each.is_slice for each in devices)
    assert devices[1].memory_mib == 9728 and devices[1].resource == "nvidia.com/mig-1g.10gb"


def test_of_a_node_with_slices_of_one_size_alone_each_is_such_a_slice() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb", "nvidia.com/mig.strategy": "single"}
    devices = devices_of(node("g", gpus=7, labels=labels), NodeRules())
    assert gres_of(devices) == "gpu:a100_1g.10gb:7" and devices[0].is_slice and devices[0].resource == GPU


@pytest.mark.parametrize(("way", "memory"), [("mps", 20_480), ("time-slicing", 81_920)])
def test_shares_that_the_device_plugin_makes_are_not_parted_again(way: str, memory: int) -> None:
    labels = gpu_labels(gpu_replicas="4", gpu_sharing__strategy=way) | {"nvidia.com/gpu.sharing-strategy": way}
    devices = devices_of(node("g", gpus=8, labels=labels), NodeRules())
    assert gres_of(devices) == "gpu:a100-shared:8"
    assert devices[0].is_slice and devices[0].memory_mib == memory


def test_broken_devices_and_those_of_others_are_taken() -> None:
    seen = replace(node("g", gpus=4), allocatable=replace(amounts(16), resources={GPU: 3}))
    [conf] = fill(config(), world(seen), {}).nodes
    foreign = Foreign(others=Amounts(resources={GPU: 2}, pods=5))
    assert taken_of(seen, foreign, conf).devices == ((GPU, 3),)
    assert (
        taken_of(seen, foreign, conf).jobs == 101
    )  # of 110: five are others', and each device may need one that owns it


def test_room_is_set_aside_for_the_pods_that_own_shared_devices() -> None:
    [conf] = fill(config(), world(node("g", gpus=4)), {}).nodes
    assert (conf.mem_spec_limit, conf.core_spec_count) == (4 * HOLDER_MIB, 0)


# ---- topology


def test_labels_are_levels_of_switches_and_names_tell_units_apart() -> None:
    site = "nodes: {topology: [rack, zone]}\n"
    places = [("a1", "r1", "z1"), ("a2", "r2", "z1"), ("b1", "r1", "z2"), ("c", "", "z2")]
    seen = world(*(node(name, labels={"rack": rack, "zone": zone}) for name, rack, zone in places))
    [topology] = fill(config(site), seen, {}).topologies
    assert topology.kind == "tree" and topology.cluster_default
    assert [(unit.name, unit.level, unit.nodes, unit.children) for unit in topology.units] == [
        ("z1.r1", 0, ("a1",), ()), ("r2", 0, ("a2",), ()), ("z2.r1", 0, ("b1",), ()),
        ("z1", 1, ("a1", "a2"), ("z1.r1", "r2")), ("z2", 1, ("b1",), ("z2.r1",)),
    ]  # fmt: skip
    assert topology.paths(["a1", "c"]) == {"a1": ("z1", "z1.r1"), "c": ()}


# ---- all of it

WORLDS = st.dictionaries(
    st.sampled_from([f"n{number}" for number in range(8)]),
    st.builds(
        lambda cpu, kind, tainted, gpus: (cpu, kind, tainted, gpus),
        st.integers(1, 8), st.sampled_from(["", "gpu"]), st.booleans(), st.integers(0, 2),
    ),
    max_size=8,
)  # fmt: skip


def seen_of(drawn: dict[str, tuple[int, str, bool, int]]) -> dict[str, SeenNode]:
    return world(
        *(
            node(name, cpu, labels={"kind": kind} if kind else {}, gpus=gpus, taints=(GPU_TAINT,) if tainted else (),
                 resources={"rdma/ib": 1})
            for name, (cpu, kind, tainted, gpus) in drawn.items()
        )
    )  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(WORLDS, min_size=1, max_size=5))
def test_the_same_follows_from_a_world_whatever_came_before_it(
    worlds: list[dict[str, tuple[int, str, bool, int]]],
) -> None:
    memo: Memo = {}
    walked = config(SITE)
    for drawn in worlds:
        walked = fill(walked, seen_of(drawn), {}, (), memo)
    fresh = fill(config(SITE), seen_of(worlds[-1]), {})
    assert walked == fresh
    assert fill(walked, seen_of(worlds[-1]), {}, (), memo) == walked
    names = {each.name for each in walked.nodes}
    assert all(set(each.nodes) <= names for each in walked.partitions)
    assert all(set(each.nodes) <= names for each in walked.pools)
    assert all(any(name in each.nodes for each in walked.partitions) for name in names)
