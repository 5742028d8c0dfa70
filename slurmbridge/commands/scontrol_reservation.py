"""How are `scontrol create reservation` and `update reservation` read?

Follows scontrol(1). Checks what must be given; which nodes are taken is the controller's business.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from slurmbridge.commands.effects import Alter, AlterOutcome, Command, Effect, Print
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.scontrol_jobs import complain
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.commands.update_reservation import FLAGS, find_field
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import durations, times
from slurmbridge.model.units import UNLIMITED


def create_reservation(eyes: Eyes, name: str, words: Sequence[str]) -> Command:
    """Start, end or duration, nodes, and who may use it must be given."""
    fields = yield from _read(eyes, words, "No reservation created.")
    if fields is None:
        return 1
    values = dict(fields)
    problem = ""
    if "StartTime" not in values:
        problem = "A start time must be given.  No reservation created."
    elif "EndTime" not in values and "Duration" not in values:
        problem = "An end time or duration must be given.  No reservation created."
    elif not {"Nodes", "NodeCnt", "CoreCnt", "TRES", "Licenses"} & set(values):
        problem = "CoreCnt, Nodes, NodeCnt, TRES or Watts must be specified.  No reservation created."
    elif not {"Users", "Accounts", "Groups", "QOS", "AllowedPartitions"} & set(values):
        problem = (
            "Either Users/Groups, AllowedPartitions, QOS and/or Accounts must be specified.  No reservation created."
        )
    if problem:
        yield Print(f"scontrol: error: {problem}\n", 2)
        return 1
    outcome: AlterOutcome = yield Alter(kind="reservation", verb="create", target=name, fields=tuple(fields))
    if outcome.errno is not None:
        yield from complain(eyes, f"Error creating the reservation: {_denied(outcome.errno)}")
        return 1
    yield Print(f"Reservation created: {outcome.detail or name}\n")
    return 0


def update_reservation(eyes: Eyes, name: str, words: Sequence[str]) -> Command:
    fields = yield from _read(eyes, words, "No reservation update.")
    if fields is None:
        return 1
    outcome: AlterOutcome = yield Alter(kind="reservation", verb="update", target=name, fields=tuple(fields))
    if outcome.errno is not None:
        yield from complain(eyes, f"slurm_update error: {_denied(outcome.errno)}")
        return 1
    yield Print("Reservation updated.\n")
    return 0


def _denied(errno: SlurmErrno) -> str:
    return (SlurmErrno.USER_ID_MISSING if errno is SlurmErrno.ACCESS_DENIED else errno).text


def _read(eyes: Eyes, words: Sequence[str], ending: str) -> Generator[Effect, Any, list[tuple[str, Any]] | None]:
    """(key, typed value) pairs, or None after a complaint."""
    fields: list[tuple[str, Any]] = []
    for word in words:
        key, equals, value = word.partition("=")
        sign = key[-1:] if key[-1:] in ("+", "-") else ""
        field = find_field(key.removesuffix(sign) if sign else key)
        if field is None or not equals:
            yield Print(f"scontrol: error: Unknown parameter {word}.  {ending}\n", 2)
            return None
        try:
            fields.append((field.key, _typed(eyes, field.typed, sign, value)))
        except (LangError, ValueError) as error:
            for line in _complaint(field.key, word, ending, error):
                yield Print(line + "\n", 2)
            return None
    return fields


def _complaint(key: str, word: str, ending: str, error: Exception) -> list[str]:
    name = {"StartTime": "start time", "EndTime": "end time", "Duration": "duration", "Flags": "flags"}.get(key, key)
    lines = [f"scontrol: error: Invalid {name} {word}.  {ending}"]
    if key == "Flags":
        lines = [f"scontrol: error: Error parsing flags {word.partition('=')[2]}.  {ending}"]
    if isinstance(error, LangError) and "Invalid time specification" in error.message:
        lines.insert(0, error.message)
    return lines


def _typed(eyes: Eyes, typed: str, sign: str, value: str) -> Any:
    if typed == "moment":
        return times.parse(value, eyes.call.now, time_zone(eyes.call, eyes.site))
    if typed == "duration":
        minutes = durations.parse_minutes(value)
        return None if minutes == UNLIMITED else minutes
    if typed == "names":
        return sign, tuple(name for name in value.split(",") if name)
    if typed == "flags":
        flags = tuple(name.upper() for name in value.split(",") if name)
        if any(flag not in FLAGS for flag in flags):
            raise ValueError(value)
        return flags
    return int(value) if typed == "count" else value
