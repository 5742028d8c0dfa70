"""Where runs happen: one Protocol for processes on virtual nodes (`runtime.local`) and pods (`runtime.kube`).

A run is (job_id, restarts); each of its nodes has a rank and one supervisor. `launch` is idempotent by
(job_id, restarts, rank). Everything a supervisor tells is a `Report`, delivered to the `listener` in order per run and
again after a reconnect until `acknowledge` was called with its sequence number (exactly-once is the daemon's business:
it ignores numbers it has seen).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import Step, Usage
from slurmbridge.model.run import Launch, LaunchNode, RunKey


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """All supervisors of the run met and the batch script was started."""

    key: RunKey
    sequence: int
    time: float
    batch_pid: int = 0


class StepChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A step began or ended (the record tells)."""

    key: RunKey
    sequence: int
    step: Step


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """All processes of all nodes are gone. `why`: "exit", "timeout", "cancelled", "requeue", "node_fail", "launch", "oom"."""

    key: RunKey
    sequence: int
    time: float
    status: int  # wait status of the batch script
    why: str = "exit"
    usage: Usage = Usage()
    steps: tuple[Step, ...] = ()
    message: str = ""
    lost: tuple[
        int, ...
    ] = ()  # ranks whose supervisors went without a word: that nothing runs there the runtime has to prove


class Lost(msgspec.Struct, frozen=True, kw_only=True):
    """It is proved that nothing of this run exists any more and no exit record is left (host rebooted, supervisor killed)."""

    key: RunKey
    sequence: int
    time: float
    message: str = ""


NEVER_STARTED = "never started"
"""`Lost.message` of a run that was never claimed: launching it again is safe."""


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing of the run goes on, and `end` will be told when its nodes are free. Not every runtime says so, nothing is lost
    with it, and it is not acknowledged."""

    key: RunKey
    end: Ended


Report = Started | StepChanged | Ended | Lost
Told = Report | Ending


class NodeSample(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured on a node."""

    node: str
    responding: bool = True
    free_memory_mib: int | None = None
    cpu_load: float | None = None
    boot_time: float = 0.0
    os: str = ""


class Runtime(Protocol):
    """All calls are made on the daemon's event loop and return at once; failures come as reports."""

    @property
    def capabilities(self) -> Capabilities:
        """Of the configuration that it knows last; before `start` too."""

    async def start(self, listener: Callable[[Told], None], config: ClusterConfig, *, daemon_addr: str) -> None:
        """Before anything else. daemon_addr: where supervisors find the daemon again ("unix:PATH")."""

    async def adopt(self, expected: Sequence[RunKey]) -> None:
        """After a restart: find these runs again. Unknown ones that are found are ended; missing ones reported Lost."""

    def launch(self, launch: Launch) -> None: ...
    def acknowledge(self, key: RunKey, sequence: int) -> None: ...
    def kill(self, key: RunKey, why: str) -> None:
        """SIGCONT, SIGTERM to all steps and the batch script, KillWait, then SIGKILL to everything. `why` comes back in Ended."""

    def signal(self, key: RunKey, signal: int, scope: str, step_id: int | None = None) -> None:
        """scope: "" = steps alone, "batch" = the batch shell alone, "full" = batch script with its processes, and steps."""

    def suspend(self, key: RunKey) -> None: ...
    def resume(self, key: RunKey) -> None: ...
    def set_time_limit(self, key: RunKey, limit_s: int | None) -> None:
        """Seconds from the run's start."""

    def notify(self, key: RunKey, message: str) -> None:
        """A line to the job's stderr."""

    def step_address(self, key: RunKey) -> str:
        """Address of the rank-0 supervisor's socket for srun."""

    def sample(self) -> Sequence[NodeSample]: ...
    def reconfigure(self, config: ClusterConfig) -> None:
        """The configuration was read again: nodes may have come and gone; what runs keeps running."""

    async def stop(self, *, end_jobs: bool) -> None: ...


__all__ = [
    "NEVER_STARTED", "Ended", "Ending", "Launch", "LaunchNode", "Lost", "NodeSample", "Report", "RunKey", "Runtime", "Started",
    "StepChanged", "Told",
]  # fmt: skip
