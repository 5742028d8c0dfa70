"""How are `scontrol update`, `create` and `delete` read, and which requests do they make?

Follows scontrol(1). The first word that names a record decides its kind; the others are `Key=Value`. What may be set is
in the tables of `update_job`, `update_node`, `update_partition`, `update_reservation`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from slurmbridge.commands import update_job, update_node, update_partition
from slurmbridge.commands.effects import Alter, AlterOutcome, Change, Command, Effect, Outcome, Print
from slurmbridge.commands.job_targets import Target, read_target
from slurmbridge.commands.listing import time_zone
from slurmbridge.commands.scontrol_jobs import complain, find_jobs, report
from slurmbridge.commands.scontrol_reservation import create_reservation, update_reservation
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import times
from slurmbridge.model.job import Job
from slurmbridge.model.units import UNLIMITED

_KINDS = (
    ("NodeName", 1, "node"), ("PartitionName", 1, "partition"), ("ReservationName", 1, "reservation"),
    ("JobId", 1, "job"), ("JobName", 4, "job"), ("StepId", 4, "step"), ("SlurmctldDebug", 2, "debug"),
    ("SuspendExcNodes", 10, "power"), ("SuspendExcParts", 10, "power"), ("SuspendExcStates", 10, "power"),
)  # fmt: skip


def kind_of(word: str) -> tuple[str, str] | None:
    """(kind, name) of the word that names a record, e.g. ("job", "12")."""
    key, equals, value = word.partition("=")
    if not equals:
        return None
    key = key.lower()
    for name, least, kind in _KINDS:
        if len(key) >= least and name.lower().startswith(key):
            return kind, value
    return None


def update(eyes: Eyes, words: Sequence[str]) -> Command:
    """`scontrol update WORD...`."""
    for word in words:
        found = kind_of(word)
        if found is not None:
            rest = [each for each in words if each is not word]
            return (yield from _update(eyes, found[0], found[1], word, rest))
        if word.lower() in ("job", "jobid") and (words := _joined(words, word)) and "=" in words[0]:
            return (yield from update(eyes, words))
        if "=" not in word and kind_of(word + "="):
            yield from complain(eyes, f"Invalid input: {word}", "Request aborted")
            return 1
    yield from complain(
        eyes,
        "No valid entity in update command",
        'Input line must include "NodeName", "PartitionName", "Reservation", "JobId", or "SlurmctldDebug"',
    )
    return 1


def _joined(words: Sequence[str], key: str) -> list[str]:
    """`job 12 ...` as `job=12 ...`."""
    at = list(words).index(key)
    return [f"{key}={words[at + 1]}", *words[:at], *words[at + 2 :]] if at + 1 < len(words) else list(words)


def _update(eyes: Eyes, kind: str, name: str, word: str, rest: list[str]) -> Command:
    if kind == "job":
        return (yield from _update_job(eyes, name, word.lower().startswith("jobn"), rest))
    if kind == "node":
        return (yield from _update_node(eyes, name, rest))
    if kind == "partition":
        return (yield from _update_partition(eyes, name, rest, "update"))
    if kind == "reservation":
        return (yield from update_reservation(eyes, name, rest))
    if kind == "debug":
        outcome: AlterOutcome = yield Alter(kind="debug", fields=(("level", name),))
        if outcome.errno is not None:
            yield from complain(eyes, "slurm_update error: Permission denied")
        return int(outcome.errno is not None)
    text = SlurmErrno.NOT_SUPPORTED.text
    yield from complain(eyes, f"slurm_update error: {text}")
    return 1


# ---- jobs ----


def _update_job(eyes: Eyes, name: str, by_name: bool, rest: list[str]) -> Command:
    targets = _named(eyes, name) if by_name else [read_target(part) for part in name.split(",")]
    fields: list[tuple[str, Any]] = []
    uid: int | None = None
    for word in rest:
        if word.lower().startswith("resetaccruetime="):
            yield from complain(eyes, f"Update of this parameter is not supported: {word}", "Request aborted")
            return 1
        if word.lower() == "resetaccruetime":
            word += "=yes"
        elif word.lower() == "nice":
            word += "="
        key, _, value = word.partition("=")
        if len(key) >= 4 and "userid".startswith(key.lower()):  # beside JobName
            uid = eyes.site.user_id(value)
            if uid is None:
                yield from complain(eyes, f"Invalid UserID: {value}", "Request aborted")
                return 1
            continue
        if key.lower() in ("numnodes", "reqnodes") and not value[:1].isdecimal():
            yield from complain(eyes, f'scontrol: error: "{value}" is not a valid node count')
            return 0
        read = _read_job_word(eyes, word, targets)
        if isinstance(read, tuple):
            fields.append(read)
            continue
        yield from complain(eyes, *read)
        return 1
    if not fields:
        yield from complain(eyes, "No changes specified")
        return 1
    if by_name and not targets:
        owner = f"user ID {uid} and name" if uid is not None else "name"
        yield from complain(eyes, f"scontrol: error: No jobs with {owner} '{name}'")
        return 1
    if not all(targets) or "_[" in name:
        single = read_target(name)
        if single is None:
            yield from complain(eyes, f"{SlurmErrno.INVALID_JOB_ID.text} for job {name}")
            return 1
        targets = [single]
    failed = False
    for target in targets:
        assert target is not None
        outcome: Outcome = yield Change(
            verb="update",
            job_id=target.job_id,
            array_tasks=target.tasks,
            het_offset=target.offset,
            fields=tuple(fields),
        )
        failed = (yield from report(eyes, target, outcome, lambda errno, _: errno.text)) is not None or failed
    return int(failed)


def _named(eyes: Eyes, name: str) -> list[Target | None]:
    return [
        Target(text=str(job.job_id), job_id=job.job_id)
        for job in eyes.site.jobs()
        if job.spec.name == name and job.spec.uid == eyes.call.uid and not job.is_finished
    ]


def _read_job_word(eyes: Eyes, word: str, targets: Sequence[Target | None]) -> tuple[str, Any] | list[str]:
    """(key, typed value), or the lines of the complaint."""
    key, equals, value = word.partition("=")
    if not equals:
        return [f"Invalid input: {word}", "Request aborted"]
    sign = key[-1:] if key[-1:] in ("+", "-") else ""
    field = update_job.find_field(key.removesuffix(sign) if sign else key)
    if field is None:
        return [f"Update of this parameter is not supported: {word}", "Request aborted"]
    if field.key == "TimeLimit" and (sign or value[:1] in ("+", "-")):
        return _relative_limit(eyes, sign or value[0], value.lstrip("+-"), targets)
    if sign:
        if field.key in ("AdminComment", "Comment"):
            return _added_comment(eyes, field.key, sign, value, targets)
        return [f"scontrol: error: Option {field.key} does not accept [+|-]= syntax"]
    try:
        return field.key, update_job.parse_value(field, value, lambda text: read_moment(eyes, text))
    except LangError as error:
        if field.typed == "moment":
            return [error.message, "No changes specified"]
        if field.typed == "mail":
            return [f"Invalid MailType: {value}"]
        return [f"scontrol: error: {error.message}"]


def _first_job(eyes: Eyes, targets: Sequence[Target | None]) -> Job | None:
    found = find_jobs(eyes, targets[0]) if targets and targets[0] else []
    return found[0] if found else None


def _relative_limit(eyes: Eyes, sign: str, text: str, targets: Sequence[Target | None]) -> tuple[str, Any] | list[str]:
    """`+5`, `-=5`: against the limit that the job has now."""
    field = update_job.BY_KEY["TimeLimit"]
    try:
        step = update_job.parse_value(field, text, lambda _: 0)
    except LangError as error:
        return [f"scontrol: error: {error.message}"]
    job = _first_job(eyes, targets)
    if job is None:
        return [f"scontrol: error: Job ID {targets[0].text if targets and targets[0] else ''} not found"]
    now = UNLIMITED if job.spec.time_limit is None else job.spec.time_limit
    if now == UNLIMITED:
        return ["scontrol: error: Cannot increment/decrement TimeLimit when set to UNLIMITED."]
    if sign == "-" and step > now:
        return [f"scontrol: error: TimeLimit decrement larger than current time limit ({step} > {now})"]
    return field.key, now + step if sign == "+" else now - step


def _added_comment(
    eyes: Eyes, key: str, sign: str, value: str, targets: Sequence[Target | None]
) -> tuple[str, Any] | list[str]:
    """`comment+=TEXT`: behind what is there."""
    if sign == "-":
        return [f"scontrol: error: Invalid syntax, {key} can not be added/subtracted from."]
    job = _first_job(eyes, targets)
    old = (job.admin_comment if key == "AdminComment" else job.spec.comment or "") if job else ""
    return key, f"{old},{value}" if old else value


def read_moment(eyes: Eyes, text: str) -> int:
    """A time of day, date or `now+1hour`; LangError."""
    return times.parse(text, eyes.call.now, time_zone(eyes.call, eyes.site))


# ---- nodes and partitions ----


def _update_node(eyes: Eyes, names: str, rest: list[str]) -> Command:
    fields: list[tuple[str, Any]] = []
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            yield from complain(eyes, f"Invalid input: {word}", "Request aborted")
            return 1
        field = update_node.find_field(key)
        if field is None:
            yield from complain(eyes, f"Update of this parameter is not supported: {word}", "Request aborted")
            return 1
        if field.typed == "state":
            state = update_node.find_state(value)
            if state is None:
                yield from complain(
                    eyes, f"Invalid input: {word}", "Request aborted",
                    "Valid states are: NoResp DRAIN FAIL FUTURE RESUME POWER_DOWN POWER_UP UNDRAIN",
                    "Not all states are valid given a node's prior state",
                )  # fmt: skip
                return 1
            fields.append((field.key, state))
        elif field.typed == "binding":
            if value.lower() not in update_node.BINDINGS:
                yield Print(f"scontrol: error: Invalid input {word}\n", 2)
                return 1
            fields.append((field.key, value))
        elif field.typed == "count":
            if not value.isdecimal():
                yield Print(f"scontrol: error: Invalid value {word} for {field.key}\n", 2)
                return 1
            fields.append((field.key, int(value)))
        elif field.typed == "names":
            fields.append((field.key, tuple(name for name in value.split(",") if name)))
        else:
            fields.append((field.key, value))
    if not fields:
        yield from complain(eyes, "No changes specified")
        return 1
    values = dict(fields)
    if values.get("State") in update_node.NEED_REASON and not values.get("Reason"):
        yield from complain(eyes, "You must specify a reason when DOWNING or DRAINING a node. Request denied")
        return 1
    if "ResumeAfter" in values and values.get("State") not in ("DOWN", "DRAIN"):
        yield from complain(eyes, "You can only specify a resume time when DOWNING or DRAINING a node. Request denied")
        return 1
    outcome: AlterOutcome = yield Alter(kind="node", target=names, fields=tuple(fields))
    if outcome.errno is not None:
        yield from complain(eyes, f"slurm_update error: {outcome.detail or _denied(outcome.errno)}")
    return int(outcome.errno is not None)


def _denied(errno: SlurmErrno) -> str:
    """Requests of operators are refused to others by Slurm's word for a wrong user."""
    return (SlurmErrno.USER_ID_MISSING if errno is SlurmErrno.ACCESS_DENIED else errno).text


def _update_partition(eyes: Eyes, name: str, rest: list[str], verb: str) -> Command:
    fields: list[tuple[str, Any]] = []
    for word in rest:
        key, equals, value = word.partition("=")
        if not equals:
            yield from _errors(eyes, f"Invalid input: {word}  Request aborted")
            return 1
        field = update_partition.find_field(key.rstrip("+-"))
        if field is None:
            yield from _errors(eyes, f"Update of this parameter is not supported: {word}\n", "Request aborted")
            return 1
        if key[-1:] in "+-" and field.typed == "nodes":
            value = key[-1] + value
        try:
            fields.append((field.key, update_partition.parse_value(field, value, word)))
        except LangError as error:
            yield from _errors(eyes, *error.message.split("\n"))
            return 1
    if not fields and verb == "update":
        yield from _errors(eyes, "No changes specified")
        return 1
    outcome: AlterOutcome = yield Alter(kind="partition", verb=verb, target=name, fields=tuple(fields))
    if outcome.errno is None:
        return 0
    text = _denied(outcome.errno)
    yield from complain(
        eyes, f"slurm_update error: {text}" if verb == "update" else f"Error creating the partition: {text}"
    )
    return 1


def _errors(eyes: Eyes, *lines: str) -> Generator[Effect, Any, None]:
    for line in lines:
        yield Print(f"scontrol: error: {line}\n", 2)


# ---- create and delete ----


def create(eyes: Eyes, words: Sequence[str]) -> Command:
    """`scontrol create partition=NAME ...`, `scontrol create reservation[=NAME] ...`."""
    kind = next((kind for word in words if (kind := _creation(word.partition("=")[0]))), "")
    name = next(
        (word.partition("=")[2] for word in words if _creation(word.partition("=")[0]) == kind and "=" in word), ""
    )
    rest = [word for word in words if _creation(word.partition("=")[0]) != kind]
    if kind == "reservation":
        return (yield from create_reservation(eyes, name, rest))
    if kind == "partition":
        if not name:
            yield from _errors(eyes, f"Invalid input: {words[0]}  Request aborted")
            return 1
        return (yield from _update_partition(eyes, name, rest, "create"))
    if kind == "node":
        denied = not eyes.site.is_operator(eyes.call.uid)
        errno = SlurmErrno.USER_ID_MISSING if denied else SlurmErrno.NOT_SUPPORTED
        yield from complain(eyes, f"Error creating node(s): {errno.text}")
        return 1
    yield from _errors(eyes, f"Invalid creation entity: {words[0]}")
    return 1


def _creation(key: str) -> str:
    """reservation, partition or node; a partition of a reservation is written `partitionname=` behind its name."""
    word = key.lower()
    if len(word) < (3 if word.startswith("r") else 4):
        return ""
    return next((kind for kind in ("reservation", "partition", "node") if f"{kind}name".startswith(word)), "")


def delete(eyes: Eyes, words: Sequence[str]) -> Command:
    """`scontrol delete partition=NAME`, `scontrol delete reservation=NAME`, or kind and name as two words."""
    shown = words[0]
    key, equals, value = shown.partition("=")
    name = value if equals else (words[1] if len(words) > 1 else "")
    kind = next(
        (
            each
            for each in ("partitionname", "reservationname", "nodename")
            if each.startswith(key.lower()) and len(key) >= 3
        ),
        None,
    )
    if len(words) > 2 or (len(words) == 1 and not equals):
        yield from _errors(eyes, "Proper format is 'delete <ENTITY>=<ID>' or 'delete <ENTITY> <ID>'")
        return 1
    if kind is None:
        yield from complain(eyes, f"Invalid deletion entity: {shown}")
        return 1
    short = kind.removesuffix("name")
    if short == "node":
        denied = not eyes.site.is_operator(eyes.call.uid)
        errno: SlurmErrno | None = SlurmErrno.USER_ID_MISSING if denied else SlurmErrno.NOT_SUPPORTED
    else:
        outcome: AlterOutcome = yield Alter(kind=short, verb="delete", target=name)
        errno = outcome.errno
    if errno is None:
        return 0
    yield from complain(eyes, f"delete_{short} {shown}: {_denied(errno)}")
    return 1
