"""The `slurmbridge` command as its own man page and completions see it, read from click's tree."""

from __future__ import annotations

import click

from slurmbridge.cli.main import main
from slurmbridge.commands.pages.described import Choice, Described
from slurmbridge.commands.pages.tree import Tree
from slurmbridge.commands.pages.values import Values
from slurmbridge.submit.getopt import Arg

_OPERANDS = {
    "why": "@alljobs",
    "logs": "@jobs",
    "lint": "@files",
    "check-config": "@files",
    "backup": "@files",
    "restore": "@files",
}
_VALUES = {"state": Values(source="folders"), "slurm-conf": Values(source="files"), "site": Values(source="files")}


def described() -> Described:
    """Its options are those of all subcommands; shells offer them behind any."""
    choices: dict[str, Choice] = {}
    branches: dict[str, tuple[str, ...]] = {"": ()}
    for name, command in _commands(main, ""):
        branches[""] += (name,) if " " not in name else ()
        if isinstance(command, click.Group):
            branches[name] = tuple(command.commands)
        elif name in _OPERANDS:
            branches[name] = (_OPERANDS[name],)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                choice = _choice(name, parameter)
                known = choices.get(choice.long)
                choices[choice.long] = choice if known is None else _also(known, name)
    help_option = Choice(long="help", short="h", help="Show a help text.")
    synopsis = [
        "[--help | --version]",
        *(_synopsis(name, command) for name, command in _commands(main, "") if not isinstance(command, click.Group)),
    ]
    return Described(
        name="slurmbridge",
        purpose="start, stop and ask about the controller",
        synopsis=tuple(synopsis),
        choices=(help_option, Choice(long="version", help="Show the version."), *choices.values()),
        words=Tree(branches=branches),
    )


def _commands(group: click.Group, before: str) -> list[tuple[str, click.Command]]:
    found: list[tuple[str, click.Command]] = []
    for name, command in group.commands.items():
        found.append((before + name, command))
        if isinstance(command, click.Group):
            found += _commands(command, f"{before}{name} ")
    return found


def _choice(command: str, option: click.Option) -> Choice:
    long = next(name[2:] for name in option.opts if name.startswith("--"))
    return Choice(
        long=long,
        short=next((name[1:] for name in option.opts if not name.startswith("--")), ""),
        arg=Arg.NONE if option.is_flag else Arg.REQUIRED,
        meta="" if option.is_flag else (option.metavar or "VALUE"),
        help=f"({command}) {option.help or ''}".strip(),
        values=_VALUES.get(long, Values()),
    )


def _also(known: Choice, command: str) -> Choice:
    commands, _, text = known.help.partition(") ")
    return Choice(
        long=known.long, short=known.short, arg=known.arg, meta=known.meta, help=f"{commands}, {command}) {text}", values=known.values
    )  # fmt: skip


def _synopsis(name: str, command: click.Command) -> str:
    operands = " ".join(
        p.metavar or (p.name or "").upper() + ("..." if p.nargs == -1 else "")
        for p in command.params
        if isinstance(p, click.Argument)
    )
    options = "[OPTION...]" if any(isinstance(p, click.Option) and not p.hidden for p in command.params) else ""
    return " ".join(part for part in (name, options, operands) if part) + f": {command.get_short_help_str(100)}"
