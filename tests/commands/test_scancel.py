"""scancel: which jobs it means, its words and its exit codes (Slurm 26.05.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from slurmbridge.commands import scancel
from slurmbridge.commands.effects import Call, Change, ChangeAll, FileData, Outcome, Print, Site, Sleep
from slurmbridge.errors import SlurmErrno
from tests.commands.sample_site import NOW, SampleSite, job, running


def site() -> SampleSite:
    return SampleSite(
        [
            job(12, name="held"),
            running(13, ("n1",), name="runner"),
            job(14, name="other", uid=1002, gid=1002, user="bob"),
            job(20, name="arr", array_job_id=20, tasks=((0, 2, 1),)),
            job(30, name="mixed", array_job_id=30, tasks=((2, 6, 1),)),
            running(31, ("n2",), name="mixed", array_job_id=30, array_task_id=1, uid=1003, gid=1003, user="carol"),
        ]
    )


def run(line: str, *answers: Any, env: dict[str, str] | None = None) -> tuple[str, str, int, list[Any]]:
    """(stdout, stderr, exit code, effects that are no prints)."""
    call = Call(argv=tuple(line.split()), env=env or {}, cwd="/", uid=1001, user="alice", now=NOW)
    command = scancel.main(call, cast(Site, site()))
    waiting: list[Any] = list(answers)
    out, err, answer = "", "", None
    asked: list[Any] = []

    def outcome() -> Any:
        return waiting.pop(0) if waiting else Outcome(results=(("x", None),))

    while True:
        try:
            effect = command.send(answer)
        except StopIteration as stop:
            return out, err, stop.value, asked
        answer = None
        if isinstance(effect, Print):
            out, err = (out + effect.text, err) if effect.fd == 1 else (out, err + effect.text)
        elif isinstance(effect, ChangeAll):
            asked += effect.changes
            answer = tuple(outcome() for _ in effect.changes)
        else:
            asked.append(effect)
            answer = outcome()


def said(errno: SlurmErrno) -> Outcome:
    return Outcome(results=(("x", errno),))


@pytest.mark.parametrize(
    ("line", "err", "code"),
    [
        ("scancel", "scancel: error: No job identification provided\n", 1),
        ("scancel abc", "scancel: error: Invalid job id abc\n", 1),
        ("scancel 0", "scancel: error: Invalid job id 0\n", 1),
        ("scancel -1", "scancel: invalid option -- '1'\nTry \"scancel --help\" for more information\n", 1),
        ("scancel -u nosuch", "scancel: error: Invalid user name: nosuch\n", 1),
        ("scancel -t foo", "Invalid job state specified: foo\nValid job states are PENDING, RUNNING, and SUSPENDED\n", 1),
        ("scancel -s foo 12", "Unknown job signal: foo\n", 1),
        ("scancel -p nosuch", "", 0),
        ("scancel -v -p nosuch", "scancel: error: No active jobs match ALL job filters, including: partition=nosuch \n", 0),
    ],
)  # fmt: skip
def test_what_names_no_job_is_told(line: str, err: str, code: int) -> None:
    assert run(line)[1:3] == (err, code)


@pytest.mark.parametrize(
    ("line", "errno", "err", "code"),
    [
        ("scancel 14", SlurmErrno.ACCESS_DENIED, "scancel: error: Kill job error on job id 14: Access/permission denied\n", 210),
        ("scancel 999", SlurmErrno.INVALID_JOB_ID, "", 0),
        ("scancel -s 10 -b 14", SlurmErrno.ACCESS_DENIED,
         "scancel: error: Kill job error on job id 14: Access/permission denied\n", 210),
        ("scancel 12+1", SlurmErrno.NOT_HETJOB_COMPONENT, "scancel: error: Kill job error on job id 12+1: Operation not"
         " permitted on individual component of heterogeneous job\n", 60),
        ("scancel -v 12", SlurmErrno.ALREADY_DONE, "scancel: Terminating job 12\nscancel: error: Kill job error on job id"
         " 12: Job/step already completing or completed\n", 0),
    ],
)  # fmt: skip
def test_refusals_set_the_exit_code(line: str, errno: SlurmErrno, err: str, code: int) -> None:
    assert run(line, said(errno))[1:3] == (err, code)


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("scancel 12", [Change(verb="cancel", job_id=12, signal=9)]),
        ("scancel 20_1", [Change(verb="cancel", job_id=20, array_tasks=(1,), signal=9)]),
        ("scancel 20_[0-2]", [Change(verb="cancel", job_id=20, array_tasks=(0, 1, 2), signal=9)]),
        ("scancel 13 --signal USR2", [Change(verb="signal", job_id=13, signal=12)]),
        ("scancel -b -s TERM 13", [Change(verb="signal", job_id=13, signal=15, scope="batch")]),
        ("scancel -f 13", [Change(verb="cancel", job_id=13, signal=9, scope="full")]),
        ("scancel 13.0", [Change(verb="signal", job_id=13, signal=9, step_id=0)]),
        ("scancel --me -n held,runner", [Change(verb="cancel", job_id=12, signal=9), Change(verb="cancel", job_id=13, signal=9)]),
        ("scancel -u bob", [Change(verb="cancel", job_id=14, signal=9)]),
        ("scancel -t R -u alice", [Change(verb="cancel", job_id=13, signal=9)]),
        ("scancel -w n1 --me", [Change(verb="cancel", job_id=13, signal=9)]),
        ("scancel -n arr", [Change(verb="cancel", job_id=20, signal=9)]),
        ("scancel 12,13", [Change(verb="cancel", job_id=12, signal=9), Change(verb="cancel", job_id=13, signal=9)]),
    ],
)  # fmt: skip
def test_ids_and_filters_choose_jobs(line: str, asked: Sequence[Change]) -> None:
    assert run(line)[3] == list(asked)


WAITING = Change(verb="cancel", job_id=30, array_tasks=(2, 3, 4, 5, 6), signal=9)


def task(number: int) -> Change:
    return Change(verb="cancel", job_id=30, array_tasks=(number,), signal=9)


@pytest.mark.parametrize(
    ("line", "asked", "err", "code"),
    [
        ("-t PENDING 30", [WAITING], "scancel: Terminating job 30_[2-6]\n", 0),
        ("-t RUNNING 30", [task(1)], "scancel: Terminating job 30_1\n", 0),
        ("-w n2 30", [task(1)], "scancel: Terminating job 30_1\n", 0),
        ("-n mixed 30", [task(1), WAITING], "scancel: Terminating job 30_1\nscancel: Terminating job 30_[2-6]\n", 0),
        ("-t PENDING 30_[1-3]", [task(2), task(3)], "scancel: Terminating job 30_2\nscancel: Terminating job 30_3\n", 0),
        ("-t PENDING 30_1", [], "", 0),
        ("-t RUNNING 30_2 30_1", [task(1)], "scancel: Terminating job 30_1\n", 0),
        ("-t SUSPENDED 30", [], "scancel: error: No active jobs match ALL job filters, including: state=SUSPENDED \n", 0),
        ("-n other 30", [], "", 0),
        ("-t PENDING 30 999", [WAITING], "scancel: error: Kill job error on job id 999: Invalid job id specified\n"
         "scancel: Terminating job 30_[2-6]\n", 1),
    ],
)  # fmt: skip
def test_filters_choose_among_the_tasks_of_the_arrays_that_are_named(
    line: str, asked: Sequence[Change], err: str, code: int
) -> None:
    """`scancel -t PENDING ARRAY` must not end what runs."""
    unknown = [said(SlurmErrno.INVALID_JOB_ID)] if "999" in line else []
    _, told, status, done = run(f"scancel -v {line}", *unknown)
    assert [change for change in done if change.job_id == 30] == asked
    assert (told, status) == (err, code)


def test_interactive_asks_first() -> None:
    out, _, code, asked = run("scancel -i 20_1", FileData(data=b"n\n"))
    assert out == "Cancel job_id=20_1 name=arr partition=debug [y/n]? "
    assert code == 0 and len(asked) == 1


def test_a_signal_to_a_waiting_job_is_tried_again() -> None:
    _, err, code, asked = run(
        "scancel -v -s USR1 12", said(SlurmErrno.JOB_PENDING), None, said(SlurmErrno.ALREADY_DONE)
    )
    assert [type(each) for each in asked] == [Change, Sleep, Change]
    assert err.startswith("scancel: Signal 10 to job 12\nscancel: Job is in transitional state, retrying\n")
    assert code == 1


def test_many_jobs_are_asked_for_together_and_answered_one_by_one() -> None:
    _, err, code, asked = run("scancel -v 12 13", said(SlurmErrno.ACCESS_DENIED), said(SlurmErrno.ALREADY_DONE))
    assert [change.job_id for change in asked] == [12, 13]
    assert err == (
        "scancel: Terminating job 12\n"
        "scancel: error: Kill job error on job id 12: Access/permission denied\n"
        "scancel: Terminating job 13\n"
        "scancel: error: Kill job error on job id 13: Job/step already completing or completed\n"
    )
    assert code == 210


def test_of_several_jobs_only_the_one_that_has_not_started_is_signalled_again() -> None:
    _, _, _, asked = run("scancel -s USR1 12,13", said(SlurmErrno.JOB_PENDING), said(SlurmErrno.ALREADY_DONE))
    assert [each.job_id if isinstance(each, Change) else type(each) for each in asked] == [12, 13, Sleep, 12]


STATES = "Valid job states are PENDING, RUNNING, and SUSPENDED\n"
NOBODY = "scancel: error: No job identification provided\n"


@pytest.mark.parametrize(
    ("env", "line", "told", "code"),
    [
        ({"SCANCEL_STATE": "bogus"}, "scancel", "Unrecognized SCANCEL_STATE value: bogus\n" + STATES, 1),
        ({"SCANCEL_STATE": "bogus"}, "scancel -t PD", "Unrecognized SCANCEL_STATE value: bogus\n" + STATES, 1),
        ({}, "scancel -t PD,R", "Invalid job state specified: PD,R\n" + STATES, 1),
        ({}, "scancel -t CD", "", 0),
        ({"SCANCEL_VERBOSE": "1"}, "scancel", "scancel: error: Unrecognized SCANCEL_VERBOSE value: 1\n" + NOBODY, 1),
        ({"SCANCEL_BATCH": "false"}, "scancel", NOBODY, 1),
        ({"SCANCEL_USER": ""}, "scancel", "scancel: error: Invalid user name: \n", 1),
        ({}, "scancel -i 999", "scancel: error: Kill job error on job id 999: Invalid job id specified\n", 1),
    ],
)
def test_variables_and_states_are_checked_as_slurm_does(env: dict[str, str], line: str, told: str, code: int) -> None:
    out, err, got, asked = run(line, env=env)
    assert (out, err, got, asked) == ("", told, code, [])


def test_however_many_jobs_are_meant_they_are_one_effect() -> None:
    many = SampleSite([job(number) for number in range(1, 2001)])
    command = scancel.main(
        Call(argv=("scancel", "-u", "alice"), env={}, cwd="/", uid=1001, user="alice", now=NOW), cast(Site, many)
    )
    effect = next(command)
    assert isinstance(effect, ChangeAll)
    assert [change.job_id for change in effect.changes] == list(range(1, 2001))
    with pytest.raises(StopIteration) as stop:
        command.send(tuple(Outcome(results=((str(change.job_id), None),)) for change in effect.changes))
    assert stop.value.value == 0
