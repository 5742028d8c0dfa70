"""A process that is killed at any moment has lost nothing that it acknowledged."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from slurmbridge.store.sqlite import SqliteStore

WRITER = """
import os, sys
from slurmbridge.store.protocol import PutJobs
from slurmbridge.store.sqlite import SqliteStore
from tests.store.records import finished, insertion, job

store = SqliteStore(sys.argv[1])
number = store.load(0.0).next_job_id or 1
while True:
    number += 1
    def acknowledge(error, number=number):
        assert error is None, error
        os.write(1, b"%d\\n" % number)
    store.write([insertion(job(number))], lambda error: None)
    store.write([PutJobs(jobs=(finished(number),))], acknowledge)
"""


@pytest.mark.parametrize("seed", range(3))
def test_all_that_was_acknowledged_is_there_after_a_kill(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "store.db"
    pause = random.Random(seed).uniform(0.02, 0.25)
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(pause)
    child.send_signal(signal.SIGKILL)
    written = first + child.stdout.read()
    child.wait()
    child.stdout.close()
    acknowledged = {int(line) for line in written.split(b"\n")[:-1]}

    store = SqliteStore(path)
    loaded = store.load(0.0)
    store.close()
    assert acknowledged
    assert acknowledged <= {job.job_id for job in loaded.jobs if job.is_finished}
    assert loaded.next_job_id == max(job.job_id for job in loaded.jobs) + 1
    charged = sum(row.wall_s for row in loaded.usage)
    assert charged == pytest.approx(60.0 * sum(job.is_finished for job in loaded.jobs))
