"""A daemon that a test plays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.supervisor.pods import ScriptedDaemon


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[ScriptedDaemon]:
    state = tmp_path / "state"
    state.mkdir(0o700)
    made = ScriptedDaemon(state)
    yield made
    made.shut()
