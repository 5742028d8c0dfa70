"""Are devices given to nobody twice and kept for nobody when holders are deleted, daemons die and clusters refuse?"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from slurmbridge.runtime.kube.faults import Backoff
from slurmbridge.runtime.kube.pace import Pace
from slurmbridge.runtime.protocol import Ended, RunKey
from tests.runtime.kube.paper_devices import DeviceBench, run
from tests.runtime.kube.paper_pods import TICK_S

pytestmark = pytest.mark.slow


def test_who_deletes_a_holder_ends_its_sharers_before_anybody_else_has_the_device() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        bench.part(2, 0)
        bench.part(3, 1)
        await bench.started(1, 2, 3)
        with bench.paper.lock:
            bench.paper.delete("pods", "sb-t-device-n1-0", {})
        for job in (1, 2):
            end = await bench.ended(job)
            assert end.why == "node_fail" and "device" in end.message
        await bench.hears(lambda: bench.holders() == ["sb-t-device-n1-1"])
        assert bench.holders() == ["sb-t-device-n1-1"] and len(bench.ends()) == 2

    run(rule)


def test_a_daemon_that_comes_later_knows_who_shares_what() -> None:
    async def rule(bench: DeviceBench) -> None:
        first, second = bench.part(1, 0), bench.part(2, 1)
        await bench.started(1, 2)
        await bench.again(first, second)
        bench.part(3, 0)
        await bench.started(3)
        assert bench.shared(3) == bench.shared(1)
        bench.runtime.kill(second, "cancelled")
        await bench.ended(2)
        await bench.hears(lambda: bench.holders() == ["sb-t-device-n1-0"])
        assert bench.holders() == ["sb-t-device-n1-0"]

    run(rule)


def test_a_daemon_that_died_before_the_pods_were_made_goes_on_with_the_holder_it_finds() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.paper.fail = lambda method, path: (503, "") if method == "POST" and bench.holders() else None
        key = bench.part(1, 0)
        await bench.hears(lambda: bool(bench.holders()))
        await bench.runtime.stop(end_jobs=False)
        bench.paper.fail = lambda method, path: None
        await bench.start()
        await bench.runtime.adopt([key])  # and it is told that the run never began
        bench.part(1, 0)
        await bench.started(1)
        assert len([name for name in bench.paper.created if "-device-" in name]) == 1

    run(rule)


def test_a_holder_that_nobody_needs_is_found_and_removed() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.part(1, 0)
        await bench.started(1)
        await bench.runtime.stop(end_jobs=False)
        bench.paper.finish("sb-t-1-0-0", words="")
        await bench.start()
        await asyncio.sleep(5 * TICK_S)
        assert len(bench.holders()) == 1  # nobody knows yet which runs there are
        await bench.runtime.adopt([])
        await bench.nothing_left()

    run(rule)


def test_a_run_that_is_killed_while_it_waits_for_its_device_leaves_nothing() -> None:
    async def rule(bench: DeviceBench) -> None:
        await bench.foreign("other", 1)
        key = bench.part(1, 0)
        bench.runtime.kill(key, "cancelled")
        end = await bench.ended(1)
        assert end.why == "cancelled"
        await bench.hears(lambda: not bench.holders())
        assert not bench.holders() and not bench.shared(1)

    run(rule, gpus=1)


def test_a_cluster_that_allows_no_holder_is_a_launch_that_failed() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.paper.fail = lambda method, path: (403, "no pods for you") if method == "POST" else None
        bench.part(1, 0)
        end = await bench.ended(1)
        assert end.why == "launch" and "no pods for you" in end.message

    run(rule)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_daemon_that_is_taken_down_with_its_jobs_leaves_no_holder(parts: int) -> None:
    async def rule(bench: DeviceBench) -> None:
        for job in range(1, parts + 1):
            bench.part(job, 0)
        await bench.started(*range(1, parts + 1))
        await bench.runtime.stop(end_jobs=True)
        assert not bench.holders()
        await bench.start()

    run(rule)


def _refused(bench: DeviceBench, *, restarts: int) -> Callable[[], bool]:
    """Job 1 asks for more than its node has; whether that was told."""
    key = bench.whole(1, 0, 1, restarts=restarts)
    return lambda: any(end.key == key for end in bench.ends())


def test_a_job_that_its_node_does_not_take_goes_back_at_once_and_then_after_a_pause() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.pace = Pace(Backoff(first=1000.0, longest=1000.0))
        await bench.again()
        await bench.hears(_refused(bench, restarts=0))
        again = _refused(bench, restarts=1)
        await bench.pass_time(1)
        assert not again()
        bench.runtime.kill(RunKey(1, 1), "cancelled")  # and whoever cancels it then does not wait
        last = bench.ends()[-1]
        assert isinstance(last, Ended) and (last.key.restarts, last.why) == (1, "cancelled")
        await bench.nothing_left()

    run(rule, gpus=1)


def test_a_job_that_begins_is_no_more_made_to_wait_for_what_was_before() -> None:
    async def rule(bench: DeviceBench) -> None:
        bench.pace = Pace(Backoff(first=1000.0, longest=1000.0))
        await bench.again()
        await bench.hears(_refused(bench, restarts=0))
        bench.whole(1, 0, restarts=1, script=b"exit 0\n")
        await bench.hears(lambda: len(bench.ends()) == 2)
        await bench.hears(_refused(bench, restarts=2))
        assert [end.why for end in bench.ends() if isinstance(end, Ended)] == ["requeue", "exit", "requeue"]

    run(rule, gpus=1)
