"""What does the planner know? Records come in as deltas; what they mean for free space is kept beside them.

`Snapshot.apply` gives a new snapshot and leaves the old one as it was; both share what did not change. What is kept
here (columns, free space, shapes) follows from the records alone, so it never changes an answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Self

import msgspec
import numpy as np

from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.plan import Delta, Plan, Reservation
from slurmbridge.model.request import Exclusive
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.sched.choose import Bounds
from slurmbridge.sched.columns import Bools, NodeColumns, build, with_changes
from slurmbridge.sched.eligibility import time_limit
from slurmbridge.sched.held import Held, end_of
from slurmbridge.sched.kept import Book, at, noted, of_marks, told
from slurmbridge.sched.pending import NEVER, Pending, switch_wait_end
from slurmbridge.sched.placing import Placing, placing_of
from slurmbridge.sched.preemption import leaving_at
from slurmbridge.sched.room import NOBODY, Hold, Room, empty_room, holds_of, is_plain
from slurmbridge.sched.shape import Shape, ShapeTable
from slurmbridge.sched.topology import Near, holds_beside, near_of

_SHARING = ("FORCE", "YES")


class PartitionView(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A partition with its nodes as a column. `share`: jobs per CPU, 1 = not shared."""

    number: int
    partition: Partition
    nodes: Bools
    size: int
    share: int = 1
    forced: bool = False
    exclusive: bool = False
    bounds: Bounds = Bounds()
    placing: Placing | None = None  # which nodes are filled first; None: by weight and configuration
    near: Near | None = None  # its topology; None: all nodes are equally near


class Waiting(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A pending job and what is derived from its spec."""

    job: Job
    shape: Shape
    group: int  # equal for jobs that get equal verdicts


def waiting_of(job: Job, shapes: ShapeTable) -> Waiting:
    """With what is derived."""
    shape = shapes.of(job.spec)
    return Waiting(job=job, shape=shape, group=shapes.group(job.spec, shape, job.het_job_id))


class Running(msgspec.Struct, frozen=True, kw_only=True, eq=False, gc=False):
    """A job that holds resources. Completing ones too."""

    job: Job
    holds: tuple[Hold, ...]
    end: float  # when its time limit ends it: see `held`


def as_run(job: Job, allocation: Allocation) -> Job:
    """A job's record as it would be with this allocation."""
    return msgspec.structs.replace(job, state=JobState.RUNNING, allocation=allocation, evicted=None)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """See the module docstring. Mappings are never changed once they are in a snapshot."""

    version: int
    config: ClusterConfig
    accounting: Accounting
    columns: NodeColumns
    room: Room
    partitions: Mapping[str, PartitionView]
    waiting: Mapping[int, Waiting]  # as the records came; what was told since is in `pending`
    pending: Pending
    running: Mapping[int, Running]
    held: Held  # what they hold, as tables
    kept: Book  # for whom something is being freed
    on_node: Mapping[int, Mapping[int, Hold]]  # row -> job id -> what it holds there
    usage: tuple[UsageRow, ...]
    counted: tuple[UsageRow, ...] | None
    reservations: tuple[Reservation, ...]
    shapes: ShapeTable
    running_mark: object  # another object whenever `running` or its rows changed: key of what memos derive from them
    running_since: tuple[object, frozenset[int]]  # the mark before, and the jobs that changed since; None: all of them
    fixed_mark: object  # the same for what nodes are, and partitions

    @classmethod
    def empty(cls) -> Snapshot:
        """Nothing known."""
        columns = build(())
        return cls(
            version=0,
            config=ClusterConfig(),
            accounting=Accounting(),
            columns=columns,
            room=empty_room(columns),
            partitions={},
            waiting={},
            pending=Pending.empty(),
            running={},
            held=Held.empty(),
            kept={},
            on_node={},
            usage=(),
            counted=None,
            reservations=(),
            shapes=ShapeTable(),
            running_mark=object(),
            running_since=(None, frozenset()),
            fixed_mark=object(),
        )

    def apply(self, delta: Delta) -> Snapshot:
        """The snapshot with these changes."""
        result = self
        if delta.config is not None or delta.nodes:
            result = result._with_nodes(delta.config, delta.nodes)
        if delta.config is not None or delta.partitions is not None or result.columns.rows is not self.columns.rows:
            result = result._with_partitions(delta)
        if delta.jobs or delta.gone:
            result = result._with_jobs(delta.jobs, delta.gone)
            if not self.version:
                result = msgspec.structs.replace(result, kept=of_marks(delta.jobs))
        changes: dict[str, object] = {"version": delta.version}
        if delta.accounting is not None:
            changes["accounting"] = delta.accounting
        if delta.usage is not None:
            changes["usage"] = delta.usage
        if delta.counted is not None:
            changes["counted"] = delta.counted
        if delta.reservations is not None:
            changes["reservations"] = delta.reservations
        return msgspec.structs.replace(result, **changes)

    def noted(self, plan: Plan) -> Snapshot:
        """The snapshot as if the daemon had already told us what it wrote down of a plan: reasons and priorities.

        Starts are not noted: they count when the daemon has committed them.
        """
        after = noted(self.kept, plan)
        if not (plan.verdicts or plan.priorities):
            return self if after is self.kept else msgspec.structs.replace(self, kept=after)
        verdicts = [
            (each.job_id, each.reason, each.detail, NEVER if each.start is None else each.start)
            for each in plan.verdicts
        ]
        return msgspec.structs.replace(self, kept=after, pending=self.pending.told(verdicts, plan.priorities))

    def record(self, job_id: int) -> Job:
        """A waiting job as it was last told."""
        job, row = self.waiting[job_id].job, self.pending.row(job_id)
        reason, detail = self.pending.codes.text(int(row["code"]))
        start = float(row["start"])
        return msgspec.structs.replace(
            job,
            priority=int(row["priority"]),
            reason=reason,
            reason_text=detail,
            start_time=None if start == NEVER else start,
        )

    def _with_nodes(self, config: ClusterConfig | None, nodes: tuple[Node, ...]) -> Self:
        if config is None:
            columns = with_changes(self.columns, nodes)
        else:
            told = {node.conf.name: node for node in nodes}  # with what operators changed of their configuration
            known = {node.conf.name: node for node in self.columns.nodes}
            kept = [
                told.pop(conf.name)
                if conf.name in told
                else msgspec.structs.replace(known.get(conf.name, Node(conf=conf)), conf=conf)
                for conf in config.nodes
            ]
            extra = told.values()
            columns = build([*kept, *extra])
        changes: dict[str, object] = {"columns": columns, "config": config or self.config}
        if columns.names != self.columns.names or columns.cpus is not self.columns.cpus:
            running = {job_id: self._running(each.job, columns) for job_id, each in self.running.items()}
            on_node: dict[int, dict[int, Hold]] = {}
            for job_id, each in running.items():
                for hold in each.holds:
                    on_node.setdefault(hold.row, {})[job_id] = hold
            room = empty_room(columns)
            foreign = (row for row, node in enumerate(columns.nodes) if node.others != NOBODY)
            for row in {*on_node, *foreign}:
                room.reset_row(columns, row, on_node.get(row, {}).values())
            held = Held.of((job_id, each.end, each.holds) for job_id, each in running.items())
            changes |= {"running": running, "held": held, "on_node": on_node, "room": room, **_marked(None)}
            return msgspec.structs.replace(self, **changes)
        told_rows = [columns.rows[node.conf.name] for node in nodes]
        rows = [row for row in told_rows if columns.nodes[row].others != self.columns.nodes[row].others]
        if rows:
            room = self.room.copy()
            for row in rows:
                room.reset_row(columns, row, self.on_node.get(row, {}).values())
            changes["room"] = room
        return msgspec.structs.replace(self, **changes)

    def _with_partitions(self, delta: Delta) -> Self:
        if delta.partitions is not None:
            partitions = delta.partitions
        elif delta.config is not None:
            partitions = delta.config.partitions
        else:
            partitions = tuple(view.partition for view in self.partitions.values())
        whole_nodes = self.config.select_type == "select/linear"
        by_load = "CR_LLN" in self.config.select_type_parameters
        views = {}
        placing = placing_of(self.config, self.columns)
        for number, partition in enumerate(partitions):
            nodes = np.zeros(self.columns.count, dtype=np.bool_)
            for name in partition.nodes:
                row = self.columns.rows.get(name)
                if row is not None:
                    nodes[row] = True
            word, _, count = partition.oversubscribe.upper().partition(":")
            share = int(count) if count.isdecimal() else 4
            views[partition.name] = PartitionView(
                number=number,
                partition=partition,
                nodes=nodes,
                size=int(nodes.sum()),
                share=max(share, 1) if word in _SHARING else 1,
                forced=word == "FORCE",
                bounds=Bounds(partition.min_nodes, partition.max_nodes, partition.lln or by_load),
                exclusive=word == "EXCLUSIVE" or whole_nodes or partition.exclusive_topo,
                placing=placing,
                near=self._near(partition),
            )
        return msgspec.structs.replace(self, partitions=views, fixed_mark=object())

    def _near(self, partition: Partition) -> Near | None:
        """Columns of a partition's topology, those that are known as far as they hold."""
        topology, columns = self.config.topology_of(partition), self.columns
        for view in self.partitions.values():
            if view.near is not None and view.near.names is columns.names and view.near.topology is topology:
                return view.near
        return near_of(topology, columns, self.config.topology_param)

    def at(self, now: float) -> Self:
        """The snapshot with jobs that have waited long enough for few switches taking any number of them, and nothing kept
        for those for whom it was kept too long.
        """
        rows, standing = self.pending.rows, at(self.kept, now)
        over = np.flatnonzero(rows["switch"] <= now)
        if not len(over):
            return self if standing is self.kept else msgspec.structs.replace(self, kept=standing)
        waiting, groups, switch = dict(self.waiting), rows["group"].copy(), rows["switch"].copy()
        for row in over.tolist():
            groups[row], shape = self.shapes.relaxed(int(groups[row]))
            job_id = int(rows["id"][row])
            waiting[job_id] = Waiting(job=waiting[job_id].job, shape=shape, group=int(groups[row]))
        switch[over] = math.inf
        pending = self.pending.regrouped(groups.tolist(), switch.tolist())
        return msgspec.structs.replace(self, waiting=waiting, pending=pending, kept=standing)

    def as_if_running(self, job: Job, allocation: Allocation) -> Running:
        """A job as it would be with this allocation; nodes that are gone are left out."""
        return self._running(as_run(job, allocation), self.columns)

    def _running(self, job: Job, columns: NodeColumns) -> Running:
        view = self.partitions.get(job.allocation.partition) if job.allocation is not None else None
        holds = holds_of(
            job,
            columns,
            closes=view is not None and view.exclusive,
            owner=view is not None and view.partition.exclusive_user,
            shares=view is not None and view.share > 1 and (view.forced or job.spec.oversubscribe),
        )
        alone = view is not None and (view.partition.exclusive_topo or job.spec.exclusive is Exclusive.TOPO)
        if view is not None and alone and holds and not job.gave_way:
            known = columns is self.columns
            topology = self.config.topology_of(view.partition)
            near = view.near if known else near_of(topology, columns, self.config.topology_param)
            holds += holds_beside(near, holds)
        limit = time_limit(job, view.partition) if view is not None else job.spec.time_limit
        ending = JobFlag.COMPLETING in job.flags or job.state is not JobState.RUNNING
        leaving = leaving_at(job)
        end = end_of(job, math.inf if limit is None else 60.0 * limit, ending=ending)
        if job.state is JobState.SUSPENDED and not job.gave_way and JobFlag.COMPLETING not in job.flags:
            end = math.inf  # whoever suspended it decides
        return Running(job=job, holds=holds, end=end if leaving is None else min(end, leaving))

    def _with_jobs(self, jobs: tuple[Job, ...], gone: tuple[int, ...]) -> Self:
        waiting, running = dict(self.waiting), dict(self.running)
        leaving: list[Running] = []
        coming: list[Running] = []
        forgotten = [job_id for job_id in gone if job_id in waiting]
        fresh: dict[int, Waiting] = {}
        touched: set[int] = set()  # what runs, or ran, and is told anew
        for job in jobs:
            if waiting.pop(job.job_id, None) is not None:
                forgotten.append(job.job_id)
            before = running.get(job.job_id)
            if holds_resources(job):
                touched.add(job.job_id)
                now_running = self._running(job, self.columns)
                if (
                    before is not None
                    and before.end == now_running.end
                    and before.job.allocation == job.allocation
                    and before.job.is_without_cpus == job.is_without_cpus
                ):
                    running[job.job_id] = msgspec.structs.replace(before, job=job)
                    continue
                coming.append(now_running)
            elif job.state is JobState.PENDING:
                waiting[job.job_id] = fresh[job.job_id] = waiting_of(job, self.shapes)
            if before is not None:
                leaving.append(running.pop(job.job_id))
        for job_id in gone:
            waiting.pop(job_id, None)
            left = running.pop(job_id, None)
            if left is not None:
                leaving.append(left)
        for started in coming:
            running[started.job.job_id] = started
        waited = {job_id: self.waiting[job_id].job for job_id in self.kept if job_id in self.waiting}
        changes: dict[str, object] = {
            "waiting": waiting,
            "running": running,
            "kept": told(self.kept, waited, jobs, gone),
        }
        pending = self.pending
        if forgotten or fresh:
            pending = pending.changed(forgotten, [(each.job, each.group) for each in fresh.values()])
            changes["pending"] = pending
        if len(self.shapes) > 1000 + 4 * len(waiting):
            shapes = ShapeTable()
            again = {job_id: waiting_of(each.job, shapes) for job_id, each in waiting.items()}
            groups = [again[job_id].group for job_id in pending.rows["id"].tolist()]
            ends = [switch_wait_end(again[job_id].job) for job_id in pending.rows["id"].tolist()]
            changes |= {"waiting": again, "shapes": shapes, "pending": pending.regrouped(groups, ends)}
        if leaving or coming:
            changes["on_node"], changes["room"] = self._with_holds(leaving, coming)
            fresh_held = Held.of((each.job.job_id, each.end, each.holds) for each in coming)
            changes["held"] = self.held.without(each.job.job_id for each in leaving).joined(fresh_held)
        touched.update(each.job.job_id for each in leaving)
        if touched:
            changes |= _marked(self, touched)
        return msgspec.structs.replace(self, **changes)

    def _with_holds(self, leaving: list[Running], coming: list[Running]) -> tuple[dict[int, Mapping[int, Hold]], Room]:
        on_node, room = dict(self.on_node), self.room.copy()
        left: dict[int, dict[int, Hold]] = {}
        came: dict[int, dict[int, Hold]] = {}
        for running, by_row in ((leaving, left), (coming, came)):
            for each in running:
                for hold in each.holds:
                    by_row.setdefault(hold.row, {})[each.job.job_id] = hold
        for row in {**left, **came}:
            before = on_node.get(row, {})
            gone, new = left.get(row, {}), came.get(row, {})
            held = {job_id: hold for job_id, hold in before.items() if job_id not in gone}
            on_node[row] = held = held | new
            if (
                all(map(is_plain, gone.values()))
                and all(map(is_plain, new.values()))
                and all(is_plain(hold) for hold in before.values())
            ):
                for hold in gone.values():
                    room.give(hold)
                for hold in new.values():
                    room.take(hold)
            else:
                room.reset_row(self.columns, row, held.values())
        return on_node, room


def _marked(before: Snapshot | None, touched: Iterable[int] = ()) -> dict[str, object]:
    """Marks of another state of what runs; `before`: the snapshot from which just these jobs differ."""
    since = None if before is None else before.running_mark
    return {"running_mark": object(), "running_since": (since, frozenset(touched))}


def holds_resources(job: Job) -> bool:
    """Running, suspended or completing, with an allocation."""
    if job.allocation is None:
        return False
    return job.state in (JobState.RUNNING, JobState.SUSPENDED) or JobFlag.COMPLETING in job.flags
