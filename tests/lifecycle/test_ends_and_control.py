"""How runs end, are requeued, held and cancelled."""

from __future__ import annotations

import itertools

import pytest

from slurmbridge.errors import SlurmErrno
from slurmbridge.lifecycle import arrays, control, starts, table
from slurmbridge.lifecycle.ends import Death, settle
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobFlag, JobState, Reason
from tests.lifecycle.build import ended, job, running, spec

NOW = 500.0


@pytest.mark.parametrize(
    ("death", "status", "state", "reason", "code"),
    [
        (Death.EXIT, 0, JobState.COMPLETED, "None", 0),
        (Death.EXIT, 7 << 8, JobState.FAILED, "NonZeroExitCode", 7 << 8),
        (Death.EXIT, 9, JobState.FAILED, "RaisedSignal:9(Killed)", 9),
        (Death.EXIT, 9 | 0x80, JobState.FAILED, "RaisedSignal:9(Killed)", 9),
        (Death.TIME_LIMIT, 15, JobState.TIMEOUT, "TimeLimit", 0),
        (Death.CANCEL, 0, JobState.CANCELLED, "None", 15),
        (Death.OUT_OF_MEMORY, 9, JobState.OUT_OF_MEMORY, "OutOfMemory", 9),
    ],
)
def test_a_run_ends_as_slurm_records_it(death: Death, status: int, state: JobState, reason: str, code: int) -> None:
    settled = settle(running(), death, status, NOW)
    assert (settled.ended.state, settled.ended.reason, settled.ended.exit_code) == (state, reason, code)
    assert settled.again is None
    assert settled.ended.end_time == NOW


def test_a_cancelled_run_keeps_the_moment_of_the_cancellation() -> None:
    changed = control.cancel(running(), uid=1001, now=NOW)
    assert isinstance(changed, control.Changed)
    dying = changed.jobs[0]
    assert JobFlag.COMPLETING in dying.flags
    assert dying.state is JobState.CANCELLED
    final = settle(dying, Death.CANCEL, 15, NOW + 30).ended
    assert (final.end_time, final.flags, final.cancelled_by) == (NOW, frozenset(), 1001)


@pytest.mark.parametrize("death", [Death.REQUEUE, Death.NODE_FAIL, Death.PREEMPT])
def test_a_requeued_job_keeps_its_id_and_counts_its_restarts(death: Death) -> None:
    settled = settle(running(restarts=2), death, 15, NOW)
    assert settled.again is not None
    assert (settled.again.job_id, settled.again.restarts, settled.again.state) == (10, 3, JobState.PENDING)
    assert settled.again.allocation is None
    assert settled.ended.restarts == 2
    assert settled.ended.state.is_finished


def test_a_node_failure_ends_a_job_that_may_not_be_requeued() -> None:
    settled = settle(running(of=spec(requeue=False)), Death.NODE_FAIL, 0, NOW)
    assert settled.ended.state is JobState.NODE_FAIL
    assert settled.again is None


def test_a_failed_launch_of_a_job_that_may_not_be_requeued_cancels_it_as_slurmctld_does() -> None:
    settled = settle(running(of=spec(requeue=False)), Death.LAUNCH, 0, NOW)
    ended = settled.ended
    assert (settled.again, ended.state, ended.reason) == (None, JobState.CANCELLED, Reason.LAUNCH_FAILURE)
    assert (ended.exit_code, ended.cancelled_by) == (0, 0)


def test_a_failed_launch_is_requeued_held_and_its_user_may_release_it() -> None:
    again = settle(running(), Death.LAUNCH, 0, NOW).again
    assert again is not None
    assert (again.priority, again.held_by) == (0, "user")
    assert (again.reason, again.reason_text) == (Reason.LAUNCH_FAILURE, "launch failed requeued held")
    released = control.release(again, operator=False, now=NOW)
    assert isinstance(released, control.Changed) and released.jobs[0].reason_text == ""


def test_an_allocation_that_its_node_did_not_take_is_not_begun_again_without_its_caller() -> None:
    settled = settle(running(of=spec(is_batch=False)), Death.REQUEUE, 0, NOW)
    assert settled.again is None
    assert (settled.ended.state, settled.ended.reason) == (JobState.BOOT_FAIL, Reason.LAUNCH_FAILURE)


def test_hold_and_release() -> None:
    held = control.hold(job(), by="user", now=NOW)
    assert isinstance(held, control.Changed)
    assert (held.jobs[0].priority, held.jobs[0].reason) == (0, Reason.HELD_USER)
    released = control.release(held.jobs[0], operator=False, now=NOW)
    assert isinstance(released, control.Changed)
    assert (released.jobs[0].priority, released.jobs[0].eligible_time) == (1, NOW)


def test_the_hold_of_a_running_job_counts_when_it_is_requeued() -> None:
    held = control.hold(running(), by="user", now=NOW)
    assert isinstance(held, control.Changed)
    record = held.jobs[0]
    assert (record.state, record.priority, record.reason) == (JobState.RUNNING, 0, Reason.HELD_USER)
    again = settle(record, Death.REQUEUE, 0, NOW, None).again
    assert again is not None
    assert (again.priority, again.held_by, again.reason) == (0, "user", Reason.HELD_USER)
    released = control.release(record, operator=False, now=NOW)
    assert isinstance(released, control.Changed)
    assert (released.jobs[0].state, released.jobs[0].held_by) == (JobState.RUNNING, "")


def test_sigkill_to_the_script_of_a_job_that_waits_cancels_it() -> None:
    answer = control.send(job(), signal=9, scope="batch", uid=1, now=NOW)
    assert isinstance(answer, control.Changed)
    assert answer.jobs[0].state is JobState.CANCELLED


def test_an_administrators_hold_is_not_the_users_to_release() -> None:
    held = control.hold(job(), by="admin", now=NOW)
    assert isinstance(held, control.Changed)
    assert control.release(held.jobs[0], operator=False, now=NOW) is SlurmErrno.ACCESS_DENIED
    again = control.hold(held.jobs[0], by="user", now=NOW)
    assert isinstance(again, control.Changed)
    assert again.jobs[0].held_by == "admin"


@pytest.mark.parametrize(
    ("verb", "record", "errno"),
    [
        (lambda j: control.hold(j, by="user", now=NOW), ended(), SlurmErrno.ALREADY_DONE),
        (lambda j: control.requeue(j, held=False, now=NOW), job(), SlurmErrno.JOB_PENDING),
        (lambda j: control.requeue(j, held=False, now=NOW), running(of=spec(requeue=False)), SlurmErrno.DISABLED),
        (lambda j: control.suspend(j, now=NOW), job(), SlurmErrno.JOB_PENDING),
        (lambda j: control.cancel(j, uid=1, now=NOW), ended(), SlurmErrno.ALREADY_DONE),
    ],
    ids=["hold-ended", "requeue-pending", "requeue-forbidden", "suspend-pending", "cancel-ended"],
)
def test_verbs_that_do_not_fit_the_state_are_refused(verb: object, record: Job, errno: SlurmErrno) -> None:
    assert callable(verb)
    assert verb(record) is errno


def test_suspended_time_is_not_run_time() -> None:
    stopped = control.suspend(running(time_limit_end=1000.0), now=200.0)
    assert isinstance(stopped, control.Changed)
    going = control.resume(stopped.jobs[0], now=260.0)
    assert isinstance(going, control.Changed)
    assert (going.jobs[0].suspended_s, going.jobs[0].time_limit_end) == (60.0, 1060.0)
    again = control.suspend(going.jobs[0], now=300.0)
    assert isinstance(again, control.Changed)
    start = again.jobs[0].start_time or 0.0
    assert (again.jobs[0].pre_suspend_s, again.jobs[0].suspended_s) == (240.0 - start, 60.0)


def test_every_state_knows_its_events_and_no_finished_state_runs_again_without_a_requeue() -> None:
    assert set(table.TRANSITIONS) == set(JobState)
    for state, row in table.TRANSITIONS.items():
        if state.is_finished:
            assert set(row) <= {table.Event.REQUEUE}


def test_tasks_split_off_one_by_one_and_the_last_keeps_the_arrays_id() -> None:
    record: Job | None = job(10, array_job_id=10, tasks=((0, 9, 3),))
    ids = itertools.count(11)
    seen = []
    while record is not None:
        task = record.tasks[0][0]
        record, single = arrays.split(record, task, next(ids))
        seen.append((single.job_id, single.array_task_id, single.array_job_id))
    assert seen == [(11, 0, 10), (12, 3, 10), (13, 6, 10), (10, 9, 10)]


def test_a_task_that_the_record_does_not_hold_can_not_split() -> None:
    with pytest.raises(ValueError, match="no task 4"):
        arrays.without(((0, 9, 3),), 4)


@pytest.mark.parametrize(
    ("record", "may"),
    [
        (job(), True),
        (job(priority=0), False),
        (job(held_by="user"), False),
        (running(), False),
        (job(of=spec(begin=int(NOW) + 1)), False),
        (job(of=spec(begin=int(NOW) - 1)), True),
    ],
)
def test_only_an_eligible_pending_job_may_start(record: Job, may: bool) -> None:
    assert starts.may_start(record, NOW) is may
