"""How is the text of one option read? A reader per kind of the option table: text -> fields, or Slurm's complaint.

Wording and exit codes follow sbatch, srun and salloc 26.05. A reader answers `Values`, pairs of (field, value), or `Bad`.
Fields that are no field of JobRequest are working values of `submit.merge`. Nothing here knows the cluster; what only the
controller can refuse (arrays, dependencies, licences, features) stays text.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from slurmbridge.errors import LangError
from slurmbridge.lang import (
    binding,
    distribution,
    durations,
    gres,
    hostlist,
    mail,
    nodes,
    rlimits,
    signals,
    sizes,
    times,
)
from slurmbridge.model.request import Exclusive, Memory, MemoryPer
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit.option import Option


class Bad(msgspec.Struct, frozen=True):
    """A value that is refused: (level, text) lines, level "error", "fatal" or "" (as it stands), and the exit code."""

    lines: tuple[tuple[str, str], ...]
    exit_code: int = 255
    stdout: str = ""


class Clock(msgspec.Struct, frozen=True):
    """What moments are reckoned from."""

    now: float
    tz: datetime.tzinfo = datetime.UTC


Values = tuple[tuple[str, object], ...]
Reader = Callable[[Option, str | None, Clock], Values | Bad]


def error(text: str, exit_code: int = 255) -> Bad:
    """One line as `COMMAND: error: TEXT`."""
    return Bad((("error", text),), exit_code)


def fatal(text: str) -> Bad:
    """One line as `COMMAND: fatal: TEXT`; always exit 1."""
    return Bad((("fatal", text),), 1)


def invalid(option: Option, exit_code: int = 255) -> Bad:
    return error(f"Invalid --{option.long} specification", exit_code)


# plain values


def _text(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, text or ""),)


def _flag(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, True),)


def _recorded(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("+" + option.long, text if text is not None else "set"),)


def _refused(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return error(f"--{option.long}: {option.why}", 1)


def _names(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, tuple(text.split(",")) if text else None),)


def _bell(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("bell", "always" if option.long == "bell" else "never"),)


def _yes_no(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    answers = {"yes": True, "no": False}
    found = answers.get((text or "").lower())
    return invalid(option) if found is None else ((option.field, found),)


# numbers

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_BIGGEST = 2**31 - 1


def integer(text: str, name: str, least: int) -> int | Bad:
    """Slurm's reading of a whole number of an option; `name` as its message says it."""
    found = _INTEGER.fullmatch(text)
    value = int(found[1]) if found and len(found[1]) < 25 else None
    if found and (value is None or value > _BIGGEST):
        return error(f"Numeric argument ({text}) too large for {name}.", 1)
    if value is None or value < least:
        return error(f'Invalid numeric value "{text}" for {name}.', 1)
    return value


def _leading(text: str) -> int:
    """What the C library's strtol makes of a text: the number it begins with, 0 when it begins with none."""
    found = _INTEGER.match(text)
    return int(found[1][:25]) if found else 0


def _count(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", f"--{option.long}", 1)
    return found if isinstance(found, Bad) else ((option.field, found),)


def _count_ntasks_per_node(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", "--ntasks-per-node", 1)
    return found if isinstance(found, Bad) else ((option.field, found),)


def _number(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", f"--{option.long}", 0)
    return found if isinstance(found, Bad) else ((option.field, found),)


def _zero_one(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return ((option.field, text is None),)
    found = integer(text, f"--{option.long}", 0)
    if isinstance(found, Bad):
        return found
    return ((option.field, bool(found)),) if found <= 1 else invalid(option)


def _oom_kill_step(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    values = {"": 1, "0": 0, "1": 1}
    found = values.get(text or "")
    return invalid(option) if found is None else ((option.field, found),)


_NICE_LIMIT = 2**31 - 3


def _nice(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    value = _leading(text) if text else 100
    if abs(value) > _NICE_LIMIT:
        return error(f"Invalid --nice value, out of range (+/- {_NICE_LIMIT})")
    return (("nice", value),)


PRIORITY_TOP = -3
_PRIORITY_LIMIT = 0xFFFFFFFE


def _priority(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if (text or "").lower() == "top":
        return (("priority", PRIORITY_TOP),)
    value = _leading(text or "")
    if value < 0:
        return error("Priority must be >= 0")
    if value >= _PRIORITY_LIMIT:
        return error(f"Priority must be < {_PRIORITY_LIMIT}")
    return (("priority", value),)


def _seconds(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return ((option.field, 5),)
    found = integer(text, f"--{option.long}", 0)
    return found if isinstance(found, Bad) else ((option.field, found),)


def _segment(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text or "", "--segment", 0)
    return invalid(option) if isinstance(found, Bad) else (("segment", found or None),)


def _resv_ports(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    found = integer(text, "--resv-port", 0) if text else 0
    return found if isinstance(found, Bad) else (("resv_ports", found),)


# times


def _time(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("time_limit", durations.parse_minutes(text or "")),)
    except LangError:
        return invalid(option)


def _time_min(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("time_min", durations.parse_minutes(text or "")),)
    except LangError:
        return invalid(option)


def _delay(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("delay_boot", durations.parse_seconds(text or "")),)
    except LangError:
        return invalid(option)


def _moment(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return ((option.field, times.parse(text or "", clock.now, clock.tz)),)
    except LangError as problem:
        place = (
            "" if problem.message.startswith("Invalid time") else f"Invalid time specification (pos={problem.place}): "
        )
        return Bad(
            (
                ("", place + (text or "") if place else problem.message),
                ("error", f"Invalid --{option.long} specification"),
            )
        )


# sizes


def _memory(per: MemoryPer) -> Reader:
    def read(option: Option, text: str | None, clock: Clock) -> Values | Bad:
        try:
            mib = sizes.parse_mib(text or "")
        except LangError:
            return invalid(option)
        return (("+memory-" + per.value, Memory(per, mib)),)

    return read


def _tmp(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("tmp_mib", sizes.parse_mib(text or "")),)
    except LangError:
        return invalid(option)


def _mem_update(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not re.fullmatch(r"[0-9]+%?@[0-9]+", text or ""):
        return error("--mem-update requires MARGIN@DELAY format")
    return (("+mem-update", text),)


# shape


def _nodes(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        counts = nodes.parse(text or "")
    except LangError as problem:
        return error(problem.message)
    return (("nodes_min", counts.min), ("nodes_max", counts.max), ("node_counts", tuple(counts.counts)))


def _exclusive(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = {"": Exclusive.NODE, "user": Exclusive.USER, "mcs": Exclusive.MCS, "topo": Exclusive.TOPO}
    found = words.get((text or "").lower())
    return invalid(option) if found is None else (("exclusive", found), ("+shared", option.long))


_ORDINALS = ("first", "second", "third")
_SHAPE = ("sockets_per_node", "cores_per_socket", "threads_per_core")


def _extra_node_info(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    values: list[tuple[str, object]] = []
    product = 1
    for place, part in enumerate((text or "").split(":")[:3]):
        number = re.match(r"[0-9]+", part)
        if part in ("", "*"):
            continue
        if not number or part[number.end() :][:1] not in ("", "-"):
            return error(f'Invalid numeric value "{part}" for {_ORDINALS[place]} arg of -B.', 1)
        values.append((_SHAPE[place], int(number[0])))
        product *= int(number[0])
    return (*values, ("+node-info-tasks", product if values else None))


_HINTS: dict[str, Values] = {
    "compute_bound": (("threads_per_core", 1),),
    "memory_bound": (("cores_per_socket", 1), ("threads_per_core", 1)),
    "nomultithread": (("threads_per_core", 1),),
    "multithread": (),
}
_HINT_HELP = """Application hint options:
    --hint=             Bind tasks according to application hints
        compute_bound   use all cores in each socket
        memory_bound    use only one core in each socket
        [no]multithread [don't] use extra threads with in-core multi-threading
        help            show this help message
"""


def _hint(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    word = (text or "").lower()
    if word == "help":
        return Bad((), 1, _HINT_HELP)
    if word not in _HINTS:
        return error(f'unrecognized --hint argument "{text}", see --hint=help', 1)
    return (("hint", word), *_HINTS[word])


def _no_kill(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if text and text != "off":
        return invalid(option)
    return (("no_kill", not text),)


def _distribution(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("distribution", distribution.parse(text or "")),)
    except LangError:
        if (text or "").lower().startswith("plane"):
            return Bad((("error", "Invalid plane size or size not specified"), *invalid(option).lines))
        return invalid(option)


def _switches(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    count, at, wait = (text or "").partition("@")
    found = integer(count, "--switches", 1)
    if isinstance(found, Bad):
        return found
    return (("switches", found), ("switches_wait", _switch_wait(wait) if at else None))


def _switch_wait(text: str) -> int | None:
    """Seconds; None: as long as the site allows."""
    try:
        seconds = durations.parse_seconds(text)
    except LangError:
        return None
    return None if seconds == UNLIMITED else seconds


# hosts


def _exclude(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _hosts("exclude", text or "")


def _nodelist(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _hosts("nodelist", text or "")


def _hosts(field: str, text: str) -> Values | Bad:
    if "/" in text:
        return ((field, ()), (f"+{field}-file", text))
    try:
        return ((field, tuple(hostlist.expand(text)) if text else ()), (f"+{field}-file", None))
    except LangError:
        return fatal("Invalid node list specified")


def _nodefile(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("nodelist", ()), ("+nodelist-file", text or ""), ("+nodefile", True))


# devices


def _request(option: Option, text: str, scope: str) -> Values | Bad:
    try:
        return ((option.field, gres.parse_gres(text, scope)),)
    except LangError:
        return error("Invalid Trackable RESource (TRES) specification", 1)


def _gres(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    word = (text or "").lower()
    if word == "none":
        return (("gres", None),)
    if word == "help":
        return (("+gres-help", True),)
    return _request(option, text or "", "gres")


def _gpus(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _request(option, text, "gpus") if text else ((option.field, None),)


def _gpus_per_task(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    read = _gpus(option, text, clock)
    if isinstance(read, Bad) or not text:
        return read
    return error("Invalid Trackable RESource (TRES) specification", 1) if text.startswith("-") else read


_PER_TASK = re.compile(r"(cpu|mem|energy|node|billing|bb|pages|vmem|fs)(?=[/:=,]|$)", re.IGNORECASE)


def _tres_per_task(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    for part in (text or "").split(","):
        found = _PER_TASK.match(part)
        if found and found[1].lower() != "cpu":
            return fatal(f"Invalid TRES for --tres-per-task: {found[1].lower()}")
        if part.startswith("cpu"):
            count = re.fullmatch(r"cpu[:=]([0-9]+)([kKmMgGtT]?)", part)
            if not count or not int(count[1]):
                return fatal("Invalid --tres-per-task=cpu=0")
    if not (text or "").strip(","):
        return (("tres_per_task", None), ("+tres-per-task", text or ""))
    read = _request(option, text or "", "tres")
    if isinstance(read, Bad):
        return error("Batch job submission failed: Invalid Trackable RESource (TRES) specification", 1)
    return (*read, ("+tres-per-task", None))


def _gpu_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        binding.check_gpu_bind(text or "")
    except LangError as problem:
        lines = [("error", f"Invalid --gpu-bind argument: {text or ''}")]
        numbers = re.fullmatch(r"(?:verbose,)?(?:map|mask)_gpu:(.*)", text or "")
        if numbers and problem.place < len(text or ""):
            lines.insert(
                0, ("error", f"Failed to validate {numbers[1]}, offending character is {(text or '')[problem.place]}")
            )
        return Bad(tuple(lines))
    return (("gpu_bind", text),)


_FREQUENCY = r"(?:low|medium|high|highm1|[0-9]+)"
_GPU_FREQUENCY = re.compile(rf"(?:(?:memory=)?{_FREQUENCY})(?:,(?:(?:memory=)?{_FREQUENCY}|verbose))*", re.IGNORECASE)


def _gpu_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not _GPU_FREQUENCY.fullmatch(text or ""):
        return error(f"Invalid --gpu-freq argument: gpu:{text or ''}")
    return (("gpu_freq", text),)


_GRES_FLAGS = (
    "disable-binding",
    "enforce-binding",
    "multiple-tasks-per-sharing",
    "one-task-per-sharing",
    "allow-task-sharing",
)


def _gres_flags(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = [word for word in (text or "").lower().split(",") if word]
    if any(word not in _GRES_FLAGS for word in words):
        return error(f"Invalid --gres-flags specification: {text}")
    if "enforce-binding" in words and "disable-binding" in words:
        return error("Invalid --gres-flags combo: disable-binding and enforce-binding are mutually exclusive.")
    return (("gres_flags", ",".join(words) or None),)


_FRACTION = re.compile(r"0?\.[0-9]{1,3}|1(?:\.0{1,3})?|0\.[0-9]{1,3}")


def _gpu_fraction(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    milli = round(float(text or "0") * 1000) if _FRACTION.fullmatch(text or "") else 0
    if not milli:
        return error("Invalid --gpu-fraction: a share of a device above 0 and up to 1, with at most three decimals")
    return (("gpu_fraction_milli", milli),)


def _gpu_memory(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        mib = sizes.parse_mib(text or "")
    except LangError:
        mib = 0
    return (("gpu_memory_mib", mib),) if mib else invalid(option)


_FREQUENCY_WORDS = {"low": "Low", "medium": "Medium", "high": "High", "highm1": "Highm1"}
_GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")


def _cpu_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    speeds, colon, governor = (text or "").partition(":")
    low, dash, high = speeds.partition("-")
    parts = [part.lower() for part in (low, high) if part]
    if len(parts) == 1 and parts[0] in _GOVERNORS and not colon and not dash:
        return (("cpu_freq", text),)
    known = all(part in _FREQUENCY_WORDS or part.isdigit() for part in parts)
    lines = [("error", "Invalid --cpu-freq argument")]
    if parts and (not known or (colon and governor.lower() not in _GOVERNORS)):
        lines.insert(0, ("error", f'unrecognized --cpu-freq argument "{text if not known else governor}"'))
    elif dash and not colon:
        lines.insert(
            0,
            (
                "error",
                "You must explicitly choose a governor when defining a range. Please specify only one value for the "
                "desired frequency (p1) or choose a specific governor (p3).",
            ),
        )
    elif parts and known:
        return (("cpu_freq", text),)
    return Bad(tuple(lines))


# words


def _mail_type(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("mail_type", mail.parse(text or "")),)
    except LangError:
        return invalid(option)


def _signal(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("signal", signals.parse_option(text or "")),)
    except LangError:
        return invalid(option)


def _open_mode(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    modes = {"a": "append", "append": "append", "t": "truncate", "truncate": "truncate"}
    found = modes.get((text or "").lower())
    return invalid(option) if found is None else (("open_mode", found),)


_PROFILES = ("energy", "lustre", "network", "task")


def _profile(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = (text or "").lower().split(",")
    if words in (["none"], ["all"]):
        return (("profile", words[0].capitalize()),)
    known = [word.capitalize() for word in words if word in _PROFILES]
    return (("profile", ",".join(known)),) if known else error(f"invalid --profile={text or ''} option")


def _propagate(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        rlimits.parse(text or "ALL")
    except LangError as problem:
        name = problem.text or text or ""
        return Bad((("error", f"Bad rlimit name: {name}"), ("error", f"--propagate={text} is not valid.")), 1)
    return (("propagate", text or "ALL"),)


def _acctg_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    for part in (text or "").split(","):
        name, equals, interval = part.rpartition("=")
        known = not equals or name.lower() in ("task", "energy", "network", "filesystem")
        if part and not (known and interval.isdigit()):
            return error(f"Invalid --acctg-freq specification: {part}")
    return (("acctg_freq", text),)


def _requeue(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if not text:
        return (("requeue", True), ("+requeue-expedite", False))
    if text == "expedite":
        return (("requeue", True), ("+requeue-expedite", True))
    return invalid(option)


def _no_requeue(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("requeue", False), ("+requeue-expedite", False))


def _mem_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        binding.check_mem_bind(text or "")
    except LangError:
        return error(f'unrecognized --mem-bind argument "{text}"')
    return (("+mem-bind", text),)


def _cpu_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        binding.check_cpu_bind(text or "")
    except LangError:
        return error(f'unrecognized --cpu-bind argument "{text}"')
    return (("cpu_bind", text),)


def _burst_buffer_file(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("+burst-buffer-file", text or ""),)


def _file(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return ((option.field, text or ""),)


def _early(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """Read in a pass of its own; a directive with it changes nothing, as in Slurm."""
    return ()


READERS: dict[str, Reader] = {
    "acctg_freq": _acctg_freq, "begin": _moment, "bell": _bell, "burst_buffer_file": _burst_buffer_file, "chdir": _file,
    "count": _count, "count_ntasks_per_node": _count_ntasks_per_node, "cpu_bind": _cpu_bind, "cpu_freq": _cpu_freq,
    "delay": _delay, "distribution": _distribution, "early": _early, "exclude": _exclude, "exclusive": _exclusive,
    "external": _flag, "extra_node_info": _extra_node_info, "file": _file, "flag": _flag, "gid": _text,
    "gpu_bind": _gpu_bind, "gpu_fraction": _gpu_fraction, "gpu_freq": _gpu_freq, "gpu_memory": _gpu_memory,
    "gpus": _gpus, "gpus_per_task": _gpus_per_task, "gres": _gres, "gres_flags": _gres_flags, "hint": _hint,
    "mail_type": _mail_type, "mem": _memory(MemoryPer.NODE), "mem_bind": _mem_bind,
    "mem_per_cpu": _memory(MemoryPer.CPU), "mem_per_gpu": _memory(MemoryPer.GPU), "mem_update": _mem_update,
    "moment": _moment, "name": _text, "names": _names, "nice": _nice, "no_bell": _bell, "no_kill": _no_kill,
    "no_requeue": _no_requeue, "nodefile": _nodefile, "nodelist": _nodelist, "nodes": _nodes, "number": _number,
    "oom_kill_step": _oom_kill_step, "open_mode": _open_mode, "preemptible": _yes_no, "priority": _priority,
    "profile": _profile, "propagate": _propagate, "recorded": _recorded, "refused": _refused, "requeue": _requeue,
    "resources": _text, "resv_ports": _resv_ports, "seconds": _seconds, "segment": _segment, "signal": _signal,
    "switches": _switches, "text": _text, "time": _time, "time_min": _time_min, "tmp": _tmp,
    "tres_per_task": _tres_per_task, "uid": _text, "yes_no": _yes_no, "zero_one": _zero_one,
}  # fmt: skip
"""kind of an option -> its reader."""

_TIMED = frozenset({"begin", "moment"})
_NO_CLOCK = Clock(0.0)


@lru_cache(maxsize=8192)
def _read_pure(option_id: tuple[str, str], text: str | None) -> Values | Bad:
    from slurmbridge.submit.options import BY_LONG

    option = BY_LONG[option_id[0]][option_id[1]]
    return READERS[option.kind](option, text, _NO_CLOCK)


def read(command: str, option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """The fields that an option sets. Repeated texts are answered from a bounded memo."""
    if option.kind in _TIMED or (text is not None and len(text) > 512):
        return READERS[option.kind](option, text, clock)
    return _read_pure((command, option.long), text)
