"""How often did the kernel kill a process of this container for want of memory?

A container that is killed whole (memory.oom.group, as kubelets set it with cgroup v2) tells nobody: its kubelet does. Where
single processes are killed, the job goes on or ends, and it is told here. Source: "memory.events" of the kernel's cgroup v2
documentation, memory.oom_control of v1.
"""

from __future__ import annotations

ROOT = "/sys/fs/cgroup"
FILES = ("memory.events", "memory/memory.oom_control")
"""As a container sees its own."""
OOM_STATUS = 125
"""Wait status by which Slurm tells of it: shown as 0:125."""


def kills(root: str = ROOT) -> int:
    """Since the container began; 0 where nothing tells it."""
    for name in FILES:
        try:
            with open(f"{root}/{name}", encoding="ascii") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        for line in lines:
            word, _, number = line.partition(" ")
            if word == "oom_kill" and number.isdecimal():
                return int(number)
    return 0


def words(count: int, job: int) -> str:
    """As slurmstepd says it."""
    events = "event" if count == 1 else "events"
    return f"Detected {count} oom_kill {events} in StepId={job}.batch. Some of the step tasks have been OOM Killed."
