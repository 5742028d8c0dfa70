"""Backups that are made while a store is written to, whatever the store."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from slurmbridge.store.backup import Copy
from slurmbridge.store.protocol import Store
from tests.store.records import insertion, job, put


def while_written(store: Store, save: Callable[[Path], Copy], targets: list[Path]) -> Copy:
    """The last of the copies. Each holds what was committed before it, and of no submission a half. Closes the store."""
    stop, stored = threading.Event(), [0]

    def submit() -> None:
        number = 1
        while not stop.is_set():
            put(store, insertion(job(number), job(number + 1), blobs=((f"{number:064x}", bytes(5000)),)))
            stored[0] = number + 1
            number += 2

    writer = threading.Thread(target=submit)
    writer.start()
    try:
        while stored[0] < 40:
            time.sleep(0.002)
        for target in targets:
            before = stored[0]
            found = save(target)
            assert found.runs >= before and found.runs % 2 == 0 and found.next_job_id == found.runs + 1
    finally:
        stop.set()
        writer.join()
    store.close()
    return found
