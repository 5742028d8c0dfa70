"""What becomes of runs of pods whose daemon died and another took over?"""

from __future__ import annotations

import asyncio

import pytest

from slurmbridge.errors import RuntimeFault
from slurmbridge.runtime.kube.runtime import PROVED
from slurmbridge.runtime.protocol import Lost, RunKey
from slurmbridge.wire import supervisor as wire
from tests.runtime.kube.paper_pods import GANG, TICK_S, KubeBench, Quiet, run

pytestmark = pytest.mark.slow


def test_a_daemon_that_died_finds_its_runs_and_hears_how_they_ended() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.answers = False
        key = bench.launch(1, b"sleep 1\nexit 5\n")
        await bench.hears(lambda: bool(bench.reports))
        await bench.runtime.stop(end_jobs=False)
        bench.reports.clear()
        bench.answers = True
        await bench.start()
        await bench.runtime.adopt([key])
        end = await bench.end()
        assert end.status == 5 << 8
        await bench.nothing_left()

    run(rule)


def test_ranks_of_which_some_were_launched_before_the_daemon_died_know_each_other() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.shown(key, 2)
        early, late, again = Quiet(), Quiet(), Quiet()
        bench.runtime.welcome(early.attach, key, 1, "")
        await bench.restart(key)
        bench.runtime.welcome(late.attach, key, 0, "")
        assert isinstance(bench.reports[-1], Lost)  # its launch is asked for
        bench.runtime.welcome(again.attach, key, 1, early.token())
        assert late.token() == early.token() and again.sent[0][0] == wire.ACK

    run(rule)


def test_a_late_rank_of_a_run_that_was_found_does_not_make_it_one_that_never_began() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.shown(key, 2)
        head = Quiet()
        bench.runtime.welcome(head.attach, key, 0, "")
        await bench.restart(key)
        back = Quiet()
        bench.runtime.welcome(back.attach, key, 0, head.token())
        bench.runtime.welcome(Quiet().attach, key, 1, "")
        bench.runtime.kill(key, "cancelled")
        assert [kind for kind, _ in back.sent] == [wire.ACK, wire.KILL]

    run(rule)


def test_a_daemon_that_cannot_list_the_pods_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take its runs for ones that never began, and begin them again."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.LISTED_S", 0.3)

    async def rule(bench: KubeBench) -> None:
        await bench.runtime.stop(end_jobs=False)
        bench.paper.fail = lambda method, path: (500, "etcd is away") if path.endswith("/pods") else None
        with pytest.raises(RuntimeFault, match="etcd is away"):
            await bench.start()

    run(rule)


def test_a_supervisor_that_is_back_before_its_daemon_knows_its_runs_is_not_sent_away() -> None:
    async def rule(bench: KubeBench) -> None:
        key = bench.launch(1, b"sleep 1\nexit 5\n")
        await bench.hears(lambda: bool(bench.reports))
        await bench.runtime.stop(end_jobs=False)
        await bench.start()
        await asyncio.sleep(10 * TICK_S)  # it has dialled in meanwhile
        await bench.runtime.adopt([key])
        end = await bench.end()
        assert end.status == 5 << 8

    run(rule)


async def _never_asked(bench: KubeBench) -> RunKey:
    """A run whose pod is there, and whose daemon died before its supervisor had dialled in."""
    bench.has_supervisors = False
    key = bench.launch(1, b"exit 3\n")
    await bench.shown(key, 1)
    await bench.restart(key)
    return key


def test_a_supervisor_whose_launch_is_still_being_read_dials_in_again() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.reads_s = 0.1
        key = await _never_asked(bench)
        early, again = Quiet(), Quiet()
        bench.runtime.welcome(early.attach, key, 0, "")
        assert (early.sent, early.is_closed) == ([], True)
        await asyncio.sleep(3 * bench.reads_s)
        bench.runtime.welcome(again.attach, key, 0, "")
        assert again.token()

    run(rule)


def test_a_supervisor_whose_launch_nobody_wants_any_more_is_sent_away() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.reads_s = 1000
        key = await _never_asked(bench)
        bench.runtime.acknowledge(key, PROVED)  # as a daemon says that knows no such run
        refused = Quiet()
        bench.runtime.welcome(refused.attach, key, 0, "")
        assert [kind for kind, _ in refused.sent] == [wire.UNWANTED]

    run(rule)
