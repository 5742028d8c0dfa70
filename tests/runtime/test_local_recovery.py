"""Runs when a daemon, a supervisor or the fork server dies."""

from __future__ import annotations

import asyncio
import os
import pathlib
import signal

import pytest

from slurmbridge.runtime.protocol import Lost, RunKey
from slurmbridge.spool import claim
from slurmbridge.supervisor import kernel
from tests.patience import until
from tests.runtime.contract import ended
from tests.runtime.local_bench import (
    FOREVER,
    HAS_SPACES,
    IS_ROOT,
    NODES,
    LocalBench,
    die_after,
    runs_forever,
    supervisor_of,
    use,
)

pytestmark = pytest.mark.processes


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_a_run_outlives_the_daemon_and_is_found_again(state: pathlib.Path, spaces: bool) -> None:
    die_after(state, "#!/bin/sh\nuntil [ -e go ]; do sleep 0.05; done\nexit 5\n", reports=1, spaces=spaces)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.pass_time(5, lambda: bool(bench.reports))
        assert not ended(bench, key)
        (bench.out / "go").touch()
        await bench.finish(key)
        assert [type(report).__name__ for report in bench.reports] == ["Started", "Ended"]
        assert ended(bench, key)[0].status == 5 << 8

    use(state, rule, spaces=spaces)


def test_an_end_while_the_daemon_was_away_is_told_when_it_is_back(state: pathlib.Path) -> None:
    die_after(state, "#!/bin/sh\nexit 6\n", reports=1)
    until((state / "spool/1.0.0" / claim.EXIT).exists)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.finish(key)
        assert ended(bench, key)[0].status == 6 << 8

    use(state, rule)


def test_an_end_is_read_from_its_record_when_the_supervisor_died_too(state: pathlib.Path) -> None:
    die_after(state, "#!/bin/sh\nexit 6\n", reports=2)
    os.kill(supervisor_of(state), signal.SIGKILL)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.finish(key)
        assert ended(bench, key)[0].status == 6 << 8

    use(state, rule)


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_a_killed_supervisor_takes_its_job_along_and_the_run_is_lost(state: pathlib.Path, spaces: bool) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, f"#!/bin/sh\n{FOREVER} &\n{FOREVER}\n")
        await bench.pass_time(5, lambda: bool(bench.reports) and runs_forever())
        os.kill(supervisor_of(state), signal.SIGKILL)
        await bench.pass_time(5, lambda: any(isinstance(report, Lost) for report in bench.reports))
        assert any(isinstance(report, Lost) for report in bench.reports)
        assert not runs_forever()
        assert not ended(bench, key)

    use(state, rule, spaces=spaces)


@pytest.mark.skipif(not HAS_SPACES, reason="needs root and namespaces")
def test_a_run_is_proved_gone_where_nobody_reaps_orphans(state: pathlib.Path) -> None:
    """As in a container whose first program does not look after processes that are not its own."""

    async def rule(bench: LocalBench) -> None:
        await bench.runtime.adopt([RunKey(1, 0)])
        await bench.pass_time(5, lambda: any(isinstance(report, Lost) for report in bench.reports))
        assert not runs_forever()

    before = children()
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    try:
        die_after(state, f"#!/bin/sh\n{FOREVER} &\n{FOREVER}\n", reports=1)
        until(runs_forever)
        os.kill(supervisor_of(state), signal.SIGKILL)
        use(state, rule)
        until(lambda: not [pid for pid in children() - before if os.waitpid(pid, os.WNOHANG)[0] == 0], children)
    finally:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 0)


def children() -> set[int]:
    """Of this process, zombies as well."""
    lists = pathlib.Path("/proc/self/task").glob("*/children")
    return {int(pid) for each in lists for pid in each.read_text().split()}


def test_a_killed_rank_fails_the_whole_run(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/sh\nsleep 600\n", nodes=NODES)
        await bench.pass_time(3, lambda: bool(bench.reports))
        os.kill(supervisor_of(state, "1.0.1"), signal.SIGKILL)
        await bench.finish(key)
        assert ended(bench, key)[0].why == "node_fail"
        await bench.pass_time(2, lambda: not (state / "spool/1.0.1").exists())

    use(state, rule)


def test_a_run_that_nobody_expects_is_ended(state: pathlib.Path) -> None:
    die_after(state, f"#!/bin/sh\n{FOREVER}\n", reports=1)

    async def rule(bench: LocalBench) -> None:
        await bench.runtime.adopt([])
        await bench.pass_time(6, lambda: not (state / "spool/1.0.0").exists())
        assert not runs_forever()
        assert bench.reports == []

    use(state, rule)


def test_a_launch_of_a_dead_daemon_claims_nothing(state: pathlib.Path) -> None:
    (state / "spool").mkdir()
    spool = str(state / "spool")
    old = claim.new_epoch(spool)
    claim.new_epoch(spool)
    assert claim.claim(spool, (1, 0, 0), old, {"pid": 1}) is None


def test_a_killed_fork_server_is_started_anew(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        os.kill(bench.runtime._server.pid, signal.SIGKILL)
        bench.runtime._server._process.wait()
        assert await bench.finish(bench.launch(1, "#!/bin/sh\necho alive\n")) == "alive\n"

    use(state, rule)


def test_runs_whose_launch_died_with_the_fork_server_run_once_and_can_be_killed(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        os.kill(bench.runtime._server.pid, signal.SIGSTOP)
        keys = [bench.launch(number, "#!/bin/sh\necho once\n") for number in range(1, 6)]
        last = bench.launch(6, "#!/bin/sh\nsleep 600\n")
        os.kill(bench.runtime._server.pid, signal.SIGKILL)

        def lost() -> list[RunKey]:
            return [each.key for each in bench.reports if isinstance(each, Lost)]

        await bench.pass_time(10, lambda: len(lost()) == 6)
        for key in lost():
            bench.launch(key.job_id, "#!/bin/sh\nsleep 600\n" if key == last else "#!/bin/sh\necho once\n")
        assert [await bench.finish(key) for key in keys] == ["once\n"] * 5
        await asyncio.sleep(0.2)
        assert not ended(bench, last), "an acknowledged start takes nothing away"
        bench.runtime.kill(last, "cancelled")
        await bench.pass_time(10, lambda: bool(ended(bench, last)))
        assert ended(bench, last)[0].why == "cancelled"

    use(state, rule)


def test_killing_a_run_that_nobody_has_proves_that_it_is_gone(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        bench.runtime.kill(RunKey(9, 0), "cancelled")
        await bench.pass_time(5, lambda: bool(bench.reports))
        assert [type(report) for report in bench.reports] == [Lost]

    use(state, rule)


def test_what_killed_processes_left_in_the_spool_is_removed_at_the_next_start(state: pathlib.Path) -> None:
    spool = state / "spool"
    spool.mkdir()
    for name in (".claim-12", ".gone-12"):
        (spool / name).mkdir()
        (spool / name / "record").write_text("{}")
    (spool / ".pointer-12").symlink_to("12.0.0")

    async def rule(bench: LocalBench) -> None:
        assert sorted(os.listdir(spool)) == sorted([".epoch", ".lock", *([".hosts"] if IS_ROOT else [])])

    use(state, rule)


def test_a_run_is_claimed_once(state: pathlib.Path) -> None:
    (state / "spool").mkdir()
    spool = str(state / "spool")
    epoch = claim.new_epoch(spool)
    first = claim.claim(spool, (1, 0, 0), epoch, {"pid": 1})
    assert first is not None
    assert claim.claim(spool, (1, 0, 0), epoch, {"pid": 2}) is None
    assert claim.read_json(os.path.join(first, claim.RECORD)) == {"pid": 1}
    claim.release(first)
