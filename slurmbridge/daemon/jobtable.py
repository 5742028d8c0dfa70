"""The live jobs in memory, with the indexes that keep every command about one job from looking at all jobs.

Jobs are kept in id order (ids only grow). Finished jobs stay until MinJobAge is over. Not thread-safe: the event
loop alone touches it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from slurmbridge.lang.arrays import contains
from slurmbridge.lifecycle import arrays
from slurmbridge.model.job import Job, Step
from slurmbridge.model.states import JobFlag, JobState


def is_over(job: Job) -> bool:
    """Ended with nothing left to clean up."""
    return job.is_finished and JobFlag.COMPLETING not in job.flags


def holds_resources(job: Job) -> bool:
    """Running, suspended, or ended with processes that may still be there."""
    return job.allocation is not None and not job.is_pending and not is_over(job)


class JobTable:
    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._arrays: dict[int, dict[int, None]] = defaultdict(dict)  # array id -> job ids
        self._hets: dict[int, dict[int, None]] = defaultdict(dict)
        self._children: dict[int, set[int]] = defaultdict(set)  # parent id -> dependent job ids
        self._names: dict[tuple[int, str], set[int]] = defaultdict(set)  # unfinished, for singleton
        self._singletons: dict[tuple[int, str], set[int]] = defaultdict(set)  # by user and name
        self._steps: dict[int, dict[int, Step]] = defaultdict(dict)
        self._open: Counter[tuple[str, str, str]] = Counter()  # (user, account, QOS) -> jobs not ended, tasks counted
        self._waiting: set[int] = set()  # pending with a dependency
        self.counted: Counter[tuple[JobState, tuple[str, ...]]] = Counter()  # state, partitions; tasks counted

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs.values())

    def get(self, job_id: int) -> Job | None:
        return self._jobs.get(job_id)

    def all(self) -> Iterable[Job]:
        """As they are now: a listing is printed in pieces, and jobs come and go meanwhile."""
        return list(self._jobs.values())

    def put(self, job: Job) -> Job | None:
        """Add or replace; returns what was there."""
        before = self._jobs.get(job.job_id)
        self._jobs[job.job_id] = job
        if before is None:
            self._index(job)
        self._count(before, -1)
        self._count(job, 1)
        if is_over(job):
            self._names[(job.spec.uid, job.spec.name)].discard(job.job_id)
        elif before is None or is_over(before) or before.spec.name != job.spec.name:
            self._names[(job.spec.uid, job.spec.name)].add(job.job_id)
        if before is not None and before.spec.dependency not in (None, job.spec.dependency):
            self._unlist(before)
        if job.spec.dependency is not None and job.is_pending:
            self._waiting.add(job.job_id)
            for term in job.spec.dependency.terms:
                self._parents_index(term.kind, term.job_id, job).add(job.job_id)
        else:
            self._waiting.discard(job.job_id)
        return before

    def _count(self, job: Job | None, sign: int) -> None:
        if job is None:
            return
        tasks = arrays.count(job.tasks) if job.tasks else 1
        kind = (job.state, job.spec.partitions)
        self.counted[kind] += sign * tasks
        if not self.counted[kind]:
            del self.counted[kind]
        if not is_over(job):
            key = (job.spec.user, job.spec.account, job.spec.qos)
            self._open[key] += sign * tasks
            if not self._open[key]:
                del self._open[key]

    def count_open(self, user: str, account: str, qos: str) -> int:
        """Jobs submitted and not ended, every task of an array; an empty name counts all."""
        return sum(
            number
            for (its_user, its_account, its_qos), number in self._open.items()
            if (not user or user == its_user)
            and (not account or account == its_account)
            and (not qos or qos == its_qos)
        )

    def _index(self, job: Job) -> None:
        if job.array_job_id:
            self._arrays[job.array_job_id][job.job_id] = None
        if job.het_job_id:
            self._hets[job.het_job_id][job.job_id] = None

    def _parents_index(self, kind: str, parent_id: int, job: Job) -> set[int]:
        """Where a job that depends on this parent, or on its own namesakes, is listed."""
        if kind == "singleton":
            return self._singletons[(job.spec.uid, job.spec.name)]
        return self._children[parent_id]

    def forget(self, job: Job) -> None:
        """A finished job whose time is up, or a submission that did not become durable."""
        self._count(self._jobs.pop(job.job_id, None), -1)
        for index, key in ((self._arrays, job.array_job_id), (self._hets, job.het_job_id)):
            if key and key in index:
                index[key].pop(job.job_id, None)
                if not index[key]:
                    del index[key]
        twins = self._names.get((job.spec.uid, job.spec.name))
        if twins is not None:
            twins.discard(job.job_id)
            if not twins:
                del self._names[(job.spec.uid, job.spec.name)]
        self._waiting.discard(job.job_id)
        self._steps.pop(job.job_id, None)
        self._unlist(job)

    def _unlist(self, job: Job) -> None:
        """It waits for its parents no more."""
        for term in job.spec.dependency.terms if job.spec.dependency is not None else ():
            self._parents_index(term.kind, term.job_id, job).discard(job.job_id)
            if not self._children.get(term.job_id, True):
                del self._children[term.job_id]

    def kin(self, job_id: int) -> Sequence[Job]:
        """What an id in a dependency means: the array with all its tasks, the het job's components, or the job. In no
        order that means anything: this is asked at every end of a task."""
        if job_id in self._arrays:
            return [self._jobs[each] for each in self._arrays[job_id]]
        if job_id in self._hets:
            return self.of_het(job_id)
        job = self._jobs.get(job_id)
        return (job,) if job is not None else ()

    def knows(self, job_id: int, task: int | None) -> bool:
        """Whether there is such a job, or such a task of an array."""
        family = self.family(job_id)
        if task is None:
            return bool(family)
        return any(job.array_task_id == task or contains(job.tasks, task) for job in family)

    def family(self, job_id: int) -> Sequence[Job]:
        """The same, an array as `of_array` orders it."""
        return self.of_array(job_id) if job_id in self._arrays else self.kin(job_id)

    def of_array(self, array_job_id: int) -> Sequence[Job]:
        """The record of the unstarted tasks first, then the tasks in their order."""
        members = [self._jobs[job_id] for job_id in self._arrays.get(array_job_id, ())]
        members.sort(key=lambda job: (not job.tasks, job.array_task_id or 0))
        return members

    def of_het(self, het_job_id: int) -> Sequence[Job]:
        return [self._jobs[job_id] for job_id in self._hets.get(het_job_id, ())]

    def twins(self, job: Job) -> Sequence[Job]:
        """Unfinished jobs of the same user and name."""
        return [self._jobs[job_id] for job_id in self._names.get((job.spec.uid, job.spec.name), ())]

    def children(self, job: Job) -> Sequence[Job]:
        """Pending jobs that depend on this one, by its raw, array or het id, or by its name (singleton)."""
        ids: set[int] = set()
        for key in {job.job_id, job.array_job_id, job.het_job_id} - {0}:
            ids |= self._children.get(key, set())
        ids |= self._singletons.get((job.spec.uid, job.spec.name), set())
        return [self._jobs[i] for i in sorted(ids) if i in self._jobs and self._jobs[i].is_pending]

    def waiting(self) -> Sequence[Job]:
        """Pending jobs with a dependency."""
        return [self._jobs[job_id] for job_id in sorted(self._waiting)]

    def put_step(self, step: Step) -> None:
        self._steps[step.job_id][step.step_id] = step

    def steps(self, job_id: int) -> Sequence[Step]:
        """Steps of the present run, by id; the batch step first."""
        found = self._steps.get(job_id)
        return sorted(found.values(), key=lambda step: step.step_id) if found else ()

    def drop_step(self, job_id: int, step_id: int) -> None:
        found = self._steps.get(job_id)
        if found is not None:
            found.pop(step_id, None)

    def drop_steps(self, job_id: int) -> None:
        self._steps.pop(job_id, None)
