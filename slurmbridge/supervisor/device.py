"""The two containers of a pod that holds a device for those who share it (`manifest.pod_devices`).

    /opt/slurmbridge/bin/python3 -I -S device.py tell [FILE]     write the device's id to the pod's status, and end
    /opt/slurmbridge/bin/python3 -I -S device.py hold            stay, also when asked to go

`tell` is the init container: what it leaves is in the pod's status, where its maker reads it without any further right. The
device is the pod's from before that until its last container has ended, so that both see the same. `hold` does not heed
SIGTERM: whoever deletes the pod by mistake leaves its sharers the grace period to be ended in, before the device can be
another's. Standard library only.
"""

from __future__ import annotations

import glob
import os
import signal
import sys

VISIBLE = "NVIDIA_VISIBLE_DEVICES"
NO_DEVICE = ("", "void", "none", "all")
MOUNTED = "/var/run/nvidia-container-devices"
DRIVER = "/proc/driver/nvidia/gpus/*/information"
MESSAGE = "/dev/termination-log"


def told_by_environment() -> list[str]:
    """As the device plugin says by default."""
    return [word for word in os.environ.get(VISIBLE, "").split(",") if word not in NO_DEVICE]


def told_by_mounts(folder: str = MOUNTED) -> list[str]:
    """Plugins that are told to pass devices as mounts: one name each."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def told_by_driver(pattern: str = DRIVER) -> list[str]:
    """Plugins that leave it to the container interface: what the driver shows here is what was given."""
    found = []
    for path in sorted(glob.glob(pattern)):
        with open(path, encoding="utf-8", errors="replace") as file:
            found += [line.partition(":")[2].strip() for line in file if line.startswith("GPU UUID:")]
    return found


def tell(path: str) -> int:
    found = told_by_environment() or told_by_mounts() or told_by_driver()
    text = found[0] if len(found) == 1 else f"devices given: {','.join(found) or 'none that can be named'}"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0 if len(found) == 1 else 1


def hold() -> int:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while True:
        signal.pause()


def main(words: list[str]) -> int:
    if words[:1] == ["tell"]:
        return tell(words[1] if len(words) > 1 else MESSAGE)
    if words == ["hold"]:
        return hold()
    sys.stderr.write("usage: device.py tell [FILE] | hold\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
