"""The pods of all runs: made, watched, ended and removed as `reconcile` decides. Knows nothing of scripts and supervisors.

Everything happens on the daemon's event loop but the requests, which threads make. A run is looked at when its objects
change, when a request of its was answered, and when the passing of time alone may mean something. An API server that is
away stops nothing: what is known stays, and what is to be done is done later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from slurmbridge.manifest import pod_devices, pod_names
from slurmbridge.manifest.pod import RunObjects
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, NodeState, SeenPod, SeenService
from slurmbridge.reconcile.plan import (
    Action,
    CreatePod,
    CreateService,
    DeletePod,
    DeleteService,
    FreePod,
    Goal,
    State,
    Wanted,
    Wish,
    own,
    plan,
)
from slurmbridge.reconcile.trouble import Patience, Trouble, next_look, refusal, trouble_of
from slurmbridge.runtime.kube.api import STRATEGIC_PATCH, Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.node_watch import NodeWatch
from slurmbridge.runtime.kube.sights import Sights
from slurmbridge.runtime.kube.writes import Made, Writer

AGAIN_S = 1.0
"""Before a request that failed is planned again."""


class Complete(msgspec.Struct, frozen=True):
    """All pods are there."""

    key: RunKey


class Broken(msgspec.Struct, frozen=True):
    """The run cannot go on as it is; `trouble` None: its pods ended, and why they will have said themselves."""

    key: RunKey
    trouble: Trouble | None
    pods: tuple[SeenPod, ...]


class Dead(msgspec.Struct, frozen=True):
    """It was to end, and it is proved that nothing of it runs."""

    key: RunKey
    pods: tuple[SeenPod, ...]


class Cleared(msgspec.Struct, frozen=True):
    """It was to be released, and nothing is left."""

    key: RunKey


News: TypeAlias = Complete | Broken | Dead | Cleared


class _Run:
    def __init__(self, wish: Wish, objects: RunObjects | None, began: float) -> None:
        self.wish, self.objects, self.began = wish, objects, began
        self.told: set[tuple[Goal, State]] = set()
        self.refused: Trouble | None = None


def _nobody(key: RunKey, pods: Sequence[SeenPod]) -> None:
    """Who looks on where there is nobody."""


class Gangs:
    """`tell` hears each piece of news once per goal, on the loop; `seen` is told the pods of a run when they change."""

    def __init__(
        self, api: Api, instance: str, namespace: str, tell: Callable[[News], None], clock: Callable[[], float], *,
        seen: Callable[[RunKey, Sequence[SeenPod]], None] = _nobody, patience: Patience = Patience(),
        again_s: float = AGAIN_S, nodes: NodeWatch | None = None,
    ) -> None:  # fmt: skip
        self._seen = seen
        self._api, self._instance, self._tell, self._clock = api, instance, tell, clock
        self._patience, self._again_s = patience, again_s
        self._pods_path = f"/api/v1/namespaces/{namespace}/pods"
        self._services_path = f"/api/v1/namespaces/{namespace}/services"
        self._writer = Writer(api, seal=(pod_names.HASH, pod_names.EPOCH))
        self._patches = ThreadPoolExecutor(4, thread_name_prefix="free")
        self._sights = Sights(api, instance, namespace, self._look, clock, nodes)
        self._runs: dict[RunKey, _Run] = {}
        self._busy: dict[RunKey, set[Action]] = {}  # under way; deletes that were answered stay, they need no second
        self._timers: dict[RunKey, asyncio.TimerHandle] = {}
        self._knows_runs = False  # before that nothing counts as an orphan
        self._due: set[RunKey] = set()  # runs that will be begun: what is there of them is no orphan either

    async def start(self, within: float = 30.0) -> bool:
        """Follow the cluster; False: it could not be listed in time, and is tried on."""
        self._loop = asyncio.get_running_loop()
        return await self._sights.start(within)

    @property
    def fault(self) -> str:
        """Why the cluster was not listed yet."""
        return self._sights.fault

    async def stop(self) -> None:
        """Let go; pods stay."""
        for timer in self._timers.values():
            timer.cancel()
        self._runs.clear()
        self._knows_runs = False
        await self._sights.stop()
        await asyncio.to_thread(self._writer.close)
        await asyncio.to_thread(self._patches.shutdown, cancel_futures=True)

    # ---- wishes

    def found(self, key: RunKey) -> tuple[SeenPod, ...]:
        """The pods of a run, known or not."""
        return tuple(self._sights.pods(key))

    def node_state(self, name: str) -> NodeState:
        return self._sights.node_state(name)

    def knows_pods(self) -> bool:
        """Whether every pod that is there was seen once."""
        return self._sights.knows_pods

    def adopt(self, running: Sequence[RunKey], due: Sequence[RunKey] = ()) -> None:
        """After a start: the first go on as they were found, `due` will be begun or ended; the others are nobody's."""
        self._due.update(due)
        for key in running:
            self._runs[key] = _Run(Wish(key=key, goal=Goal.RUN), None, self._clock())
        self._knows_runs = True
        for key in self._sights.runs():
            self._look_soon(key, 0.0)

    def begin(self, key: RunKey, objects: RunObjects, epoch: str) -> None:
        """Make all objects of a run, or find them made. The same call again changes nothing."""
        known = self._runs.get(key)
        if known is not None and known.wish.goal is not Goal.RUN:
            return
        wish = Wish(
            key=key,
            goal=Goal.BEGIN,
            epoch=epoch,
            pods=tuple(_wanted(pod) for pod in objects.pods),
            service=_wanted(objects.service) if objects.service is not None else None,
        )
        self._runs[key] = _Run(wish, objects, self._clock())
        self._look(key)

    def end(self, key: RunKey) -> None:
        """Nothing of it may run; what ended stays to be read."""
        self._aim(key, Goal.END)

    def release(self, key: RunKey) -> None:
        """Its end is stored."""
        self._aim(key, Goal.RELEASE)

    def _aim(self, key: RunKey, goal: Goal) -> None:
        run = self._runs.setdefault(key, _Run(Wish(key=key, goal=goal), None, self._clock()))
        if run.wish.goal is not Goal.RELEASE:
            run.wish = replace(run.wish, goal=goal)
        self._look(key)

    # ---- decisions

    def _look_soon(self, key: RunKey, seconds: float) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        self._timers[key] = self._loop.call_later(seconds, self._look, key)

    def _look(self, key: RunKey) -> None:
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        run = self._runs.get(key)
        pods = self._sights.pods(key)
        self._seen(key, pods)
        if run is None and (not self._knows_runs or key in self._due):
            return
        self._due.discard(key)
        decided = plan(run.wish if run else None, pods, self._sights.services(key))
        if decided.state is State.CLEAR:
            self._busy.pop(key, None)
        if run is not None and not self._news(run, decided.state, pods):
            return
        for action in decided.actions:
            self._do(key, run, action)

    def _news(self, run: _Run, state: State, pods: list[SeenPod]) -> bool:
        """Tell what is new; False: nothing is to be done."""
        key, goal = run.wish.key, run.wish.goal
        if goal in (Goal.BEGIN, Goal.RUN):
            now, pods = self._clock(), own(run.wish, pods)
            trouble = run.refused or trouble_of(pods, now, self._patience)
            if trouble is not None or state is State.BROKEN:
                self._once(run, State.BROKEN, Broken(key, trouble, tuple(pods)))
                return False
            self._sights.read_warnings(pods)
            moment = next_look(pods, now, self._patience)
            if moment is not None:
                self._look_soon(key, max(moment - now, self._again_s))
            if state is State.COMPLETE:
                self._once(run, state, Complete(key))
        elif goal is Goal.END and state is State.DEAD:
            self._once(run, state, Dead(key, tuple(pods)))
        elif goal is Goal.RELEASE and state is State.CLEAR:
            del self._runs[key]
            self._tell(Cleared(key))
            return False
        return True

    def _once(self, run: _Run, state: State, news: News) -> None:
        mark = (run.wish.goal, state)
        if mark not in run.told:
            run.told.add(mark)
            self._loop.call_soon(self._tell, news)

    # ---- deeds

    def _do(self, key: RunKey, run: _Run | None, action: Action) -> None:
        busy = self._busy.setdefault(key, set())
        if action in busy:
            return
        busy.add(action)
        tell = self._sights.on_loop(lambda done: self._done(key, action, done))
        self._request(run, action).add_done_callback(tell)

    def _request(self, run: _Run | None, action: Action) -> Future[Any]:
        match action:
            case CreatePod(rank):
                assert run is not None and run.objects is not None
                return self._writer.create(self._pods_path, run.objects.pods[rank])
            case CreateService():
                assert run is not None and run.objects is not None and run.objects.service is not None
                return self._writer.create(self._services_path, run.objects.service)
            case DeletePod(name, uid, at_once):
                return self._writer.delete(f"{self._pods_path}/{name}", uid, grace=0 if at_once else None)
            case DeleteService(name, uid):
                return self._writer.delete(f"{self._services_path}/{name}", uid)
            case FreePod(name, uid):
                return self._patches.submit(self._free, name, uid)

    def _free(self, name: str, uid: str) -> None:
        change = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [pod_names.HOLD]}}  # ours alone
        try:
            self._api.patch(f"{self._pods_path}/{name}", change, kind=STRATEGIC_PATCH)
        except ApiFault as fault:
            if fault.kind is not Kind.GONE:  # a conflict may be with another change: what is seen next tells
                raise

    def _done(self, key: RunKey, action: Action, done: Future[Any]) -> None:
        if done.cancelled():
            return
        fault, run = done.exception(), self._runs.get(key)
        is_creation = isinstance(action, (CreatePod, CreateService))
        if is_creation or fault is not None:
            self._busy.get(key, set()).discard(action)
        if isinstance(fault, ApiFault):
            if run is not None and is_creation:
                run.refused = refusal(fault.kind.value, fault.message, run.began, self._clock(), self._patience)
            self._look_soon(key, 0.0 if run is not None and run.refused else self._again_s)
            return
        if fault is not None:
            raise fault
        if run is not None and is_creation:
            self._note(run, action, done.result())
            self._look(key)

    def _note(self, run: _Run, action: Action, made: Made) -> None:
        wish = run.wish
        if isinstance(action, CreatePod):
            pod = SeenPod(
                name=wish.pods[action.rank].name, uid=made.uid, key=wish.key, rank=action.rank, ranks=len(wish.pods),
                spec_hash=wish.pods[action.rank].spec_hash, epoch=wish.epoch, life=Life.UNTAKEN,
                is_deleting=made.leaving, created=self._clock(), shares=wish.pods[action.rank].shares,
            )  # fmt: skip
            self._sights.note_pod(pod, made)
        elif wish.service is not None:
            service = SeenService(
                name=wish.service.name, uid=made.uid, key=wish.key, spec_hash=wish.service.spec_hash,
                epoch=wish.epoch, is_deleting=made.leaving,
            )  # fmt: skip
            self._sights.note_service(service, made)


def _wanted(manifest: Any) -> Wanted:
    metadata = manifest["metadata"]
    notes = metadata["annotations"]
    shares = pod_devices.read(notes.get(pod_devices.SHARES, ""))
    return Wanted(name=metadata["name"], spec_hash=notes[pod_names.HASH], shares=shares)
