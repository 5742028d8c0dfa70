"""What is done to gangs in one pass: five actions, one after the other over the same session.

allocate: what fits starts.  consolidate: running gangs are moved so that a waiting one fits; nobody loses.  reclaim: other
queues give back what they hold above their share.  preempt: lower priorities of the same queue give way.  evict_stale: gangs
that lost a member and did not recover give back the rest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from slurmbridge.sched import gates
from slurmbridge.sched.gang_holds import hold
from slurmbridge.sched.pod_allocate import admitted, allocate_gang
from slurmbridge.sched.pod_chunks import asked, held, next_to_start
from slurmbridge.sched.pod_node import Ask
from slurmbridge.sched.pod_queue import push, to_start
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodGroup, PodTask
from slurmbridge.sched.queues import TOLERANCE, Vector
from slurmbridge.sched.solver import Rule, Scenario, solve
from slurmbridge.sched.victims import VictimPool, Victims

Action = Callable[[PodSession], None]


def allocate(session: PodSession) -> None:
    """Place what fits, in order; who does not fit is passed over."""
    order = to_start(session, session.gangs)
    failed = _Failures()  # room only becomes less while this goes on
    while len(order):
        leaf, gang = order.pop()
        chunk = next_to_start(gang)
        if admitted(session, gang, chunk) and not failed.hopeless(gang, chunk):
            if allocate_gang(session, gang, session.nodes, tasks=chunk):
                push(session, order, gang)
            else:
                failed.note(gang, chunk)
        order.touch(leaf)


def consolidate(session: PodSession) -> None:
    """Move what can be interrupted, so that what waits fits. Nobody may end up without a place."""
    failed, pool = _Failures(), VictimPool(session)
    for gang, chunk, _ in _waiting(session):
        if not gang.preemptible or failed.hopeless(gang, chunk):
            continue
        least = asked(chunk, session.largest_mib)[2]
        if least > float(session.columns.free_devices().sum()) + TOLERANCE:
            continue
        victims = Victims(pool, tuple(pool.leaves()), _all_but(gang))
        if not solve(session, gang, victims, _nobody_loses, session.policy.consolidation_victims):
            failed.note(gang, chunk)


def reclaim(session: PodSession) -> None:
    """Take from other queues what they hold above their share, for a queue that stays inside its own."""
    failed, pool, rule = _Failures(), VictimPool(session), _reclaim_rule(session)
    for gang, chunk, ask in _waiting(session):
        if not gates.may_reclaim(session.ledger, session.shares, gang.leaf, ask, gang.preemptible):
            continue
        if failed.hopeless(gang, chunk, gang.leaf):
            continue
        others = tuple(leaf for leaf in pool.leaves() if leaf != gang.leaf)
        payers, most = others, None
        if session.policy.payers_first:
            payers = tuple(leaf for leaf in others if _could_pay(session, gang.leaf, ask, leaf))
        if payers and solve(session, gang, Victims(pool, payers, _anybody), rule):
            continue
        if len(payers) < len(others):  # the rest can be moved at most
            most = session.policy.consolidation_victims
            if solve(session, gang, Victims(pool, others, _anybody), rule, most):
                continue
        failed.note(gang, chunk, gang.leaf)


def preempt(session: PodSession) -> None:
    """Take from lower priorities of the same queue."""
    failed, pool = _Failures(), VictimPool(session)
    for gang, chunk, ask in _waiting(session):
        if not gang.preemptible and not gates.within_quota(session.ledger, gang.leaf, ask):
            continue
        if failed.hopeless(gang, chunk, gang.leaf):
            continue
        victims = Victims(pool, (gang.leaf,), _below(gang.priority))
        if not solve(session, gang, victims, _whatever):
            failed.note(gang, chunk, gang.leaf)


def evict_stale(session: PodSession) -> None:
    """End what is left of gangs that have been below a minimum for too long."""
    grace = session.policy.staleness_grace_s
    if grace < 0:
        return
    for gang in session.gangs:
        if gang.rank not in session.gathering and gang.incomplete and (gang.stale_s or 0.0) >= grace:
            for task in gang.tasks:
                session.evict(task)


ACTIONS: dict[str, Action] = {
    "allocate": allocate,
    "consolidation": consolidate,
    "reclaim": reclaim,
    "preempt": preempt,
    "stalegangeviction": evict_stale,
}


def run_pass(session: PodSession, actions: Sequence[str] = tuple(ACTIONS)) -> None:
    """All the actions, in order, after what is kept for somebody was given to him."""
    hold(session)
    for name in actions:
        ACTIONS[name](session)


def _all_but(gang: Gang) -> Callable[[Gang], bool]:
    return lambda other: other is not gang


def _below(priority: int) -> Callable[[Gang], bool]:
    return lambda other: other.priority < priority


def _anybody(_gang: Gang) -> bool:
    return True


def _whatever(_scenario: Scenario) -> bool:
    return True


def _nobody_loses(scenario: Scenario) -> bool:
    return not scenario.lost


def _could_pay(session: PodSession, leaf: int, ask: Vector, victim: int) -> bool:
    """Could anything be taken from this queue? What it may not lose first, it may not lose later."""
    mine, theirs = session.tree.where_they_part(leaf, victim)
    held_now = session.ledger.allocated[theirs]
    return gates.keeps_fair_share(session.tree, session.shares, theirs, held_now) or gates.guarantees_quota(
        session.ledger, mine, ask, theirs, held_now
    )


def _waiting(session: PodSession) -> Iterable[tuple[Gang, list[PodTask], Vector]]:
    """The gangs that have a next step, in order, each with its tasks and what they ask for."""
    order = to_start(session, session.gangs)
    while len(order):
        leaf, gang = order.pop()
        chunk = next_to_start(gang)
        if chunk:
            yield gang, chunk, asked(chunk, session.device_mib)
        order.touch(leaf)


def _reclaim_rule(session: PodSession) -> Rule:
    def allowed(scenario: Scenario) -> bool:
        return gates.may_take(
            scenario.before,
            session.shares,
            scenario.gang.leaf,
            scenario.ask,
            scenario.gang.preemptible,
            pieces(scenario.lost),
            session.policy.saturation_multiplier,
        )

    return allowed


def pieces(lost: Iterable[PodTask]) -> list[tuple[int, Vector]]:
    """(leaf, what it loses): tasks above a minimum one by one, the rest of a gang as one."""
    by_gang: dict[int, list[PodTask]] = {}
    for task in lost:
        by_gang.setdefault(id(task.gang), []).append(task)
    found: list[tuple[int, Vector]] = []
    for tasks in by_gang.values():
        leaf = tasks[0].gang.leaf
        core: list[PodTask] = []
        by_set: dict[int, list[PodTask]] = {}
        for task in tasks:
            by_set.setdefault(id(task.pods), []).append(task)
        for members in by_set.values():
            pods = members[0].pods
            spare = len(members) - max(0, min(len(members), pods.minimum - pods.active))
            found += [(leaf, task.charged) for task in members[:spare]]
            core += members[spare:]
        if core:
            found.append((leaf, held(core)))
    return found


class _Failures:
    """Gangs that found no way in this action: others that ask for the same, or for that and more, need not be tried."""

    def __init__(self) -> None:
        self._seen: dict[object, list[Counter[tuple[Ask, frozenset[str]]]]] = {}

    def hopeless(self, gang: Gang, chunk: Sequence[PodTask], leaf: int = -1) -> bool:
        """Has the same, or less of it, failed before?"""
        failed = self._seen.get(_likeness(gang, chunk, leaf))
        if not failed:
            return False
        asks = _asks(chunk)
        return any(all(asks[ask] >= count for ask, count in least.items()) for least in failed)

    def note(self, gang: Gang, chunk: Sequence[PodTask], leaf: int = -1) -> None:
        """Remember a failure."""
        self._seen.setdefault(_likeness(gang, chunk, leaf), []).append(_asks(chunk))


def _asks(chunk: Sequence[PodTask]) -> Counter[tuple[Ask, frozenset[str]]]:
    return Counter((task.ask, task.affinity) for task in chunk)


def _likeness(gang: Gang, chunk: Sequence[PodTask], leaf: int) -> object:
    running = any(pods.active for pods in gang.sets)
    return leaf, gang.preemptible, frozenset(_asks(chunk)), _shape(gang.root), gang.rank if running else -1


def _shape(group: PodGroup) -> object:
    """What is wished for about topology, and by which groups."""
    return (
        group.wish,
        tuple(_shape(inner) for inner in group.groups),
        tuple((pods.wish, pods.minimum if pods.wish or group.wish else 0) for pods in group.sets),
    )
