"""Devices by their device plugin: a pod of ours holds each device that is shared, as `reconcile.holders` decides.

Runs that have their devices whole are made once no holder is in their way; the plugin then gives them devices, whichever.
What a holder said is remembered by its uid; what we have deleted counts as going from then on, however old the copy of the
cluster is. Everything happens on the daemon's event loop but the requests, which threads make.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any

from msgspec.structs import replace

from slurmbridge.manifest import pod_names
from slurmbridge.manifest.pod_devices import (
    HOLDER,
    NODE,
    PARTING_S,
    Slot,
    holder,
    holder_name,
    slot_of,
    slots_of,
)
from slurmbridge.manifest.pod_resources import SHAREABLE, parts_of, resources_of
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import Launch, RunKey
from slurmbridge.reconcile.holders import CreateHolder, DeleteHolder, Held, HolderAction, SeenHolder, hold, is_clear
from slurmbridge.reconcile.observed import NodeState, SeenPod
from slurmbridge.reconcile.trouble import Patience, Trouble, refusal
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.devices import Denied, DeviceNews, Granted, Known, Taken, Tell, unheard
from slurmbridge.runtime.kube.faults import ApiFault
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.seen import NO_RUN, RunPod, holder_of
from slurmbridge.runtime.kube.watching import Follower
from slurmbridge.runtime.kube.writes import Made, Writer

AGAIN_S = 1.0


class _Claim:
    """Of one run: the slots of each rank, and which of them it shares."""

    def __init__(self, launch: Launch, template: PodTemplate, site: PodSite, now: float) -> None:
        self.key, self.template, self.since = launch.key, template, now
        self.parts = tuple(slots_of(node) if parts_of(node) else () for node in launch.nodes)
        self.shared = frozenset(slot for slots in self.parts for slot in slots)
        self.whole = frozenset(slot for node in launch.nodes for slot in slots_of(node)) - self.shared
        self.resources: dict[Slot, str] = {
            slot: name
            for node in launch.nodes
            for slot, name in zip(slots_of(node), resources_of(node, site), strict=True)
        }
        self.is_answered = False


class Holding:
    """See `devices.Access`. `node_state`: of a node by the cluster's name; `knows_pods`: all pods of runs were seen once."""

    def __init__(
        self, api: Api, site: PodSite, tell: Tell, clock: Callable[[], float], *,
        node_state: Callable[[str], NodeState], knows_pods: Callable[[], bool], patience: Patience = Patience(),
        again_s: float = AGAIN_S, known: Known = unheard,
    ) -> None:  # fmt: skip
        self._site, self._tell, self._clock = site, tell, clock
        self._node_state, self._knows_pods, self._known = node_state, knows_pods, known
        self._patience, self._again_s = patience, again_s
        self._path = f"/api/v1/namespaces/{site.namespace}/pods"
        self._writer = Writer(api, seal=(NODE,), threads=4)
        labels = f"{pod_names.INSTANCE}={site.instance},{pod_names.ROLE}={HOLDER}"
        self._follower = Follower(api, self._path, RunPod, self._on_loop, labels=labels)
        self._pods: dict[Slot, RunPod] = {}
        self._made: dict[Slot, tuple[SeenHolder, Made]] = {}
        self._devices: dict[str, str] = {}  # by the holder's uid
        self._doomed: set[str] = set()  # uids that we have deleted
        self._claims: dict[RunKey, _Claim] = {}
        self._claimed: dict[Slot, set[RunKey]] = {}
        self._shares: dict[RunKey, tuple[tuple[Slot, str], ...]] = {}  # of pods that may run
        self._sharers: dict[Slot, set[RunKey]] = {}
        self._bereft: set[RunKey] = set()  # runs that were told
        self._busy: set[tuple[Slot, HolderAction]] = set()
        self._timers: dict[Slot, asyncio.TimerHandle] = {}
        self._knows_runs = False  # before that nothing counts as nobody's

    async def start(self, within: float) -> bool:
        self._loop = asyncio.get_running_loop()
        self._follower.start()
        listed = await asyncio.to_thread(self._follower.wait_listed, within)
        await asyncio.sleep(0)  # what was listed has been handed over
        return listed

    def reconfigure(self, site: PodSite) -> None:
        self._site = site

    async def stop(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._claims.clear()
        self._knows_runs = False
        await asyncio.to_thread(self._follower.stop)
        await asyncio.to_thread(self._writer.close)

    async def emptied(self, within: float) -> None:
        end = self._loop.time() + within
        while (self._pods or self._made) and self._loop.time() < end:
            await asyncio.sleep(0.05)

    # ---- wishes

    def claim(self, launch: Launch, template: PodTemplate) -> None:
        if launch.key in self._claims:
            return
        claim = self._claims[launch.key] = _Claim(launch, template, self._site, self._clock())
        odd = next((name for slot, name in claim.resources.items() if not name.startswith(SHAREABLE)), None)
        if claim.shared and odd is not None:
            self._deny(claim, Trouble(why="launch", message=f"parts of {odd} cannot be given to pods"))
            return
        for slot in claim.shared | claim.whole:
            self._claimed.setdefault(slot, set()).add(claim.key)
        self._look_at(claim.shared)
        self._answer(claim)

    def give_up(self, key: RunKey) -> None:
        claim = self._claims.pop(key, None)
        if claim is None:
            return
        for slot in claim.shared | claim.whole:
            self._drop(self._claimed, slot, key)
        self._look_at(claim.shared)

    def seen(self, key: RunKey, pods: Sequence[SeenPod]) -> None:
        shares = tuple(share for pod in pods if not pod.is_dead for share in pod.shares)
        before = self._shares.get(key, ())
        if shares == before:
            return
        for slot, _ in before:
            self._drop(self._sharers, slot, key)
        for slot, _ in shares:
            self._sharers.setdefault(slot, set()).add(key)
        if shares:
            self._shares[key] = shares
        else:
            del self._shares[key]
            self._bereft.discard(key)
        self._look_at({slot for slot, _ in (*before, *shares)})

    def adopt(self) -> None:
        self._knows_runs = True
        self._look_at({*self._pods, *self._sharers})

    @staticmethod
    def _drop(index: dict[Slot, set[RunKey]], slot: Slot, key: RunKey) -> None:
        keys = index.get(slot, set())
        keys.discard(key)
        if not keys:
            index.pop(slot, None)

    # ---- what is seen

    def _on_loop(self, changes: Sequence[Change[RunPod]]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._changed, changes)
        except RuntimeError:
            return  # the loop has ended; the next one lists again

    def _changed(self, changes: Sequence[Change[RunPod]]) -> None:
        touched: dict[Slot, None] = {}
        for change in changes:
            pod = change.after or change.before
            assert pod is not None
            slot = slot_of(pod.metadata.labels, pod.metadata.annotations)
            if slot is None or pod.metadata.name != holder_name(self._site.instance, slot):
                continue
            touched[slot] = None
            if change.after is not None:
                self._pods[slot] = change.after
            else:
                self._pods.pop(slot, None)
                if self._devices.pop(pod.metadata.uid, None) is not None:
                    self._known(*slot, "")
                self._doomed.discard(pod.metadata.uid)
        self._look_at(touched)

    def _holder(self, slot: Slot) -> SeenHolder | None:
        pod = self._pods.get(slot)
        if pod is None:
            return self._unseen(slot)
        self._made.pop(slot, None)
        found = holder_of(pod, slot, self._node_state(pod.spec.node_name))
        uid = found.pod.uid
        if found.device and self._devices.get(uid) != found.device:
            self._devices[uid] = found.device
            self._known(*slot, found.device)
        pod_seen = replace(found.pod, is_deleting=True) if uid in self._doomed else found.pod
        return SeenHolder(pod=pod_seen, device=self._devices.get(uid, ""))

    def _unseen(self, slot: Slot) -> SeenHolder | None:
        """One that was made and is not in the copy of the cluster yet."""
        if slot not in self._made:
            return None
        found, made = self._made[slot]
        if self._follower.mirror.knows_absent(self._site.namespace, found.pod.name, made.version):
            del self._made[slot]
            return None
        return found

    # ---- decisions

    def _look_at(self, slots: Iterable[Slot]) -> None:
        for slot in list(slots):
            self._look(slot)

    def _look_soon(self, slot: Slot, seconds: float) -> None:
        timer = self._timers.pop(slot, None)
        if timer is not None:
            timer.cancel()
        self._timers[slot] = self._loop.call_later(max(seconds, 0.0), self._look, slot)

    def _look(self, slot: Slot) -> None:
        timer = self._timers.pop(slot, None)
        if timer is not None:
            timer.cancel()
        if not self._knows_runs and not self._claimed.get(slot):
            return
        wishes = [claim for claim in self._wishes(slot) if slot in claim.shared]
        sharers = [
            device for key in self._sharers.get(slot, ()) for place, device in self._shares[key] if place == slot
        ]
        now = self._clock()
        held = hold(
            self._holder(slot), is_wanted=bool(wishes), sharers=sharers, now=now,
            since=min((claim.since for claim in wishes), default=now), patience=self._patience,
        )  # fmt: skip
        if held.action is not None and (wishes or self._may_remove(slot)):
            self._do(slot, held.action)
        if held.lost and self._knows_runs:
            self._take_away(slot, held.lost)
        if held.look is not None:
            self._look_soon(slot, max(held.look - now, self._again_s))
        for claim in self._wishes(slot):
            self._answer(claim, held if slot in claim.shared else None)

    def _wishes(self, slot: Slot) -> list[_Claim]:
        return [self._claims[key] for key in self._claimed.get(slot, ())]

    def _may_remove(self, slot: Slot) -> bool:
        """Whether it is known that nobody needs it."""
        if self._knows_runs and self._knows_pods():
            return True
        self._look_soon(slot, self._again_s)
        return False

    def _answer(self, claim: _Claim, held: Held | None = None) -> None:
        """Grant or deny it, if that is due. `held`: what was just found of one of the slots that it shares."""
        if claim.is_answered:
            return
        if held is not None and held.trouble is not None:
            self._deny(claim, held.trouble)
            return
        devices = {slot: self._device(slot) for slot in claim.shared}
        in_the_way = next((slot for slot in claim.whole if not is_clear(self._holder(slot))), None)
        if in_the_way is not None:
            due = claim.since + self._patience.start
            if self._clock() >= due:
                text = f"device {in_the_way[1]} of {in_the_way[0]} is still held for others"
                self._deny(claim, Trouble(why="requeue", message=text))
                return
            if in_the_way not in self._timers:
                self._look_soon(in_the_way, due - self._clock())
        elif all(devices.values()):
            claim.is_answered = True
            found = tuple(tuple(devices[slot] for slot in slots) for slots in claim.parts)
            self._say(Granted(claim.key, found))

    def _device(self, slot: Slot) -> str:
        """That of a slot that one more may share; empty: nobody may now."""
        found = self._holder(slot)
        if found is None or not found.may_be_shared:
            return ""
        others = (device for key in self._sharers.get(slot, ()) for place, device in self._shares[key] if place == slot)
        return found.device if all(device == found.device for device in others) else ""

    def _deny(self, claim: _Claim, trouble: Trouble) -> None:
        claim.is_answered = True
        self._say(Denied(claim.key, trouble))

    def _take_away(self, slot: Slot, why: str) -> None:
        for key in self._sharers.get(slot, set()) - self._bereft:
            self._bereft.add(key)
            self._say(Taken(key, why))

    def _say(self, news: DeviceNews) -> None:
        self._loop.call_soon(self._tell, news)

    # ---- deeds

    def _do(self, slot: Slot, action: HolderAction) -> None:
        if (slot, action) in self._busy:
            return
        self._busy.add((slot, action))

        def done(future: Future[Any]) -> None:
            try:
                self._loop.call_soon_threadsafe(self._done, slot, action, future)
            except RuntimeError:
                return  # the loop has ended

        self._request(slot, action).add_done_callback(done)

    def _request(self, slot: Slot, action: HolderAction) -> Future[Any]:
        match action:
            case CreateHolder():
                claim = next(claim for claim in self._wishes(slot) if slot in claim.shared)
                return self._writer.create(self._path, holder(slot, claim.resources[slot], claim.template, self._site))
            case DeleteHolder(name, uid, at_once):
                self._doomed.add(uid)
                return self._writer.delete(f"{self._path}/{name}", uid, grace=0 if at_once else PARTING_S)

    def _done(self, slot: Slot, action: HolderAction, done: Future[Any]) -> None:
        if done.cancelled():
            return
        fault = done.exception()
        self._busy.discard((slot, action))
        if isinstance(fault, ApiFault):
            if isinstance(action, CreateHolder):
                for claim in self._wishes(slot):
                    trouble = refusal(fault.kind.value, fault.message, claim.since, self._clock(), self._patience)
                    if slot in claim.shared and trouble is not None and not claim.is_answered:
                        self._deny(claim, trouble)
            self._look_soon(slot, self._again_s)
            return
        if fault is not None:
            raise fault
        if isinstance(action, CreateHolder):
            self._note(slot, done.result())
        elif not action.at_once:
            self._busy.add((slot, action))  # it was answered: it needs no second
        self._look(slot)

    def _note(self, slot: Slot, made: Made) -> None:
        name = holder_name(self._site.instance, slot)
        pod = SeenPod(
            name=name, uid=made.uid, key=NO_RUN, rank=0, is_held=False, is_deleting=made.leaving,
            created=self._clock(), title=f"the pod that holds device {slot[1]}",
        )  # fmt: skip
        if slot not in self._pods:
            self._made[slot] = (SeenHolder(pod=pod), made)
