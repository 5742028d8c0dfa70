"""Toil: a small tree of jobs on its Slurm batch system, and a job that fails once."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

WORKLOAD = """
import json, os, sys
from toil.common import Toil
from toil.job import Job

def square(job, value):
    return value * value

def total(job, values):
    return sum(values)

def shaky(job, mark):
    if not os.path.exists(mark):
        open(mark, "w").close()
        raise RuntimeError("first try")
    return "second try"

def root(job, mark):
    small = dict(cores=2, memory="200M", disk="10M")
    squares = [job.addChildJobFn(square, value, **small).rv() for value in range(4)]
    again = job.addChildJobFn(shaky, mark, **small).rv()
    return job.addFollowOnJobFn(total, squares, **small).rv(), again

if __name__ == "__main__":
    options = Job.Runner.getDefaultOptions("./jobstore")
    options.batchSystem, options.retryCount, options.logLevel = "slurm", 1, "WARNING"
    options.batchLogsDir, options.workDir = os.path.abspath("logs"), os.path.abspath("work")
    options.statePollingWait, options.disableProgress = 1, True
    os.makedirs("logs"), os.makedirs("work")
    with Toil(options) as toil:
        result = toil.start(Job.wrapJobFn(root, os.path.abspath("tried"), cores=1, memory="200M", disk="10M"))
    print(json.dumps(result))
"""


def test_a_tree_of_jobs_computes_its_total_in_spite_of_a_failure(desk: Login) -> None:
    assert desk.workload(WORKLOAD, timeout=400) == [14, "second try"]
