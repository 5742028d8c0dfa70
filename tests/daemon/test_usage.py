"""What QOS and associations used, and how the configuration lets it fade: sacctmgr(1), slurm.conf(5) Priority*."""

from __future__ import annotations

import asyncio
import datetime

import pytest

from slurmbridge.daemon.spending import reset_due
from tests.daemon.controlled import Site
from tests.daemon.test_limits import ACCOUNT, ENFORCED, QOS, became, limited

DAY = 86400.0


def used(made: Site, number: int = -1) -> float:
    """CPU-seconds of a row; the QOS normal is the first."""
    rows = {row.assoc_id: dict(row.raw) for row in made.controller.memory.all_usage()}
    return rows.get(number, {}).get("cpu", 0.0)


def assoc_of(made: Site, user: str) -> int:
    return next(each.assoc_id for each in made.controller.memory.accounting.assocs if each.user == user)


def test_runs_use_up_the_minutes_of_their_qos() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} grptresmins=cpu=9")
        first = await made.submit("-n8 -t1", "sleep 8")
        await made.advance(12)
        assert made.states(first) == ["COMPLETED"]
        await made.advance(40)
        assert await became(made, "-n8 -t1|-n1 -t1") == ["R", "QOSGrpCPUMinutesLimit"]  # whole minutes count

    asyncio.run(whole())


def test_the_factor_of_a_qos_counts_for_it_and_for_the_association() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} usagefactor=3")
        await made.submit("-n2", "sleep 10")
        await made.advance(30)
        assert 60 <= used(made) <= 66
        assert used(made, assoc_of(made, "alice")) == pytest.approx(used(made), rel=1e-3)
        await made.run("sacctmgr -i modify qos normal set usagefactor=0", user="root")
        before = used(made)
        await made.submit("-n2", "sleep 10")
        await made.advance(30)
        assert used(made) == pytest.approx(before, rel=1e-3)

    asyncio.run(whole())


def test_use_of_a_qos_without_decay_stays() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} flags=NoDecay", conf=ENFORCED + "PriorityDecayHalfLife=1-0\n")
        await made.submit("-n2", "sleep 10")
        await made.advance(30)
        full, mine = used(made), used(made, assoc_of(made, "alice"))
        await made.advance(DAY, step=DAY)
        await made.submit("-n1", "sleep 1")
        await made.advance(10)
        assert used(made) == pytest.approx(full + 1, abs=1.1)
        assert used(made, assoc_of(made, "alice")) == pytest.approx(mine / 2 + 1, abs=1.1)

    asyncio.run(whole())


def test_a_new_half_life_holds_from_the_reconfiguration_on_and_in_the_store() -> None:
    async def whole() -> None:
        made = await limited(conf=ENFORCED + "PriorityDecayHalfLife=1-0\n")
        await made.submit("-n2", "sleep 100")
        await made.advance(130)
        full = used(made, assoc_of(made, "alice"))
        await made.advance(DAY, step=DAY)
        made.conf = ENFORCED + "PriorityDecayHalfLife=0\n"
        assert (await made.run("scontrol reconfigure", user="root")).code == 0
        await made.advance(DAY, step=DAY)
        await made.submit("-n1", "sleep 1")
        await made.advance(10)
        assert used(made, assoc_of(made, "alice")) == pytest.approx(full / 2 + 1, rel=0.02)
        await made.restart()
        assert used(made, assoc_of(made, "alice")) == pytest.approx(full / 2 + 1, rel=0.02)

    asyncio.run(whole())


def test_runs_that_go_on_count_since_the_last_count() -> None:
    async def whole() -> None:
        made = await limited(f"{ACCOUNT} grptresmins=cpu=10")
        await made.submit("-n2 -t5", "sleep 290")
        await made.advance(180)
        assert used(made, assoc_of(made, "alice")) == 0
        made.controller.count_usage()
        assert 350 <= used(made, assoc_of(made, "alice")) <= 366
        await made.settle()
        assert await became(made, "-n1 -t1") == ["AssocGrpCPUMinutesLimit"]  # 6 used, 4 promised

    asyncio.run(whole())


def test_use_starts_anew_with_each_period() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} flags=NoDecay", conf=ENFORCED + "PriorityUsageResetPeriod=DAILY\n")
        await made.submit("-n2", "sleep 10")
        await made.advance(30)
        assert used(made, assoc_of(made, "alice")) > 0
        made.controller.count_usage()
        await made.advance(DAY, step=DAY)
        made.controller.count_usage()
        assert used(made, assoc_of(made, "alice")) == 0
        assert used(made) > 0  # NoDecay

    asyncio.run(whole())


@pytest.mark.parametrize(
    ("period", "last", "now", "due"),
    [
        ("DAILY", "2026-03-10 00:00", "2026-03-10 23:59", False),
        ("DAILY", "2026-03-10 23:59", "2026-03-11 00:00", True),
        ("WEEKLY", "2026-03-14 12:00", "2026-03-15 00:01", True),  # a Sunday
        ("WEEKLY", "2026-03-15 00:01", "2026-03-21 23:00", False),
        ("MONTHLY", "2026-03-31 12:00", "2026-04-01 00:00", True),
        ("QUARTERLY", "2026-03-31 12:00", "2026-04-01 00:00", True),
        ("QUARTERLY", "2026-04-01 00:00", "2026-06-30 00:00", False),
        ("YEARLY", "2026-12-31 12:00", "2027-01-01 00:00", True),
        ("NONE", "2026-01-01 00:00", "2027-01-01 00:00", False),
    ],
)
def test_periods_begin_where_slurm_has_them_begin(period: str, last: str, now: str, due: bool) -> None:
    def at(text: str) -> float:
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()

    assert reset_due(period, at(last), at(now), datetime.UTC) is due


@pytest.mark.parametrize(
    ("limit", "jobs", "expected"),
    [
        (f"{QOS} grptres=cpu=10", "-n3|-n1", "R QOSGrpCpuLimit"),  # 3.2 of 32 CPUs
        (f"{QOS} maxtresperjob=cpu=10", "-n3|-n4", "R QOSMaxCpuPerJobLimit"),
        (f"{QOS} grptres=mem=1", "--mem=500|--mem=500", "R QOSGrpMemLimit"),  # 640 of 64000 MiB
        (f"{QOS} mintres=cpu=10", "-n2|-n3", "QOSMinCpuNotSatisfied R"),
        (f"{QOS} grptresmins=cpu=10", "-t3|-t4", "R QOSGrpCPUMinutesLimit"),
        (f"{QOS} maxjobspu=10", "-n1|-n1", "R R"),
    ],
)
def test_limits_of_a_relative_qos_are_percent_of_the_cluster(limit: str, jobs: str, expected: str) -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} flags=Relative", limit)
        assert " ".join(await became(made, jobs)) == expected

    asyncio.run(whole())


def test_limits_of_a_relative_qos_of_a_partition_are_percent_of_the_partition() -> None:
    async def whole() -> None:
        conf = ENFORCED + "PartitionName=half Nodes=n[1-2] QOS=extra\n"
        made = await limited("qos extra set flags=Relative grptres=cpu=50", conf=conf)
        assert await became(made, "-p half -n8|-p half -n1|-n1") == ["R", "QOSGrpCpuLimit", "R"]

    asyncio.run(whole())


def test_a_qos_that_requires_a_reservation_takes_no_job_without() -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} flags=RequiresReservation")
        answer = await made.run("sbatch --wrap true")
        assert answer.err.endswith("Batch job submission failed: Invalid qos specification\n")
        answer = await made.run("sbatch --reservation=none --wrap true")
        assert answer.err.endswith("Batch job submission failed: Requested reservation is invalid\n")

    asyncio.run(whole())


def test_suspended_time_is_no_run_time_and_not_charged() -> None:
    async def whole() -> None:
        made = await limited()
        job_id = await made.submit("-n2 -t10", "sleep 20")
        await made.advance(4)
        assert (await made.run(f"scontrol suspend {job_id}", user="root")).code == 0
        await made.advance(30)
        shown = (await made.run(f"squeue -h -j {job_id} -o '%T %M %L'")).out
        assert shown == "SUSPENDED 0:04 9:56\n"
        text = (await made.run(f"scontrol show job {job_id}")).out
        assert "RunTime=00:00:04" in text and "SecsPreSuspend=4" in text
        assert (await made.run(f"scontrol resume {job_id}", user="root")).code == 0
        await made.advance(2)
        assert (await made.run(f"squeue -h -j {job_id} -o '%T %M'")).out == "RUNNING 0:06\n"
        await made.advance(30)
        assert made.states(job_id) == ["COMPLETED"]
        assert used(made) == 40

    asyncio.run(whole())


@pytest.mark.parametrize("limit", [f"{QOS} grptresmins=cpu=2", f"{ACCOUNT} grptresmins=cpu=2", f"{QOS} grpwall=2"])
def test_without_safe_a_run_that_used_up_its_minutes_times_out(limit: str) -> None:
    async def whole() -> None:
        made = await limited(limit, conf=ENFORCED.replace(",safe", ""))
        job_id = await made.submit("-n1 -t30", "sleep 1000")
        await made.advance(90)
        made.controller.count_usage()
        await made.settle()
        assert made.states(job_id) == ["RUNNING"]
        await made.advance(60)
        made.controller.count_usage()
        await made.advance(10)
        assert made.states(job_id) == ["TIMEOUT"] and made.job(job_id).reason == "TimeLimit"

    asyncio.run(whole())
