"""dask-jobqueue: workers as jobs that call back over TCP, scaled up and down."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

WORKLOAD = """
import json, subprocess, time
from dask_jobqueue import SLURMCluster
from distributed import Client

if __name__ == "__main__":
    with SLURMCluster(
        cores=2, memory="500MB", walltime="00:10:00", processes=1, job_name="dask-test", log_directory="logs",
        interface=None, scheduler_options={"dashboard_address": None, "host": "127.0.0.1"},
        worker_extra_args=["--no-dashboard"],
    ) as cluster, Client(cluster) as client:
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=60)
        total = client.submit(sum, client.map(lambda value: value * value, range(50))).result(timeout=60)
        def host():
            import os
            return os.environ["SLURM_CPUS_PER_TASK"]
        cpus = sorted(client.run(host).values())
        jobs = subprocess.run(["squeue", "-h", "-n", "dask-test", "-o", "%T"], capture_output=True, text=True)
        running = jobs.stdout.split()
    end, left = time.monotonic() + 30, ["unknown"]
    while left and time.monotonic() < end:
        time.sleep(0.5)
        answer = subprocess.run(["squeue", "-h", "-n", "dask-test", "-o", "%T"], capture_output=True, text=True)
        left = answer.stdout.split()
    print(json.dumps([total, cpus, running, left]))
"""


def test_workers_compute_and_are_cancelled_with_the_cluster(desk: Login) -> None:
    total, cpus, running, left = desk.workload(WORKLOAD)
    assert total == sum(value * value for value in range(50))
    assert cpus == ["2", "2"]
    assert running == ["RUNNING", "RUNNING"]
    assert left == []
