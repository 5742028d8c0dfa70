"""Which module answers which Slurm command.

A module is imported when its command is first used. A command that is not built yet says so and fails: it is never
silent, and never pretends.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable

import msgspec

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.effects import Call, Command, Print, Site

Main = Callable[[Call, Site], Command]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One command. `missing`: what a user is told instead while there is no module."""

    module: str = ""
    missing: str = ""


COMMANDS: dict[str, Entry] = {
    "sbatch": Entry(module="slurmbridge.commands.sbatch"),
    "squeue": Entry(module="slurmbridge.commands.squeue"),
    "sinfo": Entry(module="slurmbridge.commands.sinfo"),
    "sacct": Entry(module="slurmbridge.commands.sacct"),
    "scancel": Entry(module="slurmbridge.commands.scancel"),
    "scontrol": Entry(module="slurmbridge.commands.scontrol"),
    "sacctmgr": Entry(module="slurmbridge.commands.sacctmgr"),
    "sshare": Entry(module="slurmbridge.commands.sshare"),
    "slurmbridge": Entry(module="slurmbridge.commands.bridge"),
    "srun": Entry(module="slurmbridge.commands.srun"),
    "salloc": Entry(module="slurmbridge.commands.salloc"),
    "sattach": Entry(module="slurmbridge.commands.sattach"),
    "sbcast": Entry(module="slurmbridge.commands.sbcast"),
    "sprio": Entry(module="slurmbridge.commands.sprio"),
    "sreport": Entry(module="slurmbridge.commands.sreport"),
    "sstat": Entry(module="slurmbridge.commands.sstat"),
    "sdiag": Entry(module="slurmbridge.commands.sdiag"),
    "seff": Entry(module="slurmbridge.commands.seff"),
    "scrontab": Entry(module="slurmbridge.commands.scrontab"),
    "strigger": Entry(module="slurmbridge.commands.strigger"),
}
"""By command name; the wheel has a trampoline for each but `slurmbridge`."""


@functools.cache
def _main(module: str) -> Main:
    found: Main = importlib.import_module(module).main
    return found


def find(name: str) -> Main | None:
    """The generator function of a command; None for a name that is no command."""
    entry = COMMANDS.get(name)
    if entry is None:
        return None
    if not entry.module:
        return not_built
    return _main(entry.module)


def not_built(call: Call, site: Site) -> Command:
    """A command of Slurm that this release lacks."""
    name = call.argv[0]
    if call.argv[1:] in (("-V",), ("--version",)):
        yield Print(f"slurm-wlm {SLURM_VERSION}\n")
        return 0
    yield Print(f"{name}: error: not available in this release of slurmbridge: {COMMANDS[name].missing}\n", 2)
    return 1
