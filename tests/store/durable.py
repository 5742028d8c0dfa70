"""What every store on a disk must do beyond the contract. `make` opens what is there again."""

from __future__ import annotations

import threading
from pathlib import Path

from slurmbridge.store.protocol import PutJobs, Store
from slurmbridge.store.relational import RelationalStore
from tests.store.contract import StoreContract
from tests.store.records import finished, insertion, job, put


class DurableContract(StoreContract):
    def make(self, folder: Path) -> RelationalStore:
        raise NotImplementedError

    def test_everything_is_there_after_closing_and_opening_again(self, store: Store, tmp_path: Path) -> None:
        put(store, insertion(job(1)), insertion(finished(2)))
        before = store.load(0.0)
        store.close()
        again = self.make(tmp_path)
        assert again.load(0.0) == before
        put(again, PutJobs(jobs=(finished(2),)))
        assert again.load(0.0).usage[0].wall_s == 60.0, "charged once"
        again.close()

    def test_what_is_queued_when_the_store_closes_is_committed(self, tmp_path: Path) -> None:
        store = self.make(tmp_path)
        errors: list[Exception | None] = []
        for number in range(1, 200):
            store.write([insertion(job(number))], errors.append, droppable=True)
        store.close()
        assert errors == [None] * 199 and store.commits < 199

    def test_writers_and_readers_of_many_threads_do_not_disturb_each_other(self, store: Store) -> None:
        failures: list[Exception] = []

        def work(first: int) -> None:
            try:
                for number in range(first, first + 25):
                    put(store, insertion(job(number)))
                    store.load(0.0)
            except Exception as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(first,)) for first in (100, 200, 300, 400)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert len(store.load(0.0).jobs) == 100
