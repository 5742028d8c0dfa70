"""`slurmbridge token`: a token of the caller's own, what tokens there are, and the end of one.

slurmbridge token create DAYS     prints it, once
slurmbridge token list
slurmbridge token revoke ID
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from slurmbridge.commands.effects import Alter, AlterOutcome, Command, Print

KIND = "token"
USAGE = "slurmbridge: error: usage: slurmbridge token [--days N | --list | --revoke ID]\n"


def main(words: Sequence[str]) -> Command:
    alter = read(words)
    if alter is None:
        yield Print(USAGE, 2)
        return 1
    outcome: AlterOutcome = yield alter
    if outcome.errno is not None:
        yield Print(f"slurmbridge: error: {outcome.errno.text}{f': {outcome.detail}' if outcome.detail else ''}\n", 2)
        return 1
    if alter.verb == "list":
        yield Print(f"{'ID':<16} {'USER':<16} UNTIL\n")
        for line in outcome.detail.splitlines():
            name, user, until = line.split(" ")
            day = datetime.datetime.fromtimestamp(int(until), datetime.UTC).date()
            yield Print(f"{name:<16} {user:<16} {day.isoformat()}\n")
    elif alter.verb == "create":
        yield Print(f"{outcome.detail}\n")
    return 0


def read(words: Sequence[str]) -> Alter | None:
    """None: they are no request."""
    match tuple(words):
        case ("create", days) if days.isascii() and days.isdecimal() and len(days) < 5:
            return Alter(kind=KIND, verb="create", fields=(("days", int(days)),))
        case ("list",):
            return Alter(kind=KIND, verb="list")
        case ("revoke", name):
            return Alter(kind=KIND, verb="delete", target=name)
    return None
