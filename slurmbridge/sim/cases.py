"""How does the scheduler decide a case of gangs? Its rounds run, and what became of every task.

A round is one pass over a fresh snapshot. Between rounds what was placed runs, what was promised waits again (it is kept for
its winner only if the policy says so) and what was evicted waits.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from slurmbridge.sched.gang_actions import run_pass
from slurmbridge.sched.pod_fit import Placement
from slurmbridge.sched.pod_node import Ask, PodNode
from slurmbridge.sched.pod_session import PodSession
from slurmbridge.sched.pods import Gang, PodGroup, PodSet, PodTask, Status, Topology, Wish
from slurmbridge.sched.policy import Policy
from slurmbridge.sim.case_file import Case, GroupRow, JobRow, RequestRow, WishRow, tree_of

_RUNS = {"Running", "Bound", "Binding", "Allocated"}
_GONE = {"Failed", "Succeeded", "Deleted", "Unknown"}


class Where(msgspec.Struct, frozen=True, kw_only=True):
    """A task between rounds."""

    state: str
    node: str | None = None
    labels: tuple[str, ...] = ()


class TaskAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a task."""

    decision: str
    node: str | None
    gpu_group: list[str] | None


class JobAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of a job."""

    decision: str
    tasks: list[TaskAnswer]


def decide(case: Case, policy: Policy) -> dict[str, JobAnswer]:
    """Job name -> answer."""
    placement = Placement(
        gpu_nodes=case.session.placement.gpu, cpu_nodes=case.session.placement.cpu, devices=case.session.gpu_order
    )
    policy = msgspec.structs.replace(policy, placement=placement, staleness_grace_s=case.session.staleness_grace_s)
    start = first_states(case)
    now = start
    gangs: list[Gang] = []
    for _ in range(max(1, case.session.rounds_until_match + case.session.rounds_after_match)):
        session = build(case, now, policy)
        run_pass(session, case.session.actions)
        gangs = session.gangs
        now = next_states(session, now)
    answers: dict[str, JobAnswer] = {}
    for job, gang, first, last in zip(case.jobs, gangs, start, now, strict=True):
        if case.suite == "action":
            tasks = [_fate(task, where) for task, where in zip(gang.tasks, first, strict=True)]
        else:
            tasks = [_change(before, after) for before, after in zip(first, last, strict=True)]
        decision = "+".join(sorted({task.decision for task in tasks}))
        answers[job.name] = JobAnswer(decision=decision, tasks=tasks)
    return answers


def decide_all(cases: Iterable[Case], policy: Policy) -> dict[str, dict[str, JobAnswer]]:
    """Case id -> job name -> answer."""
    return {case.id: decide(case, policy) for case in cases}


def build(case: Case, states: list[list[Where]], policy: Policy) -> PodSession:
    """The session of a round in which tasks are where `states` says."""
    tree = tree_of(case)
    nodes = {
        row.name: PodNode(
            index, row.name, cpu=row.cpu_milli, memory=row.memory_bytes, gpus=row.gpus,
            device_mib=float(row.gpu_memory_mib), pods=row.max_pods, labels=row.labels,
        )
        for index, row in enumerate(case.nodes)
    }  # fmt: skip
    levels = {row.name: row.levels for row in case.topologies}
    gangs = []
    for rank, (job, where) in enumerate(zip(case.jobs, states, strict=True)):
        gang = Gang(
            rank, job.name, tree.index[job.queue], priority=job.priority, preemptible=job.preemptible,
            root=_root(job, levels), stale_s=job.stale_seconds, ran_s=job.ran_seconds, waited_s=job.waited_seconds,
        )  # fmt: skip
        by_name = {pods.name: pods for pods in gang.sets}
        for index, (row, place) in enumerate(zip(job.tasks, where, strict=True)):
            pods = by_name.get(row.subgroup or "", gang.sets[0])
            task = PodTask(
                gang, pods, index, row.id, _ask(row.request), order=row.task_priority or 0,
                affinity=frozenset(row.node_affinity),
            )  # fmt: skip
            gang.add(task)
            _put(task, place, nodes)
        gangs.append(gang)
    topologies = [Topology(name=row.name, levels=tuple(row.levels)) for row in case.topologies]
    return PodSession(tree, list(nodes.values()), gangs, topologies, policy)


def _put(task: PodTask, where: Where, nodes: dict[str, PodNode]) -> None:
    node = nodes.get(where.node or "")
    if where.state in _RUNS:
        task.status, task.node, task.labels = Status.RUNNING, node, where.labels
    elif where.state == "Releasing":
        task.status, task.node, task.labels = Status.RELEASING, node, where.labels
    elif where.state == "Pipelined":
        task.target, task.target_labels = node, where.labels
    elif where.state in _GONE or where.state == "Gated":
        task.status = Status.FAILED
    else:
        task.kept, task.kept_labels = node, where.labels


def _root(job: JobRow, levels: dict[str, list[str]]) -> PodGroup:
    if job.root is None:
        return PodGroup("", [], [PodSet("default", job.min_available or 1)])
    root = _group(job.root, levels)
    if not list(root.all_sets()):
        root.sets.append(PodSet("default", job.min_available or 1))
    return root


def _group(row: GroupRow, levels: dict[str, list[str]]) -> PodGroup:
    sets = [PodSet(each.name, each.min_available, _wish(each.topology, levels)) for each in row.pod_sets]
    return PodGroup(row.name, [_group(each, levels) for each in row.groups], sets, _wish(row.topology, levels))


def _wish(row: WishRow | None, levels: dict[str, list[str]]) -> Wish | None:
    if row is None:
        return None
    known = levels.get(row.topology, [])

    def level(name: str | None) -> int | None:
        """Deeper than all levels where it is none of them: no domain is."""
        return None if name is None else known.index(name) if name in known else len(known)

    return Wish(topology=row.topology, required=level(row.required_level), preferred=level(row.preferred_level))


def _ask(row: RequestRow) -> Ask:
    base = Ask(cpu=row.cpu_milli, memory=row.memory_bytes)
    if row.kind == "whole":
        return msgspec.structs.replace(base, gpus=round(row.gpus))
    if row.kind == "fraction":
        return msgspec.structs.replace(base, share=row.fraction or 0.0, devices=max(1, row.devices))
    if row.kind == "memory":
        return msgspec.structs.replace(base, mib=row.gpu_memory_mib, devices=max(1, row.devices))
    return base


def first_states(case: Case) -> list[list[Where]]:
    """Where tasks are; those that share devices without saying which get some of their own."""
    used: dict[str | None, set[str]] = {}
    for job in case.jobs:
        for task in job.tasks:
            if task.state in _RUNS or task.state in ("Releasing", "Pipelined"):
                used.setdefault(task.node, set()).update(task.gpu_groups)
    states = []
    for job in case.jobs:
        row = []
        for task in job.tasks:
            if task.state not in _RUNS and task.state not in ("Releasing", "Pipelined"):
                row.append(Where(state=task.state))
                continue
            labels: tuple[str, ...] = ()
            if task.request.kind in ("fraction", "memory"):
                labels = tuple(task.gpu_groups)
                taken = used[task.node]
                while len(labels) < max(1, task.request.devices):
                    label = next(str(number) for number in range(len(taken) + 1) if str(number) not in taken)
                    taken.add(label)
                    labels = (*labels, label)
            row.append(Where(state=task.state, node=task.node, labels=labels))
        states.append(row)
    return states


def next_states(session: PodSession, states: list[list[Where]]) -> list[list[Where]]:
    """Where tasks are once what the pass decided has happened."""
    return [
        [_after(task, where) for task, where in zip(gang.tasks, row, strict=True)]
        for gang, row in zip(session.gangs, states, strict=True)
    ]


def _after(task: PodTask, where: Where) -> Where:
    """Where the task is at the start of the next round; of one that waits, the node that was promised."""
    if task.target is not None or task.evicted:
        return Where(state="Pending", node=task.target.name if task.target else None, labels=task.target_labels)
    if task.status in (Status.RUNNING, Status.STARTED):
        return Where(state="Running", node=task.node.name if task.node else where.node, labels=task.labels)
    return Where(state="Pending") if where.state == "Pending" else where


def _fate(task: PodTask, where: Where) -> TaskAnswer:
    """What one pass did to the task."""
    if task.target is not None:
        moved = task.evicted
        return _answer("move_pipeline" if moved else "pipeline", task.target.name, task.target_labels)
    if task.evicted:
        return _answer("evict", where.node, where.labels)
    if task.status == Status.STARTED:
        return _answer("start", task.node.name if task.node else None, task.labels)
    return _change(where, where)


_UNCHANGED = {**dict.fromkeys(_RUNS, "keep"), "Releasing": "releasing", "Pending": "stay_pending",
              "Gated": "stay_pending", "Pipelined": "pipeline"}  # fmt: skip


def _change(before: Where, after: Where) -> TaskAnswer:
    """What all rounds together did to the task."""
    if before.state in _GONE:
        return _answer("failed", before.node, before.labels)
    ran, runs = before.state in _RUNS, after.state in _RUNS
    if ran and runs:
        return _answer("keep" if before.node == after.node else "move", after.node, after.labels)
    if ran:
        return _answer("evict", None, ())
    if runs:
        return _answer("start", after.node, after.labels)
    here = before if after.state == "Pending" else after
    return _answer(_UNCHANGED.get(after.state, "stay_pending"), here.node, here.labels)


def _answer(decision: str, node: str | None, labels: tuple[str, ...]) -> TaskAnswer:
    return TaskAnswer(decision=decision, node=node, gpu_group=list(labels) or None)
