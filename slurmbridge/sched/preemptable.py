"""Which of a set of victims may a waiting job preempt? Asked once for each kind of job and of victim."""

from __future__ import annotations

import numpy as np

from slurmbridge.model.job import Job
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.evictable import Victims
from slurmbridge.sched.preemption import Rules


class Preemptable:
    """The site's rules of preemption over one set of victims, none of which is exempt any more."""

    def __init__(self, rules: Rules, victims: Victims, now: float) -> None:
        self._rules, self._victims, self._now = rules, victims, now
        _, first, self._kind = np.unique(victims.kind, return_index=True, return_inverse=True)
        self._samples = [victims.victim(place).running.job for place in first.tolist()]
        self._above: dict[object, Bools] = {}
        self._known: dict[object, Ints] = {}

    def outranking(self, job: Job, partition: str) -> Bools:
        """By victim: whether it would preempt the job in turn, so that nothing is gained by ending it."""
        key = self._likeness(job, partition)
        found = self._above.get(key)
        if found is None:
            would = [self._rules.outranks(each, job, partition) for each in self._samples]
            found = self._above[key] = np.array(would, dtype=np.bool_)[self._kind]
        return found

    def by(self, job: Job, partition: str) -> Ints:
        """Places of victims, the dearest first. `job` is tried in `partition`."""
        key = self._likeness(job, partition)
        found = self._known.get(key)
        if found is None:
            may = [
                self._rules.may_preempt(job, each, self._now, partition=partition) is not None for each in self._samples
            ]
            found = self._known[key] = self._victims.dearest_first(np.array(may, dtype=np.bool_)[self._kind])
        return found

    def _likeness(self, job: Job, partition: str) -> object:
        return job.spec.qos, partition, job.priority if self._rules.by_priority else 0
