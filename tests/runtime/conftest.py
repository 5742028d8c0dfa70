"""A state folder that must be left without runs."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator

import pytest

from tests.patience import until


@pytest.fixture
def state(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    folder = tmp_path / "state"
    folder.mkdir()
    yield folder

    def left() -> list[str]:
        return [name for name in os.listdir(folder / "spool") if not name.startswith(".")]

    until(lambda: not left(), lambda: f"a run's folder stays when it was acknowledged: {left()}")
