"""What may `scontrol update node` change, and what is the node afterwards?

Follows scontrol(1), "Specifications for update command, nodes". States: DRAIN, DOWN and FAIL need a reason (the command
asks for it), RESUME and IDLE take all of them back, UNDRAIN leaves DOWN. A FUTURE node is not there until it is resumed.
Nothing is switched on or off here. A node that is at work has no reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.cluster import Node
from slurmbridge.model.states import NodeBase, NodeFlag

STATES = (
    "NORESP", "CANCEL_REBOOT", "DOWN", "DRAIN", "FAIL", "FUTURE", "RESUME", "POWER_DOWN_ASAP", "POWER_DOWN_FORCE",
    "POWER_DOWN", "POWER_UP", "UNDRAIN", "IDLE", "ALLOCATED", "MIXED", "UNKNOWN",
)  # fmt: skip
NEED_REASON = ("DOWN", "DRAIN", "FAIL")
_POWER = ("POWER_DOWN_ASAP", "POWER_DOWN_FORCE", "POWER_DOWN", "POWER_UP")
_NEVER_SET = ("CANCEL_REBOOT", "ALLOCATED", "MIXED", "UNKNOWN")
Answer = Node | SlurmErrno


class NodeField(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    typed: str  # "text", "count", "state", "names", "binding"
    least: int = 3


FIELDS = (
    NodeField(key="ActiveFeatures", typed="names"),
    NodeField(key="AvailableFeatures", typed="names"),
    NodeField(key="Features", typed="names", least=1),
    NodeField(key="Comment", typed="text"),
    NodeField(key="CpuBind", typed="binding", least=7),
    NodeField(key="Extra", typed="text", least=1),
    NodeField(key="Gres", typed="text", least=1),
    NodeField(key="NodeAddr", typed="text", least=5),
    NodeField(key="NodeHostName", typed="text", least=5),
    NodeField(key="Reason", typed="text", least=1),
    NodeField(key="ResumeAfter", typed="count", least=5),
    NodeField(key="State", typed="state", least=1),
    NodeField(key="Topology", typed="text", least=1),
    NodeField(key="Weight", typed="count", least=1),
)
BINDINGS = frozenset("none off no board boards socket sockets ldom ldoms core cores thread threads rank".split())
"""Of CpuBind: taken, and without effect, as no task is bound to CPUs here."""
BY_KEY = {field.key: field for field in FIELDS}


def find_field(text: str) -> NodeField | None:
    """By name or a beginning that is long enough; case does not count."""
    word = text.lower()
    exact = next((field for field in FIELDS if field.key.lower() == word), None)
    return exact or next((f for f in FIELDS if len(word) >= f.least and f.key.lower().startswith(word)), None)


def find_state(text: str) -> str | None:
    """A state by name or beginning, as scontrol takes it."""
    word = text.upper()
    if word in STATES:
        return word
    return next((state for state in STATES if len(word) >= 3 and state.startswith(word)), None)


def apply_node_update(node: Node, fields: Sequence[tuple[str, Any]], *, now: float, uid: int) -> Answer:
    """The node after all changes, or the first refusal."""
    changed = node
    values = dict(fields)
    for key, value in fields:
        if key not in BY_KEY:
            return SlurmErrno.NOT_SUPPORTED
        answer = _APPLY[key](changed, value, values)
        if isinstance(answer, SlurmErrno):
            return answer
        changed = answer
    if values.get("Reason") and _is_out(changed):
        changed = replace(changed, reason=values["Reason"], reason_uid=uid, reason_time=now)
    return changed


def _is_out(node: Node) -> bool:
    return node.base in (NodeBase.DOWN, NodeBase.ERROR) or bool(node.flags & {NodeFlag.DRAIN, NodeFlag.FAIL})


def _state(node: Node, state: str, values: dict[str, Any]) -> Answer:
    flags = node.flags
    if state in _POWER:
        return SlurmErrno.POWER_ACTION
    if state in _NEVER_SET:
        return SlurmErrno.NODE_TRANSITION
    if state == "FUTURE":
        if node.running_jobs or node.completing_jobs:
            return SlurmErrno.NODE_TRANSITION
        return _without_reason(replace(node, base=NodeBase.FUTURE, flags=frozenset()))
    if state == "DRAIN":
        return replace(node, flags=(flags | {NodeFlag.DRAIN}) - {NodeFlag.FAIL})
    if state == "FAIL":
        return replace(node, flags=(flags | {NodeFlag.FAIL}) - {NodeFlag.DRAIN})
    if state == "DOWN":
        return replace(node, base=NodeBase.DOWN)
    if state == "NORESP":
        return replace(node, flags=flags | {NodeFlag.NOT_RESPONDING})
    if state == "UNDRAIN":
        if node.base is NodeBase.DOWN:
            return replace(node, flags=flags - {NodeFlag.DRAIN})
        return _without_reason(replace(node, flags=flags - {NodeFlag.DRAIN, NodeFlag.FAIL}))
    held = NodeFlag.DRAIN in flags or NodeFlag.FAIL in flags or node.base in (NodeBase.DOWN, NodeBase.FUTURE)
    if not held and (state == "RESUME" or node.running_jobs or node.completing_jobs):
        return SlurmErrno.NODE_TRANSITION
    base = NodeBase.IDLE if node.base in (NodeBase.DOWN, NodeBase.FUTURE, NodeBase.UNKNOWN) else node.base
    gone = {NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.NOT_RESPONDING}
    return _without_reason(replace(node, base=base, flags=flags - gone))


def _without_reason(node: Node) -> Node:
    return replace(node, reason="", reason_uid=None, reason_time=None)


def _features(node: Node, names: tuple[str, ...], values: dict[str, Any]) -> Answer:
    if "ActiveFeatures" not in values and not set(node.features_active) <= set(names):
        return SlurmErrno.ACTIVE_FEATURES
    return replace(node, conf=replace(node.conf, features=names), features_active=names)


def _active(node: Node, names: tuple[str, ...], values: dict[str, Any]) -> Answer:
    available = values.get("AvailableFeatures", values.get("Features", node.conf.features))
    return replace(node, features_active=names) if set(names) <= set(available) else SlurmErrno.ACTIVE_FEATURES


def _gres(node: Node, text: str, values: dict[str, Any]) -> Answer:
    """Devices are those of gres.conf: only the same text is taken."""
    return node if text == node.conf.gres else SlurmErrno.INVALID_GRES


def _bound(node: Node, kind: str, values: dict[str, Any]) -> Answer:
    return node


def _never(errno: SlurmErrno) -> Callable[[Node, Any, dict[str, Any]], Answer]:
    return lambda node, value, values: errno


def _conf(field: str) -> Callable[[Node, Any, dict[str, Any]], Answer]:
    def apply(node: Node, value: Any, values: dict[str, Any]) -> Answer:
        return replace(node, conf=replace(node.conf, **{field: value}))

    return apply


def _own(field: str) -> Callable[[Node, Any, dict[str, Any]], Answer]:
    def apply(node: Node, value: Any, values: dict[str, Any]) -> Answer:
        return replace(node, **{field: value})

    return apply


def _later(node: Node, value: Any, values: dict[str, Any]) -> Answer:
    """Reason: set at the end, because a state change clears it."""
    return node


_APPLY: dict[str, Callable[[Node, Any, dict[str, Any]], Answer]] = {
    "ActiveFeatures": _active,
    "AvailableFeatures": _features,
    "Features": _features,
    "Comment": _own("comment"),
    "CpuBind": _bound,
    "Extra": _own("extra"),
    "Gres": _gres,
    "NodeAddr": _conf("address"),
    "NodeHostName": _conf("host"),
    "Reason": _later,
    "ResumeAfter": _never(SlurmErrno.NOT_SUPPORTED),
    "State": _state,
    "Topology": _never(SlurmErrno.NO_TOPOLOGY),
    "Weight": _conf("weight"),
}
