"""The command line of each part of a cluster, and the files that it reads.

A part is named `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler` or `coredns` where it runs on the
machine itself, and `containerd@NODE`, `kubelet@NODE`, `kube-proxy@NODE`, `gpu-plugin@NODE` where it runs on a node. Flags
follow the parts' own references (Kubernetes v1.37, etcd v3.7, containerd v2.1).
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from .images import PAUSE
from .keys import Keys
from .places import API_PORT, Places

SERVICES = "10.96.0.0/16"
HOST_PARTS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "coredns")
NODE_PARTS = ("containerd", "kubelet", "kube-proxy", "gpu-plugin")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a cluster is to be; written at its first start and kept until it is taken down."""

    nodes: int = 2
    gpus: int = 4  # made-up devices of each node
    cpus: int = 0  # what a node claims to have; 0: what the machine has. Nothing gets faster by it
    memory_mib: int = 0
    scheduler: bool = False  # Kubernetes' own, for pods that are not ours
    names: bool = True  # CoreDNS
    services: bool = True  # kube-proxy
    lease_seconds: int = 8  # kubelet renews it four times as often
    grace_seconds: int = 12  # a node that was silent for so long is NotReady
    apiserver_flags: tuple[str, ...] = ()
    controller_flags: tuple[str, ...] = ()

    def calm(self) -> "Settings":
        """The same with Kubernetes' own times, for a thousand nodes or a busy machine."""
        return replace(self, lease_seconds=40, grace_seconds=50)

    def node_names(self) -> list[str]:
        return [f"n{index}" for index in range(1, self.nodes + 1)]

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, path: Path) -> "Settings":
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {key: value for key, value in json.loads(path.read_text()).items() if key in known}
        for key, value in values.items():
            if isinstance(value, list):
                values[key] = tuple(value)
        return cls(**values)


@dataclass(frozen=True)
class Parts:
    places: Places
    settings: Settings
    keys: Keys

    def command(self, part: str) -> list[str | Path]:
        """How a part is started; its configuration files are written on the way."""
        name, _, node = part.partition("@")
        table: dict[str, Callable[[], list[str | Path]]] = {
            "etcd": self._etcd, "kube-apiserver": self._apiserver, "kube-controller-manager": self._controllers,
            "kube-scheduler": self._scheduler, "coredns": self._names, "containerd": lambda: self._containerd(node),
            "kubelet": lambda: self._kubelet(node), "kube-proxy": lambda: self._proxy(node),
            "gpu-plugin": lambda: [self.places.program, "gpu-plugin", f"--inventory={self.places.node(node) / 'gpus'}"],
        }  # fmt: skip
        return table[name]()

    def _etcd(self) -> list[str | Path]:
        clients, peers = (f"http://127.0.0.1:{self.places.port(offset)}" for offset in (0, 1))
        return [
            self.places.program, "etcd", f"--data-dir={self.places.run / 'etcd'}", "--log-level=warn",
            "--unsafe-no-fsync",  # survives any kill of ours, if not the machine's end: a test asks for no more
            f"--listen-client-urls={clients}", f"--advertise-client-urls={clients}", f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}",
        ]  # fmt: skip

    def _apiserver(self) -> list[str | Path]:
        keys = self.keys.folder
        return [
            self.places.program, "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.places.port(0)}",
            f"--bind-address={self.places.address}", f"--advertise-address={self.places.address}", f"--secure-port={API_PORT}",
            f"--tls-cert-file={keys / 'apiserver.crt'}", f"--tls-private-key-file={keys / 'apiserver.key'}",
            f"--client-ca-file={keys / 'ca.crt'}", "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-signing-key-file={keys / 'accounts.key'}",
            f"--service-account-key-file={keys / 'accounts.key'}", f"--kubelet-client-certificate={keys / 'apiserver-client.crt'}",
            f"--kubelet-client-key={keys / 'apiserver-client.key'}", "--kubelet-preferred-address-types=InternalIP",
            f"--service-cluster-ip-range={SERVICES}", "--allow-privileged", "--profiling=false", *self.settings.apiserver_flags,
        ]  # fmt: skip

    def _controllers(self) -> list[str | Path]:
        keys = self.keys.folder
        return [
            self.places.program, "kube-controller-manager", f"--kubeconfig={self.keys.user('system:kube-controller-manager')}",
            "--use-service-account-credentials", f"--service-account-private-key-file={keys / 'accounts.key'}",
            f"--root-ca-file={keys / 'ca.crt'}", "--leader-elect=false", "--bind-address=127.0.0.1",
            f"--secure-port={self.places.port(2)}", "--profiling=false",
            f"--node-monitor-grace-period={self.settings.grace_seconds}s", "--node-monitor-period=1s", *self.settings.controller_flags,
        ]  # fmt: skip

    def _scheduler(self) -> list[str | Path]:
        config = self.keys.user("system:kube-scheduler")
        bound = ["--bind-address=127.0.0.1", f"--secure-port={self.places.port(3)}"]
        return [self.places.program, "kube-scheduler", f"--kubeconfig={config}", "--leader-elect=false", *bound]

    def _names(self) -> list[str | Path]:
        config = self.places.run / "Corefile"
        zone = f"kubernetes cluster.local in-addr.arpa {{\n kubeconfig {self.keys.user('coredns')}\n ttl 1\n }}"
        ready = f"ready 127.0.0.1:{self.places.port(4)}"
        config.write_text(f".:53 {{\n bind {self.places.address}\n errors\n {ready}\n {zone}\n}}\n")
        return [self.places.program, "coredns", "-conf", config]

    def _containerd(self, node: str) -> list[str | Path]:
        folder, bin = self.places.node(node), self.places.runtime / "bin"
        (folder / "cni").mkdir(parents=True, exist_ok=True)
        index = self.settings.node_names().index(node) + 1
        addresses = {
            "type": "host-local",
            "dataDir": "/run/containerd/addresses",
            "ranges": [[{"subnet": self.places.node_pods(index)}]],
        }
        plugins = [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "hairpinMode": True,
                "ipam": {**addresses, "routes": [{"dst": "0.0.0.0/0"}]},
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
            {"type": "loopback"},
        ]
        network = {"cniVersion": "1.0.0", "name": "pods", "plugins": plugins}
        (folder / "cni/pods.conflist").write_text(json.dumps(network))
        (folder / "containerd.toml").write_text(
            CONTAINERD.format(root=folder / "disk/containerd", pause=PAUSE, runc=bin / "runc", networks=folder / "cni")
        )
        return [
            "env",
            f"PATH={bin}:/usr/sbin:/usr/bin:/sbin:/bin",
            bin / "containerd",
            f"--config={folder / 'containerd.toml'}",
        ]

    def _kubelet(self, node: str) -> list[str | Path]:
        folder = self.places.node(node)
        authority = {"clientCAFile": str(self.keys.folder / "ca.crt")}
        config = {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": authority},
            "authorization": {"mode": "Webhook"}, "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "failCgroupV1": False, "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.cgroup(node)}",
            "oomScoreAdj": 0,  # less is not allowed everywhere
            "clusterDNS": [self.places.address], "clusterDomain": "cluster.local", "resolvConf": "",  # no other name server
            "nodeStatusUpdateFrequency": "2s", "nodeStatusReportFrequency": "1m", "nodeLeaseDurationSeconds": self.settings.lease_seconds,
            "syncFrequency": "10s", "maxPods": 250, "logging": {"verbosity": 1},
            "imageGCHighThresholdPercent": 100, "imageMinimumGCAge": "1000h",  # an image that is collected cannot be pulled
            "evictionHard": {
                "memory.available": "100Mi", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
                "imagefs.inodesFree": "0%",
            },
        }  # fmt: skip
        (folder / "kubelet.json").write_text(json.dumps(config))
        index = self.settings.node_names().index(node) + 1
        return [
            self.places.program, "kubelet", f"--kubeconfig={self.keys.user(f'system:node:{node}', 'system:nodes')}",
            f"--config={folder / 'kubelet.json'}", f"--hostname-override={node}", f"--node-ip={self.places.node_address(index)}",
        ]  # fmt: skip

    def _proxy(self, node: str) -> list[str | Path]:
        file = self.places.node(node) / "kube-proxy.json"
        config = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self.keys.user("system:kube-proxy"))}, "hostnameOverride": node,
            "mode": "iptables", "clusterCIDR": self.places.pod_network, "healthzBindAddress": "127.0.0.1:10256",
            # or answers between pods of one node go over its bridge alone, where nothing takes the service's address back
            "iptables": {"masqueradeAll": True},
            "metricsBindAddress": "127.0.0.1:10249",
            "conntrack": {"maxPerCore": 0, "min": 0},  # the machine's limit cannot be set from a node
        }  # fmt: skip
        _write(file, json.dumps(config))
        return [self.places.program, "kube-proxy", f"--config={file}"]

    def cgroup(self, node: str) -> str:
        return f"{self.places.bridge}-{node}"


def _write(file: Path, text: str) -> None:
    """A part that runs may watch its file, and kube-proxy ends when it is written, though nothing is new in it."""
    if not file.exists() or file.read_text() != text:
        file.write_text(text)


CONTAINERD = """\
version = 3
root = "{root}"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", \
"io.containerd.tracing.processor.v1.otlp", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", \
"io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
  BinaryName = "{runc}"
  SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "{networks}"
"""
