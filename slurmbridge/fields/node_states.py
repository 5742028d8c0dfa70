"""Which nodes does `sinfo --states` mean? Words, their abbreviations, and how they are combined.

Follows sinfo(1) --states: a comma list means any of them, `&` all of them, `~` before a word the opposite.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.model.cluster import Node
from slurmbridge.model.states import NodeBase, NodeFlag

Test = Callable[[Node], bool]


def _base(base: NodeBase) -> Test:
    return lambda node: node.base is base


def _flag(flag: NodeFlag) -> Test:
    return lambda node: flag in node.flags


def _busy(node: Node) -> bool:
    return node.base in (NodeBase.ALLOCATED, NodeBase.MIXED) or NodeFlag.COMPLETING in node.flags


def _never(node: Node) -> bool:
    return False


WORDS: tuple[tuple[str, Test], ...] = (
    ("unknown", _base(NodeBase.UNKNOWN)),
    ("down", _base(NodeBase.DOWN)),
    ("idle", lambda n: n.base is NodeBase.IDLE and not n.flags & {NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.COMPLETING}),
    ("allocated", _busy),
    ("mixed", _base(NodeBase.MIXED)),
    ("future", _base(NodeBase.FUTURE)),
    ("drain", _flag(NodeFlag.DRAIN)),
    ("drained", lambda n: NodeFlag.DRAIN in n.flags and not _busy(n)),
    ("draining", lambda n: NodeFlag.DRAIN in n.flags and _busy(n)),
    ("no_respond", _flag(NodeFlag.NOT_RESPONDING)),
    ("reserved", _flag(NodeFlag.RESERVED)),
    ("planned", _flag(NodeFlag.PLANNED)),
    ("blocked", _never),
    ("cloud", _never),
    ("completing", _flag(NodeFlag.COMPLETING)),
    ("powering_down", _never),
    ("powered_down", _flag(NodeFlag.POWERED_DOWN)),
    ("power_down", _never),
    ("powering_up", _never),
    ("power_up", _never),
    ("inval", _never),
    ("fail", _flag(NodeFlag.FAIL)),
    ("maint", _flag(NodeFlag.MAINTENANCE)),
    ("reboot", _flag(NodeFlag.REBOOT_REQUESTED)),
    ("reboot^", _never),
    ("external", _never),
    ("dynamic_future", _never),
    ("dynamic_norm", _never),
)
"""In the order in which sinfo lists them; what cannot exist here matches no node."""

_SHORT = {
    "alloc": "allocated", "comp": "completing", "drng": "draining", "failg": "fail", "failing": "fail", "futr": "future",
    "mix": "mixed", "plnd": "planned", "resv": "reserved", "unk": "unknown", "nr": "no_respond",
}  # fmt: skip
_TESTS = dict(WORDS)


def parse(text: str) -> Test | str:
    """A test for nodes, or the word that is none."""
    any_of: list[list[Test]] = []
    for group in text.split(","):
        all_of: list[Test] = []
        for word in group.split("&"):
            if not word:
                continue
            negated = word.startswith("~")
            test = _word(word.removeprefix("~").lower())
            if test is None:
                return word
            all_of.append(_opposite(test) if negated else test)
        if all_of:
            any_of.append(all_of)
    return lambda node: any(all(test(node) for test in tests) for tests in any_of)


def _opposite(test: Test) -> Test:
    return lambda node: not test(node)


def _word(word: str) -> Test | None:
    if word == "all":
        return lambda node: True
    word = _SHORT.get(word, word)
    return _TESTS.get(word) or next((test for name, test in WORDS if len(word) > 2 and name.startswith(word)), None)
