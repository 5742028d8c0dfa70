"""A daemon that is killed again and again loses nothing and repeats nothing (`make soak` does it a thousand times)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
KILLS = "30"
SECONDS = "20"


@pytest.mark.slow
def test_no_job_is_lost_repeated_or_stuck_and_no_usage_counted_twice(commands: Path) -> None:
    answer = subprocess.run(
        [sys.executable, str(ROOT / "integration/soak_kills.py"), "--bin", str(commands), "--kills", KILLS],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


@pytest.mark.slow
def test_whatever_is_killed_or_stopped_every_job_ends_as_it_may_and_nothing_is_left(commands: Path) -> None:
    answer = subprocess.run(
        [sys.executable, str(ROOT / "integration/soak_chaos.py"), "--bin", str(commands), "--seconds", SECONDS],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
