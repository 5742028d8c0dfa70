"""A Kubernetes on this machine for people: python -m integration.cluster up | down | status | prepare | ..."""

import argparse
import os
import sys
import time

from .driver import Cluster
from .packages import prepare
from .parts import Settings
from .places import ClusterError, Places


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m integration.cluster", description="A real Kubernetes on this machine, for tests."
    )
    parser.add_argument(
        "--number", type=int, help="which of several clusters, 0 to 9 (default: SLURMBRIDGE_CLUSTER, or 0)"
    )
    words = parser.add_subparsers(dest="word", required=True)
    words.add_parser("prepare", help="build what a cluster is made from, and nothing more")
    up = words.add_parser("up", help="start it, or what is missing of it; prints the administrator's kubeconfig")
    defaults = Settings()
    up.add_argument(
        "--nodes", type=int, default=defaults.nodes, help="nodes with a kubelet and containerd (default %(default)s)"
    )
    up.add_argument("--gpus", type=int, default=defaults.gpus, help="made-up GPUs of each node (default %(default)s)")
    up.add_argument("--cpus", type=int, default=0, help="CPUs that each node claims to have (default: what is there)")
    up.add_argument(
        "--memory-mib", type=int, default=0, help="memory that each node claims to have (default: what is there)"
    )
    up.add_argument("--scheduler", action="store_true", help="Kubernetes' own scheduler too")
    up.add_argument(
        "--calm",
        action="store_true",
        help="a silent node counts as lost after 50 seconds, not 12: for many nodes on paper",
    )
    words.add_parser("down", help="end it and remove what it wrote")
    words.add_parser("status", help="what runs; exit code 1 when the API server does not")
    for word, about in (("start", "start parts"), ("stop", "end parts"), ("kill", "kill -9 parts")):
        words.add_parser(word, help=f"{about}: kube-apiserver, kubelet@n1, node@n2, ...").add_argument(
            "part", nargs="+"
        )
    kubectl = words.add_parser("kubectl", help="kubectl as administrator")
    kubectl.add_argument("argument", nargs=argparse.REMAINDER)
    node_exec = words.add_parser("exec", help="run a command on a node")
    node_exec.add_argument("node")
    node_exec.add_argument("argument", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    try:
        return perform(given, Places.here(given.number))
    except ClusterError as error:
        print(f"cluster: {error}", file=sys.stderr)
        return 1


def perform(given: argparse.Namespace, places: Places) -> int:
    if given.word == "prepare":
        prepare(places, say)
    elif given.word == "up":
        began = time.monotonic()
        settings = Settings(
            nodes=given.nodes, gpus=given.gpus, cpus=given.cpus, memory_mib=given.memory_mib, scheduler=given.scheduler
        )  # fmt: skip
        cluster = Cluster.up(places, settings.calm() if given.calm else settings, say)
        say(f"up after {time.monotonic() - began:.0f} s")
        print(cluster.kubeconfig)
    elif given.word == "down":
        Cluster.down(places)
    elif given.word == "status":
        return status(places)
    elif given.word == "kubectl":
        cluster = Cluster.local(places)
        os.execv(cluster.tool, ["kubectl", f"--kubeconfig={cluster.kubeconfig}", *given.argument])
    elif given.word == "exec":
        command = [*Cluster.local(places).machine_nodes.enter(given.node), *given.argument]
        os.execvp("nsenter", list(map(str, command)))
    else:
        act = getattr(Cluster.local(places), given.word)
        for part in given.part:
            act(part)
    return 0


def status(places: Places) -> int:
    built = {"program": places.program.exists(), "runtime": places.runtime.is_dir(), "images": places.images.is_dir()}
    print("built:", ", ".join(name for name, there in built.items() if there) or "nothing")
    if not places.settings.exists():
        print("not up")
        return 1
    cluster = Cluster.local(places)
    for name in cluster.keeper.names():
        process = cluster.keeper.find(name)
        print(f"{name:28} {f'pid {process.pid}' if process else 'ended'}")
    print("kubeconfig:", cluster.kubeconfig)
    return 0 if cluster.is_up else 1


def say(text: str) -> None:
    print(f"cluster: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
