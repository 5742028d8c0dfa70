"""Completion for bash: one file per command with its tables, and one with the functions that read them.

The functions need nothing but bash 4: they read the line themselves, so `--option=value` and comma lists work whatever
COMP_WORDBREAKS holds.
"""

from __future__ import annotations

from slurmbridge.commands.pages.described import Choice, Described
from slurmbridge.commands.pages.shell_words import bash_table, quote, spec
from slurmbridge.commands.pages.values import SOURCES
from slurmbridge.submit.getopt import Arg

NOTE = "# Written by docs/generate.py from the tables of the product: edit those.\n"
FUNCTIONS_FILE = "_slurmbridge"

_FUNCTIONS = r"""
# Words of a source, one a line.
_slurmbridge_source() {
    case $1 in
@SOURCES@
        users) compgen -u ;;
        groups) compgen -g ;;
        commands) compgen -c -- "$2" ;;
        files) compgen -f -- "$2" ;;
        folders) compgen -d -- "$2" ;;
    esac 2>/dev/null
}

# COMPREPLY from `KIND SOURCE WORD...` for the value typed so far.
_slurmbridge_value() {
    local kind=$1 source=$2 typed=$3 before= word
    shift 3
    if [[ $kind == several && $typed == *,* ]]; then
        before=${typed%,*},
        typed=${typed##*,}
    fi
    [[ $source == files || $source == folders ]] && compopt -o filenames 2>/dev/null
    while IFS= read -r word; do
        [[ -n $word && ${word,,} == "${typed,,}"* ]] && COMPREPLY+=("$before$word")
    done < <(
        (($#)) && printf '%s\n' "$@"
        [[ $source != - ]] && _slurmbridge_source "$source" "$typed" | sort -u
    )
}

# The options of one command are in `longs` (with = where a value must follow), `values` (by name), and its words in
# `branches` and `keys`; all are local to the caller.
_slurmbridge_complete() {
    local line=${COMP_LINE:0:COMP_POINT} words current previous= name short word place value
    COMPREPLY=()
    read -ra words <<<"$line"
    current=
    if [[ $line != *[[:space:]] && ${#words[@]} -gt 0 ]]; then
        current=${words[-1]}
        unset 'words[-1]'
    fi
    ((${#words[@]} > 1)) && previous=${words[-1]}
    if [[ $previous == --?* && -n ${longs[${previous#--}]-} && ${longs[${previous#--}]} == = ]]; then
        _slurmbridge_spec "${values[${previous#--}]-}" "$current"
    elif [[ $previous == -[!-]* && ${shorts[${previous: -1}]-} == = ]]; then
        _slurmbridge_spec "${values[${previous: -1}]-}" "$current"
    elif [[ $current == --*=* ]]; then
        name=${current%%=*}
        _slurmbridge_spec "${values[${name#--}]-}" "${current#*=}" "$name="
    elif [[ $current == -[!-]* && -n ${shorts[${current:1:1}]-} && ${#current} -gt 2 ]]; then
        short=${current:0:2}
        _slurmbridge_spec "${values[${short:1}]-}" "${current:2}" "$short"
    elif [[ $current == -* ]]; then
        for name in "${!longs[@]}"; do
            case ${longs[$name]} in
                =) word=--$name= ;;
                *) word=--$name ;;
            esac
            [[ $word == "$current"* ]] && COMPREPLY+=("$word")
        done
        if [[ $current == - ]]; then
            for name in "${!shorts[@]}"; do COMPREPLY+=("-$name"); done
        fi
    else
        _slurmbridge_words
    fi
    _slurmbridge_finish
}

# What may stand at this place of a command's words.
_slurmbridge_words() {
    local typed=() skip= word place key
    for word in "${words[@]:1}"; do
        if [[ -n $skip ]]; then skip=; continue; fi
        if [[ $word == -* ]]; then
            [[ $word == --?* && ${longs[${word#--}]-} == = ]] && skip=1
            [[ $word == -[!-] && ${shorts[${word:1}]-} == = ]] && skip=1
            continue
        fi
        [[ $word == *=* ]] && word=${word%%=*}=
        typed+=("$word")
    done
    key=${current%%=*}=
    if [[ $current == *=* ]]; then
        [[ -n ${keys[${key,,}]-} ]] && _slurmbridge_spec "${keys[${key,,}]}" "${current#*=}" "$key"
        return
    fi
    place="${typed[*]}"
    while [[ -z ${branches[$place ]-} && -n $place ]]; do
        case $place in
            *' '*) place=${place% *} ;;
            *) place= ;;
        esac
    done
    for word in ${branches[$place ]-}; do
        if [[ $word == @* ]]; then
            _slurmbridge_spec "one ${word#@}" "$current"
        elif [[ ${word,,} == "${current,,}"* ]]; then
            COMPREPLY+=("$word")
        fi
    done
}

# $1 `KIND SOURCE WORD...`, $2 typed, $3 what stands before it in the same word.
_slurmbridge_spec() {
    local parts at from=${#COMPREPLY[@]}
    [[ -n $1 ]] || return
    read -ra parts <<<"$1"
    _slurmbridge_value "${parts[0]}" "${parts[1]}" "$2" "${parts[@]:2}"
    for ((at = from; at < ${#COMPREPLY[@]}; at++)); do COMPREPLY[at]=${3-}${COMPREPLY[at]}; done
}

# Readline replaces only what stands behind the last word break.
_slurmbridge_finish() {
    local breaks=${COMP_WORDBREAKS//[[:space:]]/} head at
    head=${current%"${current##*["$breaks"]}"}
    for at in "${!COMPREPLY[@]}"; do
        [[ ${COMPREPLY[at]} == *[=:+] ]] && compopt -o nospace 2>/dev/null
        COMPREPLY[at]=${COMPREPLY[at]#"$head"}
    done
}
"""


def functions() -> str:
    """The file that all others read."""
    sources = "\n".join(f"        {name}) {pipeline} ;;" for name, pipeline in SOURCES.items())
    return NOTE + _FUNCTIONS.replace("@SOURCES@", sources).lstrip("\n")


def completion(command: Described) -> str:
    """The file of one command."""
    function = "_slurmbridge_" + command.name
    longs = {choice.long: "=" if choice.arg is Arg.REQUIRED else "-" for choice in command.choices if choice.long}
    shorts = {choice.short: "=" if choice.arg is Arg.REQUIRED else "-" for choice in command.choices if choice.short}
    values = {name: found for choice in command.choices if (found := spec(choice.values)) for name in _names(choice)}
    # A space behind each place: bash takes no empty key.
    branches = {place + " ": " ".join(words) for place, words in command.words.branches.items()}
    keys = {key: found for key, each in command.words.keys.items() if (found := spec(each))}
    lines = [f"{function}() {{", "    local -A longs shorts values branches keys"]
    for name, entries in (
        ("longs", longs), ("shorts", shorts), ("values", values), ("branches", branches), ("keys", keys),
    ):  # fmt: skip
        if entries:
            lines += bash_table(name, entries)
    lines += ["    _slurmbridge_complete", "}", f"complete -F {function} {quote(command.name)}"]
    return NOTE + f'. "${{BASH_SOURCE[0]%/*}}/{FUNCTIONS_FILE}"\n' + "\n".join(lines) + "\n"


def _names(choice: Choice) -> tuple[str, ...]:
    return tuple(name for name in (choice.long, choice.short) if name)
