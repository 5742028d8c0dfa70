"""Small jobs for tests: a spec with what matters given by name."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from slurmbridge.model.job import Allocation, Job, JobSpec, NodeShare
from slurmbridge.model.request import JobRequest
from slurmbridge.model.states import JobState


def spec(**fields: Any) -> JobSpec:
    base = JobSpec(
        request=JobRequest(),
        uid=1001,
        gid=1001,
        user="alice",
        group="alice",
        account="physics",
        partitions=("debug",),
        name="job",
        work_dir="/home/alice",
    )
    return replace(base, **fields)


def job(job_id: int = 10, *, of: JobSpec | None = None, **fields: Any) -> Job:
    return replace(Job(job_id=job_id, spec=of or spec(), submit_time=100.0, eligible_time=100.0), **fields)


def running(job_id: int = 10, *, node: str = "n1", cpus: int = 1, **fields: Any) -> Job:
    share = NodeShare(node=node, cpus=cpus, memory_mib=100)
    allocation = Allocation(partition="debug", nodes=(share,))
    return job(job_id, **{"state": JobState.RUNNING, "start_time": 110.0, "allocation": allocation, **fields})


def ended(job_id: int = 10, state: JobState = JobState.COMPLETED, **fields: Any) -> Job:
    return running(job_id, **{"state": state, "end_time": 120.0, **fields})
