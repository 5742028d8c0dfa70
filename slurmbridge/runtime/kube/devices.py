"""How do the pods of a run get at their devices? What every way has to do; `holding` is the way of device plugins.

    claim(launch)  ->  Granted, once the run's pods may be made, or Denied
    give_up(key)       the run is over, or never began
    Taken              a run has lost its devices and has to end

A way by dynamic resource allocation fits behind the same: `claim` makes a ResourceClaim for each rank that asks for so much
capacity of a device (`requests[].capacity` where the driver's devices allow several allocations), writes the allocation into
its status as the scheduler of pods that name their node has to, and reserves it for the pod; `Granted` then carries the
claims' names for `spec.resourceClaims` in place of device ids. No reservation pod is needed there, and limits are the
driver's. `Taken` comes from a device's taint, or a claim that somebody removed; after a crash the claims tell who has what.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import msgspec

from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import Launch, RunKey
from slurmbridge.reconcile.observed import SeenPod
from slurmbridge.reconcile.trouble import Trouble


class Granted(msgspec.Struct, frozen=True):
    """The pods may be made. Of each rank the ids of the devices it has a part of, in their order; none: it asks for whole
    ones, which its node gives it."""

    key: RunKey
    devices: tuple[tuple[str, ...], ...]


class Denied(msgspec.Struct, frozen=True):
    """The devices cannot be had."""

    key: RunKey
    trouble: Trouble


class Taken(msgspec.Struct, frozen=True):
    """Pods of the run use devices that may be others' soon."""

    key: RunKey
    why: str


DeviceNews: TypeAlias = Granted | Denied | Taken
Tell: TypeAlias = Callable[[DeviceNews], None]


Known: TypeAlias = Callable[[str, int, str], None]
"""(our name of a node, index, id of the device there; empty: it is not known any more)."""


def unheard(node: str, index: int, device: str) -> None:
    """Where nobody wants to know."""


class Access(Protocol):
    """All calls are made on the daemon's event loop and return at once; news come from the loop, never inside a call."""

    async def start(self, within: float) -> bool:
        """Follow the cluster; False: it could not be listed in time, and is tried on."""

    def reconfigure(self, site: PodSite) -> None:
        """From now on pods are made for that."""

    async def stop(self) -> None: ...
    async def emptied(self, within: float) -> None:
        """Wait until nothing that was made for devices is left, but not longer."""

    def claim(self, launch: Launch, template: PodTemplate) -> None:
        """Make the devices of a run ready. The same claim again changes nothing."""

    def give_up(self, key: RunKey) -> None:
        """No pod of it will be made any more; those that are there count until they are proved to have ended."""

    def seen(self, key: RunKey, pods: Sequence[SeenPod]) -> None:
        """These are the pods of a run now, known to us or not."""

    def adopt(self) -> None:
        """Every run that goes on was claimed or seen: what nobody needs may go."""
