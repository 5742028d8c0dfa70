"""What is to be done about a device that jobs share, so that it is theirs as long as one of them may use it?

A slot is a device as the planner calls it; its holder is a pod that owns a real device (`manifest.pod_devices`). Pure: what
is wanted and what is seen give what is to be done, so that a crash between any two actions is nothing special. The rules:

- A holder is made when a run wants a part of its slot, and removed when no run wants one and no pod with a part may run.
- Nobody gets a part before the holder has said which device it has, and runs.
- A slot whose holder is going or gone has no new sharers; those that are there have lost their device and have to end at
  once. Only then is the holder's end hastened, or another made: a later one may be given another device.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from slurmbridge.reconcile.observed import Life, SeenPod
from slurmbridge.reconcile.trouble import Patience, Trouble, next_look, trouble_of

AGAIN_S = 1.0
"""Age of a holder that failed at which another is tried."""


class SeenHolder(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that holds the slot, or holds it no more. `device`: what it said it has; empty: nothing yet."""

    pod: SeenPod
    device: str = ""

    @property
    def is_firm(self) -> bool:
        """Whether the device is its own, and will be."""
        return not self.pod.is_deleting and not self.pod.is_dead

    @property
    def may_be_shared(self) -> bool:
        """Whether runs may begin with its device. A kubelet that is begun anew turns away what does not run yet, and may lend
        the device to another."""
        return self.is_firm and bool(self.device) and self.pod.life is Life.RUNNING


class CreateHolder(msgspec.Struct, frozen=True):
    pass


class DeleteHolder(msgspec.Struct, frozen=True):
    """`at_once`: without asking its kubelet: it has ended, or its node is proved to be gone."""

    name: str
    uid: str
    at_once: bool = False


HolderAction: TypeAlias = CreateHolder | DeleteHolder


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """About one slot. `device`: who wants a part may have it, of this device. `lost`: why those that share it have to end.
    `trouble`: why those that wait for a part wait in vain. `look`: when time alone may change this."""

    action: HolderAction | None = None
    device: str = ""
    lost: str = ""
    trouble: Trouble | None = None
    look: float | None = None


def hold(
    holder: SeenHolder | None, *, is_wanted: bool, sharers: Sequence[str], now: float, since: float,
    patience: Patience = Patience(),
) -> Held:  # fmt: skip
    """`is_wanted`: a run is to get a part, or has got it and may not be seen yet. `sharers`: of each pod with a part that may
    run, which device it was given. `since`: when the wish began."""
    if holder is None:
        if sharers:
            return Held(lost="the pod that held its device is gone")
        return Held(action=CreateHolder() if is_wanted else None)
    pod = holder.pod
    if not holder.is_firm:
        return _parting(holder, is_wanted=is_wanted, is_shared=bool(sharers), now=now, since=since, patience=patience)
    if not is_wanted and not sharers:
        return Held(action=DeleteHolder(pod.name, pod.uid))
    if holder.device and any(device != holder.device for device in sharers):
        return Held(lost="its device is not the one that is held for it any more")
    if holder.may_be_shared:
        return Held(device=holder.device)
    if sharers:
        return Held()  # it is told anew after a restart of its node; the device stayed its own
    return Held(trouble=trouble_of([pod], now, patience), look=next_look([pod], now, patience))


def _parting(
    holder: SeenHolder, *, is_wanted: bool, is_shared: bool, now: float, since: float, patience: Patience
) -> Held:  # fmt: skip
    pod = holder.pod
    if is_shared and pod.is_dead:
        return Held(lost="the pod that held its device has ended")
    if is_shared:
        return Held(lost="the pod that holds its device was deleted")
    action = DeleteHolder(pod.name, pod.uid, at_once=pod.is_dead)
    if not is_wanted or not pod.is_dead:
        return Held(action=action)
    # it may have come too early: a pod that has ended can have its devices for a moment longer
    again, due = pod.created + AGAIN_S, since + patience.device
    if now < again:
        return Held(look=again)
    if now < due:
        return Held(action=action, look=due)
    text = f"{pod.title} on {pod.node}: it ended"
    return Held(action=action, trouble=trouble_of([pod], now, patience) or Trouble(why="requeue", message=text))


def is_clear(holder: SeenHolder | None) -> bool:
    """Whether a run that has the slot's device whole may be made: the plugin has it back, or never gave it away."""
    return holder is None or holder.pod.is_dead
