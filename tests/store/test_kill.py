"""A process that is killed at any moment has lost nothing that it acknowledged."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurmbridge.store.sqlite import SqliteStore
from tests.store.killed import check, killed, writing


@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_acknowledged_is_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    acknowledged = killed(writing(str(path)), seed)
    check(SqliteStore(path), acknowledged)
