"""One trace, one cluster, one policy: its runs and its figures.

`ours` is the scheduler core itself; `easy` and `quota` are baselines that share nothing with it but the trace.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.sim import accounts, measures
from slurmbridge.sim.clock import Run, simulate
from slurmbridge.sim.easy import Easy
from slurmbridge.sim.ours import Replay
from slurmbridge.sim.pool import Pool
from slurmbridge.sim.quota import Quota
from slurmbridge.sim.shares import Tree
from slurmbridge.sim.workload import Machine, TraceError, TraceJob

POLICIES = ("ours", "easy", "quota")


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What is replayed and where; the same for every policy."""

    jobs: tuple[TraceJob, ...]
    machines: tuple[Machine, ...]
    config: ClusterConfig
    accounting: Accounting  # with everybody whom the trace names
    left_out: tuple[str, ...] = ()  # ids of jobs that ask for more than the cluster has


def setting(
    jobs: Sequence[TraceJob], machines: Sequence[Machine], config: ClusterConfig, accounting: Accounting
) -> Setting:
    """Without the jobs that could never run. Raises TraceError when none is left."""
    pool = Pool(machines)
    fits = [pool.place(pool.need(job), pool.room) is not None for job in jobs]
    kept = tuple(job for job, fit in zip(jobs, fits, strict=True) if fit)
    if not kept:
        raise TraceError("no job of the trace fits on this cluster")
    return Setting(
        jobs=kept,
        machines=tuple(machines),
        config=config,
        accounting=accounts.completed(accounting, kept),
        left_out=tuple(job.id for job, fit in zip(jobs, fits, strict=True) if not fit),
    )


def replay(given: Setting, policy: str) -> measures.Figures:
    """The figures of one policy."""
    tree = Tree(given.accounting, sorted({job.account for job in given.jobs}))
    began = time.perf_counter()
    runs = runs_of(given, policy, tree)
    taken = time.perf_counter() - began
    return measures.figures(given.jobs, given.machines, runs, tree, taken)


def runs_of(given: Setting, policy: str, tree: Tree) -> Sequence[Run]:
    """The schedule alone."""
    if policy == "ours":
        return Replay(given.jobs, given.config, given.accounting).run()
    if policy == "easy":
        return simulate(given.jobs, Easy(given.jobs, given.machines))
    if policy == "quota":
        return simulate(given.jobs, Quota(given.jobs, given.machines, tree.shares()))
    raise TraceError(f"no policy {policy!r}: one of {', '.join(POLICIES)}")
