"""The image of the supervisor as this checkout makes it, without a registry."""

import shutil
from pathlib import Path

from cluster.images import archive
from cluster.places import REGISTRY

from k8s.supervisor import tree

SUPERVISOR = f"{REGISTRY}/supervisor:1"


def image(into: Path) -> Path:
    """An archive of it; it serves as a volume and as a container of its own."""
    root = into / "supervisor"
    shutil.rmtree(root, ignore_errors=True)
    tree.write(root, python="/usr/bin/python3")
    path = into / "supervisor.tar"
    archive(root, path, SUPERVISOR)
    return path
