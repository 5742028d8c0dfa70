"""sbatch answers and accepts as a real Slurm does.

`recorded.jsonl` holds answers of Slurm 26.05.5 (Debian's packages) on the cluster of `submit_site`, one a line. A row with
`wrap` was run as `sbatch -H WRAP... --wrap hostname`, one with `argv` as it stands, in an emptied folder `/w` with `files`
in it. `effect`: what `scontrol -o -d show job` said that differs from `sbatch -H --wrap hostname`, one object per
component; null: field absent. `rc` 0, empty `stderr` and `Submitted batch job JOB` are left out.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.submit.submit_player import JOB_ID, play
from tests.submit.submit_shown import shown
from tests.submit.submit_site import SubmitSite

ROWS = [json.loads(line) for line in Path(__file__).with_name("recorded.jsonl").read_text().splitlines()]
SITE = SubmitSite()
HELD = ("sbatch", "-H", "--wrap", "hostname")


def fields(argv: list[str] | tuple[str, ...], row: dict[str, Any]) -> tuple[int, str, str, list[dict[str, str]]]:
    played = play(argv, SITE, env=row.get("env"), files=row.get("files"), stdin=row.get("stdin", ""))
    number = re.compile(rf"^(Submitted batch job )?{JOB_ID}\b")
    stdout = number.sub(lambda match: (match[1] or "") + "JOB", played.stdout)
    is_het = len(played.jobs) > 1
    jobs = [shown(job, SITE.config, at if is_het else None) for at, job in enumerate(played.jobs)]
    return played.code, stdout, played.stderr, jobs


BASELINE = fields(HELD, {})[3][0]


def command_line(row: dict[str, Any]) -> list[str]:
    return row.get("argv") or ["sbatch", "-H", *row["wrap"], "--wrap", "hostname"]


def name(row: dict[str, Any]) -> str:
    words = row.get("wrap") or row.get("argv") or []
    extra = [line for line in row.get("files", {}).get("job.sh", "").splitlines() if line.startswith("#")][1:]
    return " ".join([*words, *extra, *(f"{key}={value}" for key, value in row.get("env", {}).items())])[:80]


def differences(job: dict[str, str], component: int) -> dict[str, str | None]:
    found = {key: job.get(key) for key in {*job, *BASELINE} if job.get(key) != BASELINE.get(key)}
    if component and found.get("StdOut") == "/w/slurm-JOB.out":
        del found["StdOut"]
    return found


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_an_answer_is_slurms_own(row: dict[str, Any]) -> None:
    code, stdout, stderr, jobs = fields(command_line(row), row)
    expected = "" if row.get("rc") else "Submitted batch job JOB\n"
    assert (code, stdout, stderr) == (row.get("rc", 0), row.get("stdout", expected), row.get("stderr", ""))
    effect = [differences(job, component) for component, job in enumerate(jobs)]
    assert [each for each in effect if each] == [each for each in row.get("effect", []) if each]
