"""Pods that tests make by hand, without the product: small manifests, and waiting for what becomes of them."""

import json
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .driver import Cluster
from .images import BUSYBOX
from .places import ClusterError
from .processes import PATIENCE_S, wait_until

ENDS = ("Succeeded", "Failed")


def manifest(name: str, script: str = "sleep 1000", *, node: str = "", gpus: int = 0, **spec: Any) -> dict[str, Any]:
    """A pod that runs a shell script; bound to a node where one is named."""
    container: dict[str, Any] = {"name": "main", "image": BUSYBOX, "command": ["sh", "-c", script]}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    bound = {"nodeName": node} if node else {}
    whole = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container], **bound, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": whole}


class Namespace:
    """A namespace of a test's own; it goes with all that is in it."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster, self.name = cluster, name

    def kubectl(self, *words: str, text: str | None = None, within: float = PATIENCE_S) -> str:
        return self.cluster.kubectl(f"--namespace={self.name}", *words, text=text, within=within)

    def create(self, *pods: dict[str, Any]) -> None:
        self.kubectl(
            "create", "--filename=-", text=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)})
        )

    def pod(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.kubectl("get", "pod", name, "--output=json"))
        return found

    def await_phase(self, name: str, *phases: str, within: float = PATIENCE_S) -> dict[str, Any]:
        """The pod once it has one of the phases."""
        last: dict[str, Any] = {}

        def reached() -> bool:
            last.update(self.pod(name))
            return last["status"]["phase"] in phases

        if not wait_until(reached, within, 0.2):
            raise ClusterError(
                f"{name} is not {' or '.join(phases)} after {within:.0f} s: {json.dumps(last['status'])}"
            )
        return last

    def output(self, name: str) -> str:
        return self.kubectl("logs", name)


@contextmanager
def namespace(cluster: Cluster, name: str) -> Iterator[Namespace]:
    """A namespace in which pods can be made at once. Its name is made unique: one that goes may take a while."""
    name = f"{name}-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", name)
    made = Namespace(cluster, name)

    def has_account() -> bool:  # given by the controllers; before it pods are refused
        return bool(made.kubectl("get", "serviceaccount", "default", "--ignore-not-found"))

    try:
        if not wait_until(has_account, every=0.1):
            raise ClusterError(f"namespace {name} gets no service account")
        yield made
    finally:
        cluster.kubectl("delete", "namespace", name, "--wait=false")
