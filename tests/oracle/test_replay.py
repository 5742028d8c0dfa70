"""Answers recorded from a real Slurm, replayed on the installed commands; the list of failing ones only shrinks.

A row counts only when it differs from the list twice, in the whole replay and again by itself, so that a loaded machine on
which one answer came late fails nothing; a listed row whose reason begins with "varies:" may pass as well.
`integration/replay.sh --failing tests/oracle/failing.txt` takes the list literally.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORACLE = Path(os.environ.get("ORACLE") or ROOT.parent / "shared" / "oracle")
FAILING = Path(__file__).with_name("failing.txt")


def replay(prefix: Path, *words: str) -> tuple[set[str], str]:
    """What differs from the list (each text begins with the row's id), and the summary."""
    answer = subprocess.run(
        [
            sys.executable,
            str(ORACLE / "replay.py"),
            "--prefix",
            str(prefix),
            "--failing",
            str(FAILING),
            "--json",
            *words,
        ],
        capture_output=True,
        text=True,
        timeout=1700,
    )
    assert answer.stdout.startswith("{"), answer.stdout + answer.stderr
    result = json.loads(answer.stdout)
    print(result["summary"], result["notes"], result["out"])
    return set(result["failing_list"]), result["summary"]


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="must be root: the replay makes namespaces and runs as several users")
@pytest.mark.skipif(not (ORACLE / "replay.py").exists(), reason=f"no recorded answers in {ORACLE}")
def test_exactly_the_listed_answers_differ_from_a_real_slurm(open_prefix: Path) -> None:
    varying = {words[0] for line in FAILING.read_text().splitlines() if (words := line.split())[1:2] == ["varies:"]}
    complaints, summary = replay(open_prefix)
    once = {text for text in complaints if not (text.split()[0] in varying and text.split()[1] == "passes:")}
    if not once:
        return
    ids = sorted({text.split()[0] for text in once})
    again, _ = replay(open_prefix, "--only", f"^(?:{'|'.join(map(re.escape, ids))})$")
    assert sorted(once & again) == [], summary


def test_every_listed_answer_has_a_reason() -> None:
    lines = [line for line in FAILING.read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if len(line.split()) < 3] == []
    assert len({line.split()[0] for line in lines}) == len(lines)
