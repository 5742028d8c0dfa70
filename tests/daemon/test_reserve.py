"""Whom backfill promises a start, as QOS say it."""

from __future__ import annotations

import asyncio

import pytest

from tests.daemon.test_limits import QOS, became, limited


@pytest.mark.parametrize(
    ("limit", "last"),
    [
        ("priority=1", "Priority"),
        ("flags=NoReserve", "R"),
        ("minpriothresh=90000000", "R"),
        ("minpriothresh=0", "Priority"),
    ],
)
def test_a_start_is_promised_only_where_the_qos_reserves(limit: str, last: str) -> None:
    async def whole() -> None:
        made = await limited(f"{QOS} {limit}")
        assert await became(made, "-N2 --exclusive -t10|-N4 --exclusive -t10|-n1 -t60") == ["R", "Resources", last]

    asyncio.run(whole())
