"""Which command line and which environment has each component of an srun over several (`:` and --het-group)?

Follows srun(1), HETEROGENEOUS JOBS. No I/O; standard library only.
"""

from __future__ import annotations

import re

from slurmbridge.cli.srun_request import Command, Usage
from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist

OF_COMPONENT = ("SLURM_NTASKS", "SLURM_NPROCS", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_TASKS_PER_NODE",
                "SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_TRES_PER_TASK", "SLURM_JOB_NODELIST",
                "SLURM_JOB_CPUS_PER_NODE")  # fmt: skip
"""What --het-group takes from the component's own variables, or from nowhere."""


def components(argv: list[str]) -> list[list[str]]:
    """The command lines that `:` parts, each with srun's name in front."""
    parts: list[list[str]] = [[argv[0]]]
    for word in argv[1:]:
        if word == ":":
            parts.append([argv[0]])
        else:
            parts[-1].append(word)
    return parts


def inherited(command: Command, before: Command) -> Command:
    """What a component does not say is as the one before has it, but for its own size and place."""
    options = {name: value for name, value in before.options.items() if name not in OF_ONE_COMPONENT}
    typed = {name for name in before.typed if name not in OF_ONE_COMPONENT}
    return Command({**options, **command.options}, command.typed | typed, command.program, command.verbose)


OF_ONE_COMPONENT = frozenset(
    {
        "ntasks", "nodes", "cpus-per-task", "ntasks-per-node", "ntasks-per-socket", "ntasks-per-core", "ntasks-per-gpu",
        "gpus", "gpus-per-node", "gpus-per-task", "gres", "mem", "mem-per-cpu", "mem-per-gpu", "nodelist", "exclude",
        "relative", "het-group", "job-name", "multi-prog", "constraint", "partition",
    }
)  # fmt: skip


def groups(text: str) -> list[str]:
    """The components that --het-group names."""
    if not re.fullmatch(r"\d{1,4}(-\d{1,4})?(,\d{1,4}(-\d{1,4})?)*", text):
        raise Usage(f"srun: error: Invalid --het-group specification: {text}")
    try:
        found = [str(int(word)) for word in hostlist.expand(f"[{text}]")]
    except LangError:
        raise Usage(f"srun: error: Invalid --het-group specification: {text}") from None
    return sorted(dict.fromkeys(found), key=int)


def of_component(env: dict[str, str], group: str) -> dict[str, str]:
    """The environment as a job of this component alone would have it."""
    suffix = f"_HET_GROUP_{group}"
    found = {name: value for name, value in env.items() if name not in OF_COMPONENT}
    for name in OF_COMPONENT:
        if name + suffix in env:
            found[name] = env[name + suffix]
    if "SLURM_JOB_NUM_NODES" in found:
        found["SLURM_NNODES"] = found["SLURM_JOB_NUM_NODES"]
    return found
