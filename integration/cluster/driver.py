"""A cluster as tests use it: its kubeconfig, and the things that can happen to it.

`Cluster` may be one of this machine (`Cluster.local`), whose parts can be stopped and killed, or a site's own that
KUBECONFIG names (`Cluster.given`); what only the first can do raises `ClusterError` on the second.
"""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .keys import Keys
from .mounts import make_marked, remove_marked
from .nodes import COVERED, Nodes
from .packages import prepare
from .parts import HOST_PARTS, Parts, Settings
from .places import ClusterError, Places
from .processes import PATIENCE_S, Keeper, run, wait_until

GROUP = "paper-group"
"""Label of nodes on paper, by which they are deleted together: one by one a thousand takes minutes."""
COREDNS_RIGHTS = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "coredns"},
        "rules": [
            {"apiGroups": [""], "resources": ["services", "namespaces", "pods"], "verbs": ["list", "watch"]},
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "coredns"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "coredns"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "coredns"}],
    },
]  # fmt: skip


@dataclass
class Cluster:
    kubeconfig: Path
    tool: str | Path  # kubectl
    places: Places | None = None  # of a cluster that is ours
    _parts: Parts | None = field(default=None, repr=False)

    @classmethod
    def given(cls, kubeconfig: str) -> "Cluster":
        """A cluster that somebody else runs."""
        tool = shutil.which("kubectl")
        if tool is None:
            raise ClusterError("KUBECONFIG names a cluster, but there is no kubectl on the PATH")
        return cls(Path(kubeconfig), tool)

    @classmethod
    def local(cls, places: Places) -> "Cluster":
        """This machine's cluster of that number, whether it is up or not."""
        settings = Settings.load(places.settings) if places.settings.exists() else Settings()
        keys = Keys(places.keys, places.address)
        return cls(places.keys / "admin.conf", places.program.parent / "kubectl", places, Parts(places, settings, keys))

    # one of ours: up and down

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            raise ClusterError("only the parts of a cluster that was started here can be started and stopped")
        return self._parts

    @property
    def keeper(self) -> Keeper:
        return Keeper(self.parts.places.run)

    @property
    def machine_nodes(self) -> Nodes:
        return Nodes(self.parts.places, self.parts, self.keeper)

    @property
    def is_up(self) -> bool:
        return all(self.alive(part) for part in ("etcd", "kube-apiserver", "kube-controller-manager"))

    @classmethod
    def up(cls, places: Places, settings: Settings, say: Callable[[str], None] = print) -> "Cluster":
        """Start a cluster, or what is missing of one that was started before (with the settings of then)."""
        if os.geteuid() != 0:
            raise ClusterError("a cluster of this machine's own needs root: namespaces, cgroups and a bridge are made")
        prepare(places, say)
        with _alone(places):
            make_marked(places.run)
            if not places.settings.exists():
                settings.save(places.settings)
            cluster = cls.local(places)
            try:
                cluster._start_all()
            except ClusterError:
                say("starting failed; 'down' removes what was started")
                raise
        return cluster

    def _start_all(self) -> None:
        parts, nodes = self.parts, self.machine_nodes
        names = parts.settings.node_names()
        parts.keys.make()
        parts.keys.user("admin", "system:masters")
        nodes.bridge_up()
        self.start("etcd")
        self.start("kube-apiserver")
        images = sorted(parts.places.images.glob("*.tar"))
        with ThreadPoolExecutor(max_workers=4) as pool:
            for name in names:
                parts.places.node(name).mkdir(parents=True, exist_ok=True)
            list(pool.map(lambda name: nodes.up(name, images), names))
        self.await_api()
        self.start("kube-controller-manager")
        if parts.settings.scheduler:
            self.start("kube-scheduler")
        if parts.settings.names:
            self.apply(COREDNS_RIGHTS)
            self.start("coredns")
        for name in names:
            for part in self._node_parts(name):
                self.start(part)
        for name in names:
            self.await_node(name)
            if not wait_until(lambda name=name: self.gpus(name) == parts.settings.gpus, every=0.2):  # type: ignore[misc]
                raise ClusterError(f"node {name} does not get its devices:\n{self.keeper.tail(f'gpu-plugin@{name}')}")
        # made by the controllers; before it no pod can be created
        if not wait_until(lambda: self._succeeds("get", "serviceaccount", "default"), every=0.2):
            raise ClusterError(f"no service account appears:\n{self.keeper.tail('kube-controller-manager')}")

    def _node_parts(self, node: str) -> list[str]:
        settings = self.parts.settings
        wanted = {"kubelet": True, "kube-proxy": settings.services, "gpu-plugin": settings.gpus > 0}
        return [f"{part}@{node}" for part, yes in wanted.items() if yes]

    @classmethod
    def down(cls, places: Places) -> None:
        """End all parts of a cluster and remove what it wrote; what was built stays. May be called at any time."""
        if not places.run.exists():
            return
        with _alone(places):
            cluster = cls.local(places)
            keeper, nodes = cluster.keeper, cluster.machine_nodes
            for part in ("kube-scheduler", "kube-controller-manager"):  # first, or they react to what follows
                keeper.stop(part)
            for name in cluster.parts.settings.node_names():
                nodes.down(name)
            for name in keeper.names():
                if name not in ("kube-apiserver", "etcd"):
                    keeper.stop(name)
            keeper.stop("kube-apiserver", within=5)
            keeper.stop("etcd", within=5)
            nodes.bridge_down()
            remove_marked(places.run)
            if not any(other.is_dir() for other in places.run.parent.iterdir()):
                for folder in reversed(COVERED):
                    try:
                        os.rmdir(folder)  # only if it was made for us, that is, if it is empty
                    except OSError:
                        continue

    # one of ours: what happens to its parts

    def start(self, part: str) -> None:
        """Start a part that does not run: see parts.py for the names."""
        if part in HOST_PARTS:
            self.keeper.start(part, self.parts.command(part))
        elif part.startswith("node@"):
            node = part.removeprefix("node@")
            self.machine_nodes.up(node, [])
            for one in self._node_parts(node):
                self.start(one)
        else:
            self.machine_nodes.start(part)

    def stop(self, part: str) -> None:
        """End a part and let it finish."""
        self.keeper.stop(part, wrapped="@" in part)

    def kill(self, part: str) -> None:
        """kill -9 of a part. `node@NAME` is the loss of a machine's power; a killed kubelet leaves its pods running."""
        self.parts  # noqa: B018  refuse before anything is touched
        if part.startswith("node@"):
            self.machine_nodes.down(part.removeprefix("node@"))
        else:
            self.keeper.stop(part, wrapped="@" in part, hard=True)

    def alive(self, part: str) -> bool:
        return self.keeper.find(part) is not None

    def await_api(self, within: float = PATIENCE_S) -> None:
        """Until the API server is ready to serve."""
        if not wait_until(lambda: self._succeeds("get", "--raw", "/readyz"), within, 0.2):
            raise ClusterError(
                f"the API server is not ready:\n{self.keeper.tail('kube-apiserver') if self._parts else ''}"
            )

    def on_node(self, node: str, *command: str, within: float = PATIENCE_S) -> str:
        """Run a command in a node's namespaces and give its output."""
        return run([*self.machine_nodes.enter(node), *command], within=within)

    def load_image(self, archive: Path) -> None:
        """Give an image archive (see images.py) to every node."""
        for node in self.parts.settings.node_names():
            self.machine_nodes.load(node, archive)

    def user(self, name: str, *groups: str) -> Path:
        """The kubeconfig of a user without rights, until they are given by RBAC."""
        return self.parts.keys.user(name, *groups)

    def devices(self, node: str) -> list[str]:
        """The made-up GPUs of a node."""
        return [line.split()[0] for line in self._inventory(node).read_text().splitlines() if line]

    def mark_device(self, node: str, device: str, *, broken: bool) -> None:
        """Break a made-up GPU, or mend it; kubelet is told within half a second."""
        lines = [f"{name}{' broken' * (broken if name == device else old)}" for name, old in self._broken(node).items()]
        written = self._inventory(node).with_suffix(".new")
        written.write_text("".join(f"{line}\n" for line in lines))
        written.replace(self._inventory(node))

    def _broken(self, node: str) -> dict[str, bool]:
        return {
            line.split()[0]: line.endswith(" broken") for line in self._inventory(node).read_text().splitlines() if line
        }

    def _inventory(self, node: str) -> Path:
        return self.parts.places.node(node) / "gpus"

    # any cluster

    def kubectl(self, *words: str, text: str | None = None, within: float = PATIENCE_S) -> str:
        return run([self.tool, f"--kubeconfig={self.kubeconfig}", *words], text=text, within=within)

    def _succeeds(self, *words: str, within: float = 10.0) -> bool:
        try:
            self.kubectl(*words, within=within)
        except ClusterError:
            return False
        return True

    def get(self, *words: str) -> Any:
        """What `kubectl get` says, as JSON."""
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def apply(self, objects: Sequence[Mapping[str, Any]]) -> None:
        everything = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.kubectl("apply", "--filename=-", text=json.dumps(everything))

    @property
    def nodes(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.get("nodes")["items"]]

    def node_ready(self, node: str) -> bool:
        conditions = self.get("node", node)["status"].get("conditions", [])
        return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def await_node(self, node: str, *, ready: bool = True, within: float = PATIENCE_S) -> None:
        """Until a node is Ready, or is not any more."""

        def reached() -> bool:
            return self._succeeds("get", "node", node) and self.node_ready(node) == ready

        if not wait_until(reached, within, 0.2):
            said = self.keeper.tail(f"kubelet@{node}") if self._parts else ""
            raise ClusterError(f"node {node} is {'not' if ready else 'still'} ready after {within:.0f} s:\n{said}")

    def gpus(self, node: str) -> int:
        """How many whole GPUs may be used on a node now."""
        return int(self.get("node", node)["status"].get("allocatable", {}).get("nvidia.com/gpu", 0))

    def taint(self, node: str, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        self.kubectl("taint", "--overwrite", "node", node, f"{key}={value}:{effect}")

    def untaint(self, node: str, key: str) -> None:
        self.kubectl("taint", "node", node, f"{key}-")

    def cordon(self, node: str) -> None:
        self.kubectl("cordon", node)

    def uncordon(self, node: str) -> None:
        self.kubectl("uncordon", node)

    def drain(self, node: str, within: float = PATIENCE_S) -> None:
        """Cordon a node and evict what runs there, pods without an owner too."""
        self.kubectl("drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", within=within)

    @contextmanager
    def paper_nodes(self, count: int, *, prefix: str = "paper-", cpus: int = 64, memory: str = "256Gi", gpus: int = 0,
                    labels: Mapping[str, str] | None = None) -> Iterator[list[str]]:  # fmt: skip
        """Node objects that no machine stands behind, alive as long as the context; pods on them count as running.

        The annotations that such pods and nodes understand are told in program/papernodes.go.
        """
        program = Places.here().program if self.places is None else self.places.program
        if not program.exists():
            raise ClusterError("the cluster's program is not built: python -m integration.cluster prepare")
        group = prefix.strip("-.")
        words = [
            program, "paper-nodes", f"--kubeconfig={self.kubeconfig}", f"--count={count}", f"--prefix={prefix}", f"--cpu={cpus}",
            f"--memory={memory}", f"--gpus={gpus}", "--labels=" + ",".join(f"{key}={value}" for key, value in {**(labels or {}), GROUP: group}.items()),
        ]  # fmt: skip
        if self._parts is not None:
            words.append(f"--every={self._parts.settings.grace_seconds // 4}s")
        names = [f"{prefix}{index:04d}" for index in range(count)]
        with subprocess.Popen(
            list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as program_:
            try:
                assert program_.stdout is not None
                if not program_.stdout.readline():
                    raise ClusterError("the nodes on paper could not be made")
                yield names
            finally:
                program_.kill()
        # a request ends after a minute, which a server at work may need for fewer than all of a thousand
        every = f"/api/v1/nodes?labelSelector={GROUP}={group}"
        if not wait_until(lambda: self._succeeds("delete", "--raw", every, within=120), 600, 1.0):
            raise ClusterError("the nodes on paper could not be removed")


@contextmanager
def _alone(places: Places) -> Iterator[None]:
    """One `up` or `down` of a cluster at a time."""
    places.run.parent.mkdir(parents=True, exist_ok=True)
    with (places.run.parent / f"{places.number}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
