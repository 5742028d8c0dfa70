"""Which jobs does somebody mean who asks `slurmbridge` about one, and may he?"""

from __future__ import annotations

from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import is_id
from slurmbridge.lang.arrays import contains
from slurmbridge.model.job import Job


def find_jobs(site: Site, text: str) -> tuple[Job, ...]:
    """By raw id, by array id (all its tasks), as ARRAY_TASK (started or not), or all components of a het job."""
    number, _, task = text.partition("_")
    if not is_id(number) or (task and not is_id(task)):
        return ()
    tasks = tuple(site.jobs_of_array(int(number)))
    if task:
        own = int(task)
        return tuple(job for job in tasks if job.array_task_id == own or (job.tasks and contains(job.tasks, own)))
    if tasks:
        return tasks
    parts = tuple(site.jobs_of_het(int(number)))
    job = site.job(int(number))
    return parts or ((job,) if job else ())


def label(job: Job) -> str:
    if job.array_job_id and job.array_task_id is not None:
        return f"{job.array_job_id}_{job.array_task_id}"
    return str(job.job_id)


def may_see(call: Call, site: Site, job: Job) -> bool:
    """PrivateData=jobs keeps jobs of others from all but operators and coordinators."""
    if "jobs" not in site.config.private_data or job.spec.uid == call.uid or site.is_operator(call.uid):
        return True
    return site.coordinates(call.uid, job.spec.account)
