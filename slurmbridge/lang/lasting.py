"""Does a file outlive the container that it is written in? The deepest folder that is mounted above it decides.

Standard library only, because supervisors use it. Names are taken as they are written: a link that leads into a mount from
elsewhere is not followed.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

Mounts = Sequence[tuple[str, bool]]
"""(folder, whether what is written there stays) of all that is mounted into a container."""
DEVICES, IN_MEMORY = "/dev", "/dev/shm"


def lasts(mounts: Mounts, path: str) -> bool:
    """Of an absolute path. What no mount holds is the container's own, and goes with it; a device keeps nothing anyway."""
    path = posixpath.normpath(path)
    if below(path, DEVICES) and not below(path, IN_MEMORY):
        return True
    held = [(len(folder), stays) for folder, stays in mounts if below(path, folder)]
    return max(held)[1] if held else False


def below(path: str, folder: str) -> bool:
    """Both normal."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
