"""What can be said of each command: its options, what they do, what they complete to, its columns and its verbs.

Nothing is described twice: sbatch, srun and salloc come from the option table; of any other command the getopt table
`OPTIONS` and the text `HELP` in its modules (`NAME`, `NAME_options`, `NAME_text`) are read together.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from collections.abc import Iterable, Mapping, Sequence
from types import ModuleType

import msgspec

from slurmbridge.commands.pages import tree, values
from slurmbridge.commands.pages.tree import Tree
from slurmbridge.commands.pages.values import Values
from slurmbridge.commands.table import COMMANDS
from slurmbridge.submit.getopt import Arg, Opt, OptTable
from slurmbridge.submit.option import End, Option
from slurmbridge.submit.options import ENVIRONMENT, LETTERS, of_command


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a command."""

    long: str = ""
    short: str = ""
    arg: Arg = Arg.NONE
    meta: str = ""  # placeholder of its value
    help: str = ""
    why: str = ""  # why it has no effect, or why it is refused
    refused: bool = False
    variables: tuple[str, ...] = ()
    values: Values = Values()


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A command. `missing`: what a user is told instead while there is no such command."""

    name: str
    purpose: str
    synopsis: tuple[str, ...] = ()
    choices: tuple[Choice, ...] = ()
    words: Tree = Tree()
    columns: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = ()  # title, (name, letter, heading)
    missing: str = ""


PURPOSES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "sbatch": ("submit a batch script", ("[OPTION...] [ : [OPTION...]] SCRIPT [ARGUMENT...]",)),
    "srun": ("run tasks of a job", ("[OPTION...] EXECUTABLE [ARGUMENT...]",)),
    "salloc": ("get an allocation and run a command in it", ("[OPTION...] [COMMAND [ARGUMENT...]]",)),
    "squeue": ("list jobs that wait and run", ("[OPTION...]",)),
    "sinfo": ("list partitions and nodes", ("[OPTION...]",)),
    "sacct": ("list jobs and steps of the accounting", ("[OPTION...]",)),
    "scancel": ("cancel or signal jobs and steps", ("[OPTION...] [JOB[_TASK][.STEP]...]",)),
    "scontrol": ("show and change jobs, nodes, partitions and reservations", ("[OPTION...] [COMMAND [WORD...]]",)),
    "sacctmgr": ("show and change accounts, users, QOS and associations", ("[OPTION...] [COMMAND [WORD...]]",)),
    "sshare": ("show shares and usage of associations", ("[OPTION...]",)),
    "sprio": ("show the factors of priorities", ("[OPTION...]",)),
    "sreport": ("sum up usage", ("[OPTION...] [REPORT [WORD...]]",)),
    "sstat": ("show the usage of running steps", ("[OPTION...] -j JOB[.STEP]",)),
    "sdiag": ("show statistics of the controller", ("[OPTION...]",)),
    "seff": ("show how well an ended job used what it had", ("[OPTION...] JOB",)),
    "sattach": ("attach to a running step", ("[OPTION...] JOB.STEP",)),
    "sbcast": ("copy a file to the nodes of a job", ("[OPTION...] SOURCE DESTINATION",)),
    "scrontab": ("edit jobs that are submitted by a calendar", ("[OPTION...] [FILE]",)),
    "strigger": ("run programs at events", ("--set | --get | --clear [OPTION...]",)),
}
"""Command -> what it is for, and how it is called."""

_COMMON = {
    "help": "show a help text",
    "usage": "show a short help text",
    "version": "show the version",
    "verbose": "say more",
    "json": "the records as JSON",
    "yaml": "the records as YAML",
    "clusters": "this cluster's name, or all",
    "local": "accepted: there is one cluster",
    "federation": "accepted: there is one cluster",
    "sibling": "accepted: there is one cluster",
    "fields": "the same as --format",
    "noconvert": "numbers in the unit they are kept in",
}
"""Options that most commands have, where the command's own help does not mention them."""

_HIDDEN = frozenset({"autocomplete"})


def describe(name: str) -> Described:
    """A Slurm command; KeyError when there is none of that name."""
    purpose, synopsis = PURPOSES[name]
    entry = COMMANDS[name]
    if name in LETTERS:
        choices = tuple(_of_option(name, option) for option in of_command(name) if option.long not in _HIDDEN)
    elif entry.module:
        choices = _of_modules(name)
    else:
        choices = (Choice(long="version", short="V", help=_COMMON["version"]),)
    return Described(
        name=name,
        purpose=purpose,
        synopsis=synopsis,
        choices=choices,
        words=tree.of_command(name) if entry.module or name == "srun" else Tree(),
        columns=values.columns(name) if entry.module else (),
        missing=entry.missing if not entry.module and name not in ("srun",) else "",
    )


def _of_option(command: str, option: Option) -> Choice:
    refused = option.end is End.REFUSED
    return Choice(
        long=option.long,
        short=option.short,
        arg=option.arg,
        meta=option.meta or ("" if option.flag else "value"),
        help=option.help or "the same as a similar option",
        why=option.why if option.end is not End.HONOURED else "",
        refused=refused,
        variables=tuple(variable for variable, long in ENVIRONMENT[command] if long.rstrip("@") == option.long),
        values=Values() if option.flag else values.of_option(command, option.long),
    )


# ---- commands with a table and a help text of their own ----


def _modules(name: str) -> list[ModuleType]:
    names = (f"slurmbridge.commands.{name}{tail}" for tail in ("", "_options", "_text"))
    return [importlib.import_module(each) for each in names if importlib.util.find_spec(each) is not None]


def options_of(name: str) -> tuple[Opt, ...]:
    """The getopt table of a command that has one of its own; LookupError when its modules have none."""
    for module in _modules(name):
        table: object = getattr(module, "OPTIONS", None)
        if isinstance(table, OptTable):
            return table.opts
        if isinstance(table, tuple):
            return table
    raise LookupError(f"no OPTIONS in the modules of {name}")


def help_of(name: str) -> str:
    """Its help text, or the short one where there is no other; LookupError when its modules have none."""
    for word in ("HELP", "USAGE"):
        for module in _modules(name):
            text: object = getattr(module, word, None)
            if isinstance(text, str):
                return text
    raise LookupError(f"no HELP in the modules of {name}")


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One option as a help text shows it."""

    short: str
    longs: tuple[str, ...]
    meta: str
    text: str


_HEAD = re.compile(r"\s+(?P<head>-{1,2}\w.*?)(?:\s{2,}|: )(?P<text>\S.*)|\s+(?P<plain>-\S+) (?P<rest>\S.*)")
_LONG = re.compile(r"--([A-Za-z][\w-]*)")
_SHORT = re.compile(r"-(\w)\b(?:,| or|\s|$)")
_META = re.compile(r"--[A-Za-z][\w-]*\[?=(\S+(?: \| \S+)*)")


def rows_of_help(text: str) -> tuple[Row, ...]:
    """The options of a help text; deeper lines go on with what the option above does."""
    rows: list[Row] = []
    indent = -1
    for line in text.splitlines():
        match = _HEAD.fullmatch(line)
        if match is None:
            deeper = len(line) - len(line.lstrip())
            if rows and indent >= 0 and line.strip() and deeper > indent + 4:
                rows[-1] = msgspec.structs.replace(rows[-1], text=f"{rows[-1].text} {line.strip()}")
            else:
                indent = -1
            continue
        indent = len(line) - len(line.lstrip())
        head, what = match["head"] or match["plain"], match["text"] or match["rest"]
        meta = _META.search(head)
        short = _SHORT.match(head)
        rows.append(
            Row(
                short=short[1] if short else "",
                longs=tuple(_LONG.findall(head)),
                meta=meta[1].rstrip("],") if meta else "",
                text=what.strip(),
            )
        )
    return tuple(rows)


def _of_modules(name: str) -> tuple[Choice, ...]:
    options = options_of(name)
    rows = rows_of_help(help_of(name))
    by_key: dict[str, list[Opt]] = {}
    for opt in options:
        by_key.setdefault(opt.name, []).append(opt)
    return tuple(
        _choice(name, opt, _row(opt, rows, options), by_key[opt.name]) for opt in options if opt.long not in _HIDDEN
    )


def _row(opt: Opt, rows: Sequence[Row], options: Iterable[Opt]) -> Row | None:
    """What the help says of this option: by its name, its letter, or a name that is cut."""
    for row in rows:
        if (opt.long and opt.long in row.longs) or (opt.short and opt.short == row.short):
            return row
    whole = {each.long for each in options}
    for row in rows:
        if any(opt.long.startswith(long) and long not in whole for long in row.longs):
            return row
    return None


def _choice(command: str, opt: Opt, row: Row | None, twins: Sequence[Opt]) -> Choice:
    text = row.text if row else _COMMON.get(opt.long, "") or _COMMON.get(opt.name, "")
    if not text and len(twins) > 1:
        text = f"the same as --{next(each.long for each in reversed(twins) if each.long != opt.long)}"
    plain = opt.arg is Arg.NONE
    return Choice(
        long=opt.long,
        short=opt.short,
        arg=opt.arg,
        meta="" if plain else (row.meta if row and row.meta else "value"),
        help=text,
        values=Values() if plain else values.of_option(command, opt.name, opt.long),
    )
