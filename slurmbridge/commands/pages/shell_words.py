"""How do words get into the text of a shell script? Quoted, and never more than they were."""

from __future__ import annotations

import re
from collections.abc import Mapping

from slurmbridge.commands.pages.values import Values

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def quote(text: str) -> str:
    """One word for bash and zsh alike."""
    return (
        text if _PLAIN.fullmatch(text) and not text.startswith(("=", "~")) else "'" + text.replace("'", "'\\''") + "'"
    )


def spec(values: Values) -> str:
    """What completes a value, as the shell functions read it: `KIND SOURCE WORD...`, KIND one or several."""
    if not values.words and not values.source:
        return ""
    return " ".join(("several" if values.several else "one", values.source or "-", *values.words))


def bash_table(name: str, entries: Mapping[str, str]) -> list[str]:
    """An associative array of bash 4."""
    rows = (f"        [{quote(key)}]={quote(value)}" for key, value in entries.items())
    return [f"    {name}=(", *rows, "    )"]


def zsh_table(name: str, entries: Mapping[str, str]) -> list[str]:
    """An associative array of zsh: keys and values by turns."""
    return [f"{name}=(", *(f"    {quote(key)} {quote(value)}" for key, value in entries.items()), ")"]
