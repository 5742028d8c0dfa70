"""How fast pods come, as ratios within one run: against a bare loop of creates, and against a pod made by hand."""

import asyncio
import itertools
import shlex
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cluster.driver import Cluster
from cluster.images import BUSYBOX
from cluster.pods import Namespace, manifest

from slurmbridge.manifest.pod import RunObjects, build
from slurmbridge.manifest.pod_container import Settled
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import PodTemplate
from slurmbridge.model.run import Launch, LaunchNode, RunKey
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.gangs import Cleared, Complete, Gangs, News

from .bridge import Bridge

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.soak]
COUNT, ROUNDS, THREADS, SHELLS = 200, 5, 16, 4
NUMBERS = itertools.count(1)
LAYER, SUBMITTED, FIRST_LINE = 0.8, 0.5, 1.5
LOOK_S, REST_S, WITHIN_S = 0.02, 1.0, 120.0


@pytest.fixture(scope="module")
def paper(cluster: Cluster) -> Iterator[list[str]]:
    with cluster.paper_nodes(20, prefix="speed-") as names:
        yield names


def _objects(space: Namespace, paper: Sequence[str], count: int = COUNT) -> dict[RunKey, RunObjects]:
    made = {}
    where = PodSite(instance="it", namespace=space.name, daemon="ctl:1", supervisor_image=BUSYBOX)
    for number in itertools.islice(NUMBERS, count):
        node = LaunchNode(rank=0, node=paper[number % len(paper)], cpus=1, memory_mib=64)
        launch = Launch(
            key=RunKey(number, 0), uid=1234, gid=2345, groups=(2345,), user="alice", home="/", shell="/bin/sh", script=b"",
            work_dir="/", nodes=(node,), umask=0o022, std_in="", std_out="", std_err="", append=False, pattern_values=(),
            kill_wait_s=1, epoch="5",
        )  # fmt: skip
        made[launch.key] = build(launch, PodTemplate(image=BUSYBOX), where, Settled(image=BUSYBOX))
    return made


def _bare(api: Api, space: Namespace, pods: Sequence[dict[str, Any]]) -> float:
    """Pods per second of a loop that does nothing else, with as many requests under way."""
    path = _path(space)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(lambda _: api.get(path, {"limit": 1}), range(THREADS)))  # connections are there
        begun = time.monotonic()
        list(pool.map(lambda pod: api.create(path, pod), pods))
    return len(pods) / (time.monotonic() - begun)


def _by_hand(objects: dict[RunKey, RunObjects]) -> list[dict[str, Any]]:
    """The same pods under other names, and nobody's."""
    pods = []
    for each in objects.values():
        pod = msgspec.json.decode(msgspec.json.encode(each.pods[0]))
        pod["metadata"]["name"] = f"hand-{pod['metadata']['name']}"
        pod["metadata"].update(labels={}, finalizers=[])
        pods.append(pod)
    return pods


def test_runs_become_pods_nearly_as_fast_as_a_bare_loop_makes_them(
    api: Api, space: Namespace, paper: list[str]
) -> None:
    """Each on a namespace at rest, in turns: what kubelets do about pods goes on when the last of them was made."""
    ratios = []
    for number in range(ROUNDS):
        speed = {}
        for who in ("bare", "ours") if number % 2 else ("ours", "bare"):
            speed[who] = (
                _bare(api, space, _by_hand(_objects(space, paper)))
                if who == "bare"
                else asyncio.run(_layer(api, space, _objects(space, paper, THREADS), _objects(space, paper)))
            )
            _rest(api, space)
        ratios.append(speed["ours"] / speed["bare"])
        print(f"runtime layer {speed['ours']:.0f} pods/s, bare loop {speed['bare']:.0f} pods/s, ratio {ratios[-1]:.2f}")
    assert statistics.median(ratios) >= LAYER


async def _layer(
    api: Api, space: Namespace, first: dict[RunKey, RunObjects], objects: dict[RunKey, RunObjects]
) -> float:
    """Pods per second of the runtime layer, whose threads and connections are there as those of the bare loop are."""
    news: list[News] = []
    more = asyncio.Event()

    def tell(told: News) -> None:
        news.append(told)
        more.set()

    async def until(kind: type[News], count: int) -> None:
        while sum(isinstance(each, kind) for each in news) < count:
            more.clear()
            await more.wait()

    gangs = Gangs(api, "it", space.name, tell, time.time)
    assert await gangs.start()
    gangs.adopt([])
    try:
        for key, each in first.items():
            gangs.begin(key, each, "5")
        await until(Complete, len(first))
        begun = time.monotonic()
        for key, each in objects.items():
            gangs.begin(key, each, "5")
        await until(Complete, len(first) + len(objects))
        spent = time.monotonic() - begun
        for key in (*first, *objects):
            gangs.end(key)
            gangs.release(key)
        await until(Cleared, len(first) + len(objects))
    finally:
        await gangs.stop()
    return len(objects) / spent


def _rest(api: Api, space: Namespace) -> None:
    """Until nothing is left of the pods that were made, and who watches pods has seen it."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    api.request("DELETE", _path(space), body=options)
    while _count(api, space):
        time.sleep(0.1)
    time.sleep(REST_S)


def test_jobs_become_pods_at_half_the_speed_of_a_bare_loop(
    api: Api, space: Namespace, paper: list[str], site: Bridge
) -> None:
    """Each on a namespace at rest, in turns, and of ours all from the command on; the first of ours is a daemon's first."""
    real = ",".join(sorted(set(site.cluster.nodes) - set(paper)))
    options = ("--mem=48", "--output=/dev/null", f"--exclude={real}", "--wrap=true")
    ratios = []
    for number in range(ROUNDS):
        speed = {}
        for who in ("bare", "ours") if number % 2 else ("ours", "bare"):
            if who == "bare":
                speed[who] = _bare(api, space, _by_hand(_objects(space, paper)))
                _rest(api, space)
            else:
                speed[who] = _submitted(api, space, site, ["sbatch", f"--array=1-{COUNT}", *options])
        ratios.append(speed["ours"] / speed["bare"])
        print(f"from sbatch {speed['ours']:.0f} pods/s, bare loop {speed['bare']:.0f} pods/s, ratio {ratios[-1]:.2f}")
    each = shlex.join(["sbatch", *options])
    loop = ["/bin/sh", "-c", f"for each in $(seq {COUNT // SHELLS}); do {each} || exit; done"]
    print(f"{COUNT} times sbatch in {SHELLS} shells: {_submitted(api, space, site, *[loop] * SHELLS):.0f} pods/s")
    assert statistics.median(ratios) >= SUBMITTED


def _submitted(api: Api, space: Namespace, site: Bridge, *commands: Sequence[str]) -> float:
    """Pods per second of what these commands, side by side, submit; afterwards all of it is ended and gone."""
    with ThreadPoolExecutor(len(commands)) as pool:
        begun = time.monotonic()
        running = [pool.submit(site.command, *command) for command in commands]
        first = _await_count(api, space, 1) - begun
        spent = _await_count(api, space, COUNT) - begun
        for command in running:
            command.result()
    print(f"first pod {first:.2f} s, last {spent:.2f} s after the command began", end="; ")
    assert len(msgspec.json.decode(api.get(_path(space)))["items"]) == COUNT  # the clock was not stopped too early
    site.command("scancel", "--me")
    while site.command("squeue", "--noheader"):
        time.sleep(0.1)
    _rest(api, space)
    return COUNT / spent


def _await_count(api: Api, space: Namespace, count: int) -> float:
    """When so many pods were there."""
    end = time.monotonic() + WITHIN_S
    while _count(api, space) < count:
        assert time.monotonic() < end
        time.sleep(LOOK_S)
    return time.monotonic()


def _count(api: Api, space: Namespace) -> int:
    """How many pods there are, of which one alone is sent: a list of all would take the server's time from who makes them.
    The server's count of the others need not be exact ("ListMeta" of the API reference), so who relies on it looks at all once."""
    found = msgspec.json.decode(api.get(_path(space), {"limit": 1}))
    return len(found["items"]) + int(found["metadata"].get("remainingItemCount", 0))


def _path(space: Namespace) -> str:
    return f"/api/v1/namespaces/{space.name}/pods"


def test_a_script_begins_not_much_later_than_a_pod_made_by_hand(site: Bridge, space: Namespace) -> None:
    node = sorted(site.cluster.parts.settings.node_names())[0]
    ratios = []
    for number in range(ROUNDS):
        mark = site.share / f"by-hand-{number}"
        volume = {"name": "share", "hostPath": {"path": str(site.share)}}
        pod = manifest(f"by-hand-{number}", f"touch {mark}", node=node, volumes=[volume])
        pod["spec"]["containers"][0]["volumeMounts"] = [{"name": "share", "mountPath": str(site.share)}]
        begun = time.monotonic()
        space.create(pod)
        by_hand = _until_there(mark, begun)
        mark = site.share / f"by-job-{number}"
        begun = time.monotonic()
        site.submit(f"touch {mark}", f"--nodelist={node}")
        ours = _until_there(mark, begun)
        ratios.append(ours / by_hand)
        print(f"first line: job {ours:.2f} s, pod by hand {by_hand:.2f} s, ratio {ours / by_hand:.2f}")
    assert statistics.median(ratios) <= FIRST_LINE


def _until_there(mark: Path, begun: float) -> float:
    while not mark.exists():
        assert time.monotonic() - begun < 120, mark
        time.sleep(0.01)
    return time.monotonic() - begun
