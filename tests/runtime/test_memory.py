"""The runtime of the tests keeps the contract too."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.runtime.protocol import Report, RunKey
from tests.runtime.contract import CONFIG, Contract, launch_of

RULES = [name for name, rule in inspect.getmembers(Contract, inspect.isfunction) if name.startswith("test_")]


class MemoryBench:
    def __init__(self) -> None:
        self.runtime = MemoryRuntime()
        self.reports: list[Report] = []

    def launch(self, job_id: int, script: bytes | None, **changes: Any) -> RunKey:
        key = RunKey(job_id, 0)
        self.runtime.launch(launch_of(key, script, **changes))
        return key

    async def pass_time(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        if until is None or not until():
            self.runtime.advance(seconds)

    async def has_begun(self, key: RunKey) -> None:
        assert self.reports


@pytest.mark.parametrize("rule", RULES)
def test_contract(rule: str) -> None:
    async def run() -> None:
        bench = MemoryBench()
        await bench.runtime.start(bench.reports.append, CONFIG, daemon_addr="unix:/nowhere")
        await getattr(Contract(), rule)(bench)

    asyncio.run(run())


def test_after_a_crash_what_was_not_acknowledged_is_reported_again() -> None:
    async def run() -> None:
        bench = MemoryBench()
        await bench.runtime.start(bench.reports.append, CONFIG, daemon_addr="unix:/nowhere")
        key = bench.launch(1, b"sleep 5\nexit 0\n")
        bench.runtime.acknowledge(key, 1)
        bench.runtime.crash()
        bench.runtime.advance(10)
        bench.reports.clear()
        await bench.runtime.start(bench.reports.append, CONFIG, daemon_addr="unix:/nowhere")
        await bench.runtime.adopt([key])
        assert [type(report).__name__ for report in bench.reports] == ["Ended"]

    asyncio.run(run())
