"""Where a cluster's parts lie: what is built once for all, and what one cluster writes.

What is built (`cache`) is outside any checkout and named by the hash of what it is made from, so that a new checkout of
the same text finds it. What a cluster writes (`run`) is one folder, made by `up` and removed by `down`. Several clusters
may run beside each other; each has a number, and addresses that follow from it.
"""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
PROGRAM = PACKAGE / "program"
REGISTRY = "registry.test"  # a name that no name server knows: images are there before they are asked for
CLUSTERS = 10  # numbers 0..9


class ClusterError(Exception):
    """The cluster cannot do what was asked; the text says why and, where there is one, what helps."""


@dataclass(frozen=True, kw_only=True)
class Places:
    number: int
    cache: Path
    run: Path

    @classmethod
    def here(cls, number: int | None = None) -> "Places":
        """The places of this machine; SLURMBRIDGE_CLUSTER names the number, XDG_CACHE_HOME the cache."""
        chosen = int(os.environ.get("SLURMBRIDGE_CLUSTER", "0")) if number is None else number
        if not 0 <= chosen < CLUSTERS:
            raise ClusterError(f"a cluster's number is 0 to {CLUSTERS - 1}, not {chosen}")
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        return cls(
            number=chosen,
            cache=Path(base) / "slurmbridge/cluster",
            run=Path("/var/lib/slurmbridge-cluster") / str(chosen),
        )

    # what is built

    @property
    def program(self) -> Path:
        return self.cache / f"program-{hash_of(program_sources())}" / "cluster"

    @property
    def _runtime_sources(self) -> list[Path]:
        return [PACKAGE / "runtime.py", PROGRAM / "pause/pause.c"]

    @property
    def runtime(self) -> Path:
        return self.cache / f"runtime-{hash_of(self._runtime_sources)}"

    @property
    def images(self) -> Path:
        return self.cache / f"images-{hash_of([*self._runtime_sources, PACKAGE / 'images.py'])}"

    @property
    def more(self) -> Path:
        """For what some tests build besides; in a folder of its own, as nothing of it is needed for a cluster."""
        return self.cache / "more"

    # what one cluster writes

    @property
    def keys(self) -> Path:
        return self.run / "keys"

    @property
    def settings(self) -> Path:
        return self.run / "settings.json"

    def node(self, name: str) -> Path:
        return self.run / "nodes" / name

    # its addresses

    @property
    def bridge(self) -> str:
        return f"sbc{self.number}"

    @property
    def address(self) -> str:
        """The host as the nodes and pods see it: API server, DNS, and whatever a test listens with."""
        return f"10.{210 + self.number}.0.1"

    def node_address(self, index: int) -> str:
        return f"10.{210 + self.number}.0.{10 + index}"

    @property
    def pod_network(self) -> str:
        return f"10.{230 + self.number}.0.0/16"

    def node_pods(self, index: int) -> str:
        return f"10.{230 + self.number}.{index}.0/24"

    def port(self, offset: int) -> int:
        """Ports on 127.0.0.1, of the parts that only this machine talks to."""
        return 16400 + 10 * self.number + offset


API_PORT = 6443  # on the cluster's own address


def program_sources() -> list[Path]:
    return [PROGRAM / "go.mod", PROGRAM / "go.sum", *sorted(PROGRAM.glob("*.go"))]


def hash_of(files: Iterable[Path]) -> str:
    """A short name for the content of files, their names included."""
    total = hashlib.sha256()
    for file in files:
        total.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        total.update(file.read_bytes())
    return total.hexdigest()[:16]
