"""Runs as pods: their objects are `gangs`' business, their supervisors dial in, and here the two come together.

A supervisor that is new says hello without a token and gets its launch; one that comes back has its token. The token is the
same whenever the run is launched: of a gang whose daemon died some ranks may have it from the one, the others from the next.
What a run became is told once: by its supervisor, else by the last words in its pod, else by what the cluster says of the pods.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from slurmbridge.errors import RuntimeFault
from slurmbridge.manifest.pod import build
from slurmbridge.manifest.pod_container import settle
from slurmbridge.manifest.pod_env import in_pods
from slurmbridge.manifest.pod_names import host_names
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.model.pods import PodTemplate
from slurmbridge.reconcile.observed import NodeState, SeenPod
from slurmbridge.reconcile.plan import was_begun
from slurmbridge.reconcile.trouble import Patience, Trouble
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.devices import Access, Denied, DeviceNews, Known, Taken, unheard
from slurmbridge.runtime.kube.gangs import Broken, Cleared, Dead, Gangs, News
from slurmbridge.runtime.kube.greeting import put_off, refuse
from slurmbridge.runtime.kube.holding import Holding
from slurmbridge.runtime.kube.keeping import Keeping
from slurmbridge.runtime.kube.node_watch import NodeWatch
from slurmbridge.runtime.kube.pace import Pace
from slurmbridge.runtime.kube.run import Attach, Run, known_better, payload_of, still_talking, token_of
from slurmbridge.runtime.kube.steady import Steady
from slurmbridge.runtime.local.reports import report_of, words_of
from slurmbridge.runtime.orders import Orders
from slurmbridge.runtime.protocol import NEVER_STARTED, Ended, Ending, Launch, Lost, NodeSample, Report, RunKey, Told
from slurmbridge.wire import supervisor as wire

PROVED = 1 << 30
"""Sequence number of reports made here: above any that a supervisor gives."""
PARTING_S = 10.0
"""From the end of one pod of a gang until the others are ended too."""
KILL_WAIT_S = 30
"""Of a run that was found: the least that its pods have."""
HELD_S = 30.0
"""Beyond the time that pods are given to end: then a run that has told its end for all its ranks counts as ended, wherever their
kubelets are."""
TALKING_S = 1.0
"""Between looks at supervisors that still speak though the cluster says that they are dead."""
LISTED_S = 60.0
"""How long the start waits for a cluster to be listed."""
FREE_S = 30.0
"""How long an end waits for devices to be free."""


class KubeRuntime(Orders):
    """See `runtime.protocol`. `templates`: of partitions; `base`: of those that have none; `secret`: of this state folder."""

    def __init__(
        self, api: Api, site: PodSite, templates: Mapping[str, PodTemplate], base: PodTemplate,
        clock: Callable[[], float], *, secret: bytes, parting_s: float = PARTING_S, nodes: NodeWatch | None = None,
        patience: Patience = Patience(), pace: Pace | None = None, known: Known = unheard,
    ) -> None:  # fmt: skip
        self._site, self._clock, self._pace = site, clock, pace or Pace()
        self._api, self._secret, self._ages = api, secret, Steady(clock)
        self._capabilities = Capabilities(containers=True, templates=templates, base=base)
        self._parting_s = parting_s
        self._follows_nodes = nodes is None
        self._gangs = Gangs(
            api, site.instance, site.namespace, self._hear, self._ages, seen=self._pods_seen, nodes=nodes,
            patience=patience,
        )  # fmt: skip
        self._devices: Access = Holding(
            api, site, self._hear_of_devices, self._ages, node_state=self._gangs.node_state,
            knows_pods=self._gangs.knows_pods, patience=patience, known=known,
        )  # fmt: skip
        self._runs: dict[RunKey, Run] = {}
        self.keeping = Keeping()
        self._knows_runs = False  # the daemon has said which runs there are: before that nobody is nobody's
        self._listener: Callable[[Told], None] = lambda report: None
        self._nodes: tuple[str, ...] = ()
        self._addresses: dict[str, str] = {}

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def start(self, listener: Callable[[Told], None], config: ClusterConfig, *, daemon_addr: str) -> None:
        """Follow the cluster. `daemon_addr` is for commands in jobs; supervisors dial `site.daemon`.

        RuntimeFault: the cluster's pods cannot be listed, so that nobody knows which runs go on.
        """
        self._loop = asyncio.get_running_loop()
        self._listener = listener
        self.reconfigure(config)
        await asyncio.to_thread(self._ages.align, self._api)
        await self._devices.start(LISTED_S)
        if not await self._gangs.start(LISTED_S):
            raise RuntimeFault(f"the pods of namespace {self._site.namespace} cannot be listed: {self._gangs.fault}")

    def reconfigure(self, config: ClusterConfig) -> None:
        """Of a cluster's configuration also what pods of its partitions are like; those that run stay as they are."""
        self._nodes = tuple(node.name for node in config.nodes)
        self._addresses = {node.name: node.address for node in config.nodes}
        hosts = {node.name: node.host for node in config.nodes if node.host not in ("", node.name)}
        self._site = replace(self._site, kube_nodes=hosts)
        self._devices.reconfigure(self._site)
        if isinstance(config, FleetConfig):
            templates = dict(config.partition_pods)
            self._capabilities = replace(self._capabilities, templates=templates, base=config.pods)

    async def adopt(self, expected: Sequence[RunKey]) -> None:
        self._knows_runs = True
        found = [key for key in expected if was_begun(self._gangs.found(key))]
        for key in found:
            run = self._runs.setdefault(key, Run(key))
            run.is_launched = True
        self._gangs.adopt(found, due=[key for key in expected if key not in self._runs])
        for key in expected:
            if key not in self._runs:
                # launched at once or not, before what is left of it counts as nobody's
                self._listener(Lost(key=key, sequence=PROVED, time=self._clock(), message=NEVER_STARTED))
        self._devices.adopt()

    def launch(self, launch: Launch) -> None:
        """Make its pods; what cannot be made is reported as a launch that failed."""
        run = self._runs.setdefault(launch.key, Run(launch.key))
        if run.launch is not None:
            return
        template = self._capabilities.template(launch.partition)
        container = settle(launch.container, template, launch.home)
        run.launch, run.token = launch, token_of(launch, self._site.instance, self._secret)
        if isinstance(container, str):
            self._loop.call_soon(self._end_report, run, "launch", container)
            return
        run.host_names = host_names([node.node for node in launch.nodes])
        inside = in_pods(
            launch, run.host_names, host_software=template.host_software, named=container.env_names,
            gpu_sharing=template.gpu_sharing,
        )  # fmt: skip
        run.launch = replace(inside, work_dir=container.work_dir or inside.work_dir)

        def make(devices: Sequence[tuple[str, ...]]) -> None:
            objects = build(launch, template, self._site, container, devices=devices)
            self._gangs.begin(launch.key, objects, launch.epoch)

        if any(node.devices for node in launch.nodes):
            run.make = make
            self._devices.claim(launch, template)
        else:
            make(())

    # ---- supervisors

    def pods(self, key: RunKey) -> Sequence[SeenPod]:
        """Those of a run, as they are seen now."""
        return self._gangs.found(key)

    def welcome(self, attach: Attach, key: RunKey, rank: int, token: str) -> None:
        """A supervisor dialled in whose pod was proved to be of this run and rank. The link is the runtime's from here."""
        run = self._runs.get(key)
        if run is None and not self._knows_runs:
            put_off(attach)
            return
        is_new = not token
        if run is None or (not is_new and run.token and not hmac.compare_digest(token.encode(), run.token.encode())):
            refuse(attach, self._loop)
            return
        if is_new and run.launch is None:  # it was found, and had not begun: its launch is asked for again
            run.is_launched = run.is_launched and rank != 0
            self._listener(Lost(key=key, sequence=PROVED, time=self._clock(), message=NEVER_STARTED))
            if run.launch is None:  # what it needs is being read, or nobody wants it any more
                refuse(attach, self._loop) if run.is_unwanted else put_off(attach)
                return
        run.token = run.token or token
        self._attach(run, rank, attach, is_new)

    def _attach(self, run: Run, rank: int, attach: Attach, is_new: bool) -> None:
        old = run.channels.pop(rank, None)
        if old is not None:
            old.close()
        channel = run.channels[rank] = attach(self.keeping.before(self._told, run, rank), lambda: self._lost(run, rank))
        if is_new and run.launch is not None:
            template = self._capabilities.template(run.launch.partition)
            head = self._addresses.get(run.launch.nodes[0].node, "")
            channel.send(wire.LAUNCH, payload_of(run, run.launch, rank, template, head))
        else:
            channel.send(wire.ACK, wire.encode({"sequence": 0}))
        if rank == 0:
            run.is_launched = True
            for kind, payload in run.pending:
                channel.send(kind, payload)
            run.pending.clear()

    def _lost(self, run: Run, rank: int) -> None:
        """It dials in again, or its pod ends."""
        run.channels.pop(rank, None)

    def _told(self, run: Run, kind: bytes, payload: bytes) -> None:
        report = report_of(run.key, wire.decode(payload)) if kind == wire.REPORT else None
        if isinstance(report, Ended) and not run.is_ended:
            self._ended(run, report)
        elif report is not None:
            self._report(run, report)

    def _ended(self, run: Run, report: Ended) -> None:
        """Its processes are gone; its nodes are free when their kubelets say that its pods have ended, and told so then.

        Before that a kubelet would turn the next pod away. The supervisor may go at once: its pods keep the record.
        """
        if run.end is None:
            self._listener(Ending(key=run.key, end=known_better(run, report)))
        run.end = report
        if 0 in run.channels:
            run.channels[0].send(wire.ACK, wire.encode({"sequence": report.sequence}))
        self._gangs.end(run.key)
        wait = run.launch.kill_wait_s if run.launch is not None else KILL_WAIT_S
        self._later(run, wait + self._site.grace_s + HELD_S, lambda: self._held(run, report))
        if all(pod.is_dead for pod in self._gangs.found(run.key)):
            self._dead(run, self._gangs.found(run.key))

    def _held(self, run: Run, report: Ended) -> None:
        if not run.is_ended and not report.lost:
            self._report(run, report)

    def _report(self, run: Run, report: Report) -> None:
        if isinstance(report, (Ended, Lost)):
            if run.is_ended and report.sequence == PROVED:
                return
            run.is_ended = True
            if not run.rests:
                self._pace.forget(run.key.job_id)
        self._listener(known_better(run, report) if isinstance(report, Ended) else report)

    # ---- orders

    def acknowledge(self, key: RunKey, sequence: int) -> None:
        run = self._runs.get(key)
        if run is None:
            return
        if 0 in run.channels:
            run.channels[0].send(wire.ACK, wire.encode({"sequence": sequence}))
        if run.is_ended:
            self._gangs.release(key)
        run.is_unwanted = run.is_unwanted or sequence == PROVED

    def kill(self, key: RunKey, why: str) -> None:
        run = self._runs.setdefault(key, Run(key))
        if run.is_over:
            return
        if run.rests:
            self._end_report(run, why, "")
        elif not run.is_launched:  # there is nobody to tell, and nothing that runs
            run.why = run.why if run.why[0] else (why, "")
            self._gangs.end(key)
        else:
            self._command(key, wire.KILL, wire.encode({"why": why}))
            wait = run.launch.kill_wait_s if run.launch is not None else KILL_WAIT_S
            silent = (why, "its supervisor did not answer")
            self._later(run, wait + self._site.grace_s, lambda: self._break(run, silent))

    def _command(self, key: RunKey, kind: bytes, payload: bytes) -> None:
        run = self._runs.get(key)
        if run is None or run.is_over:
            return
        if 0 in run.channels:
            run.channels[0].send(kind, payload)
        else:
            run.pending.append((kind, payload))

    def connect(self, key: RunKey, name: str) -> bool:
        """Have the supervisor of rank 0 dial once more, with that name. False: there is none."""
        run = self._runs.get(key)
        if run is None or run.is_over:
            return False
        self._command(key, wire.CONNECT, wire.encode({"connection": name}))
        return True

    def step_address(self, key: RunKey) -> str:
        """Who is outside the cluster's network goes through the daemon."""
        return f"through:{key.job_id}"

    def sample(self) -> Sequence[NodeSample]:
        if not self._follows_nodes:  # who told us of the nodes tells more of them
            return ()
        names = self._site.kube_nodes
        return [
            NodeSample(node=name, responding=self._gangs.node_state(names.get(name, name)) is NodeState.THERE)
            for name in self._nodes
        ]

    async def stop(self, *, end_jobs: bool) -> None:
        """Let go of everything; `end_jobs`: end what runs first, and wait until it has ended and was acknowledged."""
        if end_jobs:
            for key in list(self._runs):
                self.kill(key, "cancelled")
            while self._runs:
                await asyncio.sleep(0.05)
            await self._devices.emptied(FREE_S)
        for run in self._runs.values():
            if run.timer is not None:
                run.timer.cancel()
            for channel in run.channels.values():
                channel.close()
        await self._gangs.stop()
        await self._devices.stop()

    # ---- news of the pods and devices

    def _pods_seen(self, key: RunKey, pods: Sequence[SeenPod]) -> None:
        self._devices.seen(key, pods)

    def _hear_of_devices(self, news: DeviceNews) -> None:
        run = self._runs.get(news.key)
        if run is None or run.is_ended:
            return
        if isinstance(news, Taken):
            self._break(run, ("node_fail", news.why))
        elif run.why[0]:
            return  # it is to end before it began
        elif isinstance(news, Denied):
            self._break(run, (news.trouble.why, news.trouble.message))
        elif run.make is not None:
            make, run.make = run.make, None
            make(news.devices)

    def _hear(self, news: News) -> None:
        run = self._runs.get(news.key)
        if run is None:
            return
        if isinstance(news, Broken):
            self._broken(run, news.trouble)
        elif isinstance(news, Dead):
            self._dead(run, news.pods)
        elif isinstance(news, Cleared):
            self._forget(run)

    def _broken(self, run: Run, trouble: Trouble | None) -> None:
        """Without a trouble its pods have ended by themselves: the last of them gets a moment to do so too."""
        if run.end is not None:
            return  # it was told meanwhile, and what follows is under way
        if trouble is not None:
            self._break(run, (trouble.why, trouble.message))
        elif all(pod.is_dead for pod in self._gangs.found(run.key)):
            self._break(run, ("", ""))
        else:
            self._later(run, self._parting_s, lambda: self._break(run, ("", "")))

    def _break(self, run: Run, why: tuple[str, str]) -> None:
        run.why = run.why if run.why[0] else why
        self._gangs.end(run.key)

    def _dead(self, run: Run, pods: Sequence[SeenPod]) -> None:
        if run.is_ended:
            return
        if talking := still_talking(run, pods):
            for rank in talking:
                run.channels[rank].send(wire.KILL, wire.encode({"why": run.why[0] or "node_fail"}))
            self._later(run, TALKING_S, lambda: self._dead(run, pods))
            return
        self._devices.give_up(run.key)
        if run.end is not None:
            self._report(run, run.end)
            return
        report = words_of(run.key, next((pod.last_words for pod in pods if pod.rank == 0), ""))
        if report is not None:
            self._report(run, report)
        elif run.why[0] == "requeue" and run.why[1]:  # so its node says, and nobody who requeued it
            run.rests = True
            self._later(run, self._pace.turned_away(run.key.job_id), lambda: self._end_report(run, *run.why))
        elif run.why[0]:
            self._end_report(run, *run.why)
        else:
            text = "its pods ended without a word"
            self._report(run, Lost(key=run.key, sequence=PROVED, time=self._clock(), message=text))

    def _end_report(self, run: Run, why: str, message: str) -> None:
        self._report(run, Ended(key=run.key, sequence=PROVED, time=self._clock(), status=0, why=why, message=message))

    def _later(self, run: Run, seconds: float, call: Callable[[], None]) -> None:
        if run.timer is not None:
            run.timer.cancel()
        run.timer = self._loop.call_later(seconds, call)

    def _forget(self, run: Run) -> None:
        self._devices.give_up(run.key)
        if run.timer is not None:
            run.timer.cancel()
        for channel in run.channels.values():
            channel.close()
        self._runs.pop(run.key, None)
