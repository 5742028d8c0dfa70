"""sstat's answers. Wording as Slurm 26.05.5 gives them to the command lines shown."""

from __future__ import annotations

import pytest

from slurmbridge.commands import sstat
from slurmbridge.model.job import Step
from tests.commands.sample_site import NOW, Ran, SampleSite, job, running, usage


def site() -> SampleSite:
    def step(step_id: int, name: str) -> Step:
        return Step(
            job_id=1, step_id=step_id, name=name, start_time=NOW - 8, nodes=("n1",), cpus=2, num_tasks=2, usage=usage()
        )

    return SampleSite([running(1, ["n1"]), job(2)], steps=[step(-5, "batch"), step(0, "sleep"), step(1, "x")])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("sstat -j 1 -P -o jobid,maxrss,ntasks,nodelist", "JobID|MaxRSS|NTasks|Nodelist\n1.0|1976K|2|n1\n"),
        ("sstat -a -j 1 -n -P -o jobid", "1.batch\n1.0\n1.1\n"),
        ("sstat -j 1.batch -n -o jobid,maxrss", "1.batch           1976K \n"),
        ("sstat -j 1.1 -n -p -o jobid", "1.1|\n"),
        ("sstat -j 2 -n", ""),
    ],
)
def test_running_steps_show_what_they_use(line: str, expected: str) -> None:
    assert Ran(sstat.main, line, site()).out == expected


@pytest.mark.parametrize(
    ("line", "err", "code"),
    [
        ("sstat", "sstat: error: You didn't give me any jobs to stat.\n", 1),
        ("sstat -n -j 999999", "sstat: error: couldn't get steps for JobId=999999\n", 0),
        ("sstat -n -j abc", "sstat: fatal: Bad job/step specified: abc\n", 1),
        ("sstat -n -j 1.9", "sstat: error: StepId=1.9 not found running.\n", 0),
        ("sstat -n -o nosuch -j 1", 'sstat: error: Invalid field requested: "nosuch"\n', 1),
    ],
)
def test_mistakes_are_answered_in_slurms_words(line: str, err: str, code: int) -> None:
    ran = Ran(sstat.main, line, site())
    assert (ran.err, ran.rc) == (err, code)


def test_usage_of_others_is_not_shown() -> None:
    ran = Ran(sstat.main, "sstat -n -j 1", site(), uid=1002)
    assert ran.out == ""
    assert "Invalid user id" in ran.err
