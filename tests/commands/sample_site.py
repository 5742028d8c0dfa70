"""A small cluster in memory: what the listing commands read in their tests."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from slurmbridge.commands.effects import Call, History, JobRow, Print
from slurmbridge.model.accounts import Accounting, Qos
from slurmbridge.model.cluster import ClusterConfig, Device, Node, NodeConf, Partition
from slurmbridge.model.job import Allocation, Job, JobSpec, NodeShare, Step, Usage
from slurmbridge.model.plan import Reservation
from slurmbridge.model.request import JobRequest, Memory, MemoryPer
from slurmbridge.model.states import JobState, NodeBase, PartitionState

NOW = 1_795_987_200.0  # 2026-11-29T21:20:00 UTC
USERS = {0: "root", 1001: "alice", 1002: "bob", 1003: "carol"}


def spec(**changes: object) -> JobSpec:
    """alice's one-CPU job in debug."""
    values: dict[str, object] = {
        "request": JobRequest(), "uid": 1001, "gid": 1001, "user": "alice", "group": "alice", "account": "physics",
        "assoc_id": 8, "partitions": ("debug",), "name": "wrap", "work_dir": "/home/alice/w",
        "std_out": "/home/alice/w/slurm-%j.out", "memory": Memory(MemoryPer.CPU, 100), "submit_host": "ctl",
        "req_tres": (("cpu", 1), ("mem", 100), ("node", 1), ("billing", 1)), "max_nodes": 1,
    }  # fmt: skip
    values.update(changes)
    return JobSpec(**values)  # type: ignore[arg-type]


def job(job_id: int, **changes: object) -> Job:
    """A held job; spec fields go to the spec."""
    own = {name: changes.pop(name) for name in list(changes) if name in Job.__struct_fields__}
    values: dict[str, object] = {"job_id": job_id, "submit_time": NOW - 60, "reason": "JobHeldUser", "priority": 0}
    values.update(own)
    return Job(spec=spec(**changes), **values)  # type: ignore[arg-type]


def running(job_id: int, nodes: Sequence[str], seconds: int = 8, cpus: int = 1, **changes: Any) -> Job:
    changes.setdefault("reason", "None")
    changes.setdefault("priority", 10173)
    partition = changes.get("partitions", ("debug",))
    return job(
        job_id,
        state=JobState.RUNNING,
        start_time=NOW - seconds,
        eligible_time=NOW - 60,
        batch_host=nodes[0],
        allocation=Allocation(
            partition=partition[0],
            nodes=tuple(NodeShare(node=name, cpus=cpus) for name in nodes),
            tres=(("cpu", cpus * len(nodes)), ("mem", 100), ("node", len(nodes)), ("billing", cpus)),
        ),
        **changes,
    )


def ended(job_id: int, state: JobState, exit_code: int = 0, **changes: Any) -> Job:
    from msgspec.structs import replace

    return replace(
        running(job_id, ("n1",), **changes), state=state, exit_code=exit_code, start_time=NOW - 20, end_time=NOW - 10
    )


def _node(name: str, **changes: object) -> Node:
    gpu = name.startswith("g")
    conf = NodeConf(
        name=name,
        cpus=16 if gpu else 8,
        sockets=2,
        cores_per_socket=8 if gpu else 4,
        real_memory=64000 if gpu else 16000,
        tmp_disk=1000,
        weight=50 if gpu else 10,
        features=("gpu", "avx512", "rack2") if gpu else ("cpu", "avx2", "rack1"),
        gres="gpu:a100:4" if gpu else "",
        devices=tuple(Device(index=index, type="a100") for index in range(4)) if gpu else (),
    )
    return Node(conf=conf, features_active=conf.features, **changes)  # type: ignore[arg-type]


def nodes() -> list[Node]:
    """n1 is mixed, n2 full, the others idle."""
    return [
        _node("n1", base=NodeBase.MIXED, alloc_cpus=2),
        _node("n2", base=NodeBase.ALLOCATED, alloc_cpus=8),
        _node("n3"),
        _node("n4"),
        _node("g1"),
        _node("g2"),
    ]


PARTITIONS = (
    Partition(name="debug", nodes=("n1", "n2", "n3", "n4"), default=True),
    Partition(name="gpu", nodes=("g1", "g2"), max_time=1440, default_time=60),
    Partition(name="small", nodes=("n1", "n2"), max_nodes=1, max_time=30),
    Partition(name="restricted", nodes=("n1", "n2", "n3", "n4"), state=PartitionState.DOWN),
)


class SampleSite:
    """`Site` over lists. `rows` is what the store would answer to sacct."""

    start_time = NOW - 3600
    daemon_host = "ctl"

    def __init__(self, jobs: Iterable[Job] = (), steps: Iterable[Step] = (), rows: Iterable[JobRow] = ()) -> None:
        self.config = ClusterConfig(cluster_name="oracle", partitions=PARTITIONS, preempt_mode="REQUEUE")
        self.accounting = Accounting(qos=(Qos(name="normal", qos_id=1), Qos(name="high", qos_id=2)))
        self._jobs = {job.job_id: job for job in jobs}
        self._steps = list(steps)
        self.rows = list(rows)
        self.node_list = nodes()
        self.booked: list[Reservation] = []

    def job(self, job_id: int) -> Job | None:
        return self._jobs.get(job_id)

    def jobs(self) -> Iterable[Job]:
        return self._jobs.values()

    def jobs_of_array(self, array_job_id: int) -> Sequence[Job]:
        return [job for job in self._jobs.values() if job.array_job_id == array_job_id]

    def jobs_of_het(self, het_job_id: int) -> Sequence[Job]:
        return [job for job in self._jobs.values() if job.het_job_id == het_job_id]

    def steps(self, job_id: int) -> Sequence[Step]:
        return [step for step in self._steps if step.job_id == job_id]

    def nodes(self) -> Sequence[Node]:
        return self.node_list

    def node(self, name: str) -> Node | None:
        return next((node for node in self.node_list if node.name == name), None)

    def partitions(self) -> Sequence[Partition]:
        return PARTITIONS

    def reservations(self) -> Sequence[Reservation]:
        return self.booked

    def licenses_used(self) -> Mapping[str, int]:
        return {}

    def usage(self) -> Sequence[object]:
        return ()

    def counted_usage(self) -> Sequence[object]:
        return ()

    def user_name(self, uid: int) -> str:
        return USERS.get(uid, str(uid))

    def user_id(self, name: str) -> int | None:
        return next((uid for uid, known in USERS.items() if known == name), None)

    group_name = user_name
    group_id = user_id

    def groups_of(self, user: str) -> Sequence[str]:
        return [user]

    def is_operator(self, uid: int) -> bool:
        return uid == 0

    is_admin = is_operator

    def coordinates(self, uid: int, account: str) -> bool:
        return False

    def time_zone(self, name: str) -> datetime.tzinfo:
        return datetime.UTC


class Ran:
    """What a command printed and returned, and the effects that were no prints."""

    def __init__(self, main: object, line: str | Sequence[str], site: SampleSite, **call: object) -> None:
        argv = tuple(line.split()) if isinstance(line, str) else tuple(line)
        values: dict[str, object] = {"env": {}, "cwd": "/home/alice/w", "uid": 1001, "user": "alice", "now": NOW}
        values.update(call)
        self.out = self.err = ""
        self.effects: list[object] = []
        command = main(Call(argv=argv, **values), site)  # type: ignore[operator,arg-type]
        answer: object = None
        while True:
            try:
                effect = command.send(answer)
            except StopIteration as stop:
                self.rc = stop.value
                return
            answer = None
            if isinstance(effect, Print):
                if effect.fd == 1:
                    self.out += effect.text
                else:
                    self.err += effect.text
                continue
            self.effects.append(effect)
            if isinstance(effect, History):
                answer = tuple(site.rows)


def usage() -> Usage:
    return Usage(user_us=11_000, system_us=22_000, max_rss_kib=1976, max_rss_node="n1", max_vsize_kib=3036)
