"""How good was a schedule? The same figures for every policy, from its runs alone.

W is the time from the first to the last submission. Utilisation counts what runs that ended used in W; a wait is end -
submission - run time, so that lost work is waiting; the share error is the mean over W of half the sum over accounts of
|part of what is in use - part deserved|, in GPUs (CPUs where there are none).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from slurmbridge.sim.clock import Run
from slurmbridge.sim.shares import Floats, Tree
from slurmbridge.sim.workload import DEVICE_MIB, Machine, TraceJob, milli_of

SHORT_S = 10.0
"""Runs shorter than this count as so long in slowdowns."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What `--json` prints."""

    jobs: int
    makespan_s: float
    gpu_utilisation: float
    cpu_utilisation: float
    mean_wait_s: float
    p95_wait_s: float
    mean_bounded_slowdown: float
    share_error: float
    preempted_gpu_hours: float
    largest_gang_wait_s: float
    wall_s: float


def figures(
    jobs: Sequence[TraceJob], machines: Sequence[Machine], runs: Sequence[Run], tree: Tree, wall_s: float
) -> Figures:
    """All of them. Every job has one run that is not lost."""
    all_cpus = sum(each.cpus * each.count for each in machines)
    all_gpus = sum(each.gpus * each.count for each in machines)
    device_mib = next((each.gpu_mem_mib or DEVICE_MIB for each in machines if each.gpus), DEVICE_MIB)
    gpus = np.array([max(job.nodes, 1) * job.gpus * milli_of(job, device_mib) / 1000 for job in jobs])
    cpus = np.array([float(job.all_cpus) for job in jobs])
    first, last = jobs[0].submit_s, jobs[-1].submit_s
    ended = {run.place: run for run in runs if not run.lost}
    waits = np.array([max(ended[p].end - job.submit_s - job.run_s, 0.0) for p, job in enumerate(jobs)])
    lengths = np.array([job.run_s for job in jobs])
    measured, capacity = (gpus, float(all_gpus)) if all_gpus else (cpus, float(all_cpus))
    largest = measured >= measured.max()
    return Figures(
        jobs=len(jobs),
        makespan_s=max(run.end for run in ended.values()) - first,
        gpu_utilisation=_used(ended.values(), gpus, all_gpus, first, last),
        cpu_utilisation=_used(ended.values(), cpus, all_cpus, first, last),
        mean_wait_s=float(waits.mean()),
        p95_wait_s=float(np.sort(waits)[math.ceil(0.95 * len(waits)) - 1]),
        mean_bounded_slowdown=float(np.maximum(1.0, (waits + lengths) / np.maximum(lengths, SHORT_S)).mean()),
        share_error=share_error(jobs, runs, measured, capacity, tree, first, last),
        preempted_gpu_hours=float(sum(gpus[run.place] * (run.end - run.start) for run in runs if run.lost)) / 3600.0,
        largest_gang_wait_s=float(waits[largest].max()),
        wall_s=wall_s,
    )


def _used(runs: Iterable[Run], amounts: Floats, capacity: int, first: float, last: float) -> float:
    if not capacity or last <= first:
        return 0.0
    total = 0.0
    for run in runs:
        inside = min(run.end, last) - max(run.start, first)
        if inside > 0:
            total += inside * float(amounts[run.place])
    return total / (capacity * (last - first))


def share_error(
    jobs: Sequence[TraceJob],
    runs: Sequence[Run],
    amounts: Floats,
    capacity: float,
    tree: Tree,
    first: float,
    last: float,
) -> float:
    """See the module docstring; 0 where nothing is asked for."""
    if last <= first:
        return 0.0
    places = {name: place for place, name in enumerate(tree.accounts)}
    account = [places[job.account] for job in jobs]
    events: list[tuple[float, int, float, float]] = []  # time, account, change of use, change of what is wanted
    for place, job in enumerate(jobs):
        events.append((job.submit_s, account[place], 0.0, float(amounts[place])))
    for run in runs:
        amount = float(amounts[run.place])
        if run.end > run.start:
            events.append((run.start, account[run.place], amount, 0.0))
            events.append((run.end, account[run.place], -amount, 0.0 if run.lost else -amount))
        elif not run.lost:
            events.append((run.end, account[run.place], 0.0, -amount))
    events.sort(key=lambda event: event[0])
    use, wanted = np.zeros(len(places)), np.zeros(len(places))
    total = 0.0
    now = first
    for when, at, more, asked in events:
        if when > last:
            break
        if when > now:
            total += (when - now) * _distance(use, tree.deserved(capacity, np.maximum(wanted, 0.0)))
            now = when
        use[at] += more
        wanted[at] += asked
    total += (last - now) * _distance(use, tree.deserved(capacity, np.maximum(wanted, 0.0)))
    return total / (last - first)


def _distance(use: Floats, deserved: Floats) -> float:
    used, right = float(use.sum()), float(deserved.sum())
    if right < 1e-9:
        return 0.0
    parts = use / used if used > 1e-9 else np.zeros(len(use))
    return 0.5 * float(np.abs(parts - deserved / right).sum())


HEADINGS = (
    ("jobs", "jobs", "{:.0f}"),
    ("makespan_s", "makespan, h", "{:.1f}"),
    ("gpu_utilisation", "GPU utilisation", "{:.4f}"),
    ("cpu_utilisation", "CPU utilisation", "{:.4f}"),
    ("mean_wait_s", "mean wait, s", "{:.0f}"),
    ("p95_wait_s", "95 % wait, s", "{:.0f}"),
    ("mean_bounded_slowdown", "bounded slowdown", "{:.2f}"),
    ("share_error", "share error", "{:.4f}"),
    ("preempted_gpu_hours", "lost GPU-hours", "{:.1f}"),
    ("largest_gang_wait_s", "largest gang's wait, s", "{:.0f}"),
    ("wall_s", "took, s", "{:.1f}"),
)


def table(found: Sequence[tuple[str, Figures]]) -> str:
    """The figures of several policies side by side."""
    lines = [f"{'':<24}" + "".join(f"{name:>12}" for name, _ in found)]
    for field, heading, pattern in HEADINGS:
        values = [getattr(each, field) / (3600 if field == "makespan_s" else 1) for _, each in found]
        lines.append(f"{heading:<24}" + "".join(f"{pattern.format(value):>12}" for value in values))
    return "\n".join(lines) + "\n"
