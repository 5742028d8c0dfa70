"""Answers recorded from a real Slurm, replayed on the installed commands; the list of failing ones only shrinks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORACLE = Path(os.environ.get("ORACLE") or ROOT.parent / "shared" / "oracle")
FAILING = Path(__file__).with_name("failing.txt")


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="must be root: the replay makes namespaces and runs as several users")
@pytest.mark.skipif(not (ORACLE / "replay.py").exists(), reason=f"no recorded answers in {ORACLE}")
@pytest.mark.skipif(not FAILING.exists(), reason="no list of failing rows yet")
def test_exactly_the_listed_answers_differ_from_a_real_slurm(open_prefix: Path) -> None:
    answer = subprocess.run(
        [sys.executable, str(ORACLE / "replay.py"), "--prefix", str(open_prefix), "--failing", str(FAILING)],
        capture_output=True,
        text=True,
        timeout=1700,
    )
    print(answer.stdout[-4000:])
    assert answer.returncode == 0, answer.stdout[-8000:] + answer.stderr[-2000:]
