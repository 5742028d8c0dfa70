"""Devices without a cluster: a kubelet that owns them, holders, sharers and others' pods, and a daemon that may die anywhere."""

from __future__ import annotations

import itertools

from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.holders import CreateHolder, DeleteHolder, Held, SeenHolder, hold
from slurmbridge.reconcile.observed import Life, SeenPod

Slot = tuple[str, int]


class Sharer:
    """A pod with a part of a device; `is_ending`: its run was told to end."""

    def __init__(self, slot: Slot, device: str) -> None:
        self.slot, self.device, self.is_ending = slot, device, False


class Devices:
    """One node. A holder that somebody else deletes lives on until its grace period is cut short."""

    def __init__(self, count: int) -> None:
        self.owners: dict[str, str] = {f"GPU-{place}": "" for place in range(count)}  # device -> uid; empty: free
        self.holders: dict[Slot, SeenHolder] = {}
        self.protected: set[str] = set()  # uids of holders that are deleted and have their whole grace period
        self.sharers: dict[int, Sharer] = {}
        self.wishes: dict[int, Slot] = {}
        self.foreign: list[str] = []
        self.made = 0
        self.now = 0.0
        self._uids = itertools.count(1)

    # ---- the daemon

    def want(self, run: int, slot: Slot) -> None:
        if run not in self.sharers:
            self.wishes.setdefault(run, slot)

    def decide(self, slot: Slot) -> Held:
        sharers = [each.device for each in self.sharers.values() if each.slot == slot]
        is_wanted = slot in self.wishes.values()
        return hold(self.holders.get(slot), is_wanted=is_wanted, sharers=sharers, now=self.now, since=0.0)

    def perform(self, slot: Slot, held: Held) -> None:
        match held.action:
            case CreateHolder() if slot not in self.holders:
                self.made += 1
                pod = SeenPod(name="h", uid=f"u{next(self._uids)}", key=RunKey(0, 0), rank=0, created=self.now)
                self.holders[slot] = SeenHolder(pod=pod)
            case DeleteHolder(_, uid, at_once):
                found = self.holders.get(slot)
                if found is not None and found.pod.uid == uid:
                    self.protected.discard(uid)
                    self._change(slot, is_deleting=True)
                    if at_once:
                        self._end(slot)
        if held.device:
            for run, wish in list(self.wishes.items()):
                if wish == slot and run not in self.sharers:
                    self.sharers[run] = Sharer(slot, held.device)
        if held.lost:
            for run, sharer in self.sharers.items():
                if sharer.slot == slot:
                    sharer.is_ending = True
                    self.wishes.pop(run, None)

    def over(self, run: int) -> None:
        """The run is over; its pod ends in its own time."""
        self.wishes.pop(run, None)
        if run in self.sharers:
            self.sharers[run].is_ending = True

    # ---- the cluster

    def part(self) -> None:
        """Pods of runs that were told to end are gone."""
        self.sharers = {run: sharer for run, sharer in self.sharers.items() if not sharer.is_ending}

    def kubelet(self) -> None:
        """Of holders alone: they are taken, start, and end."""
        for slot, holder in list(self.holders.items()):
            pod = holder.pod
            if pod.is_deleting:
                if pod.uid not in self.protected:
                    self._end(slot)
            elif pod.life is Life.UNTAKEN:
                device = self._allocate(pod.uid)
                if device:
                    self._change(slot, life=Life.WAITING)
                else:
                    self._change(slot, life=Life.ENDED, reason="UnexpectedAdmissionError")
            elif pod.life is not Life.ENDED:
                device = next(device for device, uid in self.owners.items() if uid == pod.uid)
                self._change(slot, life=Life.RUNNING)
                self.holders[slot] = replace(self.holders[slot], device=device)

    def take(self) -> None:
        """Somebody else's pod asks for a whole device."""
        name = f"foreign-{next(self._uids)}"
        if self._allocate(name):
            self.foreign.append(name)

    def give_back(self) -> None:
        if self.foreign:
            self._free(self.foreign.pop(0))

    def delete(self, slot: Slot) -> None:
        """Somebody deletes a holder."""
        if slot in self.holders and not self.holders[slot].pod.is_deleting:
            self._change(slot, is_deleting=True)
            self.protected.add(self.holders[slot].pod.uid)

    def _allocate(self, uid: str) -> str:
        device = next((device for device, owner in self.owners.items() if not owner), "")
        if device:
            self.owners[device] = uid
        return device

    def _free(self, uid: str) -> None:
        self.owners = {device: "" if owner == uid else owner for device, owner in self.owners.items()}

    def _end(self, slot: Slot) -> None:
        self._free(self.holders.pop(slot).pod.uid)

    def _change(self, slot: Slot, **changes: object) -> None:
        holder = self.holders[slot]
        self.holders[slot] = replace(holder, pod=replace(holder.pod, **changes))
