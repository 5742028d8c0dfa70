"""What is kept for whom at the start of a pass?

First the winners of earlier passes: room was made for them, so nobody else may take it. Then the gangs that have waited so
long that passing them over must end: they gather what is free, a piece at a time, until they are complete or their time is
over. Nothing is evicted for a gathering gang unless that completes it.
"""

from __future__ import annotations

from slurmbridge.sched import gates
from slurmbridge.sched.pod_allocate import admitted, allocate_gang, place_on, start_together
from slurmbridge.sched.pod_chunks import asked, next_to_start
from slurmbridge.sched.pod_fit import LATER, admits, best_nodes, fit, fit_devices
from slurmbridge.sched.pod_queue import to_start
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodTask


def hold(session: PodSession) -> None:
    """Start the winners of earlier passes, or keep their room; let gangs that waited too long gather theirs."""
    if session.policy.hold_for_winners:
        for _, gang in to_start(session, (each for each in session.gangs if any(task.kept for task in each.tasks))):
            _start_kept(session, gang)
    if session.policy.accumulate_after_s is not None:
        _gather(session, session.policy.accumulate_after_s)


def _start_kept(session: PodSession, gang: Gang) -> None:
    """All of what was promised to a gang, or nothing: then it waits like any other."""
    tasks = [task for task in gang.tasks if task.kept is not None and task.waits(False)]
    if not tasks or not admitted(session, gang, tasks):
        return
    mark = session.mark()
    if not all(_place_kept(session, task) for task in tasks) or gang.incomplete:
        session.restore(mark)
        return
    start_together(session, gang)


def _place_kept(session: PodSession, task: PodTask) -> bool:
    """On the node and devices of the promise; on others of the node, if those are gone."""
    node = task.kept
    if node is None or not admits(node, task):
        return False
    if task.ask.shares_devices and task.kept_labels:
        verdict = fit_devices(node, task.ask, task.kept_labels)
        if verdict:
            session.place(task, node, task.kept_labels, verdict == LATER)
            return True
    verdict = fit(node, task.ask)
    return bool(verdict) and place_on(session, task, node, verdict, False)


def _gather(session: PodSession, after_s: float) -> None:
    left = session.policy.accumulating
    late = [gang for gang in session.gangs if 0 <= gang.waited_s - after_s < session.policy.accumulate_for_s]
    for _, gang in to_start(session, late):
        if not left:
            return
        chunk = next_to_start(gang)
        ask = asked(chunk, session.device_mib)
        if len(chunk) < 2 or not gates.may_reclaim(session.ledger, session.shares, gang.leaf, ask, gang.preemptible):
            continue
        if allocate_gang(session, gang, session.nodes):
            continue
        if gang.root.wish is not None or not admitted(session, gang, chunk):
            continue
        left -= 1
        for task in chunk:
            for node, verdict in best_nodes(session.nodes, task, session.policy.placement, {}):
                if place_on(session, task, node, verdict, True):
                    session.gathering.add(gang.rank)
                    break
