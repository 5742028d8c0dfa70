"""Nodes on one machine: each is a set of namespaces with a containerd and a kubelet of its own.

A node hangs on the cluster's bridge by a pair of virtual interfaces and reaches the other nodes' pods by plain routes, as
a CNI's controller would set them. Taking its first process away is what losing the power is to a machine: all that runs
on it ends, its disk stays.
"""

import hashlib
import os
import signal
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .parts import Parts
from .places import PACKAGE, ClusterError, Places
from .processes import Keeper, Process, run, wait_until

# What kubelet wants these to say. It writes them when they differ, and they belong to the whole machine.
KERNEL = {
    "/proc/sys/vm/overcommit_memory": "1", "/proc/sys/vm/panic_on_oom": "0", "/proc/sys/kernel/panic": "10",
    "/proc/sys/kernel/panic_on_oops": "1", "/proc/sys/kernel/keys/root_maxkeys": "1000000",
    "/proc/sys/kernel/keys/root_maxbytes": "25000000",
}  # fmt: skip
# Folders that must be there to be covered in a node; `down` removes those that it can.
COVERED = ("/var/lib/kubelet", "/var/log/pods", "/var/log/containers", "/var/lib/cni", "/run/containerd", "/run/netns")


@dataclass(frozen=True)
class Nodes:
    places: Places
    parts: Parts
    keeper: Keeper

    def bridge_up(self) -> None:
        """The host's leg of the cluster's network."""
        name = self.places.bridge
        if not Path(f"/sys/class/net/{name}").exists():
            run(["ip", "link", "add", name, "type", "bridge"])
            run(["ip", "address", "add", f"{self.places.address}/24", "dev", name])
            run(["ip", "link", "set", name, "up"])

    def bridge_down(self) -> None:
        if Path(f"/sys/class/net/{self.places.bridge}").exists():
            run(["ip", "link", "delete", self.places.bridge])

    def up(self, node: str, images: Sequence[Path]) -> None:
        """Start a node's namespaces and its containerd, and load images. Its disk may be there from before."""
        folder, index = self.places.node(node), self._index(node)
        if self.keeper.find(f"node@{node}") is None:
            for covered in COVERED:
                Path(covered).mkdir(parents=True, exist_ok=True)
            self._write_own_files(node, folder)
            (folder / "ready").unlink(missing_ok=True)
            apart = (
                "unshare --mount --uts --net --pid --fork --kill-child=KILL --mount-proc --propagation=slave".split()
            )
            script: list[str | Path] = ["bash", PACKAGE / "node.sh", node, folder, self.places.runtime / "bin/pause"]
            self.keeper.start(f"node@{node}", [*apart, *script])
            if not wait_until((folder / "ready").exists):
                raise ClusterError(f"node {node} does not come up:\n{self.keeper.tail(f'node@{node}')}")
            self._connect(node, index)
            self._make_cgroups(node)
        self.start(f"containerd@{node}")
        if not wait_until(lambda: self._answers(node), every=0.2):
            raise ClusterError(f"containerd on {node} does not answer:\n{self.keeper.tail(f'containerd@{node}')}")
        for image in images:
            self.load(node, image)

    def down(self, node: str) -> None:
        """End a node at once, as a loss of power does; its disk stays."""
        for part in ("gpu-plugin", "kube-proxy", "kubelet", "containerd"):
            self.keeper.stop(f"{part}@{node}", wrapped=True, hard=True)
        self.keeper.stop(f"node@{node}", wrapped=True, hard=True)
        self._remove_cgroups(node)

    def start(self, part: str) -> None:
        """Start a part on its node. Where nsenter is killed, what it started is too."""
        node = part.partition("@")[2]
        inside = [*self.enter(node), "setpriv", "--pdeathsig", "KILL"]
        self.keeper.start(part, [*inside, *self.parts.command(part)])

    def enter(self, node: str) -> list[str | Path]:
        """What a command line begins with that shall run on a node."""
        return ["nsenter", "--target", str(self._first(node).pid), "--mount", "--uts", "--net", "--pid"]

    def load(self, node: str, image: Path) -> None:
        """Give a node's containerd an image archive."""
        ctr: list[str | Path] = [
            self.places.runtime / "bin/ctr",
            "--address=/run/containerd/containerd.sock",
            "--namespace=k8s.io",
        ]
        run([*self.enter(node), *ctr, "images", "import", image])

    def _answers(self, node: str) -> bool:
        try:
            run(
                [
                    *self.enter(node),
                    self.places.runtime / "bin/ctr",
                    "--address=/run/containerd/containerd.sock",
                    "version",
                ]
            )
        except ClusterError:
            return False
        return True

    def _first(self, node: str) -> Process:
        first = self.keeper.inner(f"node@{node}")
        if first is None:
            raise ClusterError(f"node {node} is not up")
        return first

    def _index(self, node: str) -> int:
        return self.parts.settings.node_names().index(node) + 1

    def _connect(self, node: str, index: int) -> None:
        host, inside = (
            f"{self.places.bridge}v{index}",
            ["nsenter", "--target", str(self._first(node).pid), "--net", "ip"],
        )
        if Path(f"/sys/class/net/{host}").exists():
            run(["ip", "link", "delete", host])  # of an earlier life of this node, not taken down by the kernel yet
        run(["ip", "link", "add", host, "type", "veth", "peer", "name", "eth0", "netns", str(self._first(node).pid)])
        run(["ip", "link", "set", host, "master", self.places.bridge, "up"])
        run([*inside, "address", "add", f"{self.places.node_address(index)}/24", "dev", "eth0"])
        run([*inside, "link", "set", "eth0", "up"])
        run([*inside, "route", "add", "default", "via", self.places.address])
        run(["ip", "route", "replace", self.places.node_pods(index), "via", self.places.node_address(index)])
        for other in range(1, self.parts.settings.nodes + 1):
            if other != index:
                run([*inside, "route", "replace", self.places.node_pods(other), "via", self.places.node_address(other)])

    def _write_own_files(self, node: str, folder: Path) -> None:
        """The files that say something else on this node than on the machine."""
        settings, shown = self.parts.settings, []
        (folder / "disk/containerd").mkdir(parents=True, exist_ok=True)
        identity = hashlib.sha256(f"{self.places.number} {node}".encode()).hexdigest()[:32]
        texts = {**KERNEL, "/etc/machine-id": identity, "/proc/sys/kernel/random/boot_id": str(uuid.uuid4())}
        if settings.memory_mib:
            lines = Path("/proc/meminfo").read_text().splitlines()
            texts["/proc/meminfo"] = "\n".join([f"MemTotal: {settings.memory_mib * 1024} kB", *lines[1:]])
        for path, text in texts.items():
            own = folder / f"own{path}"
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(text + "\n")
            shown.append(path)
        if settings.cpus:
            shown.append("/sys/devices/system/node")
            self._write_cpus(folder / "own/sys/devices/system/node", settings.cpus)
        (folder / "own.list").write_text("".join(f"{path}\n" for path in shown))
        devices = [
            f"GPU-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{index}.{node}.{self.places.number}')}\n"
            for index in range(settings.gpus)
        ]
        if not (folder / "gpus").exists():
            (folder / "gpus").write_text("".join(devices))

    @staticmethod
    def _write_cpus(folder: Path, wanted: int) -> None:
        """Kubelet counts CPUs below NUMA nodes. Each made-up NUMA node has the machine's own CPUs again: other numbers
        would be written into cpusets, which know none."""
        real = os.cpu_count() or 1
        for cpu in range(wanted):
            numa = folder / f"node{cpu // real}"
            topology = numa / f"cpu{cpu % real}/topology"
            topology.mkdir(parents=True, exist_ok=True)
            (numa / "hugepages").mkdir(exist_ok=True)
            (topology / "core_id").write_text(f"{cpu % real}\n")
            (topology / "physical_package_id").write_text(f"{cpu // real}\n")
            (numa / "distance").write_text("10\n")
            (numa / "meminfo").write_text(f"Node {cpu // real} MemTotal: 1048576 kB\n")

    def _cgroups(self, node: str) -> list[Path]:
        """The node's group in each hierarchy (v1), or its only one (v2)."""
        base, name = Path("/sys/fs/cgroup"), self.parts.cgroup(node)
        if (base / "cgroup.controllers").exists():
            return [base / name]
        return [entry / name for entry in sorted(base.iterdir()) if entry.is_dir()]

    def _make_cgroups(self, node: str) -> None:
        for group in self._cgroups(node):
            if (group.parent / "cgroup.subtree_control").exists() and group.parent.name == "cgroup":
                offered = (group.parent / "cgroup.controllers").read_text().split()
                (group.parent / "cgroup.subtree_control").write_text(" ".join(f"+{word}" for word in offered))
            group.mkdir(exist_ok=True)
            for file in ("cpuset.cpus", "cpuset.mems"):  # v1: a new group has none, and nothing can run in it
                if group.parent.name == "cpuset":
                    (group / file).write_text((group.parent / file).read_text())

    def _remove_cgroups(self, node: str) -> None:
        """Empty groups only: the kernel refuses where a process is left."""
        for group in self._cgroups(node):
            if not group.is_dir():
                continue

            def emptied(group: Path = group) -> bool:
                for place, _, _ in os.walk(group, topdown=False):
                    try:
                        os.rmdir(place)
                    except OSError:
                        self._kill_left(Path(place))
                        return False
                return True

            if not wait_until(emptied, 10):
                raise ClusterError(f"processes are left in {group}")

    @staticmethod
    def _kill_left(group: Path) -> None:
        procs = group / "cgroup.procs"
        for pid in procs.read_text().split() if procs.exists() else []:
            process = Process.find(int(pid))
            if process is not None:
                process.send(signal.SIGKILL)
