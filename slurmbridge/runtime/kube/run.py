"""What is remembered of a run of pods while this process lives, and what a link to one of its supervisors is."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

from msgspec.structs import replace

from slurmbridge.manifest.pod_container import Settled, settle
from slurmbridge.manifest.pod_output import KEPT_MIB, mounts_of
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import Launch, RunKey
from slurmbridge.reconcile.observed import SeenPod
from slurmbridge.runtime import launch_frame
from slurmbridge.runtime.protocol import Ended


class Link(Protocol):
    """To one supervisor."""

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        """One frame; dropped when the link is gone."""

    def close(self) -> None:
        """Without being told of its loss."""


Attach: TypeAlias = Callable[[Callable[[bytes, bytes], None], Callable[[], None]], Link]
"""(what hears each frame, what hears once that the link is lost) -> the link."""


class Run:
    """What the daemon's process remembers of a run."""

    __slots__ = (
        "channels",
        "end",
        "host_names",
        "is_ended",
        "is_launched",
        "is_unwanted",
        "key",
        "launch",
        "make",
        "pending",
        "rests",
        "timer",
        "token",
        "why",
    )

    def __init__(self, key: RunKey) -> None:
        self.key = key
        self.launch: Launch | None = None  # None: it was found
        self.make: Callable[[Sequence[tuple[str, ...]]], None] | None = None  # its pods, once its devices are known
        self.host_names: tuple[str, ...] = ()
        self.token = ""
        self.channels: dict[int, Link] = {}
        self.pending: list[tuple[bytes, bytes]] = []  # for a supervisor that has not dialled in yet
        self.is_launched = False  # rank 0 has its launch, or had it when it was found
        self.end: Ended | None = None  # told by its supervisor; its pods may still be there
        self.rests = False  # its node did not take it, and that is told after a pause
        self.is_ended = False
        self.is_unwanted = False  # whoever asks for its launch is told that there is none
        self.why: tuple[str, str] = ("", "")  # why it has to end, and a message, as far as decided here
        self.timer: asyncio.TimerHandle | None = None

    @property
    def is_over(self) -> bool:
        """Nothing of it can be told to do anything."""
        return self.is_ended or self.end is not None


def token_of(launch: Launch, instance: str, secret: bytes) -> str:
    """By which the run's supervisors know each other, and are known when they come back: the same from every daemon that has
    the secret."""
    run = f"{instance} {launch.key.job_id} {launch.key.restarts} {launch.epoch}"
    return hmac.digest(secret, run.encode(), "sha256").hex()[:32]


def payload_of(run: Run, launch: Launch, rank: int, template: PodTemplate, head: str) -> bytes:
    """Of the launch frame for one rank. `head`: address of the first rank's node."""
    ranks = [
        {**each, "host": host} for each, host in zip(launch_frame.ranks_of(launch), run.host_names, strict=True)
    ]  # fmt: skip
    container = settle(launch.container, template, launch.home)
    own: dict[str, object] = {
        "token": run.token,
        "epoch": launch.epoch,
        "address_of_node": run.host_names[0],
        "head": head if template.host_network else "",  # no name server knows the name of a host
        "host_software": template.host_software,
        "mounts": mounts_of(template, container) if isinstance(container, Settled) else (),
        "most_output": KEPT_MIB << 20,
    }
    return launch_frame.payload(launch, rank, ranks, own)


def known_better(run: Run, report: Ended) -> Ended:
    """A supervisor sees that its pod is deleted; why is known here."""
    if report.why != "node_fail" or not run.why[0]:
        return report
    return replace(report, why=run.why[0], message=run.why[1] or report.message)


def still_talking(run: Run, pods: Sequence[SeenPod]) -> list[int]:
    """Ranks that are not as dead as it seems: their supervisors hold their links. The object of their node is gone, which
    somebody may have deleted by mistake, or a kubelet that was begun anew does not know its containers any more. A machine
    that is off loses its link within a minute."""
    return [pod.rank for pod in pods if pod.rank in run.channels]
