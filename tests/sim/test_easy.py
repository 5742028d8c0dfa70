"""EASY is EASY: held to a plain one on a single pool, and to its promises on nodes with devices."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.sim.clock import Run, simulate
from slurmbridge.sim.easy import Easy
from slurmbridge.sim.pool import Pool
from slurmbridge.sim.workload import Machine, TraceJob


def job(place: int, submit: float, run: float, limit: float, cpus: int, **fields: object) -> TraceJob:
    given: dict[str, object] = {"nodes": 0, "cpus": cpus}
    return TraceJob(id=str(place), submit_s=submit, run_s=run, limit_s=limit, **(given | fields))  # type: ignore[arg-type]


def plain_easy(jobs: Sequence[TraceJob], size: int) -> dict[int, float]:
    """Starts by place, on one pool of processors: the textbook, step by step, with nothing remembered."""
    starts: dict[int, float] = {}
    now = 0.0
    times = {each.submit_s for each in jobs}
    while len(starts) < len(jobs):
        now = min(time for time in times if time >= now)
        while True:
            running = {p: s for p, s in starts.items() if s + jobs[p].run_s > now}
            free = size - sum(jobs[p].cpus for p in running)
            queue = [p for p, each in enumerate(jobs) if p not in starts and each.submit_s <= now]
            chosen = None
            if queue and jobs[queue[0]].cpus <= free:
                chosen = queue[0]
            elif queue:
                ends = sorted((s + jobs[p].limit_s, jobs[p].cpus) for p, s in running.items())
                available, shadow = free, now
                for end, cpus in ends:
                    if available >= jobs[queue[0]].cpus and end > shadow:
                        break
                    available, shadow = available + cpus, end
                extra = available - jobs[queue[0]].cpus
                chosen = next(
                    (
                        p
                        for p in queue[1:]
                        if jobs[p].cpus <= free and (now + jobs[p].limit_s <= shadow or jobs[p].cpus <= extra)
                    ),
                    None,
                )
            if chosen is None:
                break
            starts[chosen] = now
            times.add(now + jobs[chosen].run_s)
        later = [time for time in times if time > now]
        now = min(later) if later else now
    return starts


@st.composite
def logs(draw: st.DrawFn) -> list[TraceJob]:
    found, now = [], 0
    for place in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0, 0, 1, 3, 20]))
        run = draw(st.integers(1, 40))
        found.append(
            job(place, float(now), float(run), float(run + draw(st.integers(0, 40))), draw(st.integers(1, 10)))
        )
    return found


@settings(max_examples=100, deadline=None)
@given(log=logs(), split=st.sampled_from([(10,), (4, 6), (1,) * 10]))
def test_on_one_pool_every_start_is_that_of_the_textbook(log: list[TraceJob], split: tuple[int, ...]) -> None:
    machines = [Machine(node=f"n{place}-", cpus=cpus) for place, cpus in enumerate(split)]
    found = {run.place: run.start for run in simulate(log, Easy(log, machines))}
    assert found == plain_easy(log, 10)


NODES = (
    Machine(node="g", count=2, cpus=16, mem_mib=1000, gpus=4, gpu_type="a", gpu_mem_mib=1000),
    Machine(node="h", cpus=8, gpus=2, gpu_type="b", gpu_mem_mib=4000),
    Machine(node="n", count=2, cpus=8),
)


@st.composite
def mixed(draw: st.DrawFn) -> list[TraceJob]:
    found, now = [], 0
    for place in range(draw(st.integers(1, 20))):
        now += draw(st.sampled_from([0, 0, 1, 5]))
        run = draw(st.integers(1, 30))
        gpus = draw(st.sampled_from([0, 1, 1, 2, 4]))
        found.append(
            job(
                place,
                float(now),
                float(run),
                float(run + draw(st.integers(0, 30))),
                draw(st.integers(1, 4)),
                nodes=draw(st.sampled_from([1, 1, 2])),
                gpus=gpus,
                mem_mib=draw(st.sampled_from([0, 300])),
                gpu_milli=draw(st.sampled_from([1000, 250, 600])) if gpus else 1000,
                gpu_mem_mib=draw(st.sampled_from([0, 0, 500])) if gpus else 0,
                gpu_type=draw(st.sampled_from(["", "", "a"])) if gpus else "",
            )
        )
    pool = Pool(NODES)
    return [each for each in found if pool.place(pool.need(each), pool.room) is not None]


class Watched(Easy):
    """Notes the promise of the first job whenever there is one, and that nothing is ever given out twice."""

    def __init__(self, jobs: Sequence[TraceJob], machines: Sequence[Machine]) -> None:
        super().__init__(jobs, machines)
        self.promises: list[tuple[float, int, float]] = []

    def starts(self, now: float) -> list[int]:
        found = super().starts(now)
        for amounts in (self._free.cpus, self._free.mem, self._free.milli):
            assert (amounts >= 0).all()
        if self._queue and self._held is not None:
            self.promises.append((now, self._queue[0], self._held.start))
        return found


def ends_by_start(runs: Sequence[Run]) -> dict[int, float]:
    return {run.place: run.start for run in runs}


@settings(max_examples=60, deadline=None)
@given(log=mixed())
def test_a_promised_start_is_never_late_and_everything_runs_once(log: list[TraceJob]) -> None:
    if not log:
        return
    policy = Watched(log, NODES)
    runs = simulate(log, policy)
    starts = ends_by_start(runs)
    assert sorted(run.place for run in runs) == list(range(len(log)))
    assert all(run.end - run.start == log[run.place].run_s for run in runs)
    last: dict[int, float] = {}
    for _, place, promised in policy.promises:
        assert promised <= last.get(place, promised), "a promise moved back"
        assert starts[place] <= promised
        last[place] = promised


@settings(max_examples=40, deadline=None)
@given(log=mixed())
def test_everything_is_given_back_in_the_end(log: list[TraceJob]) -> None:
    if log:
        policy, whole = Easy(log, NODES), Pool(NODES).room
        simulate(log, policy)
        free = policy._free
        assert not policy._queue
        assert (free.cpus == whole.cpus).all() and (free.mem == whole.mem).all() and (free.milli == whole.milli).all()


def test_a_short_job_passes_the_first_blocked_one_and_a_long_one_does_not() -> None:
    log = [job(0, 0, 100, 100, 8), job(1, 1, 10, 10, 10), job(2, 2, 50, 50, 2), job(3, 3, 50, 200, 2)]
    starts = ends_by_start(simulate(log, Easy(log, [Machine(node="n", cpus=10)])))
    assert starts == {0: 0, 1: 100, 2: 2, 3: 110}


def test_fractions_share_a_device_and_whole_devices_stay_free() -> None:
    half = {"nodes": 1, "gpus": 1, "gpu_milli": 500}
    log = [job(0, 0, 9, 9, 1, **half), job(1, 0, 9, 9, 1, **half), job(2, 0, 9, 9, 1, nodes=1, gpus=3)]
    starts = ends_by_start(simulate(log, Easy(log, [Machine(node="g", cpus=8, gpus=4)])))
    assert starts == {0: 0, 1: 0, 2: 0}
