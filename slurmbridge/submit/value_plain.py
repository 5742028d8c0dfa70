"""Readers of texts, flags, numbers, times and sizes (sbatch(1); wording of Slurm 26.05)."""

from __future__ import annotations

import re

from slurmbridge.errors import LangError
from slurmbridge.lang import durations, sizes, times
from slurmbridge.model.request import Memory, MemoryPer
from slurmbridge.submit.option import Option
from slurmbridge.submit.value import Bad, Clock, Reader, Values, error, integer, invalid, leading


def read_text(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, text or ""),)


def read_flag(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, True),)


def read_recorded(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("+" + option.long, text if text is not None else "set"),)


def read_refused(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return error(f"--{option.long}: {option.why}", 1)


def read_names(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, tuple(text.split(",")) if text else None),)


def read_bell(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("bell", "always" if option.long == "bell" else "never"),)


def read_yes_no(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    answers = {"yes": True, "no": False}
    found = answers.get((text or "").lower())
    return invalid(option) if found is None else ((option.field, found),)


def read_preemptible(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """Without a value: yes."""
    return read_yes_no(option, "yes" if text is None else text, clock)


def read_count(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", f"--{option.long}", 1)
    return found if isinstance(found, Bad) else ((option.field, found),)


def read_count_ntasks_per_node(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", "--ntasks-per-node", 1)
    return found if isinstance(found, Bad) else ((option.field, found),)


def read_number(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", f"--{option.long}", 0)
    return found if isinstance(found, Bad) else ((option.field, found),)


def read_zero_one(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return ((option.field, text is None),)
    found = integer(text, f"--{option.long}", 0)
    if isinstance(found, Bad):
        return found
    return ((option.field, bool(found)),) if found <= 1 else invalid(option)


def read_oom_kill_step(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    values = {"": 1, "0": 0, "1": 1}
    found = values.get(text or "")
    return invalid(option) if found is None else ((option.field, found),)


_NICE_LIMIT = 2**31 - 3


def read_nice(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    value = leading(text) if text else 100
    if abs(value) > _NICE_LIMIT:
        return error(f"Invalid --nice value, out of range (+/- {_NICE_LIMIT})")
    return (("nice", value),)


PRIORITY_TOP = -3
_PRIORITY_LIMIT = 0xFFFFFFFE


def read_priority(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if (text or "").lower() == "top":
        return (("priority", PRIORITY_TOP),)
    value = leading(text or "")
    if value < 0:
        return error("Priority must be >= 0")
    if value >= _PRIORITY_LIMIT:
        return error(f"Priority must be < {_PRIORITY_LIMIT}")
    return (("priority", value),)


def read_seconds(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return ((option.field, 1),)
    found = integer(text, f"--{option.long}", 0)
    return found if isinstance(found, Bad) else ((option.field, found),)


def read_segment(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", "--segment", 0)
    return invalid(option) if isinstance(found, Bad) else (("segment", found or None),)


def read_resv_ports(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text, "--resv-port", 0) if text else 0
    return found if isinstance(found, Bad) else (("resv_ports", found),)


def read_time(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("time_limit", durations.parse_minutes(text or "")),)
    except LangError:
        return invalid(option)


def read_time_min(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("time_min", durations.parse_minutes(text or "")),)
    except LangError:
        return invalid(option)


def read_delay(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("delay_boot", durations.parse_seconds(text or "")),)
    except LangError:
        return invalid(option)


def read_moment(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return ((option.field, times.parse(text or "", clock.now, clock.tz)),)
    except LangError as problem:
        if not text:
            return invalid(option)
        place = (
            "" if problem.message.startswith("Invalid time") else f"Invalid time specification (pos={problem.place}): "
        )
        return Bad(
            (
                ("", place + (text or "") if place else problem.message),
                ("error", f"Invalid --{option.long} specification"),
            )
        )


def read_memory(per: MemoryPer) -> Reader:
    def read(option: Option, text: str | None, clock: Clock) -> Values | Bad:
        try:
            mib = sizes.parse_mib(text or "")
        except LangError:
            return invalid(option)
        return (("+memory-" + per.value, Memory(per, mib)),)

    return read


def read_tmp(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("tmp_mib", sizes.parse_mib(text or "")),)
    except LangError:
        return invalid(option)


def read_mem_update(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not re.fullmatch(r"[0-9]+%?@[0-9]+", text or ""):
        return error("--mem-update requires MARGIN@DELAY format")
    return (("+mem-update", text),)
