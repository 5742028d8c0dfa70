"""Does the user reach the folders that --container-mounts names, and are they what is mounted?

A kubelet mounts a part of a volume with all rights, also one that the user has no way to. The supervisor is the user: who
gets to the source by itself, and finds the same folder at the target, gets nothing that was closed before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence


def trouble(pairs: Sequence[tuple[str, str]]) -> str:
    """Why the run must not begin; empty when all is well."""
    for source, target in pairs:
        try:
            there = os.stat(source)
        except OSError as error:
            return f"--container-mounts: {source}: {os.strerror(error.errno or 5)}"
        try:
            here = os.stat(target)
        except OSError as error:
            return f"--container-mounts: {target}: {os.strerror(error.errno or 5)}"
        if (there.st_dev, there.st_ino) != (here.st_dev, here.st_ino):
            return f"--container-mounts: {target} is not {source}"
    return ""
