"""What does a cluster's word on a node make of it here? One table: condition, cordon, taint, absence -> DOWN or DRAIN.

The reason names the cause and begins with `k8s:`. It holds as long as the cause does and goes by itself; what an operator
said is kept apart (`daemon.nodetable`). None of it ends a job: that a node is silent proves nothing about what runs there.
Source: "Node Status", "Taints and Tolerations", "Non-graceful node shutdown" of the Kubernetes documentation.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from slurmbridge.model.cluster import NodeConf
from slurmbridge.reconcile.node_sight import SeenNode

PREFIX = "k8s:"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
LONGEST = 120


class Effect(enum.Enum):
    """In order of weight: of several causes the heaviest gives the reason."""

    SILENT = 0  # DOWN, and not responding
    DOWN = 1
    DRAIN = 2


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    effect: Effect
    reason: str


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A condition of the Node object that is bad."""

    condition: str
    bad: tuple[str, ...]  # values of its status
    effect: Effect


CONDITIONS: tuple[Rule, ...] = (
    Rule(condition="Ready", bad=("Unknown",), effect=Effect.SILENT),
    Rule(condition="Ready", bad=("False",), effect=Effect.DOWN),
    Rule(condition="NetworkUnavailable", bad=("True",), effect=Effect.DRAIN),
    Rule(condition="MemoryPressure", bad=("True",), effect=Effect.DRAIN),
    Rule(condition="DiskPressure", bad=("True",), effect=Effect.DRAIN),
    Rule(condition="PIDPressure", bad=("True",), effect=Effect.DRAIN),
)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """`model.cluster.Health` without times and people."""

    is_down: bool = False
    drains: bool = False
    is_silent: bool = False
    reason: str = ""


def verdict(node: SeenNode | None, conf: NodeConf, blocked: str, instance: str) -> Verdict:
    """None: the cluster has no such node. `blocked`: why none of its partitions may use it (`node_standing`)."""
    causes = sorted(_causes(node, conf, blocked, instance), key=lambda cause: cause.effect.value)
    effects = {cause.effect for cause in causes}
    return Verdict(
        is_down=bool(effects - {Effect.DRAIN}),
        drains=Effect.DRAIN in effects,
        is_silent=Effect.SILENT in effects,
        reason=f"{PREFIX}{causes[0].reason}"[:LONGEST].strip() if causes else "",
    )


def _causes(node: SeenNode | None, conf: NodeConf, blocked: str, instance: str) -> Iterator[Cause]:
    if node is None:
        yield Cause(effect=Effect.SILENT, reason="gone: the cluster has no such node")
        return
    if any(taint.key == OUT_OF_SERVICE for taint in node.taints):
        yield Cause(effect=Effect.SILENT, reason="out-of-service")
    told = {condition.type: condition for condition in node.conditions}
    if "Ready" not in told:
        yield Cause(effect=Effect.SILENT, reason="NotReady: its kubelet has said nothing yet")
    for rule in CONDITIONS:
        found = told.get(rule.condition)
        if found is not None and found.status in rule.bad:
            name = "NotReady" if rule.condition == "Ready" else rule.condition
            words = " ".join(filter(None, (found.reason, found.message)))
            yield Cause(effect=rule.effect, reason=f"{name} {words}".strip())
    if node.is_cordoned and not is_ours(node, instance):
        yield Cause(effect=Effect.DRAIN, reason="cordoned")
    if blocked:
        yield Cause(effect=Effect.DRAIN, reason=blocked)
    short = _shortage(node, conf)
    if short:
        yield Cause(effect=Effect.DRAIN, reason=short)


def is_ours(node: SeenNode, instance: str) -> bool:
    """Whether its cordon, or what is left of it, was made here."""
    return node.cordoned_by.partition(" ")[0].partition("@")[0] == instance


def _shortage(node: SeenNode, conf: NodeConf) -> str:
    """Less than a NodeName line promises, in slurmctld's words."""
    cpus, memory = node.capacity.cpu_milli // 1000, node.capacity.memory_mib
    if cpus and conf.cpus > cpus:
        return f"Low CPUs ({cpus} < {conf.cpus})"
    if memory and conf.real_memory > memory:
        return f"Low RealMemory ({memory} < {conf.real_memory})"
    missing = [device for device in conf.devices if device.name == "gpu" and not device.resource]
    if missing:
        count = sum(1 for device in conf.devices if device.name == "gpu")
        return f"gres/gpu count reported lower than configured ({count - len(missing)} < {count})"
    return ""
