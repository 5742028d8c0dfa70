"""Pods of runs on a real cluster: accepted at the restricted level, made, told truly and removed whole."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster.driver import Cluster
from cluster.images import BUSYBOX
from cluster.pods import Namespace, namespace

from slurmbridge.manifest.pod import RunObjects, build
from slurmbridge.manifest.pod_container import Settled
from slurmbridge.manifest.pod_devices import holder
from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.pods import Manifest, PodTemplate
from slurmbridge.model.run import Launch, LaunchNode, RunKey
from slurmbridge.reconcile.trouble import Patience
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.gangs import Broken, Cleared, Complete, Dead, Gangs, News

pytestmark = [pytest.mark.root, pytest.mark.slow]
KEY = RunKey(1, 0)
FOREVER = "#!/bin/sh\nid -u; id -g; hostname; cat /var/run/secrets/slurmbridge/token | wc -c; trap 'exit 143' TERM; while :; do sleep 0.1; done\n"


@pytest.fixture
def space(cluster: Cluster) -> Iterator[Namespace]:
    with namespace(cluster, "sb-pods-test") as made:
        yield made


@pytest.fixture
def nodes(cluster: Cluster) -> list[str]:
    return sorted(cluster.kubectl("get", "nodes", "--output=jsonpath={.items[*].metadata.name}").split())[:2]


def site(space: Namespace, **changes: Any) -> PodSite:
    return PodSite(
        **{"instance": "it", "namespace": space.name, "daemon": "ctl:1", "supervisor_image": BUSYBOX, **changes}
    )


def objects(nodes: list[str], where: PodSite, template: PodTemplate = PodTemplate(image=BUSYBOX)) -> RunObjects:
    launch = Launch(
        key=KEY, uid=1234, gid=2345, groups=(2345, 3456), user="alice", home="/", shell="/bin/sh", script=b"", work_dir="/",
        nodes=tuple(LaunchNode(rank=rank, node=node, cpus=1, memory_mib=64) for rank, node in enumerate(nodes)),
        umask=0o022, std_in="", std_out="", std_err="", append=False, pattern_values=(), kill_wait_s=1, epoch="5",
    )  # fmt: skip
    return build(launch, template, where, Settled(image=template.image))


def accepted(api: Api, space: Namespace, manifest: Manifest) -> None:
    """As the API server checks it, every field and every admission; nothing is made."""
    kind = "services" if manifest["kind"] == "Service" else "pods"
    query = {"dryRun": "All", "fieldValidation": "Strict"}
    api.request("POST", f"/api/v1/namespaces/{space.name}/{kind}", query=query, body=manifest)


@pytest.mark.parametrize("way", ["image", "copy"])
def test_pods_are_accepted_where_the_restricted_level_is_enforced(
    api: Api, space: Namespace, nodes: list[str], way: str
) -> None:
    space.cluster.kubectl("label", "namespace", space.name, "pod-security.kubernetes.io/enforce=restricted")
    made = objects(nodes, site(space, supervisor=way))
    assert made.service is not None
    for manifest in (
        *made.pods,
        made.service,
        holder((nodes[0], 0), "nvidia.com/gpu", PodTemplate(), site(space, supervisor=way)),
    ):
        accepted(api, space, manifest)


def test_what_leaves_the_restricted_level_is_refused_there(api: Api, space: Namespace, nodes: list[str]) -> None:
    space.cluster.kubectl("label", "namespace", space.name, "pod-security.kubernetes.io/enforce=restricted")
    with pytest.raises(ApiFault) as caught:
        accepted(api, space, objects(nodes, site(space, supervisor="hostPath")).pods[0])
    assert caught.value.kind is Kind.FORBIDDEN and "PodSecurity" in caught.value.message


class Daemon:
    """What hears the news of the pods."""

    def __init__(self, api: Api, space: Namespace, patience: Patience) -> None:
        self.news: list[News] = []
        self.gangs = Gangs(api, "it", space.name, self.news.append, time.time, patience=patience)

    async def hear(self, kind: type[News], within: float = 60.0) -> Any:
        end = time.monotonic() + within
        while not any(isinstance(each, kind) for each in self.news):
            assert time.monotonic() < end, self.news
            await asyncio.sleep(0.02)
        return next(each for each in self.news if isinstance(each, kind))

    async def remove(self) -> Dead:
        self.gangs.end(KEY)
        dead = await self.hear(Dead)
        self.gangs.release(KEY)
        await self.hear(Cleared)
        assert isinstance(dead, Dead)
        return dead


def with_daemon(
    api: Api, space: Namespace, rule: Callable[[Daemon], Awaitable[None]], patience: Patience = Patience()
) -> None:
    async def whole() -> None:
        daemon = Daemon(api, space, patience)
        assert await daemon.gangs.start()
        daemon.gangs.adopt([])
        try:
            await rule(daemon)
        finally:
            await daemon.gangs.stop()

    asyncio.run(whole())


def nothing_left(space: Namespace) -> bool:
    return not space.kubectl("get", "pods,services", "--selector=slurmbridge.io/instance", "--output=name").strip()


def test_a_gang_runs_as_its_submitter_and_leaves_nothing(
    api: Api, space: Namespace, nodes: list[str], tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "python3"
    program.parent.mkdir()
    program.write_text(FOREVER)
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents):  # pods of others look into it
        if "pytest" in str(folder):
            folder.chmod(0o755)
    where = site(space, supervisor="hostPath", supervisor_path=str(tmp_path))

    async def rule(daemon: Daemon) -> None:
        daemon.gangs.begin(KEY, objects(nodes, where), "5")
        await daemon.hear(Complete)
        for rank, node in enumerate(nodes):
            name = f"sb-it-1-0-{rank}"
            await asyncio.to_thread(space.await_phase, name, "Running")
            words: list[str] = []
            while len(words) < 4:
                words = (await asyncio.to_thread(space.output, name)).split()
            assert words[:3] == ["1234", "2345", node] and int(words[3]) > 100
        dead = await daemon.remove()
        assert [pod.exit_code for pod in dead.pods] == [143, 143]
        assert nothing_left(space)

    with_daemon(api, space, rule)


@pytest.mark.parametrize(
    ("template", "where", "words"),
    [
        (PodTemplate(image="no.such.registry.invalid/x:1"), {}, "image cannot be pulled"),
        (PodTemplate(image=BUSYBOX), {"supervisor_image": BUSYBOX}, "could not be started"),
        (
            PodTemplate(image=BUSYBOX, volumes=({"name": "v", "configMap": {"name": "not-there"}},),
                        volume_mounts=({"name": "v", "mountPath": "/v"},)),
            {}, "FailedMount",
        ),
    ],
    ids=["image", "program", "volume"],
)  # fmt: skip
def test_a_gang_that_cannot_start_is_told_why_in_bounded_time_and_removed(
    api: Api, space: Namespace, nodes: list[str], template: PodTemplate, where: dict[str, str], words: str
) -> None:
    async def rule(daemon: Daemon) -> None:
        daemon.gangs.begin(KEY, objects(nodes, site(space, **where), template), "5")
        broken = await daemon.hear(Broken)
        assert broken.trouble is not None and broken.trouble.why == "launch"
        assert words in broken.trouble.message, broken.trouble
        await daemon.remove()
        assert nothing_left(space)

    with_daemon(api, space, rule, Patience(image=5.0, mount=15.0, config=5.0, sandbox=20.0))
