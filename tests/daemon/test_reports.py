"""sprio, sdiag, sreport, seff, show assoc_mgr and documents of accounting, asked of a controller on the shipped fakes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from slurmbridge.commands.sreport_sums import Period, utilization
from slurmbridge.model.cluster import Node, NodeConf, NodeEvent
from tests.daemon.controlled import CONF, Site, site

WEIGHED = CONF + "PriorityWeightFairshare=10000\nPriorityWeightJobSize=1000\nPriorityWeightAge=1000\n"


Rule = Callable[[Site], Awaitable[None]]


def with_conf(conf: str) -> Callable[[Rule], Callable[[], None]]:
    """Run an asynchronous rule on a fresh site of this configuration."""

    def decorate(test: Rule) -> Callable[[], None]:
        async def whole() -> None:
            await test(await site(conf))

        def run() -> None:
            asyncio.run(whole())

        run.__name__, run.__doc__ = test.__name__, test.__doc__
        return run

    return decorate


rule = with_conf(CONF)


async def blocked(made: Site) -> int:
    """A job that waits behind one that holds everything."""
    await made.submit("-N4 --exclusive -t 20", "sleep 600")
    return await made.submit("-N4 --exclusive -t 20")


@with_conf(WEIGHED)
async def test_sprio_shows_what_the_priority_is_made_of(made: Site) -> None:
    job_id = await blocked(made)
    shown = (await made.run(f"sprio -h -j {job_id} -o %Y,%F,%J,%A,%N,%f")).out.strip()
    total, fair, size, age, nice, factor = shown.split(",")
    assert int(total) == made.job(job_id).priority
    assert abs(int(fair) + int(size) + int(age) - int(nice) - int(total)) <= 1
    assert float(factor) * 10000 == pytest.approx(int(fair), abs=0.5)


@with_conf(WEIGHED)
async def test_sprio_leaves_out_held_jobs_and_jobs_of_later(made: Site) -> None:
    waiting = await blocked(made)
    await made.submit("-H")
    await made.submit("--begin=now+1hour")
    assert (await made.run("sprio -h -o %i")).out == f"{waiting}\n"


@rule
async def test_sprio_has_words_for_jobs_that_it_does_not_find(made: Site) -> None:
    assert (await made.run("sprio -j 999999")).out == "Unable to find jobs matching user/id(s) specified\n"
    header = await made.run("sprio")
    assert header.out.split() == ["JOBID", "PARTITION", "PRIORITY", "SITE"]
    wrong = await made.run("sprio -j abc")
    assert (wrong.err, wrong.code) == ("sprio: error: Invalid job id: abc\n", 1)


@with_conf(WEIGHED)
async def test_sprio_shows_a_column_only_for_a_factor_that_has_a_weight(made: Site) -> None:
    assert (await made.run("sprio -w")).out.splitlines() == [
        "          JOBID PARTITION   PRIORITY       SITE        AGE  FAIRSHARE    JOBSIZE",
        "        Weights                               1       1000      10000       1000",
    ]


@rule
async def test_sdiag_counts_jobs(made: Site) -> None:
    await made.submit("-a 1-3", "sleep 5")
    held = await made.submit("-H")
    await made.run(f"scancel {held}")
    await made.advance(10)
    lines = (await made.run("sdiag")).out.splitlines()
    assert [line for line in lines if line.startswith("Jobs ")] == [
        "Jobs submitted: 4", "Jobs started:   3", "Jobs completed: 3", "Jobs canceled:  1", "Jobs failed:    0",
        "Jobs pending:   0", "Jobs running:   0",
    ]  # fmt: skip


@rule
async def test_only_operators_reset_the_statistics(made: Site) -> None:
    await made.submit("")
    assert (await made.run("sdiag -r")).code == 255
    assert (await made.run("sdiag -r", user="root")).out == "Reset scheduling statistics\n"
    assert "Jobs submitted: 0\n" in (await made.run("sdiag")).out


@rule
async def test_sreport_sums_the_runs_of_the_period(made: Site) -> None:
    await made.submit("-n4", "sleep 600")
    await made.advance(601, step=60)
    top = await made.run("sreport -n -P user top start=now-1hour end=now format=login,used", user="root")
    assert top.out == "alice|40\n"
    seconds = await made.run("sreport -n -P -t seconds user top start=now-1hour end=now format=used")
    assert seconds.out == "2400\n"
    sizes = await made.run(
        "sreport -n -P job sizesbyaccount start=now-1hour end=now flatview grouping=2,8 printjobcount"
    )
    assert sizes.out.split("|")[2:] == ["0", "1", "0", "1", "100.00%\n"]


def test_sreport_counts_nodes_as_down_while_they_were() -> None:
    nodes = [Node(conf=NodeConf(name=name, cpus=8, real_memory=1000)) for name in ("n1", "n2")]
    events = [
        NodeEvent(node="n1", start=500.0, end=1060.0, state="DOWN+DRAIN", reason="broken", uid=0),
        NodeEvent(node="n2", start=1100.0, end=None, state="DOWN", reason="broken", uid=0),
        NodeEvent(node="n2", start=1000.0, end=1050.0, state="DRAIN", reason="later", uid=0),
    ]
    (cpus,) = utilization(nodes, (), events, ("cpu",), Period(1000.0, 4600.0, 1200.0), 0.0)
    assert (cpus.down, cpus.reported, cpus.idle) == (8 * 60 + 8 * 100, 16 * 200, 16 * 200 - 8 * 160)


@rule
async def test_sreport_says_nothing_of_times_before_the_cluster(made: Site) -> None:
    old = await made.run("sreport -n -P cluster utilization start=2020-01-01 end=2020-01-02")
    assert (old.out, old.code) == ("", 0)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("start=2020-01-01T08:29:31 end=2020-01-01T10:10", "2020-01-01T08:00:00 - 2020-01-01T10:59:59 (10800 secs)"),
        ("start=2020-01-01T08:00 end=2020-01-01T08:00", "2020-01-01T08:00:00 - 2020-01-01T08:59:59 (3600 secs)"),
        ("start=2020-01-03 end=2020-01-01", "2020-01-03T00:00:00 - 2020-01-03T00:59:59 (3600 secs)"),
    ],
)
def test_a_period_is_whole_hours_and_at_least_one(words: str, title: str) -> None:
    @rule
    async def check(made: Site) -> None:
        printed = (await made.run(f"sreport user top {words}")).out
        assert printed.splitlines()[1].removeprefix("Top 10 Users ") == title

    check()


@rule
async def test_seff_compares_use_with_what_was_held(made: Site) -> None:
    job_id = await made.submit("-n2 --mem=100", "sleep 100")
    await made.advance(101, step=10)
    lines = (await made.run(f"seff {job_id}")).out.splitlines()
    assert "Job Wall-clock time: 00:01:40" in lines
    assert any(line.startswith("CPU Efficiency: ") and "00:03:20 core-walltime" in line for line in lines)
    assert (await made.run("seff 999999")).code == 1


@rule
async def test_show_assoc_mgr_counts_against_each_limit(made: Site) -> None:
    await made.run("sacctmgr -i add account lab", user="root")
    await made.run("sacctmgr -i add user alice account=lab maxjobs=5", user="root")
    await made.submit("-n4 -t 10", "sleep 500")
    await made.submit("-H")
    shown = (await made.run("scontrol -o show assoc_mgr users=alice accounts=lab flags=assoc")).out
    own = next(line for line in shown.splitlines() if "UserName=alice" in line)
    assert "GrpJobs=N(1)" in own and "GrpSubmitJobs=N(2)" in own and "MaxJobs=5(1)" in own
    assert "GrpTRES=cpu=N(4)" in own and "GrpTRESRunMins=cpu=N(40)" in own


@rule
async def test_fair_shares_are_counted_now_and_then_and_use_at_once(made: Site) -> None:
    await made.run("sacctmgr -i add account lab", user="root")
    await made.run("sacctmgr -i add user alice account=lab", user="root")
    await made.submit("-n4", "sleep 100")
    await made.advance(101, step=10)
    query = "sshare -n -P -u alice -A lab -o user,rawusage,effectvusage"
    assert "alice|399|0.000000" in (await made.run(query)).out or "alice|400|0.000000" in (await made.run(query)).out
    made.controller.count_usage()
    assert (await made.run(query)).out.splitlines()[-1].endswith("|1.000000")


@rule
async def test_a_new_association_makes_fair_shares_anew(made: Site) -> None:
    await made.run("sacctmgr -i add account lab", user="root")
    await made.run("sacctmgr -i add user alice account=lab", user="root")
    await made.submit("-n4", "sleep 100")
    await made.advance(101, step=10)
    await made.run("sacctmgr -i add user bob account=lab", user="root")
    assert (await made.run("sshare -n -P -u alice -A lab -o effectvusage")).out.splitlines()[-1] == "1.000000"


@rule
async def test_sacct_writes_runs_with_their_steps_as_documents(made: Site) -> None:
    job_id = await made.submit("-n2 -t 5 --comment=c", "sleep 5")
    await made.advance(6)
    answer = json.loads((await made.run(f"sacct --json -j {job_id}")).out)
    (run,) = answer["jobs"]
    assert (run["job_id"], run["state"]["current"], run["comment"]["job"]) == (job_id, ["COMPLETED"], "c")
    assert run["time"]["limit"]["number"] == 5 and run["required"]["CPUs"] == 2
    assert [step["step"]["name"] for step in run["steps"]] == ["batch"]
    assert {each["type"]: each["count"] for each in run["tres"]["allocated"]}["cpu"] == 2
    alone = json.loads((await made.run(f"sacct -X --json -j {job_id}")).out)
    assert alone["jobs"][0]["steps"] == []


@rule
async def test_sinfo_writes_nodes_that_are_alike_as_one_record(made: Site) -> None:
    await made.submit("-n8 -w n1")
    records = json.loads((await made.run("sinfo --json")).out)["sinfo"]
    assert {tuple(each["nodes"]["nodes"]): each["node"]["state"] for each in records} == {
        ("n1",): ["ALLOCATED"],
        ("n2", "n3", "n4"): ["IDLE"],
    }
    assert sum(each["cpus"]["idle"] for each in records) == 24


@rule
async def test_scrontab_is_off_unless_the_site_asks_for_it(made: Site) -> None:
    for line in ("scrontab -l", "scrontab file", "scrontab -r"):
        answer = await made.run(line)
        assert (answer.err, answer.code) == ("scrontab: fatal: scrontab is disabled on this cluster\n", 1)


@rule
async def test_a_job_with_a_dependency_is_looked_at_a_moment_later(made: Site) -> None:
    await made.submit("-N4 --exclusive", "sleep 600")
    chained = await made.submit("-N4 -d singleton -J next")
    assert made.job(chained).reason == "None"


@with_conf(CONF + "SchedulerParameters=bf_interval=20\n")
async def test_an_expected_start_is_told_when_a_job_has_waited_for_the_look_ahead(made: Site) -> None:
    waiting = await blocked(made)
    assert (made.job(waiting).reason, made.job(waiting).start_time) == ("Resources", None)
    late = made.plans.verdicts[waiting]
    await made.advance(21)
    made.plans._explain_late(late)
    assert made.job(waiting).start_time == late.start


@rule
async def test_a_batch_step_has_the_devices_of_its_node(made: Site) -> None:
    job_id = await made.submit("-n2 --mem=100", "sleep 5")
    await made.advance(6)
    steps = (await made.run(f"sacct -n -P -o jobid,alloctres -j {job_id}.batch")).out
    assert steps == f"{job_id}.batch|cpu=2,mem=100M,node=1\n"
