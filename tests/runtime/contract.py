"""What every runtime must do: the rules that the daemon counts on. Run by test_memory.py and test_local.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from slurmbridge.model.cluster import ClusterConfig, NodeConf
from slurmbridge.runtime.protocol import (
    NEVER_STARTED,
    Ended,
    Launch,
    LaunchNode,
    Lost,
    Report,
    RunKey,
    Runtime,
    Started,
)

CONFIG = ClusterConfig(nodes=(NodeConf(name="n1"), NodeConf(name="n2")))


class Bench(Protocol):
    """A runtime under test.

    `pass_time` lets so much of its time go by, or waits until `until` holds: `seconds` of a clock that is moved, as long
    as it takes where time is real. `has_begun` waits for a run whose script says something first."""

    reports: list[Report]

    @property
    def runtime(self) -> Runtime: ...

    def launch(self, job_id: int, script: bytes | None, **changes: Any) -> RunKey: ...
    async def pass_time(self, seconds: float, until: Callable[[], bool] | None = None) -> None: ...
    async def has_begun(self, key: RunKey) -> None: ...


def ended(bench: Bench, key: RunKey) -> list[Ended]:
    return [each for each in bench.reports if isinstance(each, Ended) and each.key == key]


def launch_of(key: RunKey, script: bytes | None, **changes: Any) -> Launch:
    """A launch on node n1 that differs from the plainest one in `changes`."""
    values: dict[str, Any] = {
        "key": key, "uid": 0, "gid": 0, "groups": (), "user": "root", "home": "/", "shell": "/bin/sh",
        "nodes": (LaunchNode(rank=0, node="n1", cpus=1),), "script": script, "work_dir": "/", "umask": 0o022,
        "std_in": "/dev/null", "std_out": "/dev/null", "std_err": "", "append": False, "pattern_values": (),
        "kill_wait_s": 1,
    }  # fmt: skip
    values.update(changes)
    return Launch(**values)


class Contract:
    """Mix in, give `bench`."""

    async def run_to_end(self, bench: Bench, key: RunKey, seconds: float = 5) -> Ended:
        await bench.pass_time(seconds, lambda: bool(ended(bench, key)))
        (report,) = ended(bench, key)
        return report

    async def test_a_run_reports_that_it_started_and_how_it_ended(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nexit 3\n")
        report = await self.run_to_end(bench, key)
        assert isinstance(bench.reports[0], Started)
        assert (report.status, report.why) == (3 << 8, "exit")

    async def test_sequence_numbers_of_a_run_grow(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nexit 0\n")
        await self.run_to_end(bench, key)
        numbers = [report.sequence for report in bench.reports if report.key == key]
        assert numbers == sorted(set(numbers))

    async def test_the_end_names_the_batch_step_with_its_exit_code(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nexit 3\n")
        report = await self.run_to_end(bench, key)
        assert [(step.step_id, step.exit_code, step.state.name) for step in report.steps] == [(-5, 3 << 8, "FAILED")]

    async def test_a_kill_ends_the_run_and_its_reason_comes_back(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\necho begun\nsleep 600\n")
        await bench.has_begun(key)
        bench.runtime.kill(key, "cancelled")
        report = await self.run_to_end(bench, key)
        assert (report.why, report.status & 0x7F) == ("cancelled", 15)

    async def test_what_ignores_sigterm_is_killed_after_kill_wait(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/bash\ntrap '' TERM\necho begun\nsleep 600\n")
        await bench.has_begun(key)
        bench.runtime.kill(key, "cancelled")
        report = await self.run_to_end(bench, key)
        assert (report.why, report.status & 0x7F) == ("cancelled", 9)

    async def test_the_time_limit_ends_a_run(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nsleep 600\n", time_limit_s=1)
        assert (await self.run_to_end(bench, key)).why == "timeout"

    async def test_a_changed_time_limit_counts_from_the_start(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nsleep 600\n", time_limit_s=500)
        await bench.pass_time(0.2, lambda: len(bench.reports) > 0)
        bench.runtime.set_time_limit(key, 1)
        assert (await self.run_to_end(bench, key)).why == "timeout"

    async def test_time_suspended_does_not_count_against_the_limit(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nsleep 600\n", time_limit_s=3)
        await bench.pass_time(0.2, lambda: len(bench.reports) > 0)
        bench.runtime.suspend(key)
        await bench.pass_time(3.5)
        assert not ended(bench, key)
        bench.runtime.resume(key)
        assert (await self.run_to_end(bench, key)).why == "timeout"

    async def test_a_run_without_script_lasts_until_it_is_released(self, bench: Bench) -> None:
        key = bench.launch(1, None)
        await bench.pass_time(0.3)
        assert not ended(bench, key)
        bench.runtime.kill(key, "exit")
        report = await self.run_to_end(bench, key)
        assert (report.why, report.status) == ("exit", 0)

    async def test_launching_a_run_twice_runs_it_once(self, bench: Bench) -> None:
        key = bench.launch(1, b"#!/bin/sh\nsleep 0.4\nexit 0\n")
        bench.launch(1, b"#!/bin/sh\nsleep 0.4\nexit 0\n")
        await self.run_to_end(bench, key)
        await bench.pass_time(1)
        assert len(ended(bench, key)) == 1

    async def test_a_run_that_was_never_launched_is_reported_so(self, bench: Bench) -> None:
        await bench.runtime.adopt([RunKey(77, 0)])
        await bench.pass_time(1, lambda: bool(bench.reports))
        (report,) = bench.reports
        assert isinstance(report, Lost) and report.message == NEVER_STARTED

    async def test_every_node_has_a_sample(self, bench: Bench) -> None:
        assert [sample.node for sample in bench.runtime.sample()] == ["n1", "n2"]
