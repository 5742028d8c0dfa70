"""Small clusters and jobs for the rules below: the recorded cluster's nodes and partitions, and jobs with few words."""

from __future__ import annotations

from typing import Any

import msgspec

from slurmbridge.model.accounts import Accounting, Assoc, Qos
from slurmbridge.model.cluster import ClusterConfig, Device, LicenseConf, Node, NodeConf, Partition
from slurmbridge.model.job import Allocation, GpuNeed, GpuScope, Job, JobSpec
from slurmbridge.model.plan import Delta, Plan
from slurmbridge.model.request import JobRequest, Memory, MemoryPer
from slurmbridge.model.states import JobState, PartitionState
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot

NOW = 1_800_000_000.0
CPU_NODES = tuple(f"n{number}" for number in range(1, 5))
GPU_NODES = ("g1", "g2")


def node(name: str, **fields: Any) -> NodeConf:
    defaults: dict[str, Any] = {
        "cpus": 8,
        "sockets": 2,
        "cores_per_socket": 4,
        "real_memory": 16000,
        "weight": 10,
        "features": ("cpu", "avx2", "rack1"),
    }
    return NodeConf(name=name, **(defaults | fields))


def gpu_node(name: str, count: int = 4, **fields: Any) -> NodeConf:
    devices = tuple(Device(index=index, type="a100") for index in range(count))
    defaults: dict[str, Any] = {
        "cpus": 16,
        "cores_per_socket": 8,
        "real_memory": 64000,
        "weight": 50,
        "features": ("gpu", "avx512", "rack2"),
        "devices": devices,
    }
    return node(name, **(defaults | fields))


def cluster(**fields: Any) -> ClusterConfig:
    """The recorded cluster."""
    defaults: dict[str, Any] = {
        "nodes": (
            *(node(name) for name in CPU_NODES),
            *(gpu_node(name) for name in GPU_NODES),
            node("b1", cpus=512, cores_per_socket=256, real_memory=512000, weight=90, features=("bench",)),
        ),
        "partitions": (
            Partition(name="debug", nodes=CPU_NODES, default=True),
            Partition(name="gpu", nodes=GPU_NODES, max_time=1440, default_time=60),
            Partition(
                name="long",
                nodes=("n3", "n4"),
                max_time=20160,
                default_time=1440,
                allow_qos=("normal", "long"),
                priority_job_factor=10,
            ),
            Partition(name="small", nodes=("n1", "n2"), max_nodes=1, max_time=30),
            Partition(name="restricted", nodes=CPU_NODES, allow_accounts=("admin",)),
            Partition(name="maint", nodes=CPU_NODES, state=PartitionState.DOWN),
            Partition(name="bench", nodes=("b1",)),
        ),
        "licenses": (LicenseConf(name="matlab", total=10),),
        "select_type_parameters": frozenset({"CR_Core_Memory"}),
        "enforce": frozenset({"associations", "limits", "qos", "safe"}),
        "accounting_tres": ("gres/gpu", "gres/gpu:a100", "license/matlab"),
        "priority_weight_age": 1000,
        "priority_weight_fairshare": 10000,
        "priority_weight_job_size": 1000,
        "priority_weight_partition": 1000,
        "priority_weight_qos": 2000,
    }
    return ClusterConfig(**(defaults | fields))


def accounting(*, qos: tuple[Qos, ...] = (), assocs: tuple[Assoc, ...] = ()) -> Accounting:
    default = (
        Assoc(assoc_id=1, account="root"),
        Assoc(assoc_id=2, account="physics", parent="root"),
        Assoc(assoc_id=3, account="physics", user="alice"),
        Assoc(assoc_id=4, account="physics", user="bob"),
    )
    replaced = {assoc.assoc_id: assoc for assoc in default} | {assoc.assoc_id: assoc for assoc in assocs}
    names = {each.name for each in qos}
    plain = tuple(Qos(name=name) for name in ("normal", "high", "long") if name not in names)
    return Accounting(assocs=tuple(replaced.values()), qos=(*plain, *qos))


def spec(**fields: Any) -> JobSpec:
    """A one-task job of alice in debug with 100 MiB a CPU; min_cpus follows tasks and CPUs per task."""
    defaults: dict[str, Any] = {
        "request": JobRequest(),
        "uid": 1001,
        "gid": 1001,
        "user": "alice",
        "group": "alice",
        "account": "physics",
        "assoc_id": 3,
        "partitions": ("debug",),
        "name": "job",
        "work_dir": "/tmp",
        "memory": Memory(MemoryPer.CPU, 100),
    }
    merged = defaults | fields
    if merged.get("num_tasks", 1) > 1:
        merged.setdefault("ntasks_given", True)
    merged.setdefault("min_cpus", merged.get("num_tasks", 1) * merged.get("cpus_per_task", 1))
    merged.setdefault("pn_min_cpus", merged.get("cpus_per_task", 1) * max(merged.get("ntasks_per_node", 0), 1))
    merged.setdefault(
        "req_tres",
        (("cpu", merged["min_cpus"]), ("mem", 100 * merged["min_cpus"]), ("node", merged.get("min_nodes", 1))),
    )
    return JobSpec(**merged)


def job(job_id: int, *, record: dict[str, Any] | None = None, **fields: Any) -> Job:
    """A pending job; `record` are fields of the Job itself."""
    times = {"submit_time": NOW, "eligible_time": NOW, "accrue_time": NOW}
    return Job(job_id=job_id, spec=spec(**fields), **(times | (record or {})))


def gpus(count: int, scope: GpuScope = GpuScope.NODE, **fields: Any) -> GpuNeed:
    return GpuNeed(scope=scope, count=count, **fields)


def world(*jobs: Job, config: ClusterConfig | None = None, records: Accounting | None = None, **delta: Any) -> Snapshot:
    return Snapshot.empty().apply(
        Delta(version=1, config=config or cluster(), accounting=records or accounting(), jobs=jobs, **delta)
    )


def plan_of(snapshot: Snapshot, now: float = NOW, memo: Memo | None = None) -> Plan:
    return plan_cycle(snapshot, snapshot.config, now, memo or Memo.empty())[0]


def started(waiting: Job, allocation: Allocation, now: float = NOW, minutes: int | None = None) -> Job:
    """The running record of a job."""
    return msgspec.structs.replace(
        waiting,
        state=JobState.RUNNING,
        start_time=now,
        allocation=allocation,
        evicted=None,
        time_limit_end=None if minutes is None else now + 60 * minutes,
    )


def carried_out(snapshot: Snapshot, plan: Plan, now: float = NOW) -> Snapshot:
    """The snapshot once all starts of a plan are committed, array tasks under new numbers, and the rest noted."""
    snapshot = snapshot.noted(plan)
    changed: list[Job] = []
    fresh = 1 + max([*snapshot.waiting, *snapshot.running], default=0)
    records: dict[int, Job] = {}
    for start in plan.starts:
        record = records.get(start.job_id) or snapshot.record(start.job_id)
        partition = snapshot.partitions[start.allocation.partition].partition
        minutes = record.spec.time_limit or partition.default_time or partition.max_time
        if start.array_task_id is None:
            changed.append(started(record, start.allocation, now, minutes))
            continue
        left = tuple(
            (task, task, 1)
            for first, last, step in record.tasks
            for task in range(first, last + 1, step)
            if task != start.array_task_id
        )
        task = msgspec.structs.replace(record, tasks=(), array_task_id=start.array_task_id)
        if left:
            records[start.job_id] = msgspec.structs.replace(record, tasks=left)
            task = msgspec.structs.replace(task, job_id=fresh)
            fresh += 1
        else:
            records.pop(start.job_id, None)
        changed.append(started(task, start.allocation, now, minutes))
    changed += records.values()
    return snapshot.apply(Delta(version=snapshot.version + 1, jobs=tuple(changed)))


def shares(plan: Plan) -> dict[int, list[tuple[str, int, int]]]:
    """job id -> (node, tasks, cpus) of its start."""
    return {start.job_id: [(n.node, n.tasks, n.cpus) for n in start.allocation.nodes] for start in plan.starts}


def reasons(plan: Plan) -> dict[int, str]:
    return {verdict.job_id: verdict.detail or verdict.reason for verdict in plan.verdicts}


def node_state(name: str, **fields: Any) -> Node:
    conf = next(each for each in cluster().nodes if each.name == name)
    return Node(conf=conf, **fields)
