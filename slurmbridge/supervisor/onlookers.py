"""Who else hears of a running step: sattach gets copies of its output and may speak to its tasks.

An onlooker that does not keep up is cut off: a step never waits for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmbridge.wire import step as wire
from slurmbridge.wire.client import unpack
from slurmbridge.wire.supervisor import decode, encode

if TYPE_CHECKING:
    from slurmbridge.supervisor.loop import Link
    from slurmbridge.supervisor.step_state import RunningStep

HEARD = frozenset({wire.STDOUT, wire.STDERR, wire.DONE, wire.MESSAGE, wire.FINISHED})


def admit(link: Link, payload: bytes, live: dict[int, RunningStep], job: int, ranks: list[dict[str, Any]]) -> int:
    """ATTACH: the number of the step that is watched from here on; -1 when it was refused. ValueError: nonsense."""
    version, request = unpack(payload)
    if version != wire.VERSION:
        refuse(link, "this sattach is of another version than the job")
        return -1
    step = live.get(int(decode(request)["step"]))
    if step is None or step.plan is None or not step.is_started:
        refuse(link, "Could not get job step info: Invalid job id specified")
        return -1
    link.send(
        wire.CREATED,
        encode(
            {
                "job": job,
                "step": step.step,
                "nodes": [
                    {"name": ranks[rank]["node"], "tasks": list(ids)}
                    for rank, ids in zip(step.plan.ranks, step.plan.tasks, strict=True)
                ],
                "done": [[task, status] for task, status in step.statuses.items()],
            }
        ),
    )
    step.onlookers.append(link)
    return step.step


def refuse(link: Link, text: str) -> None:
    link.send(wire.REFUSED, encode({"lines": [f"sattach: error: {text}"], "exit": 1}))
    link.close()


def tell(step: RunningStep, kind: bytes, payload: bytes) -> None:
    """A frame for the step's srun goes to those who look on, too."""
    if kind not in HEARD:
        return
    for link in list(step.onlookers):
        if not link.is_open or link.is_full:
            step.onlookers.remove(link)
            link.abandon()
            continue
        link.send(kind, payload)
        if kind == wire.FINISHED:
            link.close()
