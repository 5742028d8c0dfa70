"""Which variables does a job have in a pod? What the container has, and over it what the daemon says (`manifest.pod_env`).

A step that is asked for from outside brings the environment of another machine: what names files or devices of that
machine is taken out of it by the same rules.
"""

from __future__ import annotations

import re

COMMANDS = "/opt/slurmbridge/commands"
"""Where a pod has the Slurm commands: first on the path of every job."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OF_THE_CONTAINER = re.compile(r"HOSTNAME|KUBERNETES_.*|NVIDIA_.*")
OF_THE_SYSTEM = re.compile(r"PATH|LD_.*")

Env = dict[str, str]


def of_job(container: Env, said: Env, login: Env, address: str) -> Env:
    """Of a batch script. `login`: of the user's login shell, where that was asked for."""
    return _with_commands({**container, **login, **said}, address)


def of_step(container: Env, brought: Env, address: str, *, host_software: bool) -> Env:
    """Of a step that somebody outside asked for."""
    passed = {name: value for name, value in brought.items() if _passes(name, host_software)}
    return _with_commands({**container, **passed}, address)


def _passes(name: str, host_software: bool) -> bool:
    if OF_THE_CONTAINER.fullmatch(name):
        return False
    return host_software or not OF_THE_SYSTEM.fullmatch(name)


def _with_commands(env: Env, address: str) -> Env:
    path = env.get("PATH") or PATH
    if COMMANDS not in path.split(":"):
        path = f"{COMMANDS}:{path}"
    return {**env, "PATH": path, "SLURMBRIDGE_ADDR": address}
