"""When the disk takes no more: submissions fail at once, everything else waits and is stored once there is room.

A file size limit of the process stands for the full disk: SQLite gets the same refusal from the kernel.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCENARIO = """
import resource, sys, threading, time
from slurmbridge.errors import StoreError
from slurmbridge.store.protocol import PutJobs
from slurmbridge.store.sqlite import SqliteStore
from tests.store.records import finished, insertion, job, outcome, put

store = SqliteStore(sys.argv[1])
put(store, insertion(job(1)))
_soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))

refused = outcome(store, [insertion(job(2))], droppable=True)
assert isinstance(refused, StoreError), refused
assert not store.healthy

ended = threading.Event()
answers = []
store.write([PutJobs(jobs=(finished(1),))], lambda error: (answers.append(error), ended.set()))
assert isinstance(outcome(store, [insertion(job(3))], droppable=True), StoreError)
assert not ended.wait(0.3) and not store.healthy
assert [one.job_id for one in store.load(0.0).jobs] == [1], "reads go on"

resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
assert ended.wait(120) and answers == [None]
assert store.healthy
put(store, insertion(job(4)))
loaded = store.load(0.0)
assert [(one.job_id, one.is_finished) for one in loaded.jobs] == [(1, True), (4, False)], loaded.jobs
assert loaded.usage[0].wall_s == 60.0
assert loaded.next_job_id == 5

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
assert isinstance(outcome(store, [insertion(job(5))], droppable=True), StoreError)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
deadline = time.monotonic() + 120
while not store.healthy and time.monotonic() < deadline:
    time.sleep(0.02)
assert store.healthy, "recovers with nothing to write"

resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
last = []
store.write([PutJobs(jobs=(finished(4),))], last.append)
store.close()
assert len(last) == 1 and isinstance(last[0], Exception)
"""


def test_a_full_disk_loses_nothing_and_stops_nothing(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", SCENARIO, str(tmp_path / "store.db")],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
