"""A bash pipeline of dependencies: each kind by what its jobs computed, and what becomes of those never satisfied."""

from __future__ import annotations

import time

import pytest
from login import Login

pytestmark = pytest.mark.slow

PIPELINE = r"""
set -eu
out=%x-%A_%a.out
first=$(sbatch --parsable --array=1-3 -J first --output=$out --wrap 'echo $((SLURM_ARRAY_TASK_ID * 10)) > first.$SLURM_ARRAY_TASK_ID; [ $SLURM_ARRAY_TASK_ID != 2 ]')
second=$(sbatch --parsable --array=1-3 -J second --output=$out --dependency=aftercorr:$first --kill-on-invalid-dep=yes --wrap 'echo $(($(cat first.$SLURM_ARRAY_TASK_ID) + 1)) > second.$SLURM_ARRAY_TASK_ID')
good=$(sbatch --parsable -J good --output=%x.out --wrap 'echo good > good')
bad=$(sbatch --parsable -J bad --output=%x.out --wrap 'exit 4')
afterok=$(sbatch --parsable -J afterok --output=%x.out --dependency=afterok:$good --wrap 'cat good > afterok')
afternot=$(sbatch --parsable -J afternot --output=%x.out --dependency=afternotok:$bad --wrap 'echo mended > afternot')
any=$(sbatch --parsable -J any --output=%x.out --dependency=afterany:$good:$bad,afterany:$first --wrap 'ls first.* | wc -l > any')
either=$(sbatch --parsable -J either --output=%x.out --dependency="afterok:$bad?afterok:$good" --wrap 'echo either > either')
never=$(sbatch --parsable -J never --output=%x.out --dependency=afterok:$bad --kill-on-invalid-dep=no --wrap 'echo never > never')
killed=$(sbatch --parsable -J killed --output=%x.out --dependency=afterok:$bad --kill-on-invalid-dep=yes --wrap 'echo never > killed')
one=$(sbatch --parsable -J alone --output=%x.out --dependency=singleton --wrap 'sleep 1; echo one >> alone')
two=$(sbatch --parsable -J alone --output=%x.out --dependency=singleton --wrap 'echo two >> alone')
begun=$(sbatch --parsable -J begun --output=%x.out --dependency=after:$one --wrap 'cat alone 2>/dev/null | wc -l > begun')
for name in first second good bad afterok afternot any either never killed one two begun; do echo $name ${!name}; done
"""


def test_a_pipeline_ends_as_its_dependencies_say(desk: Login) -> None:
    ids = dict(line.split() for line in desk.good("bash", "-c", PIPELINE).splitlines())
    waited = [job for name, job in ids.items() if name != "never"]
    states = desk.wait(*waited)

    def file(name: str) -> str:
        return (desk.folder / name).read_text().strip()

    first, second = ids["first"], ids["second"]
    assert [states[f"{first}_{task}"] for task in (1, 2, 3)] == ["COMPLETED 0:0", "FAILED 1:0", "COMPLETED 0:0"]
    assert [states[f"{second}_{task}"] for task in (1, 2, 3)] == ["COMPLETED 0:0", "CANCELLED 0:0", "COMPLETED 0:0"]
    assert (file("second.1"), file("second.3")) == ("11", "31")
    assert not (desk.folder / "second.2").exists()
    assert states[ids["bad"]] == "FAILED 4:0"
    assert states[ids["killed"]] == "CANCELLED 0:0"
    for name in ("good", "afterok", "afternot", "any", "either", "one", "two", "begun"):
        assert states[ids[name]] == "COMPLETED 0:0", name
    assert (file("afterok"), file("afternot"), file("any"), file("either")) == ("good", "mended", "3", "either")
    assert file("alone").split() == ["one", "two"]
    assert desk.good("squeue", "-h", "-j", ids["never"], "-o", "%T %r").strip() == "PENDING DependencyNeverSatisfied"
    desk.good("scancel", ids["never"])
    assert desk.wait(ids["never"])[ids["never"]] == "CANCELLED 0:0"
    assert not (desk.folder / "never").exists()
    assert not (desk.folder / "killed").exists()


def test_a_requeued_job_keeps_its_id_and_appends_to_its_log(desk: Login) -> None:
    job = desk.submit("-o", "log.txt", "--open-mode=append", "--requeue", "--wrap", "echo try $SLURM_RESTART_COUNT; [ -n \"$SLURM_RESTART_COUNT\" ] || sleep 300")  # fmt: skip
    end = time.monotonic() + 20
    while not (desk.folder / "log.txt").exists() or "try" not in (desk.folder / "log.txt").read_text():
        assert time.monotonic() < end
        time.sleep(0.1)
    desk.good("scontrol", "requeue", job)
    assert desk.wait(job) == {job: "COMPLETED 0:0"}
    assert [line for line in (desk.folder / "log.txt").read_text().splitlines() if line.startswith("try")] == ["try", "try 1"]  # fmt: skip
