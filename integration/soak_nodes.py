"""A thousand nodes on paper and five thousand pods: how large does the daemon grow, how long does a new job wait?

    soak_nodes.py --bin BIN [--nodes 1000] [--pods 5000] [--rss-mib 400] [--latency 1.0]

On a real API server (integration/cluster), with nodes that no machine stands behind and on which pods count as running.
Exit code 1: the daemon's RSS or the median latency of a new job, from sbatch to RUNNING, is beyond the bound.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from cluster.driver import Cluster
from cluster.parts import Settings
from cluster.places import Places
from cluster.pods import Namespace, namespace

SITE = "partitions: {main: {image: none, supervisor: hostPath, supervisorPath: /none, supervisorImage: none}}\n"
ARRAY = 1000
TRIES = 7


def say(text: str) -> None:
    print(text, flush=True)


class Daemon:
    def __init__(self, folder: pathlib.Path, bin_: pathlib.Path, cluster: Cluster, space: Namespace) -> None:
        self.folder, self.bin, self.cluster, self.space = folder, bin_, cluster, space
        self.state = folder / "state"
        (folder / "site.yaml").write_text(SITE)
        (folder / "job.sh").write_text("#!/bin/sh\nsleep 100000\n")
        self.run(
            "slurmbridge", "up", "--kube", "--detach", "--state", str(self.state), "--site", f"{folder}/site.yaml",
            "--kubeconfig", str(cluster.kubeconfig), "--namespace", space.name,
        )  # fmt: skip
        said = self.run("slurmbridge", "status", "--state", str(self.state))
        self.pid = int(next(word for word in said.split() if word.startswith("pid=")).removeprefix("pid="))

    def run(self, *words: str) -> str:
        environment = {**os.environ, "SLURMBRIDGE_ADDR": f"unix:{self.state}/socket"}
        done = subprocess.run(
            [self.bin / words[0], *words[1:]], env=environment, capture_output=True, text=True, cwd=self.folder
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def count(self, *words: str) -> int:
        return len(self.run(*words).split())

    def rss_mib(self) -> int:
        text = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return int(text.partition("VmRSS:")[2].split()[0]) // 1024

    def cpu_s(self) -> float:
        fields = pathlib.Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def pods(self) -> int:
        path = f"/api/v1/namespaces/{self.space.name}/pods?limit=1"
        answer = json.loads(self.cluster.kubectl("get", "--raw", path))
        return len(answer["items"]) + int(answer["metadata"].get("remainingItemCount", 0))

    def latency_s(self) -> float:
        began = time.monotonic()
        job = self.run("sbatch", "--parsable", "job.sh").strip()
        while self.run("squeue", "--noheader", f"--jobs={job}", "--format=%t").strip() != "R":
            pass
        return time.monotonic() - began


def measure(daemon: Daemon, nodes: int, pods: int) -> tuple[int, float]:
    """The RSS in MiB, and the median latency in seconds."""
    began = time.monotonic()
    with daemon.cluster.paper_nodes(nodes, cpus=64, memory="256Gi", gpus=8):
        while daemon.count("sinfo", "--noheader", "--Node", "--states=idle", "--format=%N") < nodes:
            time.sleep(0.2)
        say(f"{nodes} nodes idle after {time.monotonic() - began:.0f} s, daemon {daemon.cpu_s():.1f} s of CPU")
        began, before = time.monotonic(), daemon.cpu_s()
        for first in range(0, pods, ARRAY):
            daemon.run("sbatch", "--parsable", f"--array=0-{min(ARRAY, pods - first) - 1}", "job.sh")
        while daemon.pods() < pods:
            time.sleep(1.0)
        took, used = time.monotonic() - began, daemon.cpu_s() - before
        say(f"{pods} pods there after {took:.0f} s, daemon {used:.1f} s of CPU")
        waits = [daemon.latency_s() for _ in range(TRIES)]
        began = time.monotonic()
        daemon.run("sinfo")
        say(f"a new job runs after {statistics.median(waits):.2f} s, sinfo takes {time.monotonic() - began:.2f} s")
        say(f"the daemon's RSS is {daemon.rss_mib()} MiB")
        return daemon.rss_mib(), statistics.median(waits)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000)
    parser.add_argument("--rss-mib", type=int, default=400)
    parser.add_argument("--latency", type=float, default=1.0)
    given = parser.parse_args()
    places = Places.here()
    Cluster.down(places)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="slurmbridge-nodes-"))
    try:
        cluster = Cluster.up(places, Settings(nodes=1).calm(), say)
        with namespace(cluster, "sb-soak-nodes") as space:
            daemon = Daemon(folder, given.bin.resolve(), cluster, space)
            try:
                rss, latency = measure(daemon, given.nodes, given.pods)
            finally:
                daemon.run("slurmbridge", "down", "--state", str(daemon.state))
    finally:
        Cluster.down(places)
        shutil.rmtree(folder)
    return int(rss > given.rss_mib or latency > given.latency)


if __name__ == "__main__":
    sys.exit(main())
