"""Small records for the tests of the store."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from slurmbridge.model.job import Allocation, Job, JobSpec, NodeShare, Step
from slurmbridge.model.request import JobRequest, Provenance
from slurmbridge.model.states import JobState
from slurmbridge.store.protocol import InsertJobs, Op, Store


def spec(**changes: Any) -> JobSpec:
    given: dict[str, Any] = {
        "request": JobRequest(
            name="work", ntasks=2, provenance=(("name", Provenance(source="directive", place="job.sh:2:9")),)
        ),
        "uid": 1001,
        "gid": 1001,
        "groups": (1001, 4),
        "user": "alice",
        "group": "alice",
        "account": "physics",
        "assoc_id": 5,
        "partitions": ("debug",),
        "name": "work",
        "work_dir": "/home/alice/w",
        "script_sha": "a" * 64,
        "env_sha": "e" * 64,
    } | changes
    return JobSpec(**given)


def job(job_id: int, *, spec_changes: dict[str, Any] | None = None, **changes: Any) -> Job:
    given: dict[str, Any] = {
        "job_id": job_id,
        "spec": spec(**(spec_changes or {})),
        "submit_time": 1000.0,
        "priority": 4,
    } | changes
    return Job(**given)


def allocation(*nodes: str, cpus: int = 2) -> Allocation:
    return Allocation(
        partition="debug",
        nodes=tuple(NodeShare(node=name, cpus=cpus, memory_mib=100) for name in nodes),
        tres=(("cpu", cpus * len(nodes)), ("billing", cpus * len(nodes))),
    )


def finished(job_id: int, start: float = 1000.0, end: float = 1060.0, **changes: Any) -> Job:
    given: dict[str, Any] = {
        "state": JobState.COMPLETED,
        "start_time": start,
        "end_time": end,
        "allocation": allocation("n1"),
    } | changes
    return job(job_id, **given)


def step(job_id: int, step_id: int = -5, **changes: Any) -> Step:
    given: dict[str, Any] = {"job_id": job_id, "step_id": step_id, "name": "batch", "start_time": 1000.0} | changes
    return Step(**given)


def insertion(*jobs: Job, nonce: str = "", uid: int = 1001, **changes: Any) -> InsertJobs:
    return InsertJobs(jobs=jobs, nonce=nonce or f"{jobs[0].job_id:032x}", uid=uid, **changes)


def outcome(store: Store, ops: Sequence[Op], *, droppable: bool = False, timeout: float = 120.0) -> Exception | None:
    """Write and wait for the verdict."""
    answered = threading.Event()
    errors: list[Exception | None] = []

    def done(error: Exception | None) -> None:
        errors.append(error)
        answered.set()

    store.write(ops, done, droppable=droppable)
    assert answered.wait(timeout), "no answer from the store"
    return errors[0]


def put(store: Store, *ops: Op) -> None:
    """Write and expect success."""
    assert outcome(store, ops) is None


replace = msgspec.structs.replace
"""A changed copy of a record."""
