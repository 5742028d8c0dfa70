"""What does `-v` of sbatch, srun and salloc say of the options in force? The "defined options" lines, alphabetical, as Slurm words values."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable

from slurmbridge.lang import durations, signals, times
from slurmbridge.model.request import Memory, Signal
from slurmbridge.submit.merge import Draft, Typed
from slurmbridge.submit.options import BY_LONG
from slurmbridge.submit.paths import join
from slurmbridge.submit.value_plain import PRIORITY_TOP

RULE = "-------------------- --------------------"
_FILES = {"output": "stdout", "error": "stderr", "input": "stdin"}
_FLAG_WORDS = {"oversubscribe": "oversubscribe", "no-requeue": "no-requeue"}

Shown = Callable[[Typed, Draft, datetime.tzinfo], str]


def defined_options(
    draft: Draft, *, command: str = "sbatch", verbose: int, wrap: str | None, cwd: str, tz: datetime.tzinfo
) -> tuple[str, ...]:
    """Lines without the program's name, options in Slurm's order."""
    shown = {"verbose": str(verbose)}
    if wrap is not None:
        shown["wrap"] = wrap
    for long, typed in draft.typed.items():
        if typed.option.early:
            continue
        shown[long] = _file(long, draft, cwd) if long in _FILES else _shown(typed, draft, tz)
    lines = [f"{long:<20}: {shown[long]}" for long in BY_LONG[command] if long in shown]
    return ("defined options", RULE, *lines, RULE, "end of defined options")


def _file(long: str, draft: Draft, cwd: str) -> str:
    folder = str(draft.values.get("chdir") or cwd)
    return join(join(cwd, folder), str(draft.values.get(_FILES[long]) or ""))


def _shown(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
    option = typed.option
    special = _SPECIAL.get(option.long)
    if special is not None:
        return special(typed, draft, tz)
    if option.flag:
        return _FLAG_WORDS.get(option.long, "set")
    return typed.text if typed.text is not None else str(draft.values.get(option.field) or "")


def _value(field: str) -> Callable[[Draft], object]:
    return lambda draft: draft.values.get(field)


def _memory(field: str) -> Shown:
    def show(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
        memory = draft.values.get(field)
        mib = memory.mib if isinstance(memory, Memory) else memory if isinstance(memory, int) else 0
        return f"{mib // 1024}G" if mib and mib % 1024 == 0 else str(mib)

    return show


def _moment(field: str) -> Shown:
    return lambda typed, draft, tz: times.render(_number(draft, field), tz)


def _number(draft: Draft, field: str) -> int:
    value = draft.values.get(field)
    return value if isinstance(value, int) else 0


def _minutes(field: str) -> Shown:
    return lambda typed, draft, tz: durations.render_minutes(_number(draft, field))


def _nodes(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
    least, most = _number(draft, "nodes_min"), _number(draft, "nodes_max")
    return str(least) if least == most else f"{least}-{most}"


def _exclusive(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
    return (typed.text or "exclusive").lower()


def _signal(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
    signal = draft.values.get("signal")
    if not isinstance(signal, Signal):
        return typed.text or ""
    who = ("R" if signal.at_reservation else "") + ("B" if signal.batch_only else "")
    delay = "" if signal.seconds == 60 else f"@{signal.seconds}"
    return (f"{who}:" if who else "") + signals.name(signal.number) + delay


def _priority(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
    return str(draft.values.get("priority", PRIORITY_TOP))


def _words(field: str) -> Shown:
    def show(typed: Typed, draft: Draft, tz: datetime.tzinfo) -> str:
        value = draft.values.get(field)
        return (",".join(value) or "NONE") if isinstance(value, tuple) else str(value)

    return show


_SPECIAL: dict[str, Shown] = {
    "begin": _moment("begin"),
    "deadline": _moment("deadline"),
    "delay-boot": lambda typed, draft, tz: durations.render_elapsed(_number(draft, "delay_boot")),
    "cpu-freq": lambda typed, draft, tz: ":".join(part.capitalize() for part in (typed.text or "").split(":")),
    "distribution": lambda typed, draft, tz: str(draft.values.get("distribution")).lower(),
    "exclusive": _exclusive,
    "gres": lambda typed, draft, tz: getattr(draft.values.get("gres"), "text", None) or "NONE",
    "mail-type": _words("mail_type"),
    "mem": lambda typed, draft, tz: (
        _memory("+memory-node")(typed, draft, tz).replace("0", "0?")
        if (typed.text or "").strip("0kKmMgGtTbB") == ""
        else _memory("+memory-node")(typed, draft, tz)
    ),
    "mem-per-cpu": _memory("+memory-cpu"),
    "mem-per-gpu": _memory("+memory-gpu"),
    "nice": lambda typed, draft, tz: str(_number(draft, "nice")),
    "no-kill": lambda typed, draft, tz: "set" if draft.values.get("no_kill") else "unset",
    "nodes": _nodes,
    "open-mode": lambda typed, draft, tz: str(draft.values.get("open_mode") or "")[:1],
    "priority": _priority,
    "profile": _words("profile"),
    "propagate": _words("propagate"),
    "requeue": lambda typed, draft, tz: "requeue",
    "signal": _signal,
    "time": _minutes("time_limit"),
    "time-min": _minutes("time_min"),
    "tmp": _memory("tmp_mib"),
}


_LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")


def propagated(rlimits: Iterable[tuple[str, int, int]], umask: int) -> tuple[str, ...]:
    """What -vv adds: the limits that go along with the job."""
    soft = {name: value for name, value, _ in rlimits}
    lines = [f"debug:  propagating RLIMIT_{name}={soft[name] % (1 << 64)}" for name in _LIMITS if name in soft]
    return (*lines, "debug:  propagating SLURM_PRIO_PROCESS=0", f"debug:  propagating UMASK={umask:04o}")
