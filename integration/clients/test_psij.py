"""PSI/J: a job with its input, a gang by its srun launcher, exit codes and cancelling."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

WORKLOAD = """
import datetime, json, os, pathlib
from psij import Job, JobAttributes, JobExecutor, JobSpec, JobState, JobStatus, ResourceSpecV1

executor = JobExecutor.get_instance("slurm")
executor.config.queue_polling_interval = 2
executor.config.initial_queue_polling_delay = 1
here = pathlib.Path.cwd()
attributes = JobAttributes(duration=datetime.timedelta(minutes=5), queue_name="debug")

def run(name, argv, launcher="single", stdin=None, **resources):
    spec = JobSpec(executable=argv[0], arguments=argv[1:], directory=here, stdout_path=here / (name + ".out"),
                   stderr_path=here / (name + ".err"), stdin_path=stdin, attributes=attributes, launcher=launcher,
                   resources=ResourceSpecV1(**resources) if resources else None)
    job = Job(spec)
    executor.submit(job)
    return job

(here / "in.txt").write_text("some words\\n")
cat = run("cat", ["/bin/cat"], stdin=here / "in.txt")
gang = run("gang", ["/bin/sh", "-c", "echo $SLURM_PROCID on $SLURM_NODEID"], launcher="srun",
           node_count=2, processes_per_node=2, cpu_cores_per_process=1)
fail = run("fail", ["/bin/sh", "-c", "exit 5"])
long = run("long", ["/bin/sleep", "300"])
long.wait(timeout=datetime.timedelta(seconds=60), target_states=[JobState.ACTIVE])
long.cancel()
out = {}
for name, job in dict(cat=cat, gang=gang, fail=fail, long=long).items():
    status = job.wait(timeout=datetime.timedelta(seconds=90))
    out[name] = [str(status.state) if status else None, status.exit_code if status else None]
out["texts"] = [(here / "cat.out").read_text(), sorted((here / "gang.out").read_text().splitlines())]
print(json.dumps(out), flush=True)
os._exit(0)
"""


def test_jobs_end_in_the_states_that_they_earned(desk: Login) -> None:
    out = desk.workload(WORKLOAD, timeout=240)
    assert out["cat"] == ["COMPLETED", 0]
    assert out["gang"] == ["COMPLETED", 0]
    assert out["fail"] == ["FAILED", 5]
    assert out["long"][0] == "CANCELED"
    assert out["texts"] == ["some words\n", ["0 on 0", "1 on 0", "2 on 1", "3 on 1"]]
