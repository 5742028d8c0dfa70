"""A runtime of pods on a cluster on paper, with supervisors that only pretend to run scripts."""

from __future__ import annotations

import asyncio
import functools
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import LaunchNode
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.runtime import KubeRuntime
from slurmbridge.runtime.local.channel import Channel
from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.runtime.protocol import NEVER_STARTED, Ended, Ending, Launch, Lost, Report, RunKey, Started, Told
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import Decoder, frame
from tests.patience import comes
from tests.runtime.contract import CONFIG, launch_of
from tests.runtime.kube.paper import Paper, paper_cluster

SITE = PodSite(instance="t", namespace="jobs", daemon="ctl:1", supervisor_image="sb", grace_s=1)
TICK_S = 0.02
FOREVER = b"sleep 6000\n"
GANG = (LaunchNode(rank=0, node="n1", cpus=1), LaunchNode(rank=1, node="n2", cpus=1))


class Supervisor:
    """In a pod on paper: it dials in, gets its launch, and a runtime without processes says what becomes of the script."""

    def __init__(self, bench: KubeBench, name: str, key: RunKey, rank: int) -> None:
        self.bench, self.name, self.key, self.rank = bench, name, key, rank
        self.inner = MemoryRuntime()
        self.token, self.record = "", ""
        self.is_done = False
        self.unacknowledged: dict[int, bytes] = {}

    async def live(self) -> None:
        await self.inner.start(self._report, CONFIG, daemon_addr="")
        while not self.is_done:
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            attach = functools.partial(Channel, asyncio.get_running_loop(), theirs)
            self.bench.runtime.welcome(attach, self.key, self.rank, self.token)
            with ours:
                await self._talk(ours)

    async def _talk(self, sock: socket.socket) -> None:
        self.socket, decoder, before = sock, Decoder(wire.MAX_FRAME), time.monotonic()
        try:
            for payload in self.unacknowledged.values():
                sock.send(frame(wire.REPORT, payload))
        except OSError:  # not the daemon's to have yet: it dials in again
            await asyncio.sleep(TICK_S)
            return
        while not self.is_done:
            await asyncio.sleep(TICK_S)
            try:
                data = sock.recv(1 << 20)
                if not data:
                    return
                for kind, payload in decoder.feed(data):
                    self._command(kind, payload)
            except BlockingIOError:
                pass
            except OSError:
                return
            now = time.monotonic()
            self.inner.advance(now - before)
            before = now

    def _command(self, kind: bytes, payload: bytes) -> None:
        value = wire.decode(payload) if payload and kind not in (wire.LAUNCH, wire.NOTIFY) else {}
        match kind:
            case wire.LAUNCH:
                header, script, _, _ = wire.decode_launch(payload)
                self.token = header["token"]
                if self.rank == 0:
                    self.inner.launch(
                        launch_of(self.key, script if header["batch"] else None, kill_wait_s=header["kill_wait"],
                                  time_limit_s=header["time_limit"])
                    )  # fmt: skip
            case wire.KILL:
                self.inner.kill(self.key, value["why"])
            case wire.SUSPEND:
                self.inner.suspend(self.key)
            case wire.RESUME:
                self.inner.resume(self.key)
            case wire.LIMIT:
                self.inner.set_time_limit(self.key, value["limit"])
            case wire.ACK:
                for sequence in [each for each in self.unacknowledged if each <= value["sequence"]]:
                    del self.unacknowledged[sequence]
                self.is_done = bool(self.record) and not self.unacknowledged
            case wire.UNWANTED:
                self.is_done = True

    def _report(self, report: Report) -> None:
        if isinstance(report, Started):
            value: dict[str, Any] = {"kind": "started", "time": report.time}
        else:
            assert isinstance(report, Ended)
            steps = [
                {"step_id": step.step_id, "name": step.name, "state": step.state.name, "start": step.start_time,
                 "end": step.end_time, "nodes": list(step.nodes), "exit": step.exit_code}
                for step in report.steps
            ]  # fmt: skip
            value = {"kind": "ended", "time": report.time, "status": report.status, "why": report.why, "steps": steps}
        value["sequence"] = report.sequence
        payload = self.unacknowledged[report.sequence] = wire.encode(value)
        if value["kind"] == "ended":
            self.record = payload.decode()
            self.is_done = self.bench.is_mute
        if not self.bench.is_mute:
            self.socket.send(frame(wire.REPORT, payload))


class KubeBench:
    def __init__(self, paper: Paper, connect: Callable[[], Api]) -> None:
        self.paper, self.connect = paper, connect
        paper.made = datetime.now(UTC).isoformat()
        self.reports: list[Report] = []
        self.endings: list[Ending] = []
        self.is_mute = False  # supervisors cannot reach the daemon with what they have to say
        self.answers = True  # the daemon stores reports
        self.reads_s = 0.0  # what a launch needs has to be read first
        self.ahead_s = 0.0
        self.has_kubelets = True
        self.has_supervisors = True  # else pods run, and nobody dials in by himself
        self._launches: dict[RunKey, Launch] = {}  # as the store has them
        self._supervisors: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        self.runtime = KubeRuntime(
            self.connect(), SITE, {}, PodTemplate(image="base"), self.clock, secret=b"kept", parting_s=0.1
        )
        await self.runtime.start(self._hear, CONFIG, daemon_addr="unix:/nowhere")

    async def restart(self, key: RunKey) -> None:
        """A daemon dies, and another one knows of that run."""
        await self.runtime.stop(end_jobs=False)
        await self.start()
        await self.runtime.adopt([key])

    async def shown(self, key: RunKey, pods: int) -> None:
        """Until so many pods of a run are seen."""
        await self.hears(lambda: len(self.runtime.pods(key)) == pods)

    def clock(self) -> float:
        return time.time() + self.ahead_s

    def _hear(self, report: Told) -> None:
        if isinstance(report, Ending):
            assert not any(end.key == report.key for end in self.ends())
            self.endings.append(report)
            return
        self.reports.append(report)
        if isinstance(report, Lost) and report.message == NEVER_STARTED and report.key in self._launches:
            if self.reads_s:
                asyncio.get_running_loop().call_later(self.reads_s, self.runtime.launch, self._launches[report.key])
            else:
                self.runtime.launch(self._launches[report.key])
        elif self.answers and not isinstance(report, Lost):
            self.runtime.acknowledge(report.key, report.sequence)

    async def kubelets(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            if not self.has_kubelets:
                continue
            for name, pod in list(self.paper.objects["pods"].items()):
                task = self._supervisors.get(pod["metadata"]["uid"])
                if task is None:
                    self.paper.run(name)
                    if not self.has_supervisors:
                        continue
                    labels = pod["metadata"]["labels"]
                    key = RunKey(int(labels["slurmbridge.io/job"]), int(labels["slurmbridge.io/restart"]))
                    who = Supervisor(self, name, key, int(labels["slurmbridge.io/rank"]))
                    self._supervisors[pod["metadata"]["uid"]] = asyncio.create_task(self._pod(who))
                elif pod["metadata"].get("deletionTimestamp") and not task.done():
                    task.cancel()

    async def _pod(self, supervisor: Supervisor) -> None:
        try:
            await supervisor.live()
        finally:
            if supervisor.name in self.paper.objects["pods"]:
                code = 0 if supervisor.record else 137
                self.paper.finish(supervisor.name, code, words=supervisor.record)

    def launch(self, job_id: int, script: bytes | None, *, restarts: int = 0, **changes: Any) -> RunKey:
        key = RunKey(job_id, restarts)
        self._launches[key] = launch_of(key, script, epoch="5", **changes)
        self.runtime.launch(self._launches[key])
        return key

    async def pass_time(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        if until is None:
            await asyncio.sleep(seconds)
        else:
            await comes(until, lambda: (self.reports, self.paper.objects["pods"]))

    async def has_begun(self, key: RunKey) -> None:
        await self.hears(lambda: any(report.key == key for report in self.reports))

    async def hears(self, holds: Callable[[], bool]) -> None:
        """Returns when it is so."""
        await self.pass_time(0, holds)

    async def end(self) -> Ended:
        """The one end that is told."""
        await self.hears(lambda: bool(self.ends()))
        (found,) = self.ends()
        assert isinstance(found, Ended)
        return found

    async def silent(self, ranks: int, dialled: int) -> list[Quiet]:
        """Job 1, which would go on; so many of its ranks have dialled in and say nothing, nothing happens to its pods."""
        self.has_supervisors = False
        key = self.launch(1, FOREVER, nodes=GANG[:ranks], kill_wait_s=0)
        await self.hears(lambda: len(self.runtime.pods(key)) == ranks)
        links = [Quiet() for _ in range(dialled)]
        for rank, link in enumerate(links):
            self.runtime.welcome(link.attach, key, rank, "")
        self.has_kubelets = False
        return links

    def ends(self) -> list[Ended | Lost]:
        return [report for report in self.reports if isinstance(report, (Ended, Lost))]

    async def nothing_left(self) -> None:
        await self.hears(lambda: not self.paper.objects["pods"] and not self.paper.objects["services"])


class Quiet:
    """A link on which nothing comes."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, bytes]] = []
        self.is_closed = False

    def attach(self, on_frame: Callable[[bytes, bytes], None], on_lost: Callable[[], None]) -> Quiet:
        self.hear, self.lost = on_frame, on_lost
        return self

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.sent.append((kind, payload))

    def close(self) -> None:
        self.is_closed = True

    def token(self) -> str:
        """That of the launch that came."""
        ((kind, payload),) = self.sent
        assert kind == wire.LAUNCH
        return str(wire.decode_launch(payload)[0]["token"])


@contextmanager
def benches() -> Iterator[KubeBench]:
    with paper_cluster() as (paper, connect):
        for name in ("n1", "n2"):
            paper.node(name)
        yield KubeBench(paper, connect)


def run(rule: Callable[[KubeBench], Awaitable[None]]) -> None:
    async def whole(bench: KubeBench) -> None:
        await bench.start()
        kubelets = asyncio.create_task(bench.kubelets())
        try:
            await rule(bench)
        finally:
            kubelets.cancel()
            for task in bench._supervisors.values():
                task.cancel()
            await bench.runtime.stop(end_jobs=False)

    with benches() as bench:
        asyncio.run(whole(bench))
