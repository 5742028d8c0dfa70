"""How are states of jobs and nodes spelled? Long and compact words, flags and suffixes.

Follows squeue(1) JOB STATE CODES and sinfo(1) NODE STATE CODES; scontrol shows a node's base state with all flags.
"""

from __future__ import annotations

from slurmbridge.model.cluster import Node
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState, NodeBase, NodeFlag

_JOB_FLAGS = tuple(JobFlag)
JOB_CODES: dict[str, str] = {
    **{state.value: state.name for state in JobState},
    **{flag.value: flag.name for flag in JobFlag},
}
"""Compact code -> word."""

STATE_ORDER: dict[JobState, int] = {state: index for index, state in enumerate(JobState)}
"""Slurm's numbers of the base states: what sorting by state goes by."""

HELP_STATES = (
    "pending", "running", "suspended", "completed", "cancelled", "failed", "timeout", "node_fail", "preempted",
    "boot_fail", "deadline", "out_of_memory", "completing", "configuring", "expediting", "resizing", "resv_del_hold",
    "requeued", "requeue_fed", "requeue_hold", "revoked", "signaling", "special_exit", "stage_out", "stopped",
)  # fmt: skip
"""Words that `squeue --states` knows, in the order it lists them."""


def job_word(job: Job) -> str:
    """`RUNNING`, `COMPLETING` ...: the first flag that is set, else the base state."""
    if job.flags:
        for flag in _JOB_FLAGS:
            if flag in job.flags:
                return flag.name
    return job.state.name


def job_code(job: Job) -> str:
    """`R`, `CG` ..."""
    if job.flags:
        for flag in _JOB_FLAGS:
            if flag in job.flags:
                return flag.value
    return job.state.value


def parse_job_state(text: str) -> str | None:
    """Word or code, any case, unique enough as Slurm takes it (`pending`, `PD`, `COMPLETED`, `CANCELED`); None: unknown."""
    upper = text.upper()
    if upper in JOB_CODES:
        return JOB_CODES[upper]
    words = {*JOB_CODES.values(), "EXPEDITING"}
    if upper in words:
        return upper
    return {"CANCELED": "CANCELLED"}.get(upper)


# Rank of flags in Slurm's state number: sorting by state compares these numbers.
_BASE_RANK = {
    NodeBase.UNKNOWN: 0,
    NodeBase.DOWN: 1,
    NodeBase.IDLE: 2,
    NodeBase.ALLOCATED: 3,
    NodeBase.ERROR: 4,
    NodeBase.MIXED: 5,
    NodeBase.FUTURE: 6,
}
_FLAG_RANK = {
    NodeFlag.RESERVED: 1 << 5,
    NodeFlag.DRAIN: 1 << 9,
    NodeFlag.COMPLETING: 1 << 10,
    NodeFlag.NOT_RESPONDING: 1 << 11,
    NodeFlag.POWERED_DOWN: 1 << 12,
    NodeFlag.FAIL: 1 << 13,
    NodeFlag.MAINTENANCE: 1 << 15,
    NodeFlag.REBOOT_REQUESTED: 1 << 16,
    NodeFlag.PLANNED: 1 << 22,
}
# First that is set decides the one sign behind the word.
_SIGNS = (
    (NodeFlag.MAINTENANCE, "$"),
    (NodeFlag.REBOOT_REQUESTED, "@"),
    (NodeFlag.POWERED_DOWN, "~"),
    (NodeFlag.NOT_RESPONDING, "*"),
)
_COMPACT = {
    "DRAINING": "drng", "DRAINED": "drain", "FAILING": "failg", "FAIL": "fail", "DOWN": "down", "ALLOCATED": "alloc",
    "ALLOCATED+": "alloc+", "COMPLETING": "comp", "IDLE": "idle", "RESERVED": "resv", "PLANNED": "plnd", "MIXED": "mix",
    "FUTURE": "futr", "UNKNOWN": "unk", "ERROR": "err", "MAINT": "maint",
}  # fmt: skip
# Order in which scontrol lists flags behind the base state.
_LISTED = (
    NodeFlag.COMPLETING, NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.MAINTENANCE, NodeFlag.POWERED_DOWN,
    NodeFlag.REBOOT_REQUESTED, NodeFlag.RESERVED, NodeFlag.NOT_RESPONDING, NodeFlag.PLANNED,
)  # fmt: skip


def node_rank(node: Node) -> int:
    """A number that orders node states as sinfo does."""
    return _BASE_RANK[node.base] + sum(_FLAG_RANK[flag] for flag in node.flags)


def node_word(node: Node) -> str:
    """`IDLE`, `DRAINING*`, `MIXED-` ...: the one word of sinfo with its sign, upper case."""
    word, sign = _node_word(node)
    return word + sign


def node_code(node: Node) -> str:
    """`idle`, `drng*`, `mix-` ..."""
    word, sign = _node_word(node)
    return _COMPACT[word] + sign


def node_complete(node: Node) -> str:
    """Base state and all flags: `IDLE+DRAIN`, as scontrol shows it."""
    if not node.flags:
        return node.base.name
    return "+".join((node.base.name, *(flag.name for flag in _LISTED if flag in node.flags)))


def _node_word(node: Node) -> tuple[str, str]:
    flags, base = node.flags, node.base
    if not flags:
        return base.name, ""
    sign = next((sign for flag, sign in _SIGNS if flag in flags), "")
    busy = base in (NodeBase.ALLOCATED, NodeBase.MIXED) or NodeFlag.COMPLETING in flags
    if NodeFlag.DRAIN in flags:
        return ("DRAINING" if busy else "DRAINED"), sign
    if NodeFlag.FAIL in flags:
        return ("FAILING" if busy else "FAIL"), sign
    if NodeFlag.MAINTENANCE in flags and not busy and base is not NodeBase.DOWN:
        return "MAINT", "*" if NodeFlag.NOT_RESPONDING in flags else ""
    if base is NodeBase.ALLOCATED and not sign:
        return (
            ("ALLOCATED", "-")
            if NodeFlag.PLANNED in flags
            else (("ALLOCATED+", "") if NodeFlag.COMPLETING in flags else ("ALLOCATED", ""))
        )
    if NodeFlag.COMPLETING in flags and base is not NodeBase.MIXED and base is not NodeBase.ALLOCATED:
        return "COMPLETING", sign
    if base is NodeBase.IDLE and NodeFlag.PLANNED in flags and not sign:
        return "PLANNED", ""
    if base is NodeBase.IDLE and NodeFlag.RESERVED in flags and not sign:
        return "RESERVED", ""
    if base is NodeBase.MIXED and NodeFlag.PLANNED in flags and not sign:
        return "MIXED", "-"
    return base.name, sign
