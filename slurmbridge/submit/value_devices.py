"""Readers of devices and frequencies: --gres, --gpus..., --tres-per-task, --gpu-bind, our fractions (sbatch(1))."""

from __future__ import annotations

import re

from slurmbridge.errors import LangError
from slurmbridge.lang import binding, gres, sizes
from slurmbridge.submit.option import Option
from slurmbridge.submit.value import Bad, Clock, Values, error, fatal, invalid


def _request(option: Option, text: str, scope: str) -> Values | Bad:
    try:
        return ((option.field, gres.parse_gres(text, scope)),)
    except LangError:
        return error("Invalid Trackable RESource (TRES) specification", 1)


def read_gres(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    word = (text or "").lower()
    if word == "none":
        return (("gres", None),)
    if word == "help":
        return (("+gres-help", True),)
    return _request(option, text or "", "gres")


def read_gpus(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _request(option, text, "gpus") if text else ((option.field, None),)


def read_gpus_per_task(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    read = read_gpus(option, text, clock)
    if isinstance(read, Bad) or not text:
        return read
    return error("Invalid Trackable RESource (TRES) specification", 1) if text.startswith("-") else read


_PER_TASK = re.compile(r"(cpu|mem|energy|node|billing|bb|pages|vmem|fs)(?=[/:=,]|$)", re.IGNORECASE)


def read_tres_per_task(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    for part in (text or "").split(","):
        found = _PER_TASK.match(part)
        if found and found[1].lower() != "cpu":
            return fatal(f"Invalid TRES for --tres-per-task: {found[1].lower()}")
        if part.startswith("cpu"):
            count = re.fullmatch(r"cpu[:=]([0-9]+)([kKmMgGtT]?)", part)
            if not count or not int(count[1]):
                return (
                    ("tres_per_task", None),
                    ("+tres-per-task", text or ""),
                    ("+tres-refused", None),
                    ("+tres-no-cpu", part),
                )
    if not (text or "").strip(","):
        return (("tres_per_task", None), ("+tres-per-task", text or ""))
    read = _request(option, text or "", "tres")
    if isinstance(read, Bad):
        return (("tres_per_task", None), ("+tres-refused", text))
    return (*read, ("+tres-per-task", None), ("+tres-refused", None), ("+tres-no-cpu", None))


def read_gpu_bind(option: Option, text: str | None, clock: Clock) -> Values | Bad:
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
_GPU_FREQUENCY = re.compile(
    rf"(?:(?:memory=)?{_FREQUENCY}|verbose)(?:,(?:(?:memory=)?{_FREQUENCY}|verbose))*", re.IGNORECASE
)


def read_gpu_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
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


def read_gres_flags(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = [word for word in (text or "").lower().split(",") if word]
    if any(word not in _GRES_FLAGS for word in words):
        return error(f"Invalid --gres-flags specification: {text}")
    if "enforce-binding" in words and "disable-binding" in words:
        return error("Invalid --gres-flags combo: disable-binding and enforce-binding are mutually exclusive.")
    return (("gres_flags", ",".join(words) or None),)


_FRACTION = re.compile(r"0?\.[0-9]{1,3}|1(?:\.0{1,3})?|0\.[0-9]{1,3}")


def read_gpu_fraction(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    milli = round(float(text or "0") * 1000) if _FRACTION.fullmatch(text or "") else 0
    if not milli:
        return error("Invalid --gpu-fraction: a share of a device above 0 and up to 1, with at most three decimals")
    return (("gpu_fraction_milli", milli),)


def read_gpu_memory(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        mib = sizes.parse_mib(text or "")
    except LangError:
        mib = 0
    return (("gpu_memory_mib", mib),) if mib else invalid(option)


_FREQUENCY_WORDS = {"low": "Low", "medium": "Medium", "high": "High", "highm1": "Highm1"}
_GOVERNORS = ("conservative", "ondemand", "performance", "powersave", "schedutil", "userspace")


def read_cpu_freq(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    speeds, colon, governor = (text or "").partition(":")
    low, dash, high = speeds.partition("-")
    parts = [part.lower() for part in (low, high) if part]
    if len(parts) == 1 and parts[0] in _GOVERNORS and not colon and not dash:
        return (("cpu_freq", text),)
    known = all(part in _FREQUENCY_WORDS or part.isdecimal() for part in parts)
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
