"""sacct's answers. Layout and wording as Slurm 26.05.5 gives them to the command lines shown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from slurmbridge.commands import sacct
from slurmbridge.commands.effects import History, JobFilter, JobRow
from slurmbridge.model.job import Step
from slurmbridge.model.states import JobState
from tests.commands.sample_site import NOW, Ran, SampleSite, ended, job, running, usage


def step(step_id: int, name: str, **changes: object) -> Step:
    values: dict[str, object] = {
        "job_id": 385, "step_id": step_id, "name": name, "state": JobState.COMPLETED, "start_time": NOW - 20,
        "end_time": NOW - 19, "nodes": ("n1",), "cpus": 2, "usage": usage(),
    }  # fmt: skip
    values.update(changes)
    return Step(**values)  # type: ignore[arg-type]


def rows() -> list[JobRow]:
    done = ended(385, JobState.COMPLETED, name="acct_ok", time_limit=5, comment="cm")
    never = replace(
        ended(387, JobState.CANCELLED, name="acct_canc"), allocation=None, start_time=None, cancelled_by=1001
    )
    return [
        JobRow(
            job=done,
            steps=(step(0, "sleep", num_tasks=2, layout="Block"), step(-5, "batch"), step(1, "true")),
            script=b"#!/bin/sh\nsrun sleep 1\n",
        ),
        JobRow(job=never),
        JobRow(job=ended(389, JobState.FAILED, 256, array_job_id=388, array_task_id=2, name="acct_arr")),
        JobRow(job=ended(390, JobState.COMPLETED, het_job_id=390, het_ids=(390, 391), name="acct_het")),
        JobRow(job=ended(393, JobState.TIMEOUT, name="acct_sig")),
        JobRow(job=job(400, array_job_id=400, tasks=((0, 9, 1),), array_limit=3, eligible_time=NOW - 5, name="wait")),
    ]


def run(line: str, **call: object) -> Ran:
    return Ran(sacct.main, line, SampleSite(rows=rows()), **call)


def wanted(line: str, **call: object) -> JobFilter:
    effect = run(line, **call).effects[0]
    assert isinstance(effect, History)
    return effect.filter


def test_runs_are_followed_by_their_steps() -> None:
    assert run("sacct -S now-1hour").out == (
        "JobID           JobName  Partition    Account  AllocCPUS      State ExitCode \n"
        "------------ ---------- ---------- ---------- ---------- ---------- -------- \n"
        "385             acct_ok      debug    physics          1  COMPLETED      0:0 \n"
        "385.batch         batch               physics          2  COMPLETED      0:0 \n"
        "385.0             sleep               physics          2  COMPLETED      0:0 \n"
        "385.1              true               physics          2  COMPLETED      0:0 \n"
        "387           acct_canc      debug    physics          0 CANCELLED+      0:0 \n"
        "388_2          acct_arr      debug    physics          1     FAILED      1:0 \n"
        "388_2.batch       batch               physics          1     FAILED      1:0 \n"
        "390+0          acct_het      debug    physics          1  COMPLETED      0:0 \n"
        "390+0.batch       batch               physics          1  COMPLETED      0:0 \n"
        "393            acct_sig      debug    physics          1    TIMEOUT      0:0 \n"
        "393.batch         batch               physics          1  CANCELLED     0:15 \n"
        "400_[0-9%3]        wait      debug    physics          0    PENDING      0:0 \n"
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sacct -n -P -o jobid,state,exitcode -j 387", "387|CANCELLED by 1001|0:0\n"),
        ("sacct -p -b -j 385.0", "JobID|State|ExitCode|\n385.0|COMPLETED|0:0|\n"),
        ("sacct -n -j 385.0,385.batch -o jobid", "385.batch    \n385.0        \n"),
        ("sacct -n -X -j 385 --delimiter=; -P -o jobid,user", "385;alice\n"),
        ("sacct -n -X -j 385 -o jobid%3,state%4,elapsed%1,user%0", "385 COM+ 00:00:10  \n"),
        ("sacct -n -X -j 385 -o start%5", "##### \n"),
        ("sacct -n -X -j 400 --array -o jobid -P", "".join(f"400_{task}\n" for task in range(10))),
        ("sacct -n -X -j 385 --units=G -o reqmem,reqtres -P", "0.10G|billing=1,cpu=1,mem=0.10G,node=1\n"),
        ("sacct -n -X -j 400 -o timelimit,start,nodelist -P", "Partition_Limit|Unknown|None assigned\n"),
        ("sacct -n -X -j 387 -o start,elapsed -P", "None|00:00:00\n"),
        (
            "sacct -n -j 385 -o systemcpu,layout,ntasks -P",
            "00:00.066||\n00:00.022|Unknown|1\n00:00.022|Block|2\n00:00.022|Unknown|1\n",
        ),
        ("sacct -n -X -j 385 -o timelimit,timelimitraw,comment -P", "00:05:00|5|cm\n"),
        ("sacct -M nosuch -n", ""),
    ],
)
def test_this_line_is_answered_so(line: str, expected: str) -> None:
    assert run(line).out == expected


def test_usage_is_shown_where_it_was_measured() -> None:
    assert run("sacct -n -P -j 385 -o maxrss").out.split("\n") == ["", "1976K", "1976K", "1976K", ""]


@pytest.mark.parametrize(
    ("line", "err"),
    [
        ("sacct -o nosuch", 'sacct: error: Invalid field requested: "nosuch"\n'),
        ("sacct -j abc", "sacct: fatal: Bad job/step specified: abc\n"),
        ("sacct -j 1_", "sacct: fatal: Bad job/step specified: 1_: Job Array ID must not be an empty string\n"),
        ("sacct -j 1+", "sacct: fatal: Bad job/step specified: 1+: HetJob component must not be an empty string\n"),
        (
            "sacct -j 1.foo",
            "sacct: fatal: Bad job/step specified: 1.foo: StepID includes unexpected non-numeric characters\n",
        ),
        ("sacct -s foo", "sacct: fatal: unrecognized job state value 'foo'\n"),
        ("sacct -u nosuch", "sacct: error: Invalid user id: nosuch\n"),
        ("sacct -g nosuch", "sacct: error: Invalid group id: nosuch\n"),
        ("sacct -R foo", "sacct: fatal: unrecognized job reason value 'foo'\n"),
        ("sacct -S foo", "Invalid time specification (pos=0): foo\n"),
        ("sacct -c", "Slurm job completion is disabled\n"),
        ("sacct extra", "sacct: error: Unknown arguments:\nsacct: error:  extra\n"),
        ("sacct -I x", 'sacct: error: Invalid numeric value "x" for requested cpu range.\n'),
        (
            "sacct -B",
            "sacct: fatal: When requesting job scripts you must also request specific jobs with the '-j' option.\n",
        ),
        (
            "sacct -q nosuch",
            "sacct: error: You gave a bad qos 'nosuch'. Valid QOS's are normal,high\nsacct: fatal: problem processing qos list\n",
        ),
        (
            "sacct -S 2020-01-02 -E 2020-01-01",
            "sacct: error: Start time (2020-01-02T00:00:00) requested is after end time (2020-01-01T00:00:00).\n",
        ),
    ],
)
def test_mistakes_are_answered_in_slurms_words(line: str, err: str) -> None:
    ran = run(line)
    assert (ran.err, ran.rc, ran.out) == (err, 1, "")


def test_the_window_is_today_unless_a_job_or_state_is_given() -> None:
    assert wanted("sacct").start == NOW - (21 * 3600 + 20 * 60)
    assert wanted("sacct -j 385").start is None
    assert wanted("sacct -s R").start == NOW


def test_a_user_sees_only_own_jobs_unless_asked_otherwise() -> None:
    assert wanted("sacct").users == (1001,)
    assert wanted("sacct -a").users is None
    assert wanted("sacct -j 385").users is None
    assert wanted("sacct", uid=0).users is None
    assert wanted("sacct -u bob,1001").users == (1002, 1001)


def test_jobs_of_several_options_add_up() -> None:
    assert wanted("sacct -j 385 -j 388_2 --jobs=390+1,393.batch").job_ids == (
        (385, None, None), (388, 2, None), (390, 1, None), (393, None, -5),
    )  # fmt: skip


def test_a_held_job_is_listed_only_by_its_id() -> None:
    site = SampleSite(rows=[JobRow(job=job(401))])
    assert Ran(sacct.main, "sacct -n", site).out == ""
    assert Ran(sacct.main, "sacct -n -X -o jobid -P -j 401", site).out == "401\n"


def test_scripts_are_shown_to_their_owner() -> None:
    expected = "Batch Script for 385\n" + "-" * 80 + "\n#!/bin/sh\nsrun sleep 1\n"
    assert run("sacct -B -j 385").out == expected
    assert run("sacct -B -j 385", uid=1002).out == ""
    assert run("sacct -B -j 385", uid=0).out == expected


def test_truncated_times_stay_in_the_window() -> None:
    out = run("sacct -T -S now-15seconds -E now-12seconds -j 385 -X -n -P -o start,end,elapsed").out
    assert out == "2026-11-29T21:19:45|2026-11-29T21:19:48|00:00:03\n"


@pytest.mark.parametrize(("begin", "end", "shown"), [(NOW - 5.1, NOW - 4.9, ""), (NOW - 5.5, NOW - 4.4, "1976K")])
def test_a_step_that_ended_before_the_first_sample_has_no_peak_values(begin: float, end: float, shown: str) -> None:
    step = Step(job_id=1, step_id=0, name="true", start_time=begin, end_time=end, nodes=("n1",), usage=usage())
    row = JobRow(job=running(1, ["n1"]), steps=(step,))
    site = SampleSite(rows=[row])
    site.config = replace(site.config, values=(("JobAcctGatherFrequency", "task=5"),))
    assert Ran(sacct.main, "sacct -n -P -o maxrss -j 1.0", site).out.strip() == shown


@pytest.mark.parametrize(("words", "last"), [("-P -p", "|"), ("-p -P", "e"), ("--parsable2 --parsable", "|")])
def test_the_last_shape_of_the_list_counts(words: str, last: str) -> None:
    assert run(f"sacct {words} -o state").out.splitlines()[0][-1] == last


def test_a_wrong_option_is_told_in_one_line() -> None:
    assert run("sacct --bogus").err == "sacct: unrecognized option '--bogus'\n"
