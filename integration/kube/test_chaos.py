"""Kills and faults while jobs run as pods: no job is lost, none runs twice, nothing is left behind."""

import contextlib
import dataclasses
import json
import os
import random
import re
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster.driver import Cluster
from cluster.pods import Namespace, namespace
from cluster.processes import wait_until

from .bridge import Bridge, bridge
from .proxy import Proxy

pytestmark = [
    pytest.mark.root,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.skipif("KUBECONFIG" in os.environ, reason="parts of somebody else's cluster are not killed"),
]
MANY = int(os.environ.get("SLURMBRIDGE_CHAOS_JOBS", "200"))
FEW = 8
SEED = int(os.environ.get("SLURMBRIDGE_CHAOS_SEED", "0")) or time.time_ns() % 1_000_000
SETTLE_S = 900.0
LEFT_S = 120.0
SCRIPT = (
    "echo begun $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} >> runs; sleep 1; srun true; "
    "echo ended $SLURM_JOB_ID ${SLURM_RESTART_COUNT:-0} >> runs"
)
KINDS = ((), (), (), ("--nodes=2",), ("--array=1-4",))
"""Options of one submission; the array has four jobs."""


class Chaos:
    def __init__(self, site: Bridge, space: Namespace, proxy: Proxy, cluster: Cluster, seed: int) -> None:
        self.site, self.space, self.proxy, self.cluster = site, space, proxy, cluster
        self.chance = random.Random(seed)
        self.accepted: dict[int, int] = {}  # job -> how many
        self.deeds: Counter[str] = Counter()
        self.over = threading.Event()
        self.failure: BaseException | None = None

    # what happens

    def daemon(self) -> None:
        self.site.kill()
        self.site.up()

    def api_server(self) -> None:
        self.cluster.kill("kube-apiserver")
        self.over.wait(self.chance.uniform(0, 5))
        self.cluster.start("kube-apiserver")
        self.cluster.await_api()

    def kubelet(self) -> None:
        node = self.chance.choice(self.cluster.parts.settings.node_names())
        self.cluster.kill(f"kubelet@{node}")
        self.over.wait(self.chance.uniform(0, 4))
        self.cluster.start(f"kubelet@{node}")

    def supervisor(self) -> None:
        running = _first_processes(self.space)
        if running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.chance.choice(running), 9)

    def disturb(self, deeds: list[Callable[[], None]], pause_s: float) -> None:
        try:
            while not self.over.wait(self.chance.uniform(0.2, pause_s)):
                deed = self.chance.choice(deeds)
                self.deeds[deed.__name__] += 1
                deed()
        except BaseException as failure:  # told by the thread that waits
            self.failure = failure

    # jobs

    def submit(self, options: tuple[str, ...]) -> None:
        """Until one is acknowledged; another that was accepted without a word may run too."""
        end = time.monotonic() + 120
        while True:
            try:
                job = self.site.submit(SCRIPT, "--requeue", "--time=10", *options)
            except (AssertionError, ValueError, subprocess.TimeoutExpired):
                assert time.monotonic() < end and self.failure is None, self.failure
                time.sleep(0.2)
            else:
                self.accepted[job] = 4 if "--array=1-4" in options else 1
                return

    def submit_all(self, count: int) -> None:
        while sum(self.accepted.values()) < count:
            self.submit(self.chance.choice(KINDS))

    def rows(self) -> list[tuple[str, str, int]]:
        """Every run: its job (raw), state and restart count."""
        fields = "JobIDRaw,State,Restarts"
        said = self.site.command("sacct", "-X", "-n", "-P", "-D", "-o", fields, "-j", ",".join(map(str, self.accepted)))
        found = (line.split("|") for line in said.splitlines())
        return [(job, state.split(" ")[0], int(restarts)) for job, state, restarts in found]

    def settle(self) -> None:
        end = time.monotonic() + SETTLE_S
        waiting: list[str] = ["?"]
        while waiting:
            assert self.failure is None, self.failure
            assert time.monotonic() < end, (waiting, self.space.kubectl("get", "pods", "--output=wide"), self.log())
            time.sleep(0.5)
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                waiting = self.site.command("squeue", "-h", "-r", "-o", "%i %T %r").splitlines()

    def log(self) -> str:
        return (self.site.state / "daemon.log").read_text()[-4000:]

    # rules

    def violations(self, killed: bool) -> list[str]:
        """`killed`: runs may have ended because they were killed, and their jobs been run again."""
        found: list[str] = []
        rows = self.rows()
        runs = (self.site.share / "runs").read_text().splitlines()
        for line, count in Counter(runs).items():
            if count > 1:
                found.append(f"{line}: {count} times")
        last: dict[str, tuple[int, str]] = {}
        for job, state, restart in rows:
            last[job] = max(last.get(job, (-1, "")), (restart, state))
        wanted = sum(self.accepted.values())
        if len(last) != wanted:
            found.append(f"{len(last)} jobs of {wanted} are known")
        for job, (restart, state) in last.items():
            if state != "COMPLETED":
                found.append(f"job {job} is {state}")
            elif f"ended {job} {restart}" not in runs:
                found.append(f"job {job} is said to have run {restart + 1} times, but its last did not end")
            if restart and not killed:
                found.append(f"job {job} was started again {restart} times, but nothing had ended it")
        return found

    def left(self) -> list[str]:
        """Of runs and jobs, on the cluster and on the nodes of the daemon."""
        here = self.space.kubectl("get", "pods,services", "--output=name").split()
        busy = self.site.command("sinfo", "-h", "-N", "-o", "%N %t %C").splitlines()
        return here + [line for line in busy if " idle 0/" not in line]


def _first_processes(space: Namespace) -> list[int]:
    """Supervisors: first processes of the containers of the namespace's pods, seen from this machine."""
    uids = space.kubectl("get", "pods", "--output=jsonpath={.items[*].metadata.uid}").split()
    wanted = uids + [uid.replace("-", "_") for uid in uids]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            group = (process / "cgroup").read_text()
            if not any(f"pod{uid}" in group for uid in wanted):
                continue
            numbers = re.search(r"^NSpid:(.*)$", (process / "status").read_text(), re.MULTILINE)
            name = (process / "comm").read_text().strip()
            if numbers and numbers[1].split()[-1] == "1" and name not in ("pause", "runc", "runc:[2:INIT]"):
                found.append(int(process.name))
    return found


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


def run(chaos: Chaos, count: int, names: tuple[str, ...], pause_s: float) -> None:
    thread = threading.Thread(target=chaos.disturb, args=([getattr(chaos, name) for name in names], pause_s))
    if names:
        thread.start()
    try:
        chaos.submit_all(count)
        chaos.settle()
    finally:
        chaos.over.set()
        if names:
            thread.join()
        print(dict(chaos.deeds), chaos.proxy.done, f"{sum(chaos.accepted.values())} jobs")
    assert chaos.failure is None, chaos.failure
    chaos.proxy.faults, chaos.proxy.watch_s = 0.0, None
    assert not chaos.violations(killed="supervisor" in names)
    assert wait_until(lambda: not chaos.left(), LEFT_S, 0.5), chaos.left()


@pytest.mark.parametrize("name", ["daemon", "api_server", "kubelet", "supervisor"])
def test_what_is_killed_again_and_again_costs_no_job(chaos: Chaos, name: str) -> None:
    run(chaos, FEW, (name,), 8.0)


@pytest.mark.parametrize(("faults", "watch_s"), [(0.0, 1.0), (0.3, None)], ids=["watches", "answers"])
def test_an_api_server_that_is_not_at_its_best_costs_no_job(chaos: Chaos, faults: float, watch_s: float | None) -> None:
    chaos.proxy.faults, chaos.proxy.watch_s = faults, watch_s
    run(chaos, FEW, (), 0.0)


def test_all_of_it_at_once_costs_no_job(chaos: Chaos) -> None:
    chaos.proxy.faults, chaos.proxy.watch_s = 0.1, 1.0
    run(chaos, MANY, ("daemon", "api_server", "kubelet", "supervisor"), 12.0)
