"""Which devices shall have no new jobs: taints of slices and of rules, and what they make of a node."""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.cluster import Device, NodeConf
from slurmbridge.model.fleet import NodeRules
from slurmbridge.reconcile.node_others import taken_of
from slurmbridge.reconcile.node_sight import Amounts, BadDevice, Foreign, SeenNode, SeenTaint
from slurmbridge.reconcile.node_taints import SeenDevice, TaintRule, bad_by_node, is_of, text_of

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
XID = SeenTaint(key="gpu.nvidia.com/xid", value="79", effect="NoSchedule")


def device(number: int, *taints: SeenTaint, node: str = "a", driver: str = "gpu.nvidia.com") -> SeenDevice:
    return SeenDevice(
        driver=driver, pool=node, name=f"gpu-{number}", node=node, uuid=f"GPU-{number}", taints=taints
    )  # fmt: skip


def test_hard_taints_of_devices_make_them_bad_and_soft_ones_do_not() -> None:
    gone = SeenTaint(key="gone", effect="NoExecute")
    noted = SeenTaint(key="noted", effect="None")
    found = bad_by_node([device(2, gone), device(0, XID, gone), device(1, noted), device(0, node="b")], [])
    assert found == {
        "a": (
            BadDevice(driver="gpu.nvidia.com", name="gpu-0", uuid="GPU-0", why="gpu.nvidia.com/xid=79:NoSchedule"),
            BadDevice(driver="gpu.nvidia.com", name="gpu-2", uuid="GPU-2", why="gone:NoExecute"),
        )
    }


def test_a_rule_taints_all_devices_that_it_fits() -> None:
    devices = [device(number, node=node) for node in ("a", "b") for number in (0, 1)]

    def bad(rule: TaintRule) -> list[tuple[str, str]]:
        return [(node, each.name) for node, found in bad_by_node(devices, [rule]).items() for each in found]

    assert bad(TaintRule(taint=XID, pool="b", device="gpu-1")) == [("b", "gpu-1")]
    assert bad(TaintRule(taint=XID, pool="a")) == [("a", "gpu-0"), ("a", "gpu-1")]
    assert len(bad(TaintRule(taint=XID))) == 4
    assert bad(TaintRule(taint=XID, driver="net.example.com")) == []
    assert bad(TaintRule(taint=replace(XID, effect="None"))) == []


def test_a_driver_is_of_the_vendor_of_what_jobs_ask_for() -> None:
    assert is_of("gpu.nvidia.com", GPU) and is_of("nvidia.com", GPU) and is_of("gpu.amd.com", "amd.com/gpu")
    assert not is_of("net.example.com", GPU) and not is_of("compute-domain.nvidia.com", GPU)


CONF = NodeConf(
    name="a", cpus=8, real_memory=1000,
    devices=(*(Device(index=index, type="a100", resource=GPU) for index in range(4)),
             *(Device(index=index, type="1g.10gb", resource=SLICE) for index in range(4, 6))),
)  # fmt: skip
HAS = Amounts(cpu_milli=8000, memory_mib=2000, resources={GPU: 4, SLICE: 2})


def seen(*bad: BadDevice, healthy: int = 4) -> SeenNode:
    allocatable = replace(HAS, resources={GPU: healthy, SLICE: 2})
    return SeenNode(name="a", capacity=HAS, allocatable=allocatable, bad_devices=bad)


def bad(number: int, **fields: str) -> BadDevice:
    return BadDevice(driver="gpu.nvidia.com", name=f"gpu-{number}", uuid=f"GPU-{number}", why="x:NoSchedule", **fields)


def test_the_count_of_a_nodes_devices_falls_by_the_bad_ones() -> None:
    taken = taken_of(seen(bad(0), bad(3)), Foreign(others=Amounts(resources={GPU: 1})), CONF)
    assert (taken.devices, taken.bad, taken.slots) == (((GPU, 3),), ((GPU, 2),), ())
    assert taken.trouble == "k8s:device gpu-0 (GPU-0) taint x:NoSchedule and 1 more"


def test_one_that_its_plugin_has_withdrawn_too_counts_once() -> None:
    assert taken_of(seen(bad(0), healthy=3), Foreign(), CONF).bad == ((GPU, 1),)
    assert taken_of(seen(bad(0), healthy=2), Foreign(), CONF).bad == ((GPU, 2),)


def test_slices_are_devices_of_their_own_and_other_kinds_are_nobodys() -> None:
    odd = BadDevice(driver="net.example.com", name="nic", why="x:NoSchedule")
    taken = taken_of(seen(bad(0, profile="1g.10gb"), odd), Foreign(), CONF)
    assert (taken.bad, taken.devices) == (((SLICE, 1),), ((SLICE, 1),))
    assert taken_of(seen(odd), Foreign(), CONF) == taken_of(seen(), Foreign(), CONF)


def test_more_bad_devices_than_the_node_has_are_all_it_has() -> None:
    assert taken_of(seen(*map(bad, range(9))), Foreign(), CONF).bad == ((GPU, 4),)


def test_a_device_whose_index_is_known_is_that_very_one() -> None:
    taken = taken_of(seen(bad(7)), Foreign(), CONF, NodeRules(), {2: "GPU-7", 1: "GPU-8"})
    assert (taken.devices, taken.slots) == (((GPU, 1),), (2,))


def test_no_bad_device_is_nothing_to_say() -> None:
    assert text_of({}) == ""
