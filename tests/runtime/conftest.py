"""A state folder that must be left without runs."""

from __future__ import annotations

import os
import pathlib
import time
from collections.abc import Iterator

import pytest


@pytest.fixture
def state(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    folder = tmp_path / "state"
    folder.mkdir()
    yield folder
    time.sleep(0.05)
    left = [name for name in os.listdir(folder / "spool") if not name.startswith(".")]
    assert left == [], "every run's folder is gone when it was acknowledged"
