"""Completion for zsh: one `#compdef` function per command, and two functions that give values and words."""

from __future__ import annotations

from slurmbridge.commands.pages.described import Choice, Described
from slurmbridge.commands.pages.shell_words import spec, zsh_table
from slurmbridge.commands.pages.values import SOURCES
from slurmbridge.submit.getopt import Arg

_NOTE = "# Written by docs/generate.py from the tables of the product: edit those.\n"

_VALUES = r"""
# _slurmbridge_values KIND SOURCE WORD...: what a value may be.
local kind=$1 source=$2
shift 2
local -a found
found=("$@")
case $source in
    files) _files; return ;;
    folders) _files -/; return ;;
    commands) _command_names -e; return ;;
    users) found+=(${(k)userdirs}) ; (( $+commands[getent] )) && found+=(${${(f)"$(getent passwd 2>/dev/null)"}%%:*}) ;;
    groups) (( $+commands[getent] )) && found+=(${${(f)"$(getent group 2>/dev/null)"}%%:*}) ;;
@SOURCES@
esac
[[ $kind == several ]] && compset -P '*,'
compadd -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' -q -S '' -- ${(u)found}
"""

_WORDS = r"""
# _slurmbridge_words: what may stand at this place; `branches` and `keys` are the caller's.
local -a typed found
local word place key
for word in ${words[2,CURRENT-1]}; do
    [[ $word == -* ]] && continue
    [[ $word == *=* ]] && word=${word%%=*}=
    typed+=($word)
done
if compset -P 1 '*='; then
    key=${(L)IPREFIX##*[[:space:]]}
    [[ -n ${keys[$key]-} ]] && _slurmbridge_values ${=keys[$key]}
    return
fi
place="${(j: :)typed}"
while [[ -z ${branches[$place ]-} && -n $place ]]; do
    [[ $place == *' '* ]] && place=${place% *} || place=
done
for word in ${=branches[$place ]-}; do
    if [[ $word == @* ]]; then
        _slurmbridge_values one ${word#@}
    elif [[ $word == *= ]]; then
        compadd -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' -S '' -- $word
    else
        compadd -M 'm:{[:lower:][:upper:]}={[:upper:][:lower:]}' -- $word
    fi
done
"""


def functions() -> dict[str, str]:
    """File name -> text of the functions that all commands share."""
    sources = "\n".join(f'    {name}) found+=(${{(f)"$({pipe} 2>/dev/null)"}}) ;;' for name, pipe in SOURCES.items())
    return {
        "_slurmbridge_values": "#autoload\n" + _NOTE + _VALUES.replace("@SOURCES@", sources).lstrip("\n"),
        "_slurmbridge_words": "#autoload\n" + _NOTE + _WORDS.lstrip("\n"),
    }


def completion(command: Described) -> str:
    """The file of one command."""
    lines = [f"#compdef {command.name}", _NOTE.rstrip("\n"), "local -A branches keys"]
    branches = {place + " ": " ".join(words) for place, words in command.words.branches.items()}
    keys = {key: found for key, each in command.words.keys.items() if (found := spec(each))}
    for name, entries in (("branches", branches), ("keys", keys)):
        if entries:
            lines += zsh_table(name, entries)
    lines += ["_arguments -s -S : \\"]
    for choice in command.choices:
        lines += [f"    {each} \\" for each in _arguments(choice)]
    lines += ["    '*:word:_slurmbridge_words'" if branches else "    '*::: :'"]
    return "\n".join(lines) + "\n"


def _arguments(choice: Choice) -> list[str]:
    """The specifications of one option: a letter and a name are two, that exclude each other."""
    names = ([f"-{choice.short}"] if choice.short else []) + ([f"--{choice.long}"] if choice.long else [])
    others = f"({' '.join(names)})" if len(names) > 1 else ""
    meaning = _escape(choice.help + (" (refused)" if choice.refused else ""))
    found = spec(choice.values)
    action = f" _slurmbridge_values {_escape(found)}" if found else " "
    value = {Arg.NONE: "", Arg.REQUIRED: f":value:{action}", Arg.OPTIONAL: f"::value:{action}"}[choice.arg]
    written = []
    for name in names:
        long = name.startswith("--")
        how = {Arg.NONE: "", Arg.REQUIRED: "=" if long else "+", Arg.OPTIONAL: "=-" if long else "-"}[choice.arg]
        written.append("'" + f"{others}{name}{how}[{meaning}]{value}".replace("'", "'\\''") + "'")
    return written


def _escape(text: str) -> str:
    """What `_arguments` would read as its own."""
    for char in "\\[]:":
        text = text.replace(char, "\\" + char)
    return text
