"""The planner's process: requests on stdin, answers on stdout, one at a time.

Run as `python -m slurmbridge.sched.worker`. The only module of `sched` that reads, writes and measures. It keeps the
snapshot and the memo; wall time comes with each request. End of input ends it.
"""

from __future__ import annotations

import gc
import os
import sys
import time
import traceback
from typing import BinaryIO

import msgspec

from slurmbridge.sched import frames, priority
from slurmbridge.sched.cycle import Memo, estimate, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.standings import standings


class Planner:
    """State between requests."""

    def __init__(self) -> None:
        self._snapshot = Snapshot.empty()
        self._memo = Memo.empty()
        self._planned_at = 0.0

    def answer(self, request: frames.Request) -> frames.Answer:
        match request:
            case frames.CycleRequest():
                started = time.perf_counter()
                self._snapshot = self._snapshot.apply(request.delta).at(request.now)
                self._planned_at = request.now
                plan, self._memo = plan_cycle(self._snapshot, self._snapshot.config, request.now, self._memo)
                self._snapshot = self._snapshot.noted(plan)
                return frames.PlanAnswer(plan=msgspec.structs.replace(plan, cycle_s=time.perf_counter() - started))
            case frames.EstimateRequest():
                verdict = estimate(self._snapshot, self._snapshot.config, request.job, request.now)
                return frames.EstimateAnswer(verdict=verdict)
            case frames.FactorsRequest():
                snapshot, waiting = self._snapshot, list(self._snapshot.waiting.values())
                factors = priority.explain(snapshot, waiting, snapshot.config, self._memo.shares, self._planned_at)
                return frames.FactorsAnswer(factors=factors)
            case frames.ExplainRequest():
                # what it renders texts with loads only when somebody asks
                from slurmbridge.sched.explain import explain

                found = explain(self._snapshot, self._snapshot.config, request.job, request.now)
                return frames.ExplainAnswer(explanation=found)
            case frames.SharesRequest():
                return frames.SharesAnswer(shares=standings(self._snapshot, self._memo, self._planned_at))


def _body(source: BinaryIO) -> bytes | None:
    """Of the next request; None: the input has ended. A buffered source gives less than is asked for only at its end."""
    header = source.read(frames.HEADER.size)
    if len(header) < frames.HEADER.size:
        return None
    length = frames.frame_length(header)
    body = source.read(length)
    return body if len(body) == length else None


def serve(source: BinaryIO, sink: BinaryIO) -> None:
    """Answer until the input ends. A request that breaks the planner gets a failure, and the state starts anew."""
    planner = Planner()
    while (body := _body(source)) is not None:
        try:
            request = frames.decode_request(body)
            del body  # as large as all records, where all are told
            answer = planner.answer(request)
        except Exception:  # the border of a process: whatever broke is reported to the daemon, which sends all anew
            answer = frames.Failure(text=traceback.format_exc())
            planner = Planner()
        sink.write(frames.encode_answer(answer))
        sink.flush()


def collect_seldom() -> None:
    """How a process that plans looks for garbage: records live long, so looking through all of them is seldom worth it."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def main() -> int:
    """Keep the pipe for frames alone: what else prints goes to stderr."""
    collect_seldom()
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, sink)
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
