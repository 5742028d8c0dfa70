"""What was accepted before is not worked out anew, and nobody can tell the difference. On the shipped fakes."""

from __future__ import annotations

from tests.daemon.controlled import Site
from tests.daemon.rules import rule

LINE = "sbatch --parsable job.sh"


async def submit(made: Site, script: str, *, line: str = LINE, user: str = "alice") -> int:
    answer = await made.run(line, user=user, files={"job.sh": script.encode()})
    assert answer.code == 0, answer
    return int(answer.out)


def script(directive: str, body: str = "sleep 10") -> str:
    return f"#!/bin/sh\n#SBATCH -N4 --exclusive\n#SBATCH {directive}\n{body}\n"


@rule
async def test_equal_submissions_share_one_specification(made: Site) -> None:
    first = await submit(made, script("--time=5"))
    second = await submit(made, script("--time=5"))
    assert first != second
    assert made.job(first).spec is made.job(second).spec


@rule
async def test_scripts_that_differ_below_the_directives_differ_in_nothing_else(made: Site) -> None:
    first = made.job(await submit(made, script("--time=5", "echo one"))).spec
    second = made.job(await submit(made, script("--time=5", "echo two"))).spec
    assert first.script_sha != second.script_sha
    assert first.request is second.request


@rule
async def test_directives_lines_and_users_that_differ_are_told_apart(made: Site) -> None:
    five = made.job(await submit(made, script("--time=5"))).spec
    six = made.job(await submit(made, script("--time=6"))).spec
    typed = made.job(await submit(made, script("--time=5"), line="sbatch --parsable -J other job.sh")).spec
    of_bob = made.job(await submit(made, script("--time=5"), user="bob")).spec
    assert (five.time_limit, six.time_limit) == (5, 6)
    assert (five.name, typed.name) == ("job.sh", "other")
    assert (five.user, of_bob.user) == ("alice", "bob")


@rule
async def test_a_time_from_now_is_reckoned_each_time(made: Site) -> None:
    first = await submit(made, script("--begin=now+1hour"))
    await made.advance(60.0, step=60.0)
    second = await submit(made, script("--begin=now+1hour"))
    begins = [made.job(each).spec.begin for each in (first, second)]
    assert begins[0] is not None and begins[1] is not None and begins[1] - begins[0] == 60


@rule
async def test_a_changed_partition_counts_from_the_next_submission_on(made: Site) -> None:
    before = made.job(await submit(made, script("--nice=1"))).spec
    answer = await made.run("scontrol update partitionname=debug defaulttime=7", user="root")
    assert answer.code == 0, answer
    after = made.job(await submit(made, script("--nice=1"))).spec
    assert (before.time_limit, after.time_limit) == (None, 7)


@rule
async def test_a_warning_is_given_each_time(made: Site) -> None:
    files = {"job.sh": b"#!/bin/sh\n#SBATCH -n1 -N2\nsleep 10\n"}
    answers = [await made.run(LINE, files=files) for _ in range(2)]
    assert "can't run 1 processes on 2 nodes" in answers[0].err
    assert answers[0].err == answers[1].err
