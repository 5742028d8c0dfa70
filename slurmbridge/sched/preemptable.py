"""Which of a set of victims may a waiting job preempt? Asked once for each kind of job and of victim."""

from __future__ import annotations

import numpy as np

from slurmbridge.model.job import Job
from slurmbridge.sched.columns import Bools, Ints
from slurmbridge.sched.evictable import Victims
from slurmbridge.sched.preemption import Rules


class Preemptable:
    """The site's rules of preemption over one set of victims."""

    def __init__(self, rules: Rules, victims: Victims, now: float) -> None:
        self._rules, self._now, self._victims = rules, now, victims
        self._above: dict[object, Bools] = {}
        self._samples: list[Job] = []
        self._known: dict[object, Bools] = {}
        numbers: dict[object, int] = {}
        column = []
        for victim in victims.all:
            job = victim.running.job
            likeness = rules.likeness(job, now)
            if likeness not in numbers:
                numbers[likeness] = len(self._samples)
                self._samples.append(job)
            column.append(numbers[likeness])
        self._kind: Ints = np.array(column, dtype=np.int64)

    def outranking(self, job: Job, partition: str) -> Bools:
        """By victim: whether it would preempt the job in turn, so that nothing is gained by ending it."""
        rules = self._rules
        key = job.spec.qos, partition, job.priority if rules.by_priority else 0
        found = self._above.get(key)
        if found is None:
            known: dict[object, bool] = {}
            column = []
            for victim in self._victims.all:
                each = victim.running.job
                kind = each.spec.qos, each.spec.partitions, each.priority if rules.by_priority else 0
                if kind not in known:
                    known[kind] = rules.outranks(each, job, partition)
                column.append(known[kind])
            found = self._above[key] = np.array(column, dtype=np.bool_)
        return found

    def by(self, job: Job, partition: str) -> Bools:
        """By victim. `job` is tried in `partition`."""
        key = job.spec.qos, partition, job.priority if self._rules.by_priority else 0
        found = self._known.get(key)
        if found is None:
            may = [
                self._rules.may_preempt(job, each, self._now, partition=partition) is not None for each in self._samples
            ]
            found = self._known[key] = np.array(may, dtype=np.bool_)[self._kind]
        return found
