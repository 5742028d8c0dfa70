"""Rules of PreemptType, PreemptMode, PreemptExemptTime and GraceTime (slurm.conf(5), sacctmgr(1) of 26.05)."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slurmbridge.model.accounts import Qos
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import Allocation, Evicted, Job, NodeShare
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.sched.preemption import Rules, is_preemptible, leaving_at
from tests.sched.small_cluster import NOW, accounting, job

HOUR = 3600.0


def running(job_id: int, *, partition: str = "low", record: dict[str, Any] | None = None, **fields: Any) -> Job:
    """A batch job that started an hour ago."""
    found = job(job_id, partitions=(partition,), **fields)
    share = NodeShare(node="n1", cpus=1, memory_mib=100)
    run = {
        "state": JobState.RUNNING,
        "start_time": NOW - HOUR,
        "allocation": Allocation(partition=partition, nodes=(share,)),
        "priority": 100,
    }
    return replace(found, **(run | (record or {})))


def waiting(job_id: int = 9, *, partition: str = "high", priority: int = 500, **fields: Any) -> Job:
    return replace(job(job_id, partitions=(partition,), **fields), priority=priority)


def rules(
    kind: str, mode: str, *, qos: tuple[Qos, ...] = (), partitions: tuple[Partition, ...] = (), **config: Any
) -> Rules:
    given = {each.name: each for each in (Partition(name="low"), Partition(name="high", priority_tier=2))}
    given |= {each.name: each for each in partitions}
    records = accounting(qos=(Qos(name="urgent", preempt=("normal",)), Qos(name="long"), *qos))
    return Rules(ClusterConfig(preempt_type=f"preempt/{kind}", preempt_mode=mode, **config), records, given)


def test_nothing_is_preempted_without_a_preempt_type() -> None:
    made = rules("none", "OFF")
    assert not made.enabled
    assert made.may_preempt(waiting(qos="urgent"), running(1), NOW) is None


@pytest.mark.parametrize(
    ("mode", "expected"), [("REQUEUE", "REQUEUE"), ("CANCEL", "CANCEL"), ("SUSPEND,GANG", "SUSPEND")]
)
def test_a_listed_qos_is_preempted_in_the_mode_of_the_cluster(mode: str, expected: str) -> None:
    assert rules("qos", mode).may_preempt(waiting(qos="urgent"), running(1), NOW) == expected


def test_a_qos_that_is_not_listed_is_safe_whatever_the_priority() -> None:
    made = rules("qos", "REQUEUE")
    assert made.may_preempt(waiting(qos="urgent"), running(1, qos="long"), NOW) is None
    assert made.may_preempt(waiting(qos="normal"), running(1, qos="urgent"), NOW) is None


@pytest.mark.parametrize("word", ["cluster", "off", ""])
def test_a_qos_that_says_cluster_off_or_nothing_takes_the_mode_of_the_cluster(word: str) -> None:
    made = rules("qos", "CANCEL", qos=(Qos(name="normal", preempt_mode=word),))
    assert made.may_preempt(waiting(qos="urgent"), running(1), NOW) == "CANCEL"


def test_the_mode_of_the_victims_qos_comes_before_that_of_the_cluster() -> None:
    made = rules("qos", "REQUEUE", qos=(Qos(name="normal", preempt_mode="cancel"),))
    assert made.may_preempt(waiting(qos="urgent"), running(1), NOW) == "CANCEL"


def test_jobs_of_one_qos_preempt_each_other_only_within_and_from_a_higher_priority() -> None:
    plain, within = rules("qos", "REQUEUE"), rules("qos", "REQUEUE", qos=(Qos(name="normal", preempt_mode="within"),))
    assert plain.may_preempt(waiting(qos="normal"), running(1), NOW) is None
    assert within.may_preempt(waiting(qos="normal"), running(1), NOW) == "REQUEUE"
    assert within.may_preempt(waiting(qos="normal", priority=100), running(1), NOW) is None


def test_priority_asks_for_a_higher_priority_of_the_job_besides() -> None:
    made = rules("qos", "REQUEUE,PRIORITY")
    assert made.may_preempt(waiting(qos="urgent", priority=500), running(1), NOW) == "REQUEUE"
    assert made.may_preempt(waiting(qos="urgent", priority=50), running(1), NOW) is None


def test_a_higher_tier_preempts_a_lower_one_and_no_equal_one() -> None:
    made = rules("partition_prio", "REQUEUE")
    assert made.may_preempt(waiting(), running(1), NOW) == "REQUEUE"
    assert made.may_preempt(waiting(partition="low"), running(1), NOW) is None
    assert made.may_preempt(waiting(), running(1, partition="high"), NOW) is None


def test_a_job_of_several_partitions_preempts_with_the_one_that_is_tried() -> None:
    made, asked = rules("partition_prio", "REQUEUE"), replace(waiting(), spec=job(9, partitions=("low", "high")).spec)
    assert made.may_preempt(asked, running(1), NOW, partition="low") is None
    assert made.may_preempt(asked, running(1), NOW, partition="high") == "REQUEUE"


@pytest.mark.parametrize(("word", "expected"), [("OFF", None), ("CANCEL", "CANCEL"), ("", "REQUEUE")])
def test_the_mode_of_the_victims_partition_comes_first_and_off_keeps_it_safe(word: str, expected: str | None) -> None:
    made = rules("partition_prio", "REQUEUE", partitions=(Partition(name="low", preempt_mode=word),))
    assert made.may_preempt(waiting(), running(1), NOW) == expected


def test_what_cannot_be_requeued_is_cancelled() -> None:
    made = rules("partition_prio", "REQUEUE")
    assert made.may_preempt(waiting(), running(1, requeue=False), NOW) == "CANCEL"
    assert made.may_preempt(waiting(), running(1, is_batch=False), NOW) == "CANCEL"


def test_suspending_needs_gang_for_the_cluster() -> None:
    low = (Partition(name="low", preempt_mode="SUSPEND"),)
    assert rules("partition_prio", "REQUEUE", partitions=low).may_preempt(waiting(), running(1), NOW) is None
    made = rules("partition_prio", "REQUEUE,GANG", partitions=low)
    assert made.may_preempt(waiting(), running(1), NOW) == "SUSPEND"
    asleep = running(1, record={"state": JobState.SUSPENDED})
    assert made.may_preempt(waiting(), asleep, NOW) is None


def test_a_qos_suspends_only_in_the_same_partition_or_from_a_higher_tier() -> None:
    made = rules("qos", "SUSPEND,GANG", partitions=(Partition(name="other"),))
    assert made.may_preempt(waiting(partition="low", qos="urgent"), running(1), NOW) == "SUSPEND"
    assert made.may_preempt(waiting(partition="other", qos="urgent"), running(1), NOW) is None


def test_a_run_is_exempt_until_it_has_run_long_enough() -> None:
    made = rules("partition_prio", "REQUEUE", preempt_exempt_time=7200)
    assert made.exempt_until(running(1)) == NOW + HOUR
    assert made.may_preempt(waiting(), running(1), NOW) is None
    assert made.may_preempt(waiting(), running(1), NOW + HOUR) == "REQUEUE"


def test_the_exempt_time_of_the_qos_comes_before_the_clusters_even_when_it_is_nothing() -> None:
    made = rules("qos", "REQUEUE", preempt_exempt_time=7200, qos=(Qos(name="normal", preempt_exempt_time=0),))
    assert made.may_preempt(waiting(qos="urgent"), running(1), NOW) == "REQUEUE"


def test_the_partitions_qos_exempts_before_the_jobs_unless_that_one_is_over_it() -> None:
    low = (Partition(name="low", qos="shield"),)
    shield = Qos(name="shield", preempt_exempt_time=60)
    plain = rules("qos", "REQUEUE", partitions=low, qos=(shield, Qos(name="normal", preempt_exempt_time=30)))
    assert plain.exempt_until(running(1)) == NOW - HOUR + 60
    over = Qos(name="normal", preempt_exempt_time=30, flags=("OverPartQOS",))
    assert rules("qos", "REQUEUE", partitions=low, qos=(shield, over)).exempt_until(running(1)) == NOW - HOUR + 30


def test_min_exempt_priority_saves_whoever_reaches_it() -> None:
    made = rules("partition_prio", "REQUEUE", preempt_parameters="youngest_first,min_exempt_priority=100")
    assert made.may_preempt(waiting(), running(1), NOW) is None
    assert made.may_preempt(waiting(), running(1, record={"priority": 99}), NOW) == "REQUEUE"
    assert made.youngest_first


def test_grace_time_is_that_of_the_qos_or_where_tiers_decide_of_the_partition() -> None:
    low, normal = (Partition(name="low", grace_time=120),), (Qos(name="normal", grace_time=60),)
    assert rules("qos", "REQUEUE", qos=normal, partitions=low).grace_s(running(1)) == 60
    assert rules("partition_prio", "REQUEUE", qos=normal, partitions=low).grace_s(running(1)) == 120
    assert rules("qos", "SUSPEND,GANG", qos=normal).grace_s(running(1), "SUSPEND") == 0


@pytest.mark.parametrize(
    "record",
    [
        {"flags": frozenset({JobFlag.COMPLETING})},
        {"state": JobState.PENDING, "allocation": None},
        {"evicted": Evicted(mode="REQUEUE", for_job=8, until=NOW + 60)},
    ],
    ids=["completing", "pending", "in grace"],
)
def test_what_is_on_its_way_out_is_not_chosen_again(record: dict[str, Any]) -> None:
    assert rules("partition_prio", "REQUEUE").may_preempt(waiting(), running(1, record=record), NOW) is None


def test_a_qos_that_is_not_preemptible_is_safe_by_every_rule() -> None:
    made = rules("qos", "REQUEUE", qos=(Qos(name="normal", preemptible=False),))
    assert made.may_preempt(waiting(qos="urgent"), running(1), NOW) is None
    assert made.reclaim_mode(running(1), has_quotas=True) is None


def test_preemptible_is_said_by_the_job_then_its_qos_then_by_whether_there_are_quotas() -> None:
    qos = {
        "yes": Qos(name="yes", preemptible=True),
        "no": Qos(name="no", preemptible=False),
        "normal": Qos(name="normal"),
    }
    assert is_preemptible(job(1, qos="no", preemptible=True), qos, has_quotas=True)
    assert not is_preemptible(job(1, qos="yes", preemptible=False), qos, has_quotas=True)
    assert is_preemptible(job(1, qos="yes"), qos, has_quotas=False)
    assert is_preemptible(job(1), qos, has_quotas=True)
    assert not is_preemptible(job(1), qos, has_quotas=False)


def test_reclaim_requeues_unless_the_mode_says_cancel_and_waits_for_the_exempt_time() -> None:
    made = rules("none", "OFF", preempt_exempt_time=7200)
    assert made.exempt_until(running(1)) == NOW + HOUR
    assert made.reclaim_mode(running(1), has_quotas=True) == "REQUEUE"
    assert made.reclaim_mode(running(1, requeue=False), has_quotas=True) == "CANCEL"
    assert rules("qos", "CANCEL").reclaim_mode(running(1), has_quotas=True) == "CANCEL"


def test_a_run_in_its_grace_time_says_when_it_leaves_and_a_suspended_one_has_given_up_its_cpus() -> None:
    assert leaving_at(running(1, record={"evicted": Evicted(mode="CANCEL", until=NOW + 60)})) == NOW + 60
    again = replace(job(1), evicted=Evicted(mode="REQUEUE", until=NOW))
    assert leaving_at(again) is None
    asleep = running(1, record={"state": JobState.SUSPENDED, "evicted": Evicted(mode="SUSPEND", for_job=9)})
    assert leaving_at(asleep) is None and asleep.gave_way
    assert not running(1, record={"state": JobState.SUSPENDED}).gave_way
