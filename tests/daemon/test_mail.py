"""--mail-type: who is told what, when, in slurmctld's words; once, whatever happens to the daemon."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import stat
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from slurmbridge.daemon import mail as mailing
from slurmbridge.model.plan import Eviction, Plan
from tests.daemon.controlled import CONF, Site, site
from tests.patience import comes

Test = Callable[[Site], Awaitable[None]]


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Callable[[], list[str]]:
    """The lines of the log since the last call."""
    caplog.set_level(logging.INFO, logger="slurmbridge.daemon.mail")

    def lines() -> list[str]:
        found = [record.getMessage() for record in caplog.records if "email msg" in record.getMessage()]
        caplog.clear()
        return [line.removeprefix("email msg to ") for line in found]

    return lines


def play(test: Test, conf: str = CONF) -> None:
    async def whole() -> None:
        await test(await site(conf))

    asyncio.run(whole())


Told = Callable[[], list[str]]


def test_begin_and_end_are_told_of_with_times_state_and_exit_code(told: Told) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J work --mail-type=BEGIN,END,FAIL", "sleep 5")
        assert told() == [f"alice: Slurm Job_id={job} Name=work Began, Queued time 00:00:00"]
        await made.advance(6)
        assert told() == [f"alice: Slurm Job_id={job} Name=work Ended, Run time 00:00:05, COMPLETED, ExitCode 0"]

    play(rule)


def test_nobody_is_told_what_was_not_asked_for(told: Told) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-user=x@example.org", "sleep 1")
        await made.submit("--mail-type=FAIL", "sleep 1")
        await made.submit("--mail-type=NONE", "sleep 1")
        await made.advance(3)
        assert told() == []

    play(rule)


def test_a_failure_is_told_as_such_or_as_an_end_where_only_ends_were_asked_for(told: Told) -> None:
    async def rule(made: Site) -> None:
        first = await made.submit("-J a --mail-type=FAIL", "exit 3")
        second = await made.submit("-J b --mail-type=END", "exit 3")
        both = await made.submit("-J c --mail-type=END,FAIL", "exit 3")
        await made.advance(2)
        ends = [line.replace("00:00:01", "00:00:00") for line in told()]
        assert ends == [
            f"alice: Slurm Job_id={first} Name=a Failed, Run time 00:00:00, FAILED, ExitCode 3",
            f"alice: Slurm Job_id={second} Name=b Ended, Run time 00:00:00, FAILED, ExitCode 3",
            f"alice: Slurm Job_id={both} Name=c Failed, Run time 00:00:00, FAILED, ExitCode 3",
        ]

    play(rule)


def test_a_cancelled_job_has_ended_not_failed(told: Told) -> None:
    async def rule(made: Site) -> None:
        waits = await made.submit("-J w --hold --mail-type=END,FAIL")
        await made.run(f"scancel {waits}")
        assert told() == [f"alice: Slurm Job_id={waits} Name=w Ended, Run time 00:00:00, CANCELLED, ExitCode 0"]
        runs = await made.submit("-J r --mail-type=FAIL", "sleep 100")
        await made.run(f"scancel {runs}")
        await made.advance(10)
        assert told() == []

    play(rule)


def test_a_requeue_is_told_of_with_the_time_of_the_run_it_ends(told: Told) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J r --mail-type=REQUEUE", "sleep 100")
        await made.advance(7)
        await made.run(f"scontrol requeue {job}")
        await made.advance(3)
        assert [line.partition(", ")[0] for line in told()] == [f"alice: Slurm Job_id={job} Name=r Requeued"]

    play(rule)


@pytest.mark.parametrize(("mode", "word"), [("REQUEUE", "Requeued"), ("CANCEL", "Failed")])
def test_a_run_that_gives_way_is_told_of_as_requeued_or_failed(told: Told, mode: str, word: str) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J r --mail-type=REQUEUE,FAIL", "sleep 100")
        made.plans.apply(Plan(version=0, evictions=(Eviction(job_id=job, mode=mode, for_job=0),)))
        await made.advance(3)
        (line,) = told()
        assert line.startswith(f"alice: Slurm Job_id={job} Name=r {word}")

    play(rule)


def test_parts_of_the_time_limit_are_told_of_once_each(told: Told) -> None:
    async def rule(made: Site) -> None:
        options = "-t 10 -J t --mail-type=TIME_LIMIT,TIME_LIMIT_90,TIME_LIMIT_50"
        job = await made.submit(options, "sleep 10000")
        seen: list[str] = []
        for _ in range(11 * 6):
            await made.advance(10, step=10)
            made.controller.mail_of_limits()
            seen += [line for line in told() if f"Job_id={job} " in line]
        assert seen == [
            f"alice: Slurm Job_id={job} Name=t Reached 50% of time limit, Run time 00:05:00",
            f"alice: Slurm Job_id={job} Name=t Reached 90% of time limit, Run time 00:09:00",
            f"alice: Slurm Job_id={job} Name=t Reached time limit, Run time 00:10:00",
        ]

    play(rule)


def test_a_dependency_that_can_never_hold_is_told_of(told: Told) -> None:
    async def rule(made: Site) -> None:
        parent = await made.submit("", "exit 1")
        child = await made.submit(f"-J c -d afterok:{parent} --mail-type=INVALID_DEPEND")
        await made.advance(3)
        assert told() == [f"alice: Slurm Job_id={child} Name=c Invalid dependency"]
        await made.advance(3)
        assert told() == []

    play(rule)


def test_an_array_is_told_of_as_a_whole(told: Told) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J arr --array=0-3 -n4 --mail-type=BEGIN,END,FAIL", "exit 0")
        assert told() == [f"alice: Slurm Array Summary Job_id={job}_* ({job}) Name=arr Began"]
        await made.advance(5)
        assert told() == [
            f"alice: Slurm Array Summary Job_id={job}_* ({job}) Name=arr Ended, COMPLETED, ExitCode [0-0]"
        ]
        await made.advance(5)
        assert told() == []

    play(rule)


def test_tasks_are_told_of_one_by_one_where_that_was_asked_for(told: Told) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J arr --array=1-2 --mail-type=END,ARRAY_TASKS", "sleep 2")
        await made.advance(4)
        ids = {task.array_task_id: task.job_id for task in made.controller.memory.table.of_array(job)}
        assert sorted(told()) == [
            f"alice: Slurm Array Task Job_id={job}_{task} ({ids[task]}) Name=arr Ended, Run time 00:00:02, "
            "COMPLETED, ExitCode 0"
            for task in (1, 2)
        ]

    play(rule)


def test_mail_user_and_mail_domain_give_the_address(told: Told) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=BEGIN")
        await made.submit("--mail-type=BEGIN --mail-user=boss")
        await made.submit("--mail-type=BEGIN --mail-user=a@else.org")
        assert [line.partition(":")[0] for line in told()] == ["alice@site.org", "boss@site.org", "a@else.org"]

    play(rule, CONF + "MailDomain=site.org\n")


def test_a_name_cannot_write_lines_of_its_own_into_a_subject(told: Told) -> None:
    async def rule(made: Site) -> None:
        answer = await made.run("sbatch --mail-type=BEGIN -J 'a\nBcc: b' --wrap true")
        assert answer.code == 0
        assert "\n" not in told()[0]

    play(rule)


def test_the_owner_is_not_told_again_after_a_restart(told: Told) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=ALL", "sleep 5")
        assert len(told()) == 1
        await made.restart()
        assert told() == []
        await made.advance(6)
        assert len(told()) == 1

    play(rule)


# ---- the program ----


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user may enter: the program does not run as root."""
    folder = Path(tempfile.mkdtemp(prefix="mail-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def program(folder: Path, body: str) -> str:
    """A mail program that writes what it was given into the folder."""
    path = folder / "mail"
    path.write_text(f"#!/bin/bash\ncd {folder}\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return str(path)


def test_mail_prog_is_called_with_subject_and_address_and_told_the_rest_by_variables(place: Path) -> None:
    async def rule(made: Site) -> None:
        job = await made.submit("-J work --mail-type=BEGIN")
        await comes(lambda: (place / "done").exists() and not made.store.load(0.0).mails)
        subject = f"Slurm Job_id={job} Name=work Began, Queued time 00:00:00"
        assert (place / "given").read_text() == f"-s\n{subject}\nalice\n"
        env = dict(line.split("=", 1) for line in (place / "env").read_text().splitlines() if "=" in line)
        assert (env["SLURM_JOB_ID"], env["SLURM_JOB_MAIL_TYPE"], env["SLURM_JOB_STATE"]) == (
            str(job),
            "Began",
            "RUNNING",
        )
        assert (env["SLURM_JOB_QUEUED_TIME"], env["SLURM_CLUSTER_NAME"]) == ("00:00:00", "test")
        assert (place / "input").read_text() == ""
        assert os.geteuid() != 0 or (place / "given").stat().st_uid == 1001, "never as root"

    body = 'printf "%s\\n" "$@" >given; env >env; cat >input; touch done'
    play(rule, CONF + f"MailProg={program(place, body)}\n")


def test_a_message_that_was_under_way_when_the_daemon_died_is_sent_once_more(place: Path) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=BEGIN")
        await comes((place / "begun").exists)
        assert len(made.store.load(0.0).mails) == 1
        old = made.controller.mailer
        (place / "begun").unlink()
        await made.restart()
        made.controller.mail_of_limits()
        await comes((place / "begun").exists)
        old.stop()
        (place / "go").touch()
        await comes(lambda: not made.store.load(0.0).mails)
        assert (place / "count").read_text() == "1\n"
        await made.restart()
        made.controller.mail_of_limits()
        assert not made.controller.mailer._running

    body = "touch begun; while [[ ! -e go ]]; do sleep 0.05; done; echo 1 >>count"
    play(rule, CONF + f"MailProg={program(place, body)}\n")


def test_a_program_that_hangs_is_ended_and_stops_nobody(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailing, "TIME_S", 0.3)

    async def rule(made: Site) -> None:
        for _ in range(6):
            await made.submit("--mail-type=BEGIN", "sleep 1")
        await made.advance(3)
        assert all(job.is_finished for job in made.controller.memory.jobs())
        await comes(lambda: not made.store.load(0.0).mails)

    play(rule, CONF + f"MailProg={program(place, 'exec sleep 600')}\n")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("echo no route; exit 1", "MailProg returned error, it's output was 'no route'"),
        ("exit 7", "No output from MailProg, exit code=7"),
    ],
)
def test_a_program_that_fails_is_told_of_in_the_log(
    body: str, line: str, place: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=BEGIN")
        await comes(lambda: not made.store.load(0.0).mails)
        assert line in caplog.messages

    play(rule, CONF + f"MailProg={program(place, body)}\n")


def test_a_program_that_is_not_there_drops_the_message_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=BEGIN")
        await comes(lambda: not made.store.load(0.0).mails)
        assert any("event=mail.not_sent" in line and "No such file" in line for line in caplog.messages)

    play(rule, CONF + "MailProg=/nowhere/mail\n")


def test_an_address_that_reads_as_an_option_is_never_given_to_the_program(place: Path) -> None:
    async def rule(made: Site) -> None:
        await made.submit("--mail-type=BEGIN --mail-user=-Sfile")
        await comes(lambda: not made.store.load(0.0).mails)
        assert not (place / "ran").exists()

    play(rule, CONF + f"MailProg={program(place, 'touch ran')}\n")
