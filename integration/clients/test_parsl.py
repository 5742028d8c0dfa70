"""Parsl: blocks of two nodes that run Python and bash apps, with retries."""

from __future__ import annotations

import pytest
from login import Login

pytestmark = pytest.mark.slow

WORKLOAD = """
import json, os, parsl
from parsl import bash_app, python_app
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.launchers import SrunLauncher
from parsl.providers import SlurmProvider

if __name__ == "__main__":
    provider = SlurmProvider(
        partition="debug", nodes_per_block=2, cores_per_node=2, init_blocks=1, max_blocks=1, walltime="00:10:00",
        exclusive=EXCLUSIVE, launcher=SrunLauncher(), cmd_timeout=30,
        worker_init="export PATH=" + os.environ["PATH"],
    )
    executor = HighThroughputExecutor(
        label="blocks", address="127.0.0.1", max_workers_per_node=2, provider=provider, encrypted=False,
        heartbeat_period=2, heartbeat_threshold=20,
    )
    with parsl.load(Config(executors=[executor], retries=2, strategy="none", run_dir="runinfo")):

        @python_app
        def square(value):
            return value * value

        @python_app
        def place():
            import os, time
            time.sleep(1)
            return os.environ["SLURM_NODEID"]

        @python_app
        def shaky(path):
            import os
            if not os.path.exists(path):
                open(path, "w").close()
                raise RuntimeError("first try")
            return "second try"

        @bash_app
        def hello(stdout):
            return "echo from $SLURM_JOB_NUM_NODES nodes"

        squares = [future.result(60) for future in [square(value) for value in range(8)]]
        places = sorted({future.result(60) for future in [place() for _ in range(8)]})
        text = os.path.abspath("hello.txt")
        hello(stdout=text).result(60)
        result = [squares, places, shaky(os.path.abspath("tried")).result(60), open(text).read().strip()]
    print(json.dumps(result))
"""


@pytest.mark.parametrize("exclusive", ["False", "True"])
def test_apps_compute_on_both_nodes_of_a_block(desk: Login, exclusive: str) -> None:
    squares, places, shaky, text = desk.workload(WORKLOAD.replace("EXCLUSIVE", exclusive))
    assert squares == [0, 1, 4, 9, 16, 25, 36, 49]
    assert places == ["0", "1"]
    assert shaky == "second try"
    assert text == "from 2 nodes"
    assert desk.run("squeue", "-h", "-u", desk.user, "-o", "%i").stdout.strip() == ""
