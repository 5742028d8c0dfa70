"""Every option of sbatch, srun and salloc, joined from the tables and indexed for reading.

`TABLE` is the one list from which parsing, --help, the environment twins, the reference and the in-job srun's module
are made. Order is Slurm's (nearly the alphabet's), as getopt lists ambiguities.
"""

from __future__ import annotations

from slurmbridge.submit import table_identity, table_place, table_run, table_size
from slurmbridge.submit.getopt import Opt, OptTable
from slurmbridge.submit.option import Option
from slurmbridge.submit.variables import variables

_SORTED_AS = {
    "bb": "bem", "bbf": "bemf", "cluster-constraint": "cf", "constraint": "contiguous~", "cpu_bind": "cpu-bind_",
    "jobid": "job,", "resources": "reserva", "threads": "tas", "use-min-nodes": "usa",
}  # fmt: skip
"""Where Slurm's own order of options is not the alphabet's."""

TABLE: tuple[Option, ...] = tuple(
    sorted(
        table_identity.OPTIONS + table_place.OPTIONS + table_run.OPTIONS + table_size.OPTIONS,
        key=lambda option: (_SORTED_AS.get(option.long, option.long), option.commands),
    )
)

LETTERS = {"sbatch": "b", "srun": "r", "salloc": "a"}


def of_command(command: str) -> tuple[Option, ...]:
    """The options that a command takes, alphabetically."""
    letter = LETTERS[command]
    return tuple(option for option in TABLE if letter in option.commands)


BY_LONG: dict[str, dict[str, Option]] = {
    command: {option.long: option for option in of_command(command)} for command in LETTERS
}
"""command -> long name -> option."""

GETOPT: dict[str, OptTable] = {
    command: OptTable([Opt(option.long, option.short, option.arg, whole=option.bridge) for option in options.values()])
    for command, options in BY_LONG.items()
}
"""command -> table for `submit.getopt.scan`."""

ENVIRONMENT: dict[str, tuple[tuple[str, str], ...]] = {
    command: variables(letter) for command, letter in LETTERS.items()
}
"""command -> (variable, long option), in the order in which they are read."""


def option(command: str, long: str) -> Option:
    """One option by its whole name; KeyError when the command has none of it."""
    return BY_LONG[command][long]
