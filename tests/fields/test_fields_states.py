"""States as words: flags before base states, and one sign at most behind a node's word."""

from __future__ import annotations

import pytest

from slurmbridge.fields import node_states, states
from slurmbridge.model.cluster import Node, NodeConf
from slurmbridge.model.states import NodeBase, NodeFlag

IDLE, ALLOC, MIXED, DOWN = NodeBase.IDLE, NodeBase.ALLOCATED, NodeBase.MIXED, NodeBase.DOWN
DRAIN, COMP, SILENT = NodeFlag.DRAIN, NodeFlag.COMPLETING, NodeFlag.NOT_RESPONDING


def node(base: NodeBase, *flags: NodeFlag) -> Node:
    return Node(conf=NodeConf(name="n1"), base=base, flags=frozenset(flags))


@pytest.mark.parametrize(
    ("base", "flags", "code", "word"),
    [
        (IDLE, (), "idle", "IDLE"),
        (MIXED, (), "mix", "MIXED"),
        (ALLOC, (), "alloc", "ALLOCATED"),
        (IDLE, (DRAIN,), "drain", "DRAINED"),
        (DOWN, (DRAIN,), "drain", "DRAINED"),
        (ALLOC, (DRAIN,), "drng", "DRAINING"),
        (MIXED, (DRAIN, SILENT), "drng*", "DRAINING*"),
        (IDLE, (COMP,), "comp", "COMPLETING"),
        (DOWN, (SILENT,), "down*", "DOWN*"),
        (IDLE, (NodeFlag.FAIL,), "fail", "FAIL"),
        (ALLOC, (NodeFlag.FAIL,), "failg", "FAILING"),
        (IDLE, (NodeFlag.MAINTENANCE,), "maint", "MAINT"),
        (MIXED, (NodeFlag.PLANNED,), "mix-", "MIXED-"),
        (IDLE, (NodeFlag.PLANNED,), "plnd", "PLANNED"),
        (IDLE, (NodeFlag.RESERVED,), "resv", "RESERVED"),
        (IDLE, (NodeFlag.REBOOT_REQUESTED,), "idle@", "IDLE@"),
    ],
)
def test_a_node_state_is_written_so(base: NodeBase, flags: tuple[NodeFlag, ...], code: str, word: str) -> None:
    assert states.node_code(node(base, *flags)) == code
    assert states.node_word(node(base, *flags)) == word


def test_every_combination_of_flags_has_a_word() -> None:
    for base in NodeBase:
        for one in NodeFlag:
            for two in NodeFlag:
                assert states.node_code(node(base, one, two))


def test_scontrol_shows_the_base_state_and_all_flags() -> None:
    assert states.node_complete(node(ALLOC, DRAIN)) == "ALLOCATED+DRAIN"
    assert states.node_complete(node(IDLE)) == "IDLE"


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("idle", [True, False, False, False]),
        ("drain", [False, True, True, False]),
        ("drained", [False, True, False, False]),
        ("drng", [False, False, True, False]),
        ("alloc,idle", [True, False, True, True]),
        ("~idle", [False, True, True, True]),
        ("alloc&drain", [False, False, True, False]),
    ],
)
def test_states_select_nodes(text: str, matches: list[bool]) -> None:
    test = node_states.parse(text)
    assert not isinstance(test, str)
    assert [test(each) for each in (node(IDLE), node(IDLE, DRAIN), node(ALLOC, DRAIN), node(MIXED))] == matches


def test_an_unknown_state_is_named() -> None:
    assert node_states.parse("idle,foo") == "foo"


@pytest.mark.parametrize("text", ["pending", "PD", "pd", "CG", "COMPLETING", "cancelled", "oom"])
def test_job_states_are_taken_as_words_or_codes(text: str) -> None:
    assert states.parse_job_state(text)


def test_an_unknown_job_state_is_none() -> None:
    assert states.parse_job_state("foo") is None
