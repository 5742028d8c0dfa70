"""Helm itself, built once from its Go module, and a release that it installs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cluster.driver import Cluster
from cluster.packages import compile_go, once
from cluster.places import Places, hash_of
from cluster.processes import run

MODULE = Path(__file__).resolve().parents[1] / "helm"
CHART = Path(__file__).resolve().parents[2] / "k8s/slurmbridge"
PACKAGE = "helm.sh/helm/v4/cmd/helm"
WITHIN_S = 300.0


def program() -> Path:
    """Built when it is not there: minutes of CPU time after nothing, one where the cluster's program was built before."""
    folder = Places.here().more / f"helm-{hash_of([MODULE / 'go.mod', MODULE / 'go.sum'])}"
    return once(folder, lambda into: compile_go(MODULE, PACKAGE, into / "helm")) / "helm"


class Helm:
    """`folder`: of its own, for what it would keep in a home directory."""

    def __init__(self, program: Path, folder: Path, kubeconfig: Path | None = None) -> None:
        self._words: list[str | Path] = ["env", f"HOME={folder}", *(f"--unset=XDG_{kind}_HOME" for kind in ("CACHE", "CONFIG", "DATA")), program]  # fmt: skip
        self._cluster = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
        self._folder = folder

    def __call__(self, *words: str | Path, values: Mapping[str, Any] | None = None) -> str:
        """What it says. ClusterError, with what it said, where it fails."""
        given = []
        if values is not None:
            path = self._folder / "values.yaml"
            path.write_text(yaml.safe_dump(dict(values)))
            given = [f"--values={path}"]
        return run([*self._words, *words, *given, *self._cluster], within=WITHIN_S)


class Release:
    """The chart, installed in a namespace as `name`."""

    def __init__(self, helm: Helm, cluster: Cluster, namespace: str, name: str = "slurmbridge") -> None:
        self._helm, self._cluster, self.namespace, self.name = helm, cluster, namespace, name
        self.pod = f"{name}-0"

    def install(self, values: Mapping[str, Any]) -> str:
        return self._helm("install", self.name, CHART, f"--namespace={self.namespace}", *self._waiting, values=values)

    def upgrade(self, values: Mapping[str, Any]) -> str:
        return self._helm("upgrade", self.name, CHART, f"--namespace={self.namespace}", *self._waiting, values=values)

    _waiting = ("--wait", f"--timeout={WITHIN_S - 20:.0f}s")

    def uninstall(self) -> str:
        return self._helm("uninstall", self.name, f"--namespace={self.namespace}", "--ignore-not-found", *self._waiting)

    def kubectl(self, *words: str, within: float = 60.0) -> str:
        return self._cluster.kubectl(f"--namespace={self.namespace}", *words, within=within)

    def get(self, *words: str) -> Any:
        return json.loads(self.kubectl("get", *words, "--output=json"))

    def run(self, *words: str) -> str:
        """A command in the daemon's container: as the daemon's user."""
        return self.kubectl("exec", self.pod, "--container=daemon", "--", *words, within=120)

    def run_as(self, user: str, text: str) -> str:
        """What somebody types in the login container."""
        words = ("exec", self.pod, "--container=login", "--", "su", "-", user, "-c", text)
        return self.kubectl(*words, within=120)
