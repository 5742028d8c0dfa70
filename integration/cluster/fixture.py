"""The pytest fixture `cluster`: import it into a conftest.py, and a test that asks for it gets a real Kubernetes.

KUBECONFIG set: that cluster. Otherwise this machine's own, which is left up when it was up before, and else is taken down
after the last test (SLURMBRIDGE_CLUSTER_KEEP=1 leaves it for the next run).
"""

import os
from collections.abc import Iterator

import pytest

from .driver import Cluster
from .parts import Settings
from .places import Places


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A cluster with at least two nodes and made-up GPUs; each test leaves it as it was."""
    given = os.environ.get("KUBECONFIG")
    if given:
        yield Cluster.given(given)
        return
    places = Places.here()
    before = places.settings.exists() and Cluster.local(places).is_up
    if not before:
        Cluster.down(places)  # what is left of one that was killed
    try:
        yield Cluster.up(places, Settings())
    finally:
        if not before and not os.environ.get("SLURMBRIDGE_CLUSTER_KEEP"):
            Cluster.down(places)
