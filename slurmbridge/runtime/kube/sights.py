"""What is known of our objects in a cluster, by run: what was seen, and what was written and is not seen yet.

Lives on the daemon's event loop; followers hand their changes over to it. A node that is not known counts as silent until
the API server itself says that there is none: its pods may run on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec

from slurmbridge.manifest import pod_names
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, NodeState, SeenPod, SeenService
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.node_watch import NodeWatch
from slurmbridge.runtime.kube.objects import Listing, Meta, Node, Object
from slurmbridge.runtime.kube.seen import RunPod, Warned, key_of, pod_of, service_of, state_of
from slurmbridge.runtime.kube.watching import Follower
from slurmbridge.runtime.kube.writes import Made

LISTEN_S = 10.0
"""Age of a pod that is not started at which its warnings are read, and how long they count as fresh."""


class WarningEvent(Object, frozen=True, kw_only=True):
    """An event about an object."""

    reason: str = ""
    message: str = ""
    last_timestamp: str | None = None
    event_time: str | None = None


class Sights:
    """`changed(key)` is called on the loop when something of a run is seen anew. `nodes`: those that others follow already."""

    def __init__(
        self, api: Api, instance: str, namespace: str, changed: Callable[[RunKey], None], clock: Callable[[], float],
        nodes: NodeWatch | None = None,
    ) -> None:  # fmt: skip
        self._api, self._instance, self._namespace = api, instance, namespace
        self._tell_changed, self._clock = changed, clock
        ours = f"{pod_names.INSTANCE}={instance},{pod_names.JOB}"
        base = f"/api/v1/namespaces/{namespace}"
        self._pod_follower = Follower(api, f"{base}/pods", RunPod, self.on_loop(self._pods_changed), labels=ours)
        self._service_follower = Follower(
            api, f"{base}/services", Object, self.on_loop(self._services_changed), labels=ours
        )
        self._own_watch = nodes is None
        self._watch = NodeWatch(api) if nodes is None else nodes
        self._followers: tuple[Follower[Any], ...] = (self._service_follower, self._pod_follower)
        self._asking = ThreadPoolExecutor(4, thread_name_prefix="ask")
        self._knows_pods = False
        self._asked: dict[str, float] = {}  # node or uid -> when
        self._pods: dict[RunKey, dict[str, RunPod]] = {}
        self._services: dict[RunKey, dict[str, Object]] = {}
        self._nodes: dict[str, NodeState] = {}
        self._warned: dict[str, Warned] = {}  # by uid
        self._made: dict[RunKey, dict[str, tuple[SeenPod, Made]]] = {}
        self._made_services: dict[RunKey, tuple[SeenService, Made]] = {}

    async def start(self, within: float) -> bool:
        """False: the cluster could not be listed in time; it is tried on."""
        self._loop = asyncio.get_running_loop()
        self._watch.listen(self._nodes_changed)
        for follower in self._followers:
            follower.start()
        watched = await self._watch.start(within)
        waits = (asyncio.to_thread(follower.wait_listed, within) for follower in self._followers)
        listed = all(await asyncio.gather(*waits)) and watched
        await asyncio.sleep(0)  # what was listed has been handed over
        self._knows_pods = listed
        return listed

    async def stop(self) -> None:
        for follower in self._followers:
            await asyncio.to_thread(follower.stop)
        if self._own_watch:
            await self._watch.stop()
        await asyncio.to_thread(self._asking.shutdown, cancel_futures=True)

    def on_loop(self, take: Callable[[Any], None]) -> Callable[[Any], None]:
        """The same for other threads to call."""

        def hand_over(value: Any) -> None:
            try:
                self._loop.call_soon_threadsafe(take, value)
            except RuntimeError:
                return  # the loop has ended; the next one lists again

        return hand_over

    # ---- questions

    @property
    def fault(self) -> str:
        """Why the cluster was not listed yet."""
        late = [each.fault for each in self._followers if not each.lists and each.fault is not None]
        return str(late[0]) if late else "no answer in time"

    @property
    def knows_pods(self) -> bool:
        """Whether every pod that is there was seen once."""
        if not self._knows_pods and self._pod_follower.lists:
            self._loop.call_soon(self._pods_known)  # after what was listed, which is on its way
        return self._knows_pods

    def _pods_known(self) -> None:
        self._knows_pods = True

    def runs(self) -> set[RunKey]:
        """All runs of which something is there."""
        return {*self._pods, *self._services, *self._made, *self._made_services}

    def pods(self, key: RunKey) -> list[SeenPod]:
        pods = [
            pod_of(pod, key, self.node_state(pod.spec.node_name), self._warned.get(pod.metadata.uid, Warned()))
            for pod in self._pods.get(key, {}).values()
        ]
        names, made = {pod.name for pod in pods}, self._made.get(key, {})
        for name, (pod, write) in list(made.items()):
            if name in names or self._pod_follower.mirror.knows_absent(self._namespace, name, write.version):
                del made[name]
            else:
                pods.append(pod)
        if not made:
            self._made.pop(key, None)
        return pods

    def services(self, key: RunKey) -> list[SeenService]:
        services = [service_of(service, key) for service in self._services.get(key, {}).values()]
        if key in self._made_services:
            service, write = self._made_services[key]
            mirror = self._service_follower.mirror
            if services or mirror.knows_absent(self._namespace, service.name, write.version):
                del self._made_services[key]
            else:
                services.append(service)
        return services

    # ---- what was written

    def note_pod(self, pod: SeenPod, made: Made) -> None:
        if pod.name not in self._pods.get(pod.key, {}):
            self._made.setdefault(pod.key, {})[pod.name] = (pod, made)

    def note_service(self, service: SeenService, made: Made) -> None:
        if service.name not in self._services.get(service.key, {}):
            self._made_services[service.key] = (service, made)

    # ---- what is seen

    def _pods_changed(self, changes: Sequence[Change[RunPod]]) -> None:
        for change in changes:
            if change.after is None and change.before is not None:
                self._warned.pop(change.before.metadata.uid, None)
                self._asked.pop(change.before.metadata.uid, None)
        self._changed([(change.before, change.after) for change in changes], self._pods)

    def _services_changed(self, changes: Sequence[Change[Object]]) -> None:
        self._changed([(change.before, change.after) for change in changes], self._services)

    def _changed(self, changes: Sequence[tuple[Any, Any]], known: dict[RunKey, dict[str, Any]]) -> None:
        touched: dict[RunKey, None] = {}
        for before, after in changes:
            metadata: Meta = (after or before).metadata
            key = key_of(metadata, self._instance)
            if key is None:
                continue
            touched[key] = None
            if after is not None:
                known.setdefault(key, {})[metadata.name] = after
            elif key in known:
                known[key].pop(metadata.name, None)
                if not known[key]:
                    del known[key]
        for key in touched:
            self._tell_changed(key)

    def _nodes_changed(self, changes: Sequence[Change[Node]]) -> None:
        self._nodes_are({change.key[1]: state_of(change.after) for change in changes})

    def _nodes_are(self, states: dict[str, NodeState]) -> None:
        moved = {name for name, state in states.items() if self._nodes.get(name) is not state}
        self._nodes.update(states)
        for key, pods in list(self._pods.items()) if moved else ():
            if any(pod.spec.node_name in moved for pod in pods.values()):
                self._tell_changed(key)

    # ---- what is asked

    def node_state(self, node: str) -> NodeState:
        state = self._nodes.get(node)
        if state is None and node and self._watch.is_listed and node not in self._asked:
            self._asked[node] = self._clock()
            self._asking.submit(self._ask_for_node, node)
        return state or NodeState.SILENT

    def _ask_for_node(self, name: str) -> None:
        state = None
        try:
            self._api.get(f"/api/v1/nodes/{name}")
        except ApiFault as fault:
            state = NodeState.GONE if fault.kind is Kind.GONE else None
        self.on_loop(lambda found: self._node_told(name, found))(state)

    def _node_told(self, name: str, state: NodeState | None) -> None:
        self._asked.pop(name, None)
        if state is not None and name not in self._nodes:
            self._nodes_are({name: state})

    def read_warnings(self, pods: Sequence[SeenPod]) -> None:
        """Of those that should have started by now; they are part of the sight once they were read."""
        now = self._clock()
        for pod in pods:
            waits = pod.life is Life.WAITING and now >= pod.created + LISTEN_S
            if waits and now >= self._asked.get(pod.uid, 0.0) + LISTEN_S:
                self._asked[pod.uid] = now
                self._asking.submit(self._ask_for_warnings, pod.key, pod.uid)

    def _ask_for_warnings(self, key: RunKey, uid: str) -> None:
        query = {"fieldSelector": f"involvedObject.uid={uid},type=Warning"}
        try:
            answer = self._api.get(f"/api/v1/namespaces/{self._namespace}/events", query)
        except ApiFault:
            return  # asked again later
        events = msgspec.json.decode(answer, type=Listing[WarningEvent]).items or ()
        if events:
            last = max(events, key=lambda event: event.last_timestamp or event.event_time or "")
            self.on_loop(lambda warned: self._warned_of(key, uid, warned))(
                Warned(reason=last.reason, message=last.message)
            )

    def _warned_of(self, key: RunKey, uid: str, warned: Warned) -> None:
        if self._warned.get(uid) != warned:
            self._warned[uid] = warned
            self._tell_changed(key)
