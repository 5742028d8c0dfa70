"""Which licences are free, and which does a job get? Source: slurm.conf(5) Licenses, sbatch(1) --licenses."""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import LicenseTerm
from slurmbridge.sched.shape import Shape
from slurmbridge.sched.snapshot import Snapshot


def free(snapshot: Snapshot, config: ClusterConfig) -> dict[str, int]:
    """How many of each licence no run has."""
    found = {each.name: each.total for each in config.licenses}
    if found:
        for running in snapshot.running.values():
            allocation = running.job.allocation
            if allocation is not None and not running.job.state.is_finished:
                for term in allocation.licenses:
                    found[term.name] = found.get(term.name, 0) - term.count
    return found


def granted(shape: Shape, free: Mapping[str, int]) -> tuple[LicenseTerm, ...] | None:
    """The licences that the job would get; None when they are not free."""
    if not shape.licenses:
        return ()
    wanted = [LicenseTerm(name=name, count=count) for name, count in shape.licenses]
    fitting = [term for term in wanted if free.get(term.name, 0) >= term.count]
    if shape.any_license:
        return tuple(fitting[:1]) or None
    return tuple(wanted) if len(fitting) == len(wanted) else None
