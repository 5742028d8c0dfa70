"""The cluster, a connection to it, and a daemon that runs jobs there."""

from collections.abc import Iterator

import pytest
from cluster.driver import Cluster
from cluster.fixture import cluster
from cluster.pods import Namespace, namespace

from slurmbridge.runtime.kube.api import Api

from .bridge import BIN, Bridge, bridge
from .supervisor import image

__all__ = ["api", "cluster", "commands", "site", "space", "supervisor"]


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    connected = Api.find(str(cluster.kubeconfig))
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def commands() -> None:
    if not (BIN / "sbatch").exists():
        pytest.fail("the commands are not installed beside this Python: run `make integration`, or scenario")


@pytest.fixture(scope="session")
def supervisor(commands: None, cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its image is on every node: what each daemon of `bridge` needs."""
    cluster.load_image(image(tmp_path_factory.mktemp("image")))


@pytest.fixture(scope="module")
def space(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """A namespace of the module's own."""
    name = request.module.__name__.rpartition("test_")[2]
    with namespace(cluster, f"sb-{name}-test") as made:
        yield made


@pytest.fixture(scope="module")
def site(supervisor: None, cluster: Cluster, space: Namespace) -> Iterator[Bridge]:
    """A daemon of the module's own in its namespace."""
    with bridge(cluster, space) as made:
        yield made
