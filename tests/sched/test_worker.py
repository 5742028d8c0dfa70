"""The planner's process speaks frames and starts quickly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta
from slurmbridge.sched import frames
from tests.sched.small_cluster import NOW, accounting, cluster, job


class Worker:
    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "slurmbridge.sched.worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def ask(self, request: bytes) -> bytes:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(request)
        self.process.stdin.flush()
        header = self.process.stdout.read(frames.HEADER.size)
        return self.process.stdout.read(frames.frame_length(header))

    def close(self) -> int:
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        return self.process.wait(timeout=120)


@pytest.fixture
def worker() -> Iterator[Worker]:
    worker = Worker()
    try:
        yield worker
    finally:
        worker.close()


def first(*jobs: Job) -> Delta:
    return Delta(version=7, config=cluster(), accounting=accounting(), jobs=jobs)


def test_a_cycle_request_is_answered_with_a_plan_of_its_version(worker: Worker) -> None:
    plan = frames.decode_plan(worker.ask(frames.encode_request(first(job(10)), NOW)))
    assert plan.version == 7
    assert [start.job_id for start in plan.starts] == [10]
    assert plan.cycle_s > 0


def test_reasons_are_told_once(worker: Worker) -> None:
    too_big = job(10, min_nodes=9)
    assert frames.decode_plan(worker.ask(frames.encode_request(first(too_big), NOW))).verdicts
    assert not frames.decode_plan(worker.ask(frames.encode_request(Delta(version=8), NOW + 1))).verdicts


def test_an_estimate_leaves_the_state_alone(worker: Worker) -> None:
    worker.ask(frames.encode_request(first(), NOW))
    answer = frames.decode_answer(worker.ask(frames.encode_estimate(job(0, num_tasks=9), NOW)))
    assert isinstance(answer, frames.EstimateAnswer) and answer.verdict is not None
    assert (answer.verdict.nodes, answer.verdict.cpus, answer.verdict.start) == (("n1", "n2"), 9, NOW)
    assert not frames.decode_plan(worker.ask(frames.encode_request(Delta(version=9), NOW))).starts


def test_an_explanation_leaves_the_state_alone(worker: Worker) -> None:
    worker.ask(frames.encode_request(first(), NOW))
    answer = frames.decode_answer(worker.ask(frames.encode_explain(job(5, num_tasks=33), NOW)))
    assert isinstance(answer, frames.ExplainAnswer)
    (fit,) = answer.explanation.partitions
    assert (fit.partition, fit.nodes) == ("debug", 4) and fit.reason
    assert not frames.decode_plan(worker.ask(frames.encode_request(Delta(version=9), NOW))).starts


def test_of_a_job_a_frame_carries_what_differs_from_the_defaults() -> None:
    one = first(job(10))
    more = len(frames.encode_request(first(job(10), job(11)), NOW)) - len(frames.encode_request(one, NOW))
    assert more < 500
    assert frames.decode_request(frames.encode_request(one, NOW)[frames.HEADER.size :]) == frames.CycleRequest(
        delta=one, now=NOW
    )


def test_a_broken_request_is_a_failure_and_the_next_one_works(worker: Worker) -> None:
    answer = frames.decode_answer(worker.ask(frames.HEADER.pack(3) + b"\xc1\xc1\xc1"))
    assert isinstance(answer, frames.Failure)
    assert frames.decode_plan(worker.ask(frames.encode_request(first(job(1)), NOW))).starts


def test_the_worker_ends_with_its_input(worker: Worker) -> None:
    assert worker.close() == 0


def garbage_rules(code: str) -> str:
    """How the collector is set in a process that has run this."""
    code += "; import gc, sys; print(gc.get_threshold(), gc.get_freeze_count() > 0, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], input="", capture_output=True, text=True, check=True)
    return done.stderr


def test_cycles_are_measured_with_the_collector_that_the_planner_has() -> None:
    planner = garbage_rules("from slurmbridge.sched import worker; worker.main()")
    measured = garbage_rules(
        "from slurmbridge.cli.bench import sched; from slurmbridge.sim.clusters import Size; "
        "size = Size(nodes=2, queues=2, pending=10, running=2); "
        "sched.main(size, 'fill', cycles=1, sweep=False, as_json=True)"
    )
    assert planner == measured != garbage_rules("pass")


def test_importing_the_worker_loads_no_database_and_no_parser_generator() -> None:
    code = (
        "import sys, slurmbridge.sched.worker; print([m for m in ('sqlalchemy', 'lark', 'click') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
