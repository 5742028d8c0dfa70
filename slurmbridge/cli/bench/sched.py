"""`slurmbridge bench sched`: how long does the scheduler core take for a cycle?

A full cycle begins with records: a delta of everything is applied to an empty snapshot (columns and free space are built)
and planned with an empty memo. Then plans are carried out until one starts and ends nothing: as long as that has not happened a
cycle works off what full ones left, not what changed. Steady cycles follow: 1 % of the jobs (half of them end, as many come) and
1 % of the nodes (half are drained, half resumed) change, the delta is applied and planned; that is timed, and then the world comes
to rest again. Medians; this process looks for garbage as the planner's does. The memory is the peak of a planner's own process
that is asked once more all that was asked from the last full cycle on: this one has the daemon's records, too.
"""

from __future__ import annotations

import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterable

import msgspec

from slurmbridge.cli.bench.cycles import Planned
from slurmbridge.daemon.planning import WORKER
from slurmbridge.sched import frames
from slurmbridge.sched.worker import collect_seldom
from slurmbridge.sim.clusters import Size, build

CHANGED = 0.01
SWEEP = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
TO_REST = 40
"""Cycles after which a world counts as one that does not come to rest; steady cycles are measured there all the same."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints. `starts` and the rest: of the full cycle's plan. Seconds, jobs and cycles of steady ones: medians."""

    scenario: str
    nodes: int
    gpus_per_node: int
    queues: int
    pending: int
    running: int
    full_cycle_s: float
    steady_cycle_s: float
    peak_rss_mib: float
    starts: int
    evictions: int
    moves: int
    reservations: int
    apply_s: float  # of the full cycle, the part that builds columns
    full_cpu_s: float  # CPU time: what is left of the figures on a machine that does other things
    steady_cpu_s: float
    steady_starts: float
    steady_evictions: float
    full_rest_cycles: int  # until a plan started and ended nothing after a full cycle; TO_REST + 1: it did not
    steady_rest_cycles: float  # the same after a steady one
    full_wire_cpu_s: float  # delta and plan through the pipe, encoded and decoded; not part of the cycles
    steady_wire_cpu_s: float


def measure(size: Size, scenario: str, cycles: int) -> Result:
    """All figures of one scenario."""
    world = build(size, scenario)
    planned = Planned(world)
    fulls = [planned.full() for _ in range(cycles)]
    plan = fulls[-1].plan
    rest = planned.settle(TO_REST)
    steady, rests = [], []
    for _ in range(max(cycles * 2, 3)):
        steady.append(planned.changed(CHANGED))
        rests.append(planned.settle(TO_REST))
    return Result(
        scenario=scenario,
        nodes=size.nodes,
        gpus_per_node=size.gpus_per_node,
        queues=size.queues,
        pending=len(world.pending),
        running=len(world.running),
        full_cycle_s=statistics.median(each.taken.wall for each in fulls),
        steady_cycle_s=statistics.median(each.taken.wall for each in steady),
        peak_rss_mib=peak_mib(planned.requests),
        starts=len(plan.starts),
        evictions=sum(1 for each in plan.evictions if not each.moved),
        moves=sum(1 for each in plan.evictions if each.moved),
        reservations=plan.promises,
        apply_s=statistics.median(each.applying.wall for each in fulls),
        full_cpu_s=statistics.median(each.taken.cpu for each in fulls),
        steady_cpu_s=statistics.median(each.taken.cpu for each in steady),
        steady_starts=statistics.median(len(each.plan.starts) for each in steady),
        steady_evictions=statistics.median(len(each.plan.evictions) for each in steady),
        full_rest_cycles=rest,
        steady_rest_cycles=statistics.median(rests),
        full_wire_cpu_s=statistics.median(each.wire for each in fulls),
        steady_wire_cpu_s=statistics.median(each.wire for each in steady),
    )


def peak_mib(requests: Iterable[bytes]) -> float:
    """Of a planner's process that is asked these; ProtocolError when one breaks it."""
    with subprocess.Popen(WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as planner:
        assert planner.stdin is not None and planner.stdout is not None
        for request in requests:
            planner.stdin.write(request)
            planner.stdin.flush()
            header = planner.stdout.read(frames.HEADER.size)
            frames.decode_plan(planner.stdout.read(frames.frame_length(header)))
        status = pathlib.Path(f"/proc/{planner.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def sized(size: Size, factor: float) -> Size:
    """A cluster of the same make, so many times as large."""
    return Size(
        nodes=max(round(size.nodes * factor), 2),
        gpus_per_node=size.gpus_per_node,
        queues=size.queues,
        pending=max(round(size.pending * factor), 10),
        running=round(size.running * factor),
    )


HEADING = (
    f"{'scenario':<12}{'nodes':>7}{'pending':>9}{'full s':>9}{'CPU s':>9}{'steady s':>10}{'CPU s':>9}{'ratio':>7}"
    f"{'MiB':>7}{'starts':>8}{'evicted':>9}{'moved':>7}{'rest':>6}{'steady:':>9}{'starts':>8}{'evicted':>9}{'rest':>6}{'wire s':>9}\n"
)


def line(found: Result) -> str:
    """`ratio`: of CPU seconds; `rest`: cycles until nothing starts or ends any more; `wire`: CPU seconds in the pipe."""
    return (
        f"{found.scenario:<12}{found.nodes:>7}{found.pending:>9}{found.full_cycle_s:>9.3f}{found.full_cpu_s:>9.3f}"
        f"{found.steady_cycle_s:>10.4f}{found.steady_cpu_s:>9.4f}{found.full_cpu_s / found.steady_cpu_s:>7.1f}"
        f"{found.peak_rss_mib:>7.0f}{found.starts:>8}{found.evictions:>9}{found.moves:>7}{_cycles(found.full_rest_cycles):>6}"
        f"{'':>9}{found.steady_starts:>8.0f}{found.steady_evictions:>9.0f}{_cycles(found.steady_rest_cycles):>6}"
        f"{found.steady_wire_cpu_s:>9.4f}\n"
    )


def _cycles(count: float) -> str:
    return f"{count:.0f}" if count <= TO_REST else "never"


def main(size: Size, scenario: str, *, cycles: int, sweep: bool, as_json: bool) -> int:
    """Measure and print; a sweep prints one line (one object of a list) for each size."""
    collect_seldom()
    sizes = [sized(size, factor) for factor in SWEEP] if sweep else [size]
    if not as_json:
        sys.stdout.write(HEADING)
    rows: list[Result] = []
    for each in sizes:
        rows.append(measure(each, scenario, cycles if each.pending <= 20_000 else min(cycles, 2)))
        if not as_json:
            sys.stdout.write(line(rows[-1]))
            sys.stdout.flush()
    if as_json:
        sys.stdout.write(msgspec.json.encode(rows if sweep else rows[0]).decode() + "\n")
    return 0
