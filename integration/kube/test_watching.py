"""The copy of a cluster's objects is true on a real API server, and cheap."""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from cluster.driver import Cluster
from cluster.pods import Namespace, manifest, namespace
from cluster.processes import PATIENCE_S, wait_until

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.objects import Node, Pod, T
from slurmbridge.runtime.kube.watching import Follower

pytestmark = [pytest.mark.root, pytest.mark.slow]
ours = pytest.mark.skipif("KUBECONFIG" in os.environ, reason="parts of somebody else's cluster are not stopped")
MANY = int(os.environ.get("SLURMBRIDGE_PODS", "2000"))
PER_POD = 0.5 / 10_000  # seconds of CPU


@pytest.fixture(scope="module")
def space(cluster: Cluster) -> Iterator[Namespace]:
    with namespace(cluster, "sb-watching-test") as made:
        yield made


@contextmanager
def following(api: Api, path: str, kind: type[T], *, labels: str = "") -> Iterator[tuple[Follower[T], dict[str, T]]]:
    """A follower, and what its changes say is there."""
    there: dict[str, T] = {}
    lock = threading.Lock()

    def listen(changes: Sequence[Change[T]]) -> None:
        with lock:
            for change in changes:
                if change.after is None:
                    there.pop(change.key[1])
                else:
                    there[change.key[1]] = change.after

    follower = Follower(api, path, kind, listen, labels=labels)
    follower.start()
    assert follower.wait_listed(PATIENCE_S)
    try:
        yield follower, there
    finally:
        follower.stop()


@pytest.mark.scenario
def test_a_pod_is_seen_to_come_run_and_go(cluster: Cluster, api: Api, space: Namespace) -> None:
    path = f"/api/v1/namespaces/{space.name}/pods"
    with following(api, path, Pod) as (_, there):
        api.create(path, manifest("comes", "sleep 2; exit 3", node=cluster.nodes[0]))

        def ended() -> bool:
            pod = there.get("comes")
            return pod is not None and pod.status.phase == "Failed"

        assert wait_until(ended)
        pod = there["comes"]
        terminated = pod.status.container_statuses[0].state.terminated
        assert terminated is not None and terminated.exit_code == 3
        api.delete(f"{path}/comes", uid=pod.metadata.uid, grace=0)
        assert wait_until(lambda: "comes" not in there)


def test_a_name_that_is_taken_is_a_conflict_and_an_absent_object_is_gone(api: Api, space: Namespace) -> None:
    path = f"/api/v1/namespaces/{space.name}/pods"
    api.create(path, manifest("taken"))
    attempts: list[tuple[Kind, Callable[[], bytes]]] = [
        (Kind.CONFLICT, lambda: api.create(path, manifest("taken"))),
        (Kind.CONFLICT, lambda: api.delete(f"{path}/taken", uid="00000000-0000-0000-0000-000000000000")),
        (Kind.GONE, lambda: api.get(f"{path}/nobody")),
        (Kind.INVALID, lambda: api.create(path, manifest("No Name"))),
    ]
    for kind, attempt in attempts:
        with pytest.raises(ApiFault) as caught:
            attempt()
        assert caught.value.kind is kind


@ours
def test_a_user_without_rights_is_forbidden(cluster: Cluster) -> None:
    api = Api.find(str(cluster.user("mallory")))
    with pytest.raises(ApiFault, match="pods is forbidden") as caught:
        api.get("/api/v1/pods")
    assert caught.value.kind is Kind.FORBIDDEN
    api.close()


def test_nodes_come_with_their_resources_taints_and_conditions(cluster: Cluster, api: Api) -> None:
    with following(api, "/api/v1/nodes", Node) as (_, there):
        name = cluster.nodes[0]
        node = there[name]
        assert int(node.status.allocatable["cpu"]) > 0
        assert any(condition.type == "Ready" and condition.status == "True" for condition in node.status.conditions)
        cluster.taint(name, "test", "watching", "PreferNoSchedule")

        def tainted() -> bool:
            return any(taint.value == "watching" for taint in there[name].spec.taints)

        assert wait_until(tainted)
        cluster.untaint(name, "test")
        assert wait_until(lambda: not tainted())


@pytest.mark.scenario
@ours
def test_a_dead_api_server_leaves_what_is_known_and_nothing_is_missed_after_it(
    cluster: Cluster, api: Api, space: Namespace
) -> None:
    path = f"/api/v1/namespaces/{space.name}/pods"
    api.create(path, manifest("before"))
    with following(api, path, Pod) as (follower, there):
        assert "before" in there
        cluster.kill("kube-apiserver")
        assert wait_until(lambda: follower.fault is not None)
        assert follower.fault is not None and follower.fault.kind is Kind.DOWN
        assert "before" in there
        cluster.start("kube-apiserver")
        cluster.await_api()
        api.create(path, manifest("after"))
        assert wait_until(lambda: "after" in there and follower.fault is None)
        assert "before" in there


def test_a_version_that_is_too_old_is_answered_by_a_new_list(api: Api, space: Namespace) -> None:
    path = f"/api/v1/namespaces/{space.name}/pods"
    follower = Follower(api, path, Pod, lambda changes: None)
    follower.mirror.version = "1"
    follower.start()
    try:
        assert follower.wait_listed(PATIENCE_S)
        assert follower.lists == 1
    finally:
        follower.stop()


def test_many_pods_are_listed_within_their_share_of_cpu(api: Api, space: Namespace) -> None:
    path = f"/api/v1/namespaces/{space.name}/pods"

    def create(index: int) -> None:
        pod = manifest(f"many-{index}", schedulerName="nobody")
        pod["metadata"]["labels"] = {"many": "true", "job": str(index)}
        api.create(path, pod)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(create, range(MANY)))
    before = time.process_time()
    with following(api, path, Pod, labels="many=true") as (follower, _):
        spent = time.process_time() - before
        assert len(follower.mirror) == MANY
    print(f"{MANY} pods: {spent:.3f} s of CPU")
    assert spent < max(0.1, MANY * PER_POD)
