"""What do PreemptType, PreemptMode, PreemptExemptTime and PreemptParameters say, and do they go together?

Follows slurm.conf(5) of 26.05 and what its slurmctld refuses at start. What the words mean is `sched.preemption`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from slurmbridge.errors import LangError
from slurmbridge.lang import durations
from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_lines import Pair
from slurmbridge.model.units import UNLIMITED

TYPES: Final = ("preempt/none", "preempt/qos", "preempt/partition_prio")
_BASES: Final = {
    "OFF": "OFF", "CLUSTER": "OFF", "CANCEL": "CANCEL", "REQUEUE": "REQUEUE", "SUSPEND": "SUSPEND", "ON": "SUSPEND"
}  # fmt: skip
_FLAGS: Final = ("GANG", "WITHIN", "PRIORITY")
_NUMBERS: Final = ("min_exempt_priority", "reorder_count", "suspend_grace_time")
WITHOUT_EFFECT: Final = {
    "reclaim_licenses": "a job that waits for licences gets them when others give them back; nobody is ended for them",
    "reorder_count": "the cheapest set of victims is searched for, so there is nothing to reorder",
    "strict_order": "the cheapest set of victims is searched for, so there is nothing to reorder",
    "suspend_grace_time": "processes are stopped at once when their job is suspended",
}
"""Words of PreemptParameters; others than these and those that take effect are not Slurm's."""
_WITH_EFFECT: Final = ("min_exempt_priority", "send_user_signal", "youngest_first")
GANG: Final = "suspended jobs go on when the jobs they gave way to have ended; jobs of one partition do not take turns"


def read_type(pair: Pair) -> str:
    """The plugin's name; empty is none."""
    word = pair.value.lower() or "preempt/none"
    if word not in TYPES:
        raise pair.error(f"cannot create preempt context for {pair.value}")
    return word


def read_mode(pair: Pair) -> str:
    """See `parse_mode`."""
    mode = parse_mode(pair.value)
    if mode is None:
        raise pair.error(f"PreemptMode={pair.value} invalid")
    return mode


def parse_mode(text: str) -> str | None:
    """Flags, then the one mode: as `scontrol show config` prints it (`GANG,SUSPEND`); None: it is no such thing."""
    words = [word.strip().upper() for word in text.split(",")]
    bases = [_BASES[word] for word in words if word in _BASES]
    flags = [word for word in _FLAGS if word in words]
    known = all(word in _BASES or word in _FLAGS for word in words)
    if not known or len(bases) > 1 or ("GANG" in flags and len(flags) > 1):
        return None
    return ",".join([*flags, *(base for base in bases if base != "OFF" or not flags)])


def read_exempt_time(pair: Pair) -> int:
    """Seconds; -1 is none."""
    try:
        seconds = 0 if pair.value == "-1" else durations.parse_seconds(pair.value)
    except LangError as error:
        raise pair.error(f"PreemptExemptTime={pair.value} invalid") from error
    return 0 if seconds >= UNLIMITED else seconds


def read_parameters(pair: Pair) -> str:
    """The words as written; numbers must be numbers."""
    for name, value in _words(pair):
        if name in _NUMBERS and not (value.isascii() and value.isdecimal()):
            raise pair.error(f"{name} value ({value}) is not a valid number")
    return ",".join(values.names(pair))


def check(plain: Mapping[str, Pair]) -> None:
    """Refuse a type and a mode that do not go together."""
    kind, mode = plain.get("preempttype"), plain.get("preemptmode")
    words = read_mode(mode).split(",") if mode is not None else ["OFF"]
    base = next((word for word in words if word not in _FLAGS), "OFF")
    if mode is not None and base == "SUSPEND" and "GANG" not in words:
        raise mode.error("PreemptMode=SUSPEND requires GANG too")
    preempts = kind is not None and read_type(kind) != "preempt/none"
    pair = mode or kind
    if pair is not None and preempts == (base == "OFF"):
        raise pair.error("PreemptType and PreemptMode values incompatible")


def notes(plain: Mapping[str, Pair]) -> Iterable[tuple[str, int, str]]:
    """Words without effect: (file, line, `PreemptParameters WORD`)."""
    pair = plain.get("preemptparameters")
    if pair is not None:
        for name, _ in _words(pair):
            if name not in _WITH_EFFECT:
                yield pair.file, pair.line, f"PreemptParameters {name}"
    mode = plain.get("preemptmode")
    if mode is not None and "GANG" in read_mode(mode).split(","):
        yield mode.file, mode.line, "PreemptMode GANG"


def why(key: str, word: str) -> str:
    """The reason of a note."""
    if key == "PreemptMode":
        return GANG
    return WITHOUT_EFFECT.get(word, "Slurm knows no such word and passes over it, as is done here")


def _words(pair: Pair) -> Iterable[tuple[str, str]]:
    for word in values.names(pair):
        name, _, value = word.partition("=")
        yield name.lower(), value
