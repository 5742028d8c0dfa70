"""Pods keep the contract of all runtimes: on a cluster on paper, with supervisors that only pretend to run scripts."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import socket
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from slurmbridge.errors import RuntimeFault
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import ContainerWish, PodTemplate
from slurmbridge.model.run import LaunchNode
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.runtime import KubeRuntime
from slurmbridge.runtime.local.channel import Channel
from slurmbridge.runtime.memory import MemoryRuntime
from slurmbridge.runtime.protocol import NEVER_STARTED, Ended, Ending, Launch, Lost, Report, RunKey, Started, Told
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import Decoder, frame
from tests.runtime.contract import CONFIG, Contract, launch_of
from tests.runtime.kube.paper import Paper, paper_cluster

pytestmark = pytest.mark.slow

RULES = [name for name, rule in inspect.getmembers(Contract, inspect.isfunction) if name.startswith("test_")]
SITE = PodSite(instance="t", namespace="jobs", daemon="ctl:1", supervisor_image="sb", grace_s=1)
TICK_S = 0.02


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

    def clock(self) -> float:
        return time.time() + self.ahead_s

    def _hear(self, report: Told) -> None:
        if isinstance(report, Ending):
            assert not any(end.key == report.key for end in self.ends())
            self.endings.append(report)
            return
        self.reports.append(report)
        if isinstance(report, Lost) and report.message == NEVER_STARTED and report.key in self._launches:
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

    async def pass_time(self, seconds: float, until: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            await asyncio.sleep(0.01)

    def ends(self) -> list[Ended | Lost]:
        return [report for report in self.reports if isinstance(report, (Ended, Lost))]

    async def nothing_left(self) -> None:
        await self.pass_time(5, lambda: not self.paper.objects["pods"] and not self.paper.objects["services"])
        assert not self.paper.objects["pods"] and not self.paper.objects["services"]


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


@pytest.mark.parametrize("rule", RULES)
def test_contract(rule: str) -> None:
    async def kept(bench: KubeBench) -> None:
        await getattr(Contract(), rule)(bench)

    run(kept)


GANG = (LaunchNode(rank=0, node="n1", cpus=1), LaunchNode(rank=1, node="n2", cpus=1))


def test_a_gang_runs_and_leaves_nothing_behind() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.status == 3 << 8
        await bench.nothing_left()

    run(rule)


def test_an_end_is_told_when_the_kubelets_have_let_the_pods_go() -> None:
    """Before that they would turn away the next pod that is made for their nodes."""

    async def rule(bench: KubeBench) -> None:
        bench.answers = False
        bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.pass_time(5, lambda: bool(bench.ends()))
        assert len(bench.ends()) == 1
        phases = [pod["status"]["phase"] for pod in bench.paper.objects["pods"].values()]
        assert len(phases) == 2 and set(phases) <= {"Succeeded", "Failed"}

    run(rule)


def test_that_a_run_is_about_to_end_is_told_once_and_before_its_end() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.pass_time(5, lambda: bool(bench.ends()))
        assert [ending.end for ending in bench.endings] == bench.ends()

    run(rule)


@pytest.mark.parametrize("lost", [[], [1]], ids=["all told", "one lost"])
def test_where_a_rank_was_lost_only_the_cluster_proves_the_end(
    monkeypatch: pytest.MonkeyPatch, lost: list[int]
) -> None:
    """Its node may be cut off, and its processes go on: the job must not be begun again meanwhile."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.HELD_S", -0.8)

    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"sleep 60\n", nodes=GANG, kill_wait_s=0)
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 2)
        bench.paper.node("n2", ready="Unknown")
        head = Quiet()
        bench.runtime.welcome(head.attach, key, 0, "")
        end = {"kind": "ended", "sequence": 2, "time": 1.0, "status": 15, "why": "node_fail", "lost": lost}
        head.hear(wire.REPORT, wire.encode(end))
        bench.has_kubelets = False
        head.lost()
        bench.paper.finish("sb-t-1-0-0", 143)
        await bench.pass_time(0.7, lambda: bool(bench.ends()))
        assert len(bench.ends()) == (0 if lost else 1)
        bench.paper.remove("nodes", "n2")
        await bench.pass_time(5, lambda: bool(bench.ends()))
        assert len(bench.ends()) == 1

    run(rule)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_node_that_was_deleted_by_mistake_does_not_prove_that_nothing_runs_there(
    monkeypatch: pytest.MonkeyPatch, rank: int
) -> None:
    """Its supervisor speaks: it is told to end, and the run has ended when it is silent."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.TALKING_S", 0.1)

    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"sleep 60\n", nodes=GANG)
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 2)
        links = [Quiet(), Quiet()]
        for each, link in enumerate(links):
            bench.runtime.welcome(link.attach, key, each, "")
        bench.has_kubelets = False
        bench.paper.remove("nodes", f"n{rank + 1}")
        links[1 - rank].lost()
        bench.paper.finish(f"sb-t-1-0-{1 - rank}", 143)
        await bench.pass_time(1.0, lambda: bool(bench.ends()))
        assert not bench.ends() and links[rank].sent[-1][0] == wire.KILL
        links[rank].lost()
        await bench.pass_time(5, lambda: bool(bench.ends()))
        assert len(bench.ends()) == 1

    run(rule)


def test_a_kubelet_that_lost_a_container_does_not_prove_that_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.TALKING_S", 0.1)

    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"sleep 60\n")
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 1)
        link = Quiet()
        bench.runtime.welcome(link.attach, key, 0, "")
        bench.has_kubelets = False
        bench.paper.finish("sb-t-1-0-0", 137, "ContainerStatusUnknown")
        await bench.pass_time(1.0, lambda: bool(bench.ends()))
        assert not bench.ends() and link.sent[-1][0] == wire.KILL
        link.lost()
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.why == "node_fail" and "its node lost it" in end.message

    run(rule)


def test_what_its_supervisor_tells_of_a_run_whose_node_was_deleted_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.TALKING_S", 0.1)

    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"sleep 60\n")
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 1)
        link = Quiet()
        bench.runtime.welcome(link.attach, key, 0, "")
        bench.has_kubelets = False
        bench.paper.remove("nodes", "n1")
        await bench.pass_time(5, lambda: link.sent[-1][0] == wire.KILL)
        link.hear(wire.REPORT, wire.encode({"kind": "ended", "sequence": 2, "time": 1.0, "status": 0, "why": "exit"}))
        link.lost()
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.why == "exit"

    run(rule)


def test_an_end_that_no_connection_told_is_read_from_the_pod() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.is_mute = True
        bench.launch(1, b"exit 4\n")
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and (end.status, end.why) == (4 << 8, "exit")
        await bench.nothing_left()

    run(rule)


def test_a_daemon_that_died_finds_its_runs_and_hears_how_they_ended() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.answers = False
        key = bench.launch(1, b"sleep 1\nexit 5\n")
        await bench.pass_time(5, lambda: bool(bench.reports))
        await bench.runtime.stop(end_jobs=False)
        bench.reports.clear()
        bench.answers = True
        await bench.start()
        await bench.runtime.adopt([key])
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.status == 5 << 8
        await bench.nothing_left()

    run(rule)


class Quiet:
    """A link on which nothing comes."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, bytes]] = []

    def attach(self, on_frame: Callable[[bytes, bytes], None], on_lost: Callable[[], None]) -> Quiet:
        self.hear, self.lost = on_frame, on_lost
        return self

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self.sent.append((kind, payload))

    def close(self) -> None:
        pass

    def token(self) -> str:
        """That of the launch that came."""
        ((kind, payload),) = self.sent
        assert kind == wire.LAUNCH
        return str(wire.decode_launch(payload)[0]["token"])


def test_ranks_of_which_some_were_launched_before_the_daemon_died_know_each_other() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 2)
        early, late, again = Quiet(), Quiet(), Quiet()
        bench.runtime.welcome(early.attach, key, 1, "")
        await bench.runtime.stop(end_jobs=False)
        await bench.start()
        await bench.runtime.adopt([key])
        bench.runtime.welcome(late.attach, key, 0, "")
        assert isinstance(bench.reports[-1], Lost)  # its launch is asked for
        bench.runtime.welcome(again.attach, key, 1, early.token())
        assert late.token() == early.token() and again.sent[0][0] == wire.ACK

    run(rule)


def test_a_late_rank_of_a_run_that_was_found_does_not_make_it_one_that_never_began() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_supervisors = False
        key = bench.launch(1, b"exit 3\n", nodes=GANG)
        await bench.pass_time(5, lambda: len(bench.runtime.pods(key)) == 2)
        head = Quiet()
        bench.runtime.welcome(head.attach, key, 0, "")
        await bench.runtime.stop(end_jobs=False)
        await bench.start()
        await bench.runtime.adopt([key])
        back = Quiet()
        bench.runtime.welcome(back.attach, key, 0, head.token())
        bench.runtime.welcome(Quiet().attach, key, 1, "")
        bench.runtime.kill(key, "cancelled")
        assert [kind for kind, _ in back.sent] == [wire.ACK, wire.KILL]

    run(rule)


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_clock_that_is_wrong_makes_no_pod_too_old(when: str) -> None:
    async def rule(bench: KubeBench) -> None:
        bench.has_kubelets = False
        if when == "before":
            await bench.runtime.stop(end_jobs=False)
            bench.ahead_s = 7200.0
            await bench.start()
        key = bench.launch(1, b"exit 3\n")
        await bench.pass_time(5, lambda: bool(bench.runtime.pods(key)))
        bench.ahead_s = 7200.0
        bench.paper.status("sb-t-1-0-0", phase="Pending", startTime="2026-01-01T00:00:00Z")
        await bench.pass_time(0.3, lambda: False)
        bench.has_kubelets = True
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.status == 3 << 8

    run(rule)


def test_a_daemon_that_cannot_list_the_pods_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would take its runs for ones that never began, and begin them again."""
    monkeypatch.setattr("slurmbridge.runtime.kube.runtime.LISTED_S", 0.3)

    async def rule(bench: KubeBench) -> None:
        await bench.runtime.stop(end_jobs=False)
        bench.paper.fail = lambda method, path: (500, "etcd is away") if path.endswith("/pods") else None
        with pytest.raises(RuntimeFault, match="etcd is away"):
            await bench.start()

    run(rule)


def test_a_supervisor_that_is_back_before_its_daemon_knows_its_runs_is_not_sent_away() -> None:
    async def rule(bench: KubeBench) -> None:
        key = bench.launch(1, b"sleep 1\nexit 5\n")
        await bench.pass_time(5, lambda: bool(bench.reports))
        await bench.runtime.stop(end_jobs=False)
        await bench.start()
        await asyncio.sleep(10 * TICK_S)  # it has dialled in meanwhile
        await bench.runtime.adopt([key])
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.status == 5 << 8

    run(rule)


def test_a_pod_that_somebody_deletes_ends_its_whole_gang_as_a_failed_node() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"sleep 60\n", nodes=GANG)
        await bench.pass_time(5, lambda: bool(bench.reports))
        pod = bench.paper.objects["pods"]["sb-t-1-0-1"]
        with bench.paper.lock:
            bench.paper.delete("pods", "sb-t-1-0-1", {"preconditions": {"uid": pod["metadata"]["uid"]}})
        await bench.pass_time(5, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.why == "node_fail" and "rank 1 on n2" in end.message
        await bench.nothing_left()

    run(rule)


def test_why_pods_are_deleted_is_known_better_here_than_by_the_supervisor_that_sees_it() -> None:
    async def rule(bench: KubeBench) -> None:
        key = bench.launch(1, b"sleep 60\n")
        await bench.pass_time(5, lambda: bool(bench.reports))
        run = bench.runtime._runs[key]
        run.why = ("preempt", "another scheduler took its place")
        seen = Ended(key=key, sequence=2, time=1.0, status=15, why="node_fail", message="its pod was deleted")
        bench.runtime._report(run, seen)
        (end,) = bench.ends()
        assert isinstance(end, Ended)
        assert (end.why, end.message, end.status) == ("preempt", "another scheduler took its place", 15)

    run(rule)


def test_what_pods_cannot_be_is_a_launch_that_failed_with_the_reason() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 0\n", container=ContainerWish(mounts="/etc:/host"))
        await bench.pass_time(2, lambda: bool(bench.ends()))
        (end,) = bench.ends()
        assert isinstance(end, Ended) and end.why == "launch" and "--container-mounts" in end.message
        assert not bench.paper.created

    run(rule)


def test_nothing_of_a_script_is_in_the_cluster() -> None:
    async def rule(bench: KubeBench) -> None:
        bench.launch(1, b"exit 0 # secret words\n", env=(("TOKEN", "secret words"),))
        await bench.pass_time(5, lambda: bool(bench.ends()))
        assert "secret words" not in json.dumps(bench.paper.history)

    run(rule)
