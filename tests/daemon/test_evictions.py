"""Runs that give way to others, from the plan that chose them to what accounting says (slurm.conf(5), PreemptMode)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Eviction, Nomination, Plan
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.runtime.protocol import RunKey
from tests.daemon import invariants
from tests.daemon.controlled import CONF, START, Site, site

PREEMPTING = CONF + "PreemptType=preempt/partition_prio\nPreemptMode=SUSPEND,GANG\n"


def rule(test: Callable[[Site], Awaitable[None]]) -> Callable[[], None]:
    """Run an asynchronous rule on a fresh site."""

    def run() -> None:
        async def whole() -> None:
            made = await site(PREEMPTING)
            await test(made)
            invariants.check(made)

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


async def evict(made: Site, *job_ids: int, mode: str = "REQUEUE", settled: bool = True, **fields: Any) -> None:
    """As if the planner had chosen these."""
    chosen = tuple(Eviction(**{"job_id": job_id, "mode": mode, "for_job": 0, **fields}) for job_id in job_ids)
    made.plans.apply(Plan(version=0, evictions=chosen))
    if settled:
        await made.settle()


async def victim_and_winner(made: Site, options: str = "", body: str = "sleep 100") -> tuple[int, int]:
    """A job that fills the cluster, and one of the same size that waits."""
    victim = await made.submit(f"-N4 -n32 --mem=1000 {options}", body)
    winner = await made.submit("-N4 -n32 --mem=1000", "sleep 20", user="bob")
    await made.run(f"scontrol update jobid={winner} priority=9000000", user="root")
    assert made.states(victim, winner) == ["RUNNING", "PENDING"]
    return victim, winner


def signals(made: Site, job: Job) -> list[tuple[int, str]]:
    return made.runtime._runs[RunKey(job.job_id, job.restarts)].signals


async def history(made: Site, job_id: int, fields: str = "State,ExitCode,Restarts") -> list[str]:
    answer = await made.run(f"sacct -n -P -X -D -o {fields} -j {job_id}", user="root")
    return answer.out.splitlines()


@rule
async def test_a_requeued_run_is_preempted_in_accounting_and_pending_again_at_once(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, reason="reclaim")
    again = made.job(victim)
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]
    assert (again.restarts, again.preempt_time, again.eligible_time) == (1, None, made.clock())
    assert again.evicted is not None and (again.evicted.reason, again.evicted.moved) == ("reclaim", False)
    assert await history(made, victim) == ["PREEMPTED|0:0|0", "PENDING|0:0|1"]
    shown = await made.run(f"scontrol show job {victim}")
    assert "PreemptTime" not in shown.out and "Restarts=1" in shown.out
    await made.advance(21)
    assert made.states(victim, winner) == ["RUNNING", "COMPLETED"]
    assert made.job(victim).evicted is None


@rule
async def test_a_cancelled_run_is_preempted_for_good(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, mode="CANCEL", for_job=winner)
    assert made.states(victim, winner) == ["PREEMPTED", "RUNNING"]
    assert await history(made, victim) == ["PREEMPTED|0:0|0"]
    shown = await made.run(f"scontrol show job {victim}")
    assert "JobState=PREEMPTED" in shown.out and "ExitCode=0:15" in shown.out
    assert "PreemptTime=2027-01-15T08:00:00" in shown.out
    assert (await made.run(f"squeue -h -t all -j {victim} -o %t")).out == "PR\n"


@rule
async def test_what_cannot_be_requeued_is_cancelled(made: Site) -> None:
    victim = await made.submit("-N4 -n32 --no-requeue", "sleep 100")
    await evict(made, victim)
    assert made.states(victim) == ["PREEMPTED"]


@rule
async def test_during_its_grace_time_a_run_goes_on_warned_and_with_an_earlier_end(made: Site) -> None:
    victim, winner = await victim_and_winner(made, "-t 60")
    await evict(made, victim, for_job=winner, grace_s=30)
    job = made.job(victim)
    assert job.state is JobState.RUNNING and JobFlag.COMPLETING not in job.flags
    assert signals(made, job) == [(18, ""), (15, "")]
    assert job.time_limit_end == made.clock() + 30
    shown = (await made.run(f"scontrol show job {victim}")).out
    assert "EndTime=2027-01-15T08:00:30" in shown and "PreemptTime=2027-01-15T08:00:00" in shown
    await made.advance(29)
    assert made.states(victim, winner) == ["RUNNING", "PENDING"]
    await made.advance(2)
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]
    assert await history(made, victim, "State,Elapsed") == ["PREEMPTED|00:00:30", "PENDING|00:00:00"]


@rule
async def test_a_limit_that_falls_due_before_the_grace_time_is_over_stays_as_it_is(made: Site) -> None:
    victim, winner = await victim_and_winner(made, "-t 1")
    limit = made.job(victim).time_limit_end
    await evict(made, victim, for_job=winner, grace_s=300)
    assert made.job(victim).time_limit_end == limit
    await made.advance(61)
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]


@pytest.mark.parametrize(("body", "mode"), [("sleep 5", "REQUEUE"), ("sleep 5\nexit 3", "CANCEL")])
def test_a_run_that_ends_by_itself_in_its_grace_time_counts_as_preempted(body: str, mode: str) -> None:
    async def whole() -> None:
        made = await site(PREEMPTING)
        victim, winner = await victim_and_winner(made, "", body)
        await evict(made, victim, mode=mode, for_job=winner, grace_s=30)
        await made.advance(6)
        assert made.states(victim, winner) == ["PENDING" if mode == "REQUEUE" else "PREEMPTED", "RUNNING"]
        assert (await history(made, victim, "State"))[0] == "PREEMPTED"

    asyncio.run(whole())


def test_the_jobs_own_signal_is_sent_where_the_site_says_so() -> None:
    async def whole() -> None:
        made = await site(PREEMPTING + "PreemptParameters=send_user_signal\n")
        own, _ = await victim_and_winner(made, "--signal=B:USR1@60 -t 60")
        await evict(made, own, grace_s=30)
        assert signals(made, made.job(own)) == [(18, ""), (10, "batch")]

    asyncio.run(whole())


@rule
async def test_a_run_that_was_chosen_twice_is_ended_once(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, victim, for_job=winner, grace_s=10)
    await made.advance(4)
    await evict(made, victim, for_job=winner, grace_s=10)
    assert signals(made, made.job(victim)) == [(18, ""), (15, "")]
    await made.advance(7)
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]
    assert made.job(victim).restarts == 1


@rule
async def test_a_run_that_is_not_the_one_that_was_meant_is_left_alone(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, restarts=5)
    await evict(made, 9999, for_job=winner)
    await evict(made, winner)
    assert made.states(victim, winner) == ["RUNNING", "PENDING"]


@rule
async def test_nobody_gives_way_to_a_job_that_no_longer_waits(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await made.run(f"scancel {winner}", user="root")
    await evict(made, victim, for_job=winner)
    held = await made.submit("--hold -N4 -n32", user="bob")
    await evict(made, victim, for_job=held)
    assert made.states(victim) == ["RUNNING"]


@rule
async def test_a_user_who_cancels_a_run_that_gives_way_is_obeyed(made: Site) -> None:
    victim, winner = await victim_and_winner(made, "", "trap '' TERM\nsleep 100")
    await evict(made, victim, for_job=winner)
    assert JobFlag.COMPLETING in made.job(victim).flags
    await made.run(f"scancel {victim}")
    await made.advance(6)
    assert made.states(victim, winner) == ["CANCELLED", "RUNNING"]
    assert await history(made, victim, "State,Restarts") == ["CANCELLED by 1001|0"]


@rule
async def test_a_user_who_cancels_a_run_in_its_grace_time_is_obeyed(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, grace_s=60)
    await made.run(f"scancel {victim}")
    assert made.states(victim, winner) == ["CANCELLED", "RUNNING"]


@rule
async def test_a_node_that_fails_in_the_grace_time_requeues_as_ever(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, grace_s=60)
    await made.run("scontrol update nodename=n1 state=down reason=x", user="root")
    assert made.states(victim) == ["PENDING"]
    assert (await history(made, victim, "State"))[0] == "NODE_FAIL"


@rule
async def test_a_daemon_that_dies_before_the_kill_kills_after_its_restart(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    kill, made.runtime.kill = made.runtime.kill, lambda key, why: None  # type: ignore[method-assign]
    await evict(made, victim, for_job=winner)
    assert JobFlag.COMPLETING in made.job(victim).flags
    made.runtime.kill = kill  # type: ignore[method-assign]
    await made.restart()
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]
    assert await history(made, victim, "State,Restarts") == ["PREEMPTED|0", "PENDING|1"]


@rule
async def test_a_daemon_that_dies_in_the_grace_time_warns_again_and_ends_it_in_time(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, grace_s=30)
    await made.advance(10)
    await made.restart()
    assert signals(made, made.job(victim)) == [(18, ""), (15, "")] * 2
    await made.advance(19)
    assert made.states(victim, winner) == ["RUNNING", "PENDING"]
    await made.advance(2)
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]


@rule
async def test_a_grace_time_that_was_over_while_the_daemon_was_down_is_over(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, for_job=winner, grace_s=30)
    made.runtime.crash()
    made.runtime.advance(60)
    await made.start()
    assert made.states(victim, winner) == ["PENDING", "RUNNING"]


@rule
async def test_a_suspended_run_goes_on_when_the_job_it_gave_way_to_has_ended(made: Site) -> None:
    victim, winner = await victim_and_winner(made, "-t 60")
    limit = made.job(victim).time_limit_end
    await evict(made, victim, mode="SUSPEND", for_job=winner)
    assert made.states(victim, winner) == ["SUSPENDED", "RUNNING"]
    shown = (await made.run(f"scontrol show job {victim}")).out
    assert "PreemptTime=2027-01-15T08:00:00" in shown and "SuspendTime=2027-01-15T08:00:00" in shown
    node = made.controller.memory.node("n1")
    assert node is not None and (node.alloc_cpus, node.alloc_memory) == (8, 2000)
    await made.advance(21)
    assert made.states(victim, winner) == ["RUNNING", "COMPLETED"]
    assert made.job(victim).suspended_s == 20 and made.job(victim).time_limit_end == (limit or 0) + 20
    await made.advance(101)
    assert made.states(victim) == ["COMPLETED"]


@rule
async def test_nobody_can_resume_a_run_whose_cpus_another_has(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, mode="SUSPEND", for_job=winner)
    answer = await made.run(f"scontrol resume {victim}", user="root")
    assert answer.code == 1 and made.states(victim) == ["SUSPENDED"]


@rule
async def test_a_suspended_run_stays_so_over_a_restart_and_goes_on_afterwards(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, mode="SUSPEND", for_job=winner)
    await made.restart()
    assert made.states(victim, winner) == ["SUSPENDED", "RUNNING"]
    await made.advance(21)
    assert made.states(victim, winner) == ["RUNNING", "COMPLETED"]


@rule
async def test_a_suspended_run_goes_on_when_the_job_it_gave_way_to_is_cancelled_before_it_starts(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, mode="SUSPEND", for_job=winner, settled=False)
    await made.run(f"scancel {winner}", user="root")
    assert made.states(victim, winner) == ["RUNNING", "CANCELLED"]


@rule
async def test_components_of_a_heterogeneous_job_give_way_together_and_alike(made: Site) -> None:
    both = await made.submit("-n2 --requeue : -n2 --no-requeue", "sleep 100")
    await made.advance(1)
    assert made.states(both, both + 1) == ["RUNNING", "RUNNING"]
    await evict(made, both + 1)
    assert {made.job(each).state for each in (both, both + 1)} <= {JobState.PREEMPTED, JobState.PENDING}
    assert len(set(made.states(both, both + 1))) == 1


@rule
async def test_a_place_that_is_being_freed_is_shown_as_the_expected_start(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    held = Nomination(job_id=winner, start=START + 90, nodes=("n1", "n2", "n3", "n4"), victims=(victim,))
    made.plans.apply(Plan(version=0, nominations=(held,)))
    shown = (await made.run(f"squeue -h --start -j {winner} -o '%S %Y'", user="bob")).out
    assert shown == "2027-01-15T08:01:30 n[1-4]\n"
    assert "SchedNodeList=n[1-4]" in (await made.run(f"scontrol show job {winner}", user="bob")).out


def test_a_run_says_from_when_on_it_may_be_preempted() -> None:
    async def whole() -> None:
        made = await site(PREEMPTING + "PreemptExemptTime=10\n")
        job = await made.submit("-n1", "sleep 100")
        assert "PreemptEligibleTime=2027-01-15T08:10:00" in (await made.run(f"scontrol show job {job}")).out
        await made.run("sacctmgr -i modify qos normal set preemptexempttime=0", user="root")
        assert "PreemptEligibleTime=2027-01-15T08:00:00" in (await made.run(f"scontrol show job {job}")).out

    asyncio.run(whole())


@rule
async def test_what_was_ended_for_others_counts_as_cancelled_in_sdiag(made: Site) -> None:
    victim, winner = await victim_and_winner(made)
    await evict(made, victim, mode="CANCEL", for_job=winner)
    assert "Jobs canceled:  1" in (await made.run("sdiag", user="root")).out
