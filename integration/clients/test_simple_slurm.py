"""simple_slurm: scripts on standard input with its odd blanks, dependencies, squeue as CSV, scancel."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

WORKLOAD = """
import datetime, json, time
from simple_slurm import Slurm

slurm = Slurm(array=range(3, 8), cpus_per_task=2, job_name="simple", output=f"{Slurm.JOB_ARRAY_MASTER_ID}_{Slurm.JOB_ARRAY_ID}.out",
              time=datetime.timedelta(minutes=5))
first = slurm.sbatch("echo $((SLURM_ARRAY_TASK_ID * SLURM_ARRAY_TASK_ID))")
after = Slurm("--parsable", dependency=dict(afterok=first), output="after.out", time=datetime.timedelta(minutes=5))
second = after.sbatch("cat " + str(first) + "_*.out | sort -n | paste -sd,")
gang = Slurm(nodes=2, ntasks=2, time=datetime.timedelta(minutes=5))
gang.srun("sh -c 'echo $SLURM_NODEID > node-$SLURM_PROCID.txt'")
sleeper = Slurm(job_name="sleeper").sbatch("sleep 300")
slurm.squeue.update_squeue()
seen = {str(key): row["NAME"] for key, row in slurm.squeue.jobs.items()}
slurm.scancel.cancel_job(sleeper)
print(json.dumps([first, second, sleeper, seen]))
"""


def test_an_array_feeds_a_dependent_job_and_squeue_is_read(desk: Login) -> None:
    first, second, sleeper, seen = desk.workload(WORKLOAD)
    states = desk.wait(str(first), str(second), str(sleeper))
    assert (desk.folder / "after.out").read_text().strip() == "9,16,25,36,49"
    assert sorted((desk.folder / f"node-{rank}.txt").read_text().strip() for rank in (0, 1)) == ["0", "1"]
    assert seen[str(sleeper)] == "sleeper"
    assert states[str(sleeper)].startswith("CANCELLED")
    assert {state for job, state in states.items() if job != str(sleeper)} == {"COMPLETED 0:0"}
