"""Numbers that nothing has are told to be none, and never break a command: each break is a page of the daemon's log."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from slurmbridge.daemon.names import Names
from slurmbridge.store.sqlite import SqliteStore
from tests.daemon.controlled import Site

NUMBERS = ("9" * 18, "9" * 19, "9" * 25, "9" * 4301, "\N{ARABIC-INDIC DIGIT ONE}", "4294967295", "-1")
COMMANDS = (
    "slurmbridge logs {}", "slurmbridge logs 1_{}", "slurmbridge where {}", "slurmbridge why {}", "squeue -u {}", "squeue -j {}",
    "scancel {}", "scancel -u {}", "sacct -j {}", "sacct -u {}", "sacct -g {}", "scontrol show job {}", "sattach {}.0", "seff {}", "seff 1_{}",
    "sstat -j {}", "sprio -j {}", "sprio -u {}", "scontrol update jobid={} priority=1", "scontrol listpids {}",
    "scontrol requeue {}", "scontrol hold {}", "sreport -u {} cluster utilization", "slurmbridge token revoke {}",
)  # fmt: skip


@contextlib.asynccontextmanager
async def stored(folder: Path) -> AsyncIterator[Site]:
    """With a real database, whose numbers end."""
    store = SqliteStore(str(folder / "state.db"))
    try:
        made = Site()
        made.store = store  # type: ignore[assignment]
        await made.start()
        made.controller.memory.names = Names()
        yield made
    finally:
        store.close()


@pytest.mark.parametrize("line", COMMANDS)
def test_numbers_that_nothing_has_break_no_command(line: str, tmp_path: Path) -> None:
    async def whole() -> None:
        async with stored(tmp_path) as made:
            for number in NUMBERS:
                answer = await made.run(line.format(number), user="root")  # who may ask for everything
                assert len(answer.out) + len(answer.err) < 20_000

    asyncio.run(whole())
