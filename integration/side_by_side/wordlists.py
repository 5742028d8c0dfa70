"""The words that the lines are made of: values of options, filters, fields, verbs and scripts.

They are lists in `words/`, one entry a line; this module says what an entry of each is.
"""

from __future__ import annotations

import pathlib
import shlex
from typing import Any

_WORDS = pathlib.Path(__file__).parent / "words"
_B = "#!/bin/bash\n"
_ECHO = "echo $SLURM_PROCID $SLURM_NTASKS $SLURM_NNODES $SLURM_JOB_PARTITION $SLURM_CPUS_PER_TASK $SLURM_CPUS_ON_NODE"
_SHOWN = "TimeLimit|Partition|Account|QOS|NumCPUs|OverSubscribe|Features|MinMemoryCPU|MinMemoryNode|CoreSpec|Licenses"
_STREAMS = ["[oe][.].*"]  # files that a step leaves
_PROGRAMS = {
    "tp": "#!/bin/sh\necho export TPV=set\necho print from prolog\n",
    "te": "#!/bin/sh\necho epilog $SLURM_PROCID >> e.te\n",
    "fail": "#!/bin/sh\nexit 3\n",
}
_JOBS = {"job.sh": _B + "#SBATCH -t 20\n#SBATCH -J script\nhostname\n", "two.sh": _B + "hostname\n"}
GPU = ("-p", "gpu")


def lines(name: str) -> list[str]:
    """Entries of a list."""
    return (_WORDS / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")


def _variables(name: str) -> list[tuple[str, str, str]]:
    """Entries `NAME=VALUE command`, the value quoted as for a shell: (name, value, command)."""
    found = []
    for line in lines(name):
        pair = shlex.split(line)[0]
        variable, _, value = pair.partition("=")
        found.append((variable, value, line.removeprefix(f"{variable}={shlex.quote(value)}").lstrip(" ")))
    return found


def _submissions() -> dict[str, list[tuple[str, ...]]]:
    """Options of sbatch by family."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for line in lines("submissions"):
        family, *options = shlex.split(line)
        found.setdefault(family, []).append(tuple(options))
    return found


def _sbatch_variables() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value, _ in _variables("sbatch_variables"):
        found.setdefault(name, []).append(value)
    return found


def _shell_submissions() -> list[dict[str, Any]]:
    """Lines of a shell, as `user$ line` where the user is another one than alice."""
    found: list[dict[str, Any]] = []
    for line in lines("shell_submissions"):
        user, is_other, text = line.partition("$ ")
        if is_other and user.isalpha():
            found.append({"user": user, "sh": text})
        else:
            found.append({"sh": line, "files": _JOBS})
    return found


def _steps() -> list[dict[str, Any]]:
    """Lines with srun and salloc, then srun and salloc under one variable each."""
    found: list[dict[str, Any]] = [
        {"sh": line, "collect": _STREAMS, "env": {"FOO": "bar"}, "files": _PROGRAMS} for line in lines("steps")
    ]
    for line in lines("step_variables"):
        name, value = line.split("=", 1)
        found.append({"argv": ["srun", "bash", "-c", _ECHO], "env": {name: value}, "collect": _STREAMS})
    show = f"scontrol -o show job $SLURM_JOB_ID | grep -o -E '({_SHOWN})=[^ ]*'"
    for line in lines("salloc_variables"):
        name, value = line.split("=", 1)
        found.append({"argv": ["salloc", "-Q", "bash", "-c", show], "env": {name: value}})
    return found


SUBMISSIONS = _submissions()
SBATCH_VARIABLES = _sbatch_variables()
SHELL_SUBMISSIONS = _shell_submissions()
STEPS = _steps()
QUERY_VARIABLES = _variables("query_variables")
SACCT_VARIABLES = _variables("sacct_variables")
