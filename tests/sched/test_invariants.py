"""What holds for every cluster state: drawn jobs on a small cluster, cycle after cycle."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.model.cluster import DEFAULT_DEVICE_MIB
from slurmbridge.model.job import Allocation, GpuScope, Job
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import Exclusive, Memory, MemoryPer
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.small_cluster import GPU_NODES, NOW, carried_out, cluster, gpus, job, plan_of, world

LIMITS = st.sampled_from([None, 1, 5, 30, 60])


@st.composite
def plain(draw: st.DrawFn) -> dict[str, Any]:
    tasks = draw(st.integers(1, 12))
    low = draw(st.integers(1, min(tasks, 4)))
    return {
        "partitions": draw(st.sampled_from([("debug",), ("long",), ("debug", "long")])),
        "num_tasks": tasks,
        "ntasks_given": True,
        "min_nodes": low,
        "max_nodes": draw(st.sampled_from([None, low, 4])),
        "cpus_per_task": draw(st.integers(1, 3)),
        "memory": draw(st.sampled_from([None, Memory(MemoryPer.CPU, 1500), Memory(MemoryPer.NODE, 5000)])),
        "exclusive": draw(st.sampled_from([Exclusive.NO, Exclusive.NO, Exclusive.NODE, Exclusive.USER])),
        "uid": draw(st.sampled_from([1001, 1002])),
        "time_limit": draw(LIMITS),
        "nice": draw(st.integers(0, 50)),
    }


@st.composite
def with_devices(draw: st.DrawFn) -> dict[str, Any]:
    share = draw(st.sampled_from([{}, {"milli": 250}, {"milli": 600}, {"mib": 30_000}]))
    scope = draw(st.sampled_from([GpuScope.NODE, GpuScope.JOB, GpuScope.TASK]))
    return {
        "partitions": ("gpu",),
        "gpu": gpus(draw(st.integers(1, 4)), scope, **share),
        "num_tasks": draw(st.integers(1, 3)),
        "ntasks_given": True,
        "time_limit": draw(LIMITS),
        "nice": draw(st.integers(0, 50)),
    }


@st.composite
def queues(draw: st.DrawFn) -> list[Job]:
    jobs = []
    for number, fields in enumerate(draw(st.lists(plain() | with_devices(), min_size=1, max_size=12)), start=10):
        count = draw(st.sampled_from([0, 0, 0, 4]))
        record = {"tasks": ((0, count - 1, 1),), "array_job_id": number, "array_limit": 3} if count else {}
        jobs.append(job(number, record=record, **fields))
    return jobs


def check_no_overcommit(snapshot: Snapshot) -> None:
    cpus: dict[str, list[int]] = {}
    memory: dict[str, int] = {}
    devices: dict[tuple[str, int], list[tuple[int, int]]] = {}
    guests: dict[str, list[Job]] = {}
    for running in snapshot.running.values():
        assert running.job.allocation is not None
        for share in running.job.allocation.nodes:
            assert len(share.cpu_ids) == share.cpus > 0
            cpus.setdefault(share.node, []).extend(share.cpu_ids)
            memory[share.node] = memory.get(share.node, 0) + share.memory_mib
            guests.setdefault(share.node, []).append(running.job)
            for device in share.devices:
                devices.setdefault((share.node, device.index), []).append((device.milli, device.mib))
    for name, used in cpus.items():
        conf = snapshot.columns.nodes[snapshot.columns.rows[name]].conf
        assert len(used) == len(set(used)) and max(used) < conf.cpus
        assert memory[name] <= conf.real_memory
        kinds = {each.spec.exclusive for each in guests[name]}
        assert len(guests[name]) == 1 or Exclusive.NODE not in kinds
        assert Exclusive.USER not in kinds or len({each.spec.uid for each in guests[name]}) == 1
    for shares in devices.values():
        assert sum(milli for milli, _ in shares) <= 1000
        assert sum(mib for _, mib in shares) <= DEFAULT_DEVICE_MIB


def check_gang(waiting: Job, allocation: Allocation) -> None:
    spec = waiting.spec
    nodes = allocation.nodes
    assert len({each.node for each in nodes}) == len(nodes) >= spec.min_nodes
    assert spec.max_nodes is None or len(nodes) <= spec.max_nodes
    assert sum(each.tasks for each in nodes) == max(spec.num_tasks, len(nodes))
    assert all(each.cpus >= each.tasks * spec.cpus_per_task for each in nodes)
    if spec.gpu is not None:
        count = sum(len(each.devices) for each in nodes)
        wanted = {GpuScope.NODE: len(nodes), GpuScope.JOB: 1, GpuScope.TASK: spec.num_tasks}[spec.gpu.scope]
        assert count == spec.gpu.count * wanted
        assert all(each.node in GPU_NODES for each in nodes)


@settings(max_examples=60, deadline=None)
@given(queue=queues(), data=st.data())
def test_cycles_never_overcommit_start_whole_gangs_and_come_to_rest(queue: list[Job], data: st.DataObject) -> None:
    snapshot, memo, now = world(*queue), Memo.empty(), NOW
    for round_number in range(3):
        plan, memo = plan_cycle(snapshot, snapshot.config, now, memo)
        assert plan == plan_of(snapshot, now), "the memo changed the answer"
        for start in plan.starts:
            check_gang(snapshot.waiting[start.job_id].job, start.allocation)
        snapshot = carried_out(snapshot, plan, now)
        check_no_overcommit(snapshot)
        again = plan_of(snapshot, now)
        assert not again.starts and not again.priorities
        ended = data.draw(st.sets(st.sampled_from(sorted(snapshot.running) or [0])))
        now += 60 * (round_number + 1)
        snapshot = snapshot.apply(Delta(version=10 + round_number, gone=tuple(ended)))


def promised(plan: Plan) -> dict[int, float]:
    return {verdict.job_id: verdict.start for verdict in plan.verdicts if verdict.start is not None}


@settings(max_examples=60, deadline=None)
@given(queue=queues(), latecomers=queues())
def test_lower_priority_never_delays_a_promised_start(queue: list[Job], latecomers: list[Job]) -> None:
    snapshot = world(*queue)
    before = plan_of(snapshot)
    snapshot = carried_out(snapshot, before)
    lower = tuple(
        msgspec.structs.replace(
            each,
            job_id=each.job_id + 1000,
            array_job_id=0,
            tasks=(),
            spec=msgspec.structs.replace(each.spec, nice=5000 + each.spec.nice),
        )
        for each in latecomers
    )
    later = snapshot.apply(Delta(version=50, jobs=lower))
    plan = plan_of(later)
    for job_id, start in promised(before).items():
        if job_id in snapshot.waiting:
            told = next((v for v in plan.verdicts if v.job_id == job_id), None)
            assert told is None or told.start == start
    after = carried_out(later, plan)
    fresh = Snapshot.empty().apply(
        Delta(
            version=1,
            config=cluster(),
            accounting=after.accounting,
            jobs=tuple(each.job for each in after.running.values())
            + tuple(
                msgspec.structs.replace(after.waiting[job_id].job, start_time=None, reason="")
                for job_id in promised(before)
                if job_id in after.waiting
            ),
        )
    )
    kept = promised(plan_of(fresh))
    for job_id, start in promised(before).items():
        if job_id in fresh.waiting:
            assert kept.get(job_id, start) <= start
