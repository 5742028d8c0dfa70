"""What is an option? The record of the option table, and the three ends an option can have.

The tables themselves are `submit.table_*`; `submit.options` joins and indexes them.
"""

from __future__ import annotations

import enum

import msgspec

from slurmbridge.submit.getopt import Arg


class End(enum.Enum):
    """What becomes of an option. There is no fourth end: nothing is ignored silently."""

    HONOURED = "honoured"
    RECORDED = "recorded"  # checked as Slurm checks it, stored and shown; `why` says why that is enough
    REFUSED = "refused"  # `why` is what the user is told


class Option(msgspec.Struct, frozen=True, kw_only=True):
    """One option of sbatch (b), srun (r) and salloc (a)."""

    long: str
    short: str = ""
    arg: Arg = Arg.REQUIRED
    commands: str = "abr"
    kind: str = "text"  # how the value is read: a key of `submit.values.READERS`
    field: str = ""  # of JobRequest; empty: no field of its own
    default: str = ""  # in words, for the reference
    rest: str = ""  # field of a job in the REST interface (v0.0.45), empty: none
    end: End = End.HONOURED
    why: str = ""
    early: bool = False  # read before the script is opened, and only on the command line
    het: bool = False  # not inherited by the next component of a heterogeneous job
    section: str = ""  # of --help
    meta: str = ""  # placeholder of the value in --help
    help: str = ""
    bridge: bool = False  # ours: not an option of Slurm
    needs: str = ""  # a field of model.capabilities that has to be true; else it is refused, with `why`

    @property
    def flag(self) -> bool:
        return self.arg is Arg.NONE


NONE, REQUIRED, OPTIONAL = Arg.NONE, Arg.REQUIRED, Arg.OPTIONAL
HONOURED, RECORDED, REFUSED = End.HONOURED, End.RECORDED, End.REFUSED

GENERAL = "General options"
WHERE = "Constraint options"
CONTAINERS = "Container options"
SHARING = "Consumable resources related options"
CORES = "Affinity/Multi-core options"
GPUS = "GPU scheduling options"
BRIDGE = "Extensions (also as #BRIDGE lines)"
STEPS = "Step options"
HELP = "Help options"
OTHER = "Other options"
