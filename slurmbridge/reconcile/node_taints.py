"""Which devices of a node shall have no new jobs? What drivers and operators say of them by taints of their own.

    bad_by_node(devices, rules) -> node -> its bad devices
    bad_of(node, rules)         -> resource by which pods ask -> those of them

A driver publishes its devices in ResourceSlices, each with taints; a DeviceTaintRule adds one from outside. NoSchedule and
NoExecute both mean: nobody new. Nothing of it ends a job. Source: "Dynamic Resource Allocation" of the Kubernetes
documentation, "Device taints and tolerations"; attributes as NVIDIA's driver has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from slurmbridge.model.fleet import NodeRules
from slurmbridge.reconcile.node_devices import SLICE
from slurmbridge.reconcile.node_health import PREFIX
from slurmbridge.reconcile.node_sight import BadDevice, SeenNode, SeenTaint
from slurmbridge.reconcile.node_standing import HARD, taint_text


class SeenDevice(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A device that a driver publishes."""

    driver: str  # gpu.nvidia.com
    pool: str
    name: str  # in its pool
    node: str  # the cluster's name
    uuid: str = ""
    profile: str = ""  # of a slice of one: 1g.10gb
    taints: tuple[SeenTaint, ...] = ()


class TaintRule(msgspec.Struct, frozen=True, kw_only=True):
    """A taint for the devices that all it names fit; what is None fits any."""

    taint: SeenTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def fits(self, device: SeenDevice) -> bool:
        return (
            self.driver in (None, device.driver)
            and self.pool in (None, device.pool)
            and self.device in (None, device.name)
        )


def bad_by_node(devices: Iterable[SeenDevice], rules: Iterable[TaintRule]) -> dict[str, tuple[BadDevice, ...]]:
    """In the order of drivers, pools and names."""
    hard_rules = [rule for rule in rules if rule.taint.effect in HARD]
    found: dict[str, list[BadDevice]] = {}
    for device in sorted(devices, key=lambda each: (each.driver, each.pool, each.name)):
        own = (taint for taint in device.taints if taint.effect in HARD)
        taints = (*own, *(rule.taint for rule in hard_rules if rule.fits(device)))
        if device.node and taints:
            found.setdefault(device.node, []).append(
                BadDevice(
                    driver=device.driver, name=device.name, uuid=device.uuid, profile=device.profile,
                    why=taint_text(taints[0]),
                )
            )  # fmt: skip
    return {node: tuple(bad) for node, bad in found.items()}


def bad_of(node: SeenNode, rules: NodeRules) -> Mapping[str, tuple[BadDevice, ...]]:
    """Devices of drivers that are of another kind than what jobs ask for are nobody's business here."""
    found: dict[str, tuple[BadDevice, ...]] = {}
    for device in node.bad_devices:
        if is_of(device.driver, rules.gpu_resource):
            resource = f"{SLICE}{device.profile}" if device.profile else rules.gpu_resource
            found[resource] = (*found.get(resource, ()), device)
    return found


def is_of(driver: str, resource: str) -> bool:
    """Whether the vendor of an extended resource (nvidia.com/gpu) has this driver (gpu.nvidia.com)."""
    vendor = resource.partition("/")[0]
    return driver in (vendor, f"gpu.{vendor}")


def text_of(bad: Mapping[str, tuple[BadDevice, ...]]) -> str:
    """One line for people: the first device, and how many there are besides."""
    every = [device for devices in bad.values() for device in devices]
    if not every:
        return ""
    first = every[0]
    named = f"{PREFIX}device {first.name}{f' ({first.uuid})' if first.uuid else ''} taint {first.why}"
    return named + (f" and {len(every) - 1} more" if len(every) > 1 else "")
