"""`--help` and `--usage` of sbatch, srun and salloc, made from the option table in Slurm's layout."""

from __future__ import annotations

import textwrap

from slurmbridge.submit.option import (
    BRIDGE,
    CONTAINERS,
    CORES,
    GENERAL,
    GPUS,
    HELP,
    OTHER,
    REFUSED,
    SHARING,
    STEPS,
    WHERE,
    Option,
)
from slurmbridge.submit.options import of_command

_SECTIONS = (GENERAL, WHERE, CONTAINERS, SHARING, CORES, GPUS, STEPS, BRIDGE, HELP, OTHER)
_SYNTAX = {
    "sbatch": "sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]",
    "srun": "srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] executable(N) [args(N)...]",
    "salloc": "salloc [OPTIONS(0)...] [ : [OPTIONS(N)...]] [command(0) [args(0)...]]",
}
_OPERAND = {"sbatch": "executable [args...]", "srun": "executable [args...]", "salloc": "[command [args...]]"}
_COLUMN = 30
_WIDTH = 80


def help_page(command: str) -> str:
    """All options by section."""
    lines = [f"Usage: {_SYNTAX[command]}"]
    options = [option for option in of_command(command) if option.help]
    for section in _SECTIONS:
        inside = [option for option in options if option.section == section]
        if inside:
            lines += ["", f"{section}:"]
            for option in inside:
                lines += _entry(option)
    return "\n".join([*lines, "", ""])


def _entry(option: Option) -> list[str]:
    head = f"  -{option.short}, --{option.long}" if option.short else f"      --{option.long}"
    text = option.help + (" (refused here)" if option.end is REFUSED else "")
    head += _value(option)
    wrapped = textwrap.wrap(text, _WIDTH - _COLUMN)
    if len(head) < _COLUMN:
        return [head.ljust(_COLUMN) + wrapped[0], *(" " * _COLUMN + line for line in wrapped[1:])]
    return [f"{head} {wrapped[0]}", *(" " * _COLUMN + line for line in wrapped[1:])]


def _value(option: Option) -> str:
    if option.flag:
        return ""
    name = option.meta or "value"
    return f"={name}" if option.arg.value == "required" else f"[={name}]"


def usage(command: str) -> str:
    """One bracket per option, wrapped."""
    words = [
        f"[-{option.short}{'' if option.flag else ' ' + (option.meta or 'value')}]"
        if option.short
        else f"[--{option.long}{_value(option)}]"
        for option in of_command(command)
        if option.help and not option.early
    ]
    body = textwrap.fill(
        " ".join([*(word.replace(" ", "\0") for word in words), _OPERAND[command].replace(" ", "\0")]),
        _WIDTH,
        initial_indent=f"Usage: {command} ",
        subsequent_indent=" " * (len(command) + 8),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return body.replace("\0", " ") + "\n"


def complete(command: str, text: str) -> str:
    """What --autocomplete prints: the ways to write options that contain the text, but for ours that may be refused."""
    lines = []
    for option in of_command(command):
        if option.bridge and (option.needs or option.end is REFUSED):
            continue
        ways = [f"-{option.short}"] if option.short else []
        long = f"--{option.long}"
        ways += {"none": [long], "required": [long + "="], "optional": [long + "=", long + " "]}[option.arg.value]
        lines += [way for way in ways if text in way]
    return "\n".join([*lines, "", ""])
