"""What every store must do. Subclasses give `make()`, and `again()` where a store outlives its process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmbridge.commands.effects import JobFilter
from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Account, Accounting, Transaction, UsageRow
from slurmbridge.model.cluster import Node, NodeConf, Partition
from slurmbridge.model.mail import Mail
from slurmbridge.model.plan import Reservation
from slurmbridge.model.states import JobFlag, JobState, NodeBase, NodeFlag
from slurmbridge.store import usage
from slurmbridge.store.protocol import (
    DropMail,
    Limits,
    Purge,
    PutAccounting,
    PutJobs,
    PutMail,
    PutMark,
    PutNodes,
    PutPartitions,
    PutReservations,
    PutSteps,
    PutUsage,
    Store,
)
from tests.store.history import HistoryContract
from tests.store.records import allocation, finished, insertion, job, outcome, put, replace, step


class StoreContract(HistoryContract):
    def make(self, folder: Path) -> Store:
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        store = self.make(tmp_path)
        yield store
        store.close()

    # submissions

    def test_a_new_store_is_empty_and_has_no_accounting(self, store: Store) -> None:
        loaded = store.load(0.0)
        assert (loaded.jobs, loaded.steps, loaded.accounting, loaded.next_job_id) == ((), (), None, 0)
        assert store.healthy

    def test_a_stored_job_comes_back_as_it_was(self, store: Store) -> None:
        array = job(7, array_job_id=7, tasks=((1, 9, 2),), array_count=5, flags=frozenset({JobFlag.REQUEUED}))
        put(store, insertion(array))
        assert store.load(0.0).jobs == (array,)

    def test_a_nonce_leads_to_the_first_job_of_its_submission_and_only_for_its_uid(self, store: Store) -> None:
        put(store, insertion(job(1), job(2), nonce="ab" * 16))
        assert store.nonces(10) == {(1001, "ab" * 16): 1}

    def test_the_latest_submissions_are_the_ones_whose_nonces_are_told(self, store: Store) -> None:
        for number in range(1, 6):
            put(store, insertion(job(number), nonce=f"{number:032x}"))
        assert store.nonces(2) == {(1001, f"{4:032x}"): 4, (1001, f"{5:032x}"): 5}

    def test_a_nonce_cannot_be_used_for_another_job(self, store: Store) -> None:
        put(store, insertion(job(1), nonce="ab" * 16))
        assert isinstance(outcome(store, [insertion(job(2), nonce="ab" * 16)]), StoreError)
        assert [one.job_id for one in store.load(0.0).jobs] == [1]

    def test_the_same_submission_twice_is_stored_once(self, store: Store) -> None:
        put(store, insertion(job(1)))
        put(store, insertion(job(1)))
        assert len(store.load(0.0).jobs) == 1

    def test_a_job_id_cannot_be_given_out_twice(self, store: Store) -> None:
        put(store, insertion(job(1), nonce="ab" * 16))
        assert isinstance(outcome(store, [insertion(job(1), nonce="cd" * 16)]), StoreError)
        assert store.nonces(10) == {(1001, "ab" * 16): 1}

    def test_the_id_high_water_mark_rises_with_jobs_and_marks_and_never_falls(self, store: Store) -> None:
        put(store, insertion(job(41)))
        assert store.load(0.0).next_job_id == 42
        put(store, PutJobs(jobs=(job(50),)))
        assert store.load(0.0).next_job_id == 51
        put(store, PutMark(name="next_job_id", value="10"))
        assert store.load(0.0).next_job_id == 51
        put(store, PutMark(name="next_job_id", value="700"))
        assert store.load(0.0).next_job_id == 700

    def test_blobs_are_kept_by_their_name(self, store: Store) -> None:
        put(store, insertion(job(1), blobs=(("aa", b"#!/bin/sh\n"), ("bb", b"\0\xff"))))
        put(store, insertion(job(2), blobs=(("aa", b"#!/bin/sh\n"),)))
        assert (store.blob("aa"), store.blob("bb"), store.blob("cc")) == (b"#!/bin/sh\n", b"\0\xff", None)

    def test_a_name_that_no_command_line_could_have_does_not_keep_a_job_from_being_stored(self, store: Store) -> None:
        odd = job(1, spec_changes={"name": "a\0b\u20ac%s?"})
        put(store, insertion(odd))
        assert store.load(0.0).jobs == (odd,)
        put(store, PutJobs(jobs=(finished(1, spec_changes={"name": odd.spec.name}),)))
        assert store.load(0.0).jobs[0].is_finished

    # changes

    def test_putting_a_run_twice_leaves_one(self, store: Store) -> None:
        put(store, insertion(job(1)))
        running = job(1, state=JobState.RUNNING, start_time=1001.0, allocation=allocation("n1", "n2"))
        put(store, PutJobs(jobs=(running,)))
        put(store, PutJobs(jobs=(running,)))
        assert store.load(0.0).jobs == (running,)

    def test_a_changed_specification_is_kept(self, store: Store) -> None:
        put(store, insertion(job(1)))
        put(store, PutJobs(jobs=(job(1, spec_changes={"name": "renamed"}),)))
        assert store.load(0.0).jobs[0].spec.name == "renamed"

    def test_loading_gives_the_last_run_of_live_and_recent_jobs(self, store: Store) -> None:
        first = finished(2, state=JobState.NODE_FAIL)
        put(store, insertion(finished(1, end=1060.0)), insertion(first), insertion(finished(3, end=2000.0)))
        put(store, PutJobs(jobs=(job(2, restarts=1),)))
        assert [(one.job_id, one.restarts) for one in store.load(1500.0).jobs] == [(2, 1), (3, 0)]

    def test_a_completing_job_is_loaded_however_old(self, store: Store) -> None:
        put(store, insertion(finished(1, flags=frozenset({JobFlag.COMPLETING}))))
        assert len(store.load(9e9).jobs) == 1

    def test_all_tasks_of_an_array_that_is_not_over_are_loaded_however_old(self, store: Store) -> None:
        tasks = [finished(1, array_job_id=3, array_task_id=0), job(3, array_job_id=3, tasks=((1, 5, 1),))]
        others = [finished(5, array_job_id=6, array_task_id=0), finished(6, array_job_id=6, array_task_id=1)]
        put(store, PutJobs(jobs=(*tasks, *others)))
        assert [each.job_id for each in store.load(5000.0).jobs] == [1, 3]

    def test_running_steps_of_loaded_jobs_are_loaded(self, store: Store) -> None:
        put(store, insertion(job(1, state=JobState.RUNNING)), insertion(finished(2)))
        put(store, PutSteps(steps=(step(1), step(1, 0), step(2))))
        put(store, PutSteps(steps=(step(1, 0, state=JobState.COMPLETED, end_time=1010.0),)))
        assert store.load(1500.0).steps == (step(1),)

    # forgetting

    def purge(self, store: Store, limits: Limits, most: int = 100) -> int:
        """Purge to the end; how many transactions it took."""
        for number in range(1000):
            found = store.expired(limits, most)
            if not found:
                return number
            put(store, found)
        raise AssertionError("purging does not end")

    def test_old_runs_go_with_their_steps_nonces_and_what_they_alone_used(self, store: Store) -> None:
        old = finished(1, end=1060.0, spec_changes={"script_sha": "aa", "env_sha": "bb"})
        new = finished(2, end=5000.0, spec_changes={"script_sha": "aa", "env_sha": "cc"})
        put(store, insertion(old, nonce="ab" * 16, blobs=(("aa", b"1"), ("bb", b"2"))))
        put(store, insertion(new, nonce="cd" * 16, blobs=(("cc", b"3"),)))
        put(store, PutSteps(steps=(step(1, state=JobState.COMPLETED), step(2, state=JobState.COMPLETED))))
        assert self.purge(store, Limits(jobs=2000.0)) == 1
        rows = store.history(JobFilter())
        assert [(row.job.job_id, len(row.steps)) for row in rows] == [(2, 1)]
        assert (store.blob("aa"), store.blob("bb"), store.blob("cc")) == (b"1", None, b"3")
        assert store.nonces(10) == {(1001, "cd" * 16): 2}

    def test_purging_is_done_in_small_transactions_oldest_first(self, store: Store) -> None:
        for number in range(1, 8):
            put(store, insertion(finished(number, end=1000.0 + number)))
        assert store.expired(Limits(jobs=2000.0), 3).runs == ((1, 0), (2, 0), (3, 0))
        assert self.purge(store, Limits(jobs=1006.0), 2) == 3
        assert [row.job.job_id for row in store.history(JobFilter())] == [6, 7]

    def test_ids_of_purged_jobs_are_never_given_out_again(self, store: Store) -> None:
        put(store, insertion(finished(41)))
        self.purge(store, Limits(jobs=2000.0))
        assert store.load(0.0).next_job_id == 42

    def test_what_lives_is_untouched_and_so_is_its_family(self, store: Store) -> None:
        put(store, insertion(job(1, state=JobState.RUNNING, start_time=1.0)))
        put(store, insertion(finished(10, array_job_id=10)), insertion(job(11, array_job_id=10)))
        put(store, insertion(finished(20, het_job_id=20), job(21, het_job_id=20)))
        put(store, insertion(finished(30, state=JobState.NODE_FAIL)), PutJobs(jobs=(job(30, restarts=1),)))
        put(store, insertion(finished(40, flags=frozenset({JobFlag.COMPLETING}))))
        assert self.purge(store, Limits(jobs=9e9)) == 0

    def test_a_run_that_was_put_back_to_life_meanwhile_stays(self, store: Store) -> None:
        put(store, insertion(finished(1)))
        found = store.expired(Limits(jobs=2000.0), 10)
        put(store, PutJobs(jobs=(job(1),)))
        put(store, found)
        assert [one.job_id for one in store.load(0.0).jobs] == [1]

    def test_a_script_that_was_submitted_again_meanwhile_stays(self, store: Store) -> None:
        put(store, insertion(finished(1, spec_changes={"script_sha": "aa"}), blobs=(("aa", b"1"),)))
        found = store.expired(Limits(jobs=2000.0), 10)
        put(store, insertion(job(2, spec_changes={"script_sha": "aa"})))
        put(store, found)
        assert store.blob("aa") == b"1"

    def test_the_usage_of_purged_jobs_stays_charged(self, store: Store) -> None:
        put(store, insertion(finished(1)))
        self.purge(store, Limits(jobs=2000.0))
        assert store.load(0.0).usage[0].wall_s == 60.0
        put(store, Purge(usage=(5,)))
        assert store.load(0.0).usage == ()

    def test_steps_scripts_and_environments_may_go_before_their_job(self, store: Store) -> None:
        for number, end in ((1, 1060.0), (2, 5000.0)):
            names = {"script_sha": f"a{number}", "env_sha": f"e{number}"}
            blobs = tuple((name, b"x") for name in names.values())
            put(store, insertion(finished(number, end=end, spec_changes=names), blobs=blobs))
            put(store, PutSteps(steps=(step(number, state=JobState.COMPLETED),)))
        self.purge(store, Limits(steps=2000.0))
        assert [len(row.steps) for row in store.history(JobFilter())] == [0, 1]
        self.purge(store, Limits(scripts=2000.0))
        assert [store.blob(name) for name in ("a1", "e1", "a2", "e2")] == [None, b"x", b"x", b"x"]
        self.purge(store, Limits(environments=2000.0))
        assert [store.blob(name) for name in ("a1", "e1", "a2", "e2")] == [None, None, b"x", b"x"]

    def test_old_transactions_go(self, store: Store) -> None:
        changes = tuple(Transaction(time=moment, action="add", actor="root") for moment in (1.0, 2.0, 3.0))
        put(store, PutAccounting(accounting=Accounting(), transactions=changes))
        self.purge(store, Limits(transactions=2.5))
        assert [one.time for one in store.transactions(None, None)] == [3.0]

    # mail

    def test_messages_wait_until_they_are_dropped(self, store: Store) -> None:
        first, second = (Mail(mail_id=number, job_id=1, uid=1001, to="alice", subject="s") for number in (1, 2))
        put(store, PutMail(mails=(first, second)))
        assert store.load(0.0).mails == (first, second)
        put(store, DropMail(mail_ids=(1,)))
        assert store.load(0.0).mails == (second,)

    # usage

    def test_a_finished_run_is_charged_once(self, store: Store) -> None:
        put(store, insertion(job(1)))
        for _ in range(3):
            put(store, PutJobs(jobs=(finished(1),)))
        (row,) = store.load(0.0).usage
        assert row == UsageRow(assoc_id=5, as_of=1060.0, raw=(("cpu", 120.0), ("billing", 120.0)), wall_s=60.0)

    def test_a_run_is_charged_when_it_has_left_its_nodes(self, store: Store) -> None:
        put(store, insertion(job(1)))
        put(store, PutJobs(jobs=(finished(1, flags=frozenset({JobFlag.COMPLETING})),)))
        assert store.load(0.0).usage == ()
        put(store, PutJobs(jobs=(finished(1),)))
        assert len(store.load(0.0).usage) == 1

    def test_each_restart_is_charged(self, store: Store) -> None:
        put(store, insertion(job(1)))
        put(store, PutJobs(jobs=(finished(1), finished(1, restarts=1))))
        assert dict(store.load(0.0).usage[0].raw)["cpu"] == pytest.approx(240.0)

    def test_older_use_fades_by_half_in_a_half_life(self, store: Store) -> None:
        later = 1060.0 + usage.DEFAULT_HALF_LIFE
        put(store, insertion(finished(1)))
        put(store, insertion(finished(2, start=later - 60.0, end=later)))
        assert dict(store.load(0.0).usage[0].raw)["cpu"] == pytest.approx(60.0 + 120.0)

    def test_usage_can_be_set(self, store: Store) -> None:
        put(store, insertion(finished(1)))
        put(store, PutUsage(rows=(UsageRow(assoc_id=5, as_of=2000.0),)))
        assert store.load(0.0).usage == (UsageRow(assoc_id=5, as_of=2000.0),)

    def test_nothing_is_charged_without_an_association(self, store: Store) -> None:
        put(store, insertion(finished(1, spec_changes={"assoc_id": 0})))
        assert store.load(0.0).usage == ()

    # the rest

    def test_nodes_are_kept_by_name_and_come_in_configuration_order(self, store: Store) -> None:
        first, second = (Node(conf=NodeConf(name=name, index=at)) for at, name in enumerate(("z1", "a1")))
        put(store, PutNodes(nodes=(second, first)))
        down = replace(first, base=NodeBase.DOWN, flags=frozenset({NodeFlag.DRAIN}), reason="disk")
        put(store, PutNodes(nodes=(down,)))
        assert store.load(0.0).nodes == (down, second)

    def test_partitions_and_reservations_are_replaced_whole(self, store: Store) -> None:
        one, two = Partition(name="one"), Partition(name="two")
        put(store, PutPartitions(partitions=(two, one)))
        assert store.load(0.0).partitions == (two, one)
        put(store, PutPartitions(partitions=()))
        maintenance = Reservation(name="m", start_time=1.0, end_time=2.0)
        put(store, PutReservations(reservations=(maintenance,)))
        loaded = store.load(0.0)
        assert (loaded.partitions, loaded.reservations) == ((), (maintenance,))

    def test_accounting_and_its_transactions_are_kept(self, store: Store) -> None:
        accounting = Accounting(accounts=(Account(name="root"),), revision=3)
        added = Transaction(time=10.0, action="Add Accounts", actor="root", where="x", info="y")
        put(store, PutAccounting(accounting=accounting, transactions=(added, replace(added, time=20.0))))
        assert store.load(0.0).accounting == accounting
        assert [one.time for one in store.transactions(None, None)] == [10.0, 20.0]
        assert store.transactions(10.0, 20.0) == (added,)

    def test_a_nodes_trouble_is_an_event_until_it_changes(self, store: Store) -> None:
        well = Node(conf=NodeConf(name="n1"))
        drained = replace(well, flags=frozenset({NodeFlag.DRAIN}), reason="disk", reason_uid=7, reason_time=50.0)
        put(store, PutNodes(nodes=(drained,)))
        put(store, PutNodes(nodes=(replace(drained, comment="x"),)))
        (event,) = store.events(None, None)
        assert (event.node, event.start, event.end, event.state, event.uid) == ("n1", 50.0, None, "DRAIN", 7)
        put(store, PutNodes(nodes=(replace(well, base=NodeBase.DOWN, reason="gone", reason_time=60.0),)))
        put(store, PutNodes(nodes=(well,)))
        assert [(one.state, one.reason, one.end is None) for one in store.events(None, None)] == [
            ("DRAIN", "disk", False), ("DOWN", "gone", False),
        ]  # fmt: skip
        assert store.events(None, 55.0) == store.events(None, None)[:1]
        assert store.events(1e12, None) == ()

    def test_marks_survive(self, store: Store) -> None:
        put(store, PutMark(name="boot", value="abc"))
        assert store.load(0.0).marks == (("boot", "abc"),)

    def test_ops_of_one_write_are_stored_together_or_not_at_all(self, store: Store) -> None:
        put(store, insertion(job(1), nonce="ab" * 16))
        ops = [insertion(job(2), nonce="cd" * 16), insertion(job(1), nonce="ef" * 16)]
        assert isinstance(outcome(store, ops), StoreError)
        assert [one.job_id for one in store.load(0.0).jobs] == [1]

    # the end

    def test_a_closed_store_refuses_and_closing_twice_is_harmless(self, store: Store) -> None:
        store.close()
        store.close()
        assert isinstance(outcome(store, [insertion(job(1))]), StoreError)

    def test_a_job_that_cannot_be_encoded_fails_alone(self, store: Store) -> None:
        bad = outcome(store, [insertion(job(1, spec_changes={"name": "\udcff"}))])
        put(store, insertion(job(2)))
        assert bad is None or isinstance(bad, StoreError)
        assert 2 in [one.job_id for one in store.load(0.0).jobs]
