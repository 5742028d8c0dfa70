"""submitit: an array whose results come back pickled, a failure, a cancelled job, a preempted one that starts again."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

ARRAY = """
import json, submitit

def square(value):
    return value * value

executor = submitit.AutoExecutor(folder="logs/%j")
executor.update_parameters(timeout_min=10, mem_gb=0.25, cpus_per_task=1, slurm_array_parallelism=2, slurm_wckey="submitit")
jobs = executor.map_array(square, range(6))
print(json.dumps([job.result() for job in jobs]))
"""

GANG = """
import json, submitit

def rank():
    place = submitit.JobEnvironment()
    return [place.global_rank, place.local_rank, place.node, place.num_nodes, place.num_tasks, place.hostnames]

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(timeout_min=10, nodes=2, tasks_per_node=2, mem_gb=0.25)
print(json.dumps(executor.submit(rank).results()))
"""

FAILURE = """
import json, time, submitit

def fail():
    raise ValueError("of no use")

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(timeout_min=10)
job = executor.submit(fail)
error = job.exception()
end = time.monotonic() + 20
while job.state == "RUNNING" and time.monotonic() < end:
    time.sleep(0.3)
    job.watcher.update()
print(json.dumps([type(error).__name__, "of no use" in str(error), job.state]))
"""

CANCEL = """
import json, time, submitit

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(timeout_min=10)
job = executor.submit(time.sleep, 300)
while job.state != "RUNNING":
    time.sleep(0.3)
    job.watcher.update()
job.cancel(check=True)
end = time.monotonic() + 30
while not job.state.startswith("CANCELLED") and time.monotonic() < end:
    time.sleep(0.5)
    job.watcher.update()
print(json.dumps(job.state.split()[0]))
"""

REQUEUE = """
import json, os, time, submitit

class Counter:
    def __init__(self):
        self.count = 0

    def __call__(self):
        if self.count == 0:
            self.count = 1
            open("started", "w").close()
            time.sleep(120)
        return ["resumed", self.count, os.environ.get("SLURM_RESTART_COUNT")]

    def checkpoint(self):
        return submitit.helpers.DelayedSubmission(self)

executor = submitit.AutoExecutor(folder="logs")
executor.update_parameters(timeout_min=10)
job = executor.submit(Counter())
end = time.monotonic() + 60
while not os.path.exists("started") and time.monotonic() < end:
    time.sleep(0.2)
time.sleep(0.5)
job._interrupt()
print(json.dumps(job.result()))
"""


def test_an_array_gives_its_values_back(desk: Login) -> None:
    assert desk.workload(ARRAY) == [0, 1, 4, 9, 16, 25]


def test_every_rank_of_a_gang_knows_its_place(desk: Login) -> None:
    ranks = desk.workload(GANG)
    assert [row[:5] for row in ranks] == [[0, 0, 0, 2, 4], [1, 1, 0, 2, 4], [2, 0, 1, 2, 4], [3, 1, 1, 2, 4]]
    assert all(len(set(row[5])) == 2 for row in ranks)


def test_a_failure_comes_back_as_an_exception(desk: Login) -> None:
    assert desk.workload(FAILURE) == ["FailedJobError", True, "FAILED"]


def test_a_cancelled_job_is_seen_cancelled(desk: Login) -> None:
    assert desk.workload(CANCEL) == "CANCELLED"


def test_a_preempted_job_goes_on_from_its_checkpoint_under_its_id(desk: Login) -> None:
    assert desk.workload(REQUEUE, timeout=240) == ["resumed", 1, "1"]
