"""Sweeps by xargs and loops: sbatch --wait three at a time, srun as a filter, exact steps four at a time."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow


def test_waiting_submissions_pass_exit_codes_on(desk: Login) -> None:
    line = "seq 1 6 | xargs -P3 -I@ sbatch --quiet --wait -o sweep-@.out --wrap 'echo $((@ * @))'"
    desk.good("bash", "-c", line)
    assert [(desk.folder / f"sweep-{n}.out").read_text().strip() for n in range(1, 7)] == ["1", "4", "9", "16", "25", "36"]  # fmt: skip
    answer = desk.run("bash", "-c", "echo 5 | xargs -I@ sbatch --quiet --wait --wrap 'exit @'; echo $?")
    assert answer.stdout.strip() == "123"
    assert desk.run("sbatch", "--quiet", "--wait", "--wrap", "exit 5").returncode == 5


def test_srun_filters_standard_input(desk: Login) -> None:
    assert desk.good("srun", "--quiet", "-n1", "tr", "a-z", "A-Z", stdin="some\nwords\n") == "SOME\nWORDS\n"
    large = "x" * 99 + "\n"
    assert desk.good("srun", "--quiet", "-n1", "md5sum", stdin=large * 5000).split() == desk.good("md5sum", stdin=large * 5000).split()  # fmt: skip
    failed = desk.run("srun", "--quiet", "-n1", "sh", "-c", "echo to the user >&2; exit 9")
    assert failed.returncode == 9
    assert "to the user" in failed.stderr


STEPS = """#!/bin/bash
#SBATCH --nodes=2 --ntasks=4 --cpus-per-task=1 --time=5
#SBATCH -o steps.out
for n in $(seq 1 12); do
  while [ $(jobs -r | wc -l) -ge 4 ]; do wait -n; done
  srun --exact --nodes=1 --ntasks=1 --mem-per-cpu=100 bash -c "sleep 0.3; echo $n \\$SLURM_JOB_ID \\$(nproc)" > step-$n.txt &
done
wait
"""


def test_exact_steps_share_the_allocation_four_at_a_time(desk: Login) -> None:
    desk.write("steps.sh", STEPS)
    answer = desk.run("sbatch", "--parsable", "--wait", "steps.sh", timeout=120)
    job = answer.stdout.strip()
    assert answer.returncode == 0, (desk.folder / "steps.out").read_text()
    assert [(desk.folder / f"step-{n}.txt").read_text().split()[:2] for n in range(1, 13)] == [
        [str(n), job] for n in range(1, 13)
    ]
    rows = desk.good("sacct", "-n", "-P", "-j", job, "-o", "JobID,State,NNodes").splitlines()
    steps = [row.split("|") for row in rows if row.startswith(f"{job}.") and "." in row and row.split("|")[0].split(".")[1].isdigit()]  # fmt: skip
    assert len(steps) == 12
    assert {tuple(row[1:]) for row in steps} == {("COMPLETED", "1")}
