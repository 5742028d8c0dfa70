"""Thousands of command lines get the same answer as from a real Slurm beside it.

REAL_SLURM names the folder with real_slurm.sh, whose Slurm runs and is used by nobody else; PARTS the parts of lines.py
(default: submit). Answers are compared after job numbers, dates and elapsed times are made the same; what differs is
written to DIFFERENCES (default: lines.txt in the temporary folder of the run).
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from lines import PARTS, Step, numbered
from sides import OurSide, RealSide

pytestmark = [pytest.mark.root, pytest.mark.slow]
ROOT = Path(__file__).resolve().parents[2]
EQUAL_SHARE = 0.8
MASKS = [
    (re.compile(pattern), text)
    for pattern, text in (
        (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?", "<moment>"),
        (r"\b1[6-9]\d{8}\b", "<epoch>"),
        (r"\bs[0-9A-HJKMNP-TV-Z]{13}\b", "<sluid>"),
        (r"\b(?:00:)?\d?\d:\d\d\b", "<elapsed>"),
        (r"\b(CPULoad|FreeMem|Priority)=[\d.]+", r"\1=N"),
    )
]
Answer = tuple[int, str, str]
Run = Callable[[str, str], Answer]


@pytest.fixture(scope="module")
def sides() -> Iterator[tuple[Run, Run]]:
    folder = os.environ.get("REAL_SLURM")
    if not folder or os.geteuid() != 0:
        pytest.skip("needs root, and REAL_SLURM to name a folder with real_slurm.sh")
    real = RealSide(Path(folder))
    prefix = os.environ.get("SLURMBRIDGE_TEST_PREFIX") or "/opt/slurmbridge-test"
    if prefix == "/opt/slurmbridge-test":
        subprocess.run(["bash", str(ROOT / "integration/prefix.sh"), prefix], check=True)
    ours = OurSide(Path(prefix), real.file("/etc/slurm/slurm.conf"), real.file("/etc/slurm/gres.conf"))

    def of_real(user: str, script: str) -> Answer:
        words = [real.script, "exec", "-u", user, "--", "bash", "-c", script]
        done = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    def of_ours(user: str, script: str) -> Answer:
        done = ours.run(user, "bash", "-c", script)
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")

    try:
        yield of_real, of_ours
    finally:
        ours.close()


def script_of(step: Step, jobs: dict[str, str]) -> str:
    """The step as a bash script in an emptied folder."""
    words = ["rm -rf w; mkdir w; cd w"]
    words += [f"printf %s {shlex.quote(body)} >{name}; chmod +x {name}" for name, body in step.get("files", {}).items()]
    words += [f"export {name}={shlex.quote(value)}" for name, value in step.get("env", {}).items()]
    line = step["sh"] if "sh" in step else shlex.join(step.get("argv") or step["run"])
    text = re.sub(r"\{J:(\w+)\}", lambda match: jobs.get(match[1], "799999"), line)
    return "; ".join([*words, f"timeout {step.get('timeout', 60)} bash -c {shlex.quote(text)}"])


def play(run: Run, steps: list[Step]) -> dict[str, Answer]:
    """What one side says to every line."""
    jobs: dict[str, str] = {}
    answers: dict[str, Answer] = {}
    for step in steps:
        if "sleep" in step:
            time.sleep(step["sleep"])
        elif "wait_job" in step:
            job, states = jobs.get(step["wait_job"], "0"), "|".join(step["states"])
            run(
                "root",
                f"for _ in {{1..100}}; do scontrol show job {job} | grep -qE '{states}' && break; sleep 0.2; done",
            )
        else:
            answer = run(step.get("user", "alice"), script_of(step, jobs))
            found = re.search(r"(?:Submitted batch job |^)(\d+)", answer[1])
            if "keep" in step and found:
                jobs[step["keep"]] = found[1]
            if "id" in step:
                answers[step["id"]] = (answer[0], masked(answer[1], jobs, found), masked(answer[2], jobs, found))
    return answers


def masked(text: str, jobs: dict[str, str], found: re.Match[str] | None) -> str:
    for name, number in [*jobs.items(), *([("this", found[1])] if found else [])]:
        text = re.sub(rf"(?<!\d){number}(?!\d)", f"<{name}>", text)
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    return re.sub(r"[ \t]+", " ", text)


def test_lines_are_answered_alike(sides: tuple[Run, Run], tmp_path: Path) -> None:
    steps = list(numbered(step for part in os.environ.get("PARTS", "submit").split(",") for step in PARTS[part]()))
    theirs, mine = (play(run, steps) for run in sides)
    unequal = [name for name, answer in theirs.items() if answer != mine[name]]
    report = "".join(f"== {name}\n real {theirs[name]}\n ours {mine[name]}\n" for name in unequal)
    target = Path(os.environ.get("DIFFERENCES") or tmp_path / "lines.txt")
    head = f"{len(theirs) - len(unequal)} of {len(theirs)} equal"
    target.write_text(f"{head}\n{report}")
    print(head)
    assert len(unequal) <= len(theirs) * (1 - EQUAL_SHARE), f"{head}; see {target}"
