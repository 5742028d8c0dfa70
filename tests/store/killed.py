"""A process that writes to a store until it is killed, and what must be there afterwards whatever the store."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time

import pytest

from slurmbridge.store.protocol import Store

WRITER = """
import os, sys

place = sys.argv[1]
if "://" in place:
    from slurmbridge.store.postgresql import PostgresqlStore as Opened
else:
    from slurmbridge.store.sqlite import SqliteStore as Opened
from slurmbridge.store.protocol import PutJobs
from tests.store.records import finished, insertion, job

store = Opened(place)
number = store.load(0.0).next_job_id or 1
while True:
    number += 1
    def acknowledge(error, number=number):
        if error is None:
            os.write(1, b"%d\\n" % number)
    store.write([insertion(job(number))], lambda error: None)
    store.write([PutJobs(jobs=(finished(number),))], acknowledge)
    while number % 50 == 0 and len(store._writer._queue) > 500:
        pass
"""


def writing(place: str) -> subprocess.Popen[bytes]:
    """`place`: a file of SQLite or the URL of a server. It prints the number of each job that was acknowledged."""
    return subprocess.Popen([sys.executable, "-c", WRITER, place], stdout=subprocess.PIPE)


def killed(child: subprocess.Popen[bytes], seed: int) -> set[int]:
    """The jobs that it acknowledged before it was killed, some moment after the first."""
    assert child.stdout is not None
    first = child.stdout.readline()
    time.sleep(random.Random(seed).uniform(0.02, 0.25))
    child.send_signal(signal.SIGKILL)
    written = first + child.stdout.read()
    child.wait()
    child.stdout.close()
    return {int(line) for line in written.split(b"\n")[:-1]}


def check(store: Store, acknowledged: set[int]) -> None:
    """All that was acknowledged is there, and each run is charged once. Closes the store."""
    loaded = store.load(0.0)
    store.close()
    assert acknowledged
    assert acknowledged <= {job.job_id for job in loaded.jobs if job.is_finished}
    assert loaded.next_job_id == max(job.job_id for job in loaded.jobs) + 1
    charged = sum(row.wall_s for row in loaded.usage)
    assert charged == pytest.approx(60.0 * sum(job.is_finished for job in loaded.jobs))
