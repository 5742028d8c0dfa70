"""What is replayed: jobs of a trace and the nodes they run on, whatever the file looked like.

Seconds count from the trace's own zero. A job either asks for `nodes` nodes with so much on each of them, or (nodes = 0)
for CPUs that may lie anywhere, as logs of the Parallel Workloads Archive have them.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.errors import BridgeError


class TraceError(BridgeError):
    """A line of a trace, cluster or accounts file that cannot be read: FILE:LINE: reason."""


def at(name: str, line: int, reason: str) -> TraceError:
    """The error of one line."""
    return TraceError(f"{name}:{line}: {reason}")


class TraceJob(msgspec.Struct, frozen=True, kw_only=True):
    """One job. `limit_s` is never below `run_s`: what ran longer than its limit says so had more in truth."""

    id: str
    submit_s: float
    run_s: float
    limit_s: float
    user: str = "user"
    account: str = "default"
    partition: str = ""  # empty: the default one
    nodes: int = 1  # 0: CPUs anywhere
    cpus: int = 1  # of each node; in all when nodes = 0
    mem_mib: int = 0  # of each node; of each CPU when nodes = 0
    gpus: int = 0  # devices of each node
    gpu_milli: int = 1000  # of each device
    gpu_mem_mib: int = 0  # of each device; 0 = by portion
    gpu_type: str = ""
    preemptible: bool = False
    priority: int = 0  # higher first among the jobs of an account
    start_s: float | None = None  # as recorded; no policy looks at it

    @property
    def all_cpus(self) -> int:
        return self.cpus * max(self.nodes, 1)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """`count` equal nodes, named NODE0, NODE1 ... (NODE alone when there is one)."""

    node: str
    count: int = 1
    cpus: int
    mem_mib: int = 0  # 0: not counted
    gpus: int = 0
    gpu_type: str = ""
    gpu_mem_mib: int = 0  # 0: 80 GiB

    def names(self) -> tuple[str, ...]:
        return (self.node,) if self.count == 1 else tuple(f"{self.node}{number}" for number in range(self.count))


DEVICE_MIB = 80 * 1024
"""Memory of a device whose size nobody said."""


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs by submission, and the nodes that the file itself speaks of (empty: none)."""

    jobs: tuple[TraceJob, ...]
    machines: tuple[Machine, ...] = ()
    left_out: int = 0  # records of jobs that never ran


def ordered(jobs: Sequence[TraceJob]) -> tuple[TraceJob, ...]:
    """By submission; jobs submitted together stay in the file's order."""
    return tuple(sorted(jobs, key=lambda job: job.submit_s))


def milli_of(job: TraceJob, device_mib: int) -> int:
    """How much of one device of that size a job takes, in thousandths."""
    if job.gpu_mem_mib:
        return min(job.gpu_mem_mib * 1000 // max(device_mib, 1), 1000)
    return job.gpu_milli
