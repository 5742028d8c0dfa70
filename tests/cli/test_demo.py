"""The demonstration that the README promises."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_demo_runs_every_script_to_its_end(commands: Path) -> None:
    answer = subprocess.run(
        ["bash", str(ROOT / "docs/demo/run.sh"), str(commands)],
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "every job ended as it should" in answer.stdout
