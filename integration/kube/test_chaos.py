"""Kills and faults while jobs run as pods: no job is lost, none runs twice, nothing is left behind."""

import dataclasses
import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.driver import Cluster
from cluster.pods import namespace
from cluster.processes import wait_until

from .bridge import bridge
from .chaos import KINDS, Chaos
from .proxy import Proxy, Trap

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif("KUBECONFIG" in os.environ, reason="parts of somebody else's cluster are not killed"),
]
MANY = int(os.environ.get("SLURMBRIDGE_CHAOS_JOBS", "200"))
FEW = int(os.environ.get("SLURMBRIDGE_CHAOS_FEW", "16"))
SEED = int(os.environ.get("SLURMBRIDGE_CHAOS_SEED", "0")) or time.time_ns() % 1_000_000
LEFT_S = 120.0


@pytest.fixture
def chaos(supervisor: None, cluster: Cluster, tmp_path: Path) -> Iterator[Chaos]:
    print(f"seed {SEED}")
    assert cluster.places is not None
    proxy = Proxy(cluster.kubeconfig, cluster.places.address, SEED)
    proxy.start()
    through = tmp_path / "proxy.conf"
    through.write_text(json.dumps(proxy.kubeconfig))
    try:
        with namespace(cluster, "sb-chaos-test") as space:
            with bridge(dataclasses.replace(cluster, kubeconfig=through), space) as site:
                made = Chaos(site, space, proxy, cluster, SEED)
                yield made
                proxy.faults, proxy.watch_s = 0.0, None
            assert not space.kubectl("get", "pods,services", "--output=name").split()
    finally:
        proxy.stop()


def run(chaos: Chaos, count: int, names: tuple[str, ...], pause_s: float, least: int = 0) -> None:
    """Jobs are submitted until there are `count` and each of `names` happened `least` times."""
    began = time.monotonic()
    thread = threading.Thread(target=chaos.disturb, args=([getattr(chaos, name) for name in names], pause_s))
    if names:
        thread.start()
    try:
        chaos.submit_all(count, lambda: all(chaos.deeds[name] >= least for name in names))
        chaos.settle()
    finally:
        chaos.over.set()
        if names:
            thread.join()
        chaos.proxy.trap = None
        chaos.risen()
        wall = time.monotonic() - began
        print(f"{wall:.0f} s, {chaos.count} jobs, {len(chaos.slain)} runs killed,", dict(chaos.deeds), chaos.proxy.done)
    check(chaos)


def check(chaos: Chaos) -> None:
    assert chaos.failure is None, chaos.failure
    chaos.proxy.faults, chaos.proxy.watch_s = 0.0, None
    found = chaos.violations()
    assert not found, "\n".join([*found, *chaos.story(found)])
    assert wait_until(lambda: not chaos.left(), LEFT_S, 0.5), chaos.left()


@pytest.mark.parametrize(("name", "pause_s"), [("daemon", 8), ("api_server", 40), ("kubelet", 8), ("supervisor", 8)])
def test_what_is_killed_again_and_again_costs_no_job(chaos: Chaos, name: str, pause_s: float) -> None:
    """An API server gets the time that controllers, kubelets and name servers need to find it again."""
    run(chaos, FEW, (name,), pause_s, least=2)


@pytest.mark.parametrize(("faults", "watch_s"), [(0.0, 1.0), (0.3, None)], ids=["watches", "answers"])
def test_an_api_server_that_is_not_at_its_best_costs_no_job(chaos: Chaos, faults: float, watch_s: float | None) -> None:
    chaos.proxy.faults, chaos.proxy.watch_s = faults, watch_s
    run(chaos, FEW, (), 0.0)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    ("method", "kind"), [("POST", "pods"), ("POST", "services"), ("DELETE", "pods"), ("PATCH", "pods")]
)
def test_a_daemon_killed_at_a_request_costs_no_job(chaos: Chaos, method: str, kind: str, is_done: bool) -> None:
    """Before it is carried out, or before its answer comes; several times, wherever the jobs are then."""
    chaos.proxy.trap = Trap(method, kind, is_done, chaos.fall, chaos.may_fall)
    chaos.submit(next(one for one in KINDS if one.name == "gang"))  # has a service too
    run(chaos, FEW, (), 0.0)
    assert chaos.deeds["daemon"]


def test_a_node_that_goes_while_the_daemon_is_away_costs_no_job(chaos: Chaos) -> None:
    run(chaos, FEW, ("node",), 8.0, least=1)
    assert chaos.slain


def test_all_of_it_at_once_costs_no_job(chaos: Chaos) -> None:
    chaos.proxy.faults, chaos.proxy.watch_s = 0.1, 1.0
    run(chaos, MANY, ("daemon", "api_server", "kubelet", "supervisor"), 12.0, least=2)
