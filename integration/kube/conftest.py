"""The cluster, and a connection to it."""

from collections.abc import Iterator

import pytest
from cluster.driver import Cluster
from cluster.fixture import cluster

from slurmbridge.runtime.kube.api import Api

__all__ = ["api", "cluster"]


@pytest.fixture
def api(cluster: Cluster) -> Iterator[Api]:
    connected = Api.find(str(cluster.kubeconfig))
    yield connected
    connected.close()
