"""What can be set on associations and QOS? sacctmgr's words, their kinds and the labels that `add` prints.

A word may be cut down to its shortest form; tables are searched in order, as Slurm does. Follows sacctmgr(1), sections
"General specifications for association based entities" and "Specifications for QOS". A value parses to an `Edit`; the
text of a mistake is Slurm's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import msgspec

from slurmbridge.commands import quotas
from slurmbridge.errors import LangError
from slurmbridge.lang import durations
from slurmbridge.lang.tres import render_count
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.tres import Tres, is_gpu
from slurmbridge.model.units import UNLIMITED

BASE_TRES: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
FIRST_SITE_TRES: Final = 1001
_UNITS: Final = {"k": 1, "m": 2, "g": 3, "t": 4, "p": 5}

QOS_FLAGS: Final = (
    "DenyOnLimit", "EnforceUsageThreshold", "PartitionMinNodes", "PartitionMaxNodes", "PartitionTimeLimit",
    "RequiresReservation", "OverPartQOS", "NoReserve", "NoDecay", "Relative", "UsageFactorSafe",
)  # fmt: skip
PREEMPT_MODES: Final = ("cluster", "cancel", "requeue", "suspend", "gang", "off", "within", "priority")


class Word(msgspec.Struct, frozen=True):
    """`kind`: a key of `_READ`. A word of quotas has a field that begins with "quota."."""

    name: str  # Slurm's spelling
    least: int  # shortest accepted beginning
    field: str  # of Limits (with a leading "limits."), Quota ("quota."), Assoc or Qos
    kind: str
    label: str = ""  # as `add` prints it; empty: `name`
    wide: int = 0  # column of the "=" in `add`, 0 = the entity's
    part: str = ""  # older words that set one TRES: its name


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `operator`: "=", "+" or "-". For TRES the value is ((name, operator, count or None), ...)."""

    word: Word
    operator: str
    value: Any
    pools: tuple[str, ...] = ()  # of a quota: empty = the one for every pool


class Mistake(msgspec.Struct, frozen=True, kw_only=True):
    """Lines for stderr. `final`: nothing follows; else the caller adds that the option is unknown.

    `value_only`: for a QOS Slurm goes on without the setting, and then has nothing to set.
    """

    lines: tuple[str, ...]
    final: bool = False
    value_only: bool = False
    on_stdout: bool = False


def _limits(*rows: tuple[Any, ...]) -> tuple[Word, ...]:
    return tuple(Word(row[0], row[1], row[2], row[3], *row[4:]) for row in rows)


# In the order in which `add` prints them.
ASSOC_WORDS: Final = _limits(
    ("Fairshare", 1, "shares", "shares"),
    ("Shares", 1, "shares", "shares", "Fairshare"),
    ("GrpCPUMins", 7, "limits.grp_tres_mins", "tres", "GrpTRESMins", 0, "cpu"),
    ("GrpCPURunMins", 7, "limits.grp_tres_run_mins", "tres", "GrpTRESRunMins", 0, "cpu"),
    ("GrpCPUs", 7, "limits.grp_tres", "tres", "GrpTRES", 0, "cpu"),
    ("GrpJobs", 4, "limits.grp_jobs", "count"),
    ("GrpJobsAccrue", 8, "limits.grp_jobs_accrue", "count", "GrpJobsAccrue", 25),
    ("GrpMemory", 4, "limits.grp_tres", "tres", "GrpTRES", 0, "mem"),
    ("GrpNodes", 4, "limits.grp_tres", "tres", "GrpTRES", 0, "node"),
    ("GrpSubmitJobs", 4, "limits.grp_submit", "count"),
    ("GrpTRES", 7, "limits.grp_tres", "tres"),
    ("GrpTRESMins", 8, "limits.grp_tres_mins", "tres"),
    ("GrpTRESRunMins", 8, "limits.grp_tres_run_mins", "tres"),
    ("GrpWall", 4, "limits.grp_wall", "minutes"),
    ("MaxCPUMinsPerJob", 7, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins", 0, "cpu"),
    ("MaxCPUsPerJob", 7, "limits.max_tres_per_job", "tres", "MaxTRES", 0, "cpu"),
    ("MaxJobs", 4, "limits.max_jobs", "count"),
    ("MaxJobsAccrue", 8, "limits.max_jobs_accrue", "count", "MaxJobsPrioAcc"),
    ("MaxNodesPerJob", 4, "limits.max_tres_per_job", "tres", "MaxTRES", 0, "node"),
    ("MaxSubmitJobs", 4, "limits.max_submit", "count"),
    ("MaxTRESPerJob", 7, "limits.max_tres_per_job", "tres", "MaxTRES"),
    ("MaxTRESPJ", 7, "limits.max_tres_per_job", "tres", "MaxTRES"),
    ("MaxTRESPerNode", 11, "limits.max_tres_per_node", "tres"),
    ("MaxTRESPN", 9, "limits.max_tres_per_node", "tres", "MaxTRESPerNode"),
    ("MaxTRESMinsPerJob", 8, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins"),
    ("MaxTRESMinsPJ", 8, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins"),
    ("MaxWallDurationPerJob", 4, "limits.max_wall", "minutes", "MaxWall"),
    ("Priority", 3, "priority", "count"),
    ("QosLevel", 1, "qos", "qoslist", "QOS"),
    ("DefaultQOS", 8, "default_qos", "qos", "DefQOS"),
    ("DeservedTRES", 5, "quota.deserved", "deserved"),
    ("OverQuotaWeight", 5, "quota.over_quota_weight", "weight", "", 16),
    ("QueuePriority", 6, "quota.priority", "count"),
    ("Comment", 3, "comment", "text"),
)  # fmt: skip

QOS_WORDS: Final = _limits(
    ("Description", 1, "description", "text", "Description", 15),
    ("Flags", 2, "flags", "flags"),
    ("GraceTime", 3, "grace_time", "seconds"),
    ("GrpCPUMins", 7, "limits.grp_tres_mins", "tres", "GrpTRESMins", 0, "cpu"),
    ("GrpCPURunMins", 7, "limits.grp_tres_run_mins", "tres", "GrpTRESRunMins", 0, "cpu"),
    ("GrpCPUs", 7, "limits.grp_tres", "tres", "GrpTRES", 0, "cpu"),
    ("GrpJobs", 4, "limits.grp_jobs", "count"),
    ("GrpJobsAccrue", 8, "limits.grp_jobs_accrue", "count"),
    ("GrpMemory", 4, "limits.grp_tres", "tres", "GrpTRES", 0, "mem"),
    ("GrpNodes", 4, "limits.grp_tres", "tres", "GrpTRES", 0, "node"),
    ("GrpSubmitJobs", 4, "limits.grp_submit", "count"),
    ("GrpTRES", 7, "limits.grp_tres", "tres"),
    ("GrpTRESMins", 8, "limits.grp_tres_mins", "tres"),
    ("GrpTRESRunMins", 8, "limits.grp_tres_run_mins", "tres"),
    ("GrpWall", 4, "limits.grp_wall", "minutes"),
    ("MaxJobsAccruePerAccount", 17, "max_jobs_accrue_per_account", "count"),
    ("MaxJobsAccruePA", 15, "max_jobs_accrue_per_account", "count", "MaxJobsAccruePerAccount"),
    ("MaxJobsAccruePerUser", 8, "limits.max_jobs_accrue", "count"),
    ("MaxJobsAccruePU", 8, "limits.max_jobs_accrue", "count", "MaxJobsAccruePerUser"),
    ("MaxCPUMinsPerJob", 7, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins", 0, "cpu"),
    ("MaxCPUsPerUser", 11, "max_tres_per_user", "tres", "MaxTRESPerUser", 0, "cpu"),
    ("MaxCPUsPU", 9, "max_tres_per_user", "tres", "MaxTRESPerUser", 0, "cpu"),
    ("MaxCPUsPerJob", 7, "limits.max_tres_per_job", "tres", "MaxTRESPerJob", 0, "cpu"),
    ("MaxJobsPerAccount", 11, "max_jobs_per_account", "count"),
    ("MaxJobsPA", 9, "max_jobs_per_account", "count", "MaxJobsPerAccount"),
    ("MaxJobsPerUser", 4, "limits.max_jobs", "count", "MaxJobsPerUser", 15),
    ("MaxJobsPU", 4, "limits.max_jobs", "count", "MaxJobsPerUser", 15),
    ("MaxNodesPerUser", 12, "max_tres_per_user", "tres", "MaxTRESPerUser", 0, "node"),
    ("MaxNodesPerJob", 4, "limits.max_tres_per_job", "tres", "MaxTRESPerJob", 0, "node"),
    ("MaxSubmitJobsPerAccount", 17, "max_submit_per_account", "count"),
    ("MaxSubmitJobsPA", 15, "max_submit_per_account", "count", "MaxSubmitJobsPerAccount"),
    ("MaxSubmitJobsPerUser", 4, "limits.max_submit", "count"),
    ("MaxSubmitJobsPU", 4, "limits.max_submit", "count", "MaxSubmitJobsPerUser"),
    ("MaxTRESPerAccount", 11, "max_tres_per_account", "tres"),
    ("MaxTRESPA", 9, "max_tres_per_account", "tres", "MaxTRESPerAccount"),
    ("MaxTRESPerJob", 7, "limits.max_tres_per_job", "tres"),
    ("MaxTRESPJ", 7, "limits.max_tres_per_job", "tres", "MaxTRESPerJob"),
    ("MaxTRESPerNode", 11, "limits.max_tres_per_node", "tres"),
    ("MaxTRESPN", 9, "limits.max_tres_per_node", "tres", "MaxTRESPerNode"),
    ("MaxTRESPerUser", 11, "max_tres_per_user", "tres"),
    ("MaxTRESPU", 9, "max_tres_per_user", "tres", "MaxTRESPerUser"),
    ("MinPrioThreshold", 4, "min_prio_threshold", "count", "MinPrioThresh"),
    ("MinTRESPerJob", 7, "min_tres_per_job", "tres"),
    ("MaxTRESMinsPerJob", 8, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins"),
    ("MaxTRESMinsPJ", 8, "limits.max_tres_mins_per_job", "tres", "MaxTRESMins"),
    ("MaxTRESRunMinsPerAccount", 15, "max_tres_run_mins_per_account", "tres", "MaxTRESRUNMinsPerAccount"),
    ("MaxTRESRunMinsPA", 15, "max_tres_run_mins_per_account", "tres", "MaxTRESRUNMinsPerAccount"),
    ("MaxTRESRunMinsPerUser", 8, "max_tres_run_mins_per_user", "tres", "MaxTRESRUNMinsPerUser"),
    ("MaxTRESRunMinsPU", 8, "max_tres_run_mins_per_user", "tres", "MaxTRESRUNMinsPerUser"),
    ("MaxWallDurationPerJob", 4, "limits.max_wall", "minutes", "MaxWall"),
    ("Preempt", 7, "preempt", "qoslist"),
    ("PreemptMode", 8, "preempt_mode", "mode"),
    ("PreemptExemptTime", 8, "preempt_exempt_time", "exempt"),
    ("Preemptible", 9, "preemptible", "switch"),
    ("Priority", 3, "priority", "whole"),
    ("UsageFactor", 6, "usage_factor", "factor"),
    ("UsageThreshold", 6, "usage_threshold", "number"),
    ("LimitFactor", 4, "limit_factor", "number"),
)  # fmt: skip


def is_word(text: str, name: str, least: int) -> bool:
    """Whether `text` is `name` cut down to no less than `least` characters; case does not count."""
    return len(text) >= least and name.lower().startswith(text.lower())


def find_word(words: Sequence[Word], text: str) -> Word | None:
    return next((word for word in words if is_word(text, word.name, word.least)), None)


def known_tres(config: ClusterConfig) -> dict[str, int]:
    """Name -> id of every TRES that is counted, in sacctmgr's order."""
    site = list(config.accounting_tres)
    if any(is_gpu(name) for name in site):
        last = max(at for at, name in enumerate(site) if name.startswith("gres/"))
        extra = [name for name in ("gres/gpumem", "gres/gpuutil") if name not in site]
        site[last + 1 : last + 1] = extra
    numbers = {name: at for at, name in enumerate(BASE_TRES, 1)}
    site = [name for name in dict.fromkeys(site) if name not in numbers]
    numbers.update((name, at) for at, name in enumerate(site, FIRST_SITE_TRES))
    return numbers


def show_tres(tres: Tres, order: dict[str, int]) -> str:
    """`cpu=4,mem=2G,gres/gpu=0.5`, by TRES id."""
    ordered = sorted(tres, key=lambda pair: order.get(pair[0], 1 << 30))
    return ",".join(f"{name}={render_count(name, count)}" for name, count in ordered)


def read_edit(word: Word, operator: str, text: str, config: ClusterConfig, qos: Collection[str]) -> Edit | Mistake:
    """Parse the value of one setting."""
    if operator != "=" and word.kind not in ("qoslist", "flags"):
        return Mistake(lines=(f" Invalid operator '{operator}=' in ",), final=True)
    value = _READ[word.kind](word, text, config, qos)
    return value if isinstance(value, Mistake) else Edit(word=word, operator=operator, value=value)


def _count(word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    if not re.fullmatch(r"[+-]?\d{1,10}", text):
        name = "FairShare" if word.kind == "shares" else (word.label or word.name)
        name = name.replace("PerAccount", "PA").replace("PerUser", "PU")
        return Mistake(lines=(f"sacctmgr: error: Invalid value for {name} ({text})",), value_only=True)
    number = int(text)
    return None if number < 0 or number >= UNLIMITED - 1 else number


def _whole(word: Word, text: str, config: ClusterConfig, qos: Collection[str]) -> Any:
    number = _count(word, text, config, qos)
    return 0 if number is None else number


def _shares(word: Word, text: str, config: ClusterConfig, qos: Collection[str]) -> Any:
    return "parent" if text.lower() == "parent" else _count(word, text, config, qos)


def _minutes(word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    try:
        seconds = UNLIMITED if text == "-1" else durations.parse_seconds(text)
    except LangError:
        return Mistake(lines=(f" Bad {word.label or word.name} time format: ",))
    return None if seconds >= UNLIMITED else -(-seconds // 60)


def _exempt(word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    try:
        seconds = UNLIMITED if text == "-1" else durations.parse_seconds(text)
    except LangError:
        return Mistake(lines=(f" Bad {word.name} format: ",))
    return None if seconds >= UNLIMITED else seconds


def _number(word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text):
        line = f"sacctmgr: error: {word.name} value ({text}) is not a valid number"
        return Mistake(lines=(line,), value_only=True)
    return None if float(text) < 0 else float(text)


def _factor(word: Word, text: str, config: ClusterConfig, qos: Collection[str]) -> Any:
    number = _number(word, text, config, qos)
    return 1.0 if number is None else number


def _text(_word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    return text


def _one_qos(_word: Word, text: str, _config: ClusterConfig, qos: Collection[str]) -> Any:
    if text == "-1":
        return ""
    if text.lower() in qos:
        return text.lower()
    line = f"You gave a bad default qos '{text}'.  Use 'list qos' to get complete list."
    return Mistake(lines=(line,), final=True)


def _qos_list(_word: Word, text: str, _config: ClusterConfig, qos: Collection[str]) -> Any:
    names: list[tuple[str, str]] = []
    for part in text.split(","):
        sign, name = (part[0], part[1:]) if part[:1] in ("+", "-") and part != "-1" else ("", part)
        if name in ("", "-1"):
            continue
        if name.lower() not in qos:
            valid = ",".join(qos)
            line = f"sacctmgr: error: You gave a bad qos '{name}'. Valid QOS's are {valid}"
            return Mistake(lines=(line,), final=_word.name == "Preempt")
        names.append((sign, name.lower()))
    return tuple(names)


def _flags(_word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    if text in ("-1", ""):
        return ()
    found = []
    for part in text.split(","):
        flag = next((name for name in QOS_FLAGS if name.lower() == part.lower()), None)
        if flag is None:
            lines = (" Unknown QOS flag used in:", f"  '{text}'", " Valid QOS flags are", f"  '{','.join(QOS_FLAGS)}'")
            return Mistake(lines=lines, final=True, on_stdout=True)
        found.append(flag)
    return tuple(found)


def _mode(_word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    parts = [part for part in re.split("[,+]", text.lower()) if part]
    if any(part not in PREEMPT_MODES for part in parts):
        return Mistake(lines=(" Bad Preempt Mode given: ",), final=True)
    return ",".join("cluster" if part == "off" else part for part in parts) or "cluster"


def _switch(word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    if text == "-1":
        return None
    if text.lower() not in ("yes", "no"):
        return Mistake(lines=(f"sacctmgr: error: Invalid value for {word.name} ({text}): yes, no or -1",))
    return text.lower() == "yes"


def _deserved(word: Word, text: str, config: ClusterConfig, _qos: Collection[str]) -> Any:
    """-1 alone clears all of it."""
    if text == "-1":
        return None
    return _counts(text, quotas.countable(config), lambda name: quotas.not_countable(name, config))


def _weight(_word: Word, text: str, _config: ClusterConfig, _qos: Collection[str]) -> Any:
    weight = quotas.read_weight(text)
    return Mistake(lines=(weight,), value_only=True) if isinstance(weight, str) else weight


def _tres(word: Word, text: str, config: ClusterConfig, _qos: Collection[str]) -> Any:
    if word.part:
        text = f"{word.part}={text}"
    return _counts(
        text, known_tres(config), lambda n: f"sacctmgr: error: slurmdb_format_tres_str: no TRES known by type {n}"
    )


def _counts(text: str, known: Collection[str], unknown: Callable[[str], str]) -> Any:
    parts: list[tuple[str, str, int | None]] = []
    for part in filter(None, text.split(",")):
        name, equals, amount = part.partition("=")
        operator = "="
        if name[-1:] in ("+", "-"):
            name, operator = name[:-1], name[-1]
        name = name.lower() if name.lower() in known else name
        if not equals or name not in known:
            return Mistake(lines=(unknown(name),))
        count = _amount(name, amount)
        if isinstance(count, Mistake):
            return count
        parts.append((name, operator, count))
    return tuple(parts)


def _amount(name: str, text: str) -> int | Mistake | None:
    """Count of one TRES; None to clear it. Memory without a unit is in MiB."""
    if text == "-1":
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([a-zA-Z]?)", text)
    if found is None or (found[2] and found[2].lower() not in _UNITS):
        unit = found[2] if found is not None else text[-1:]
        return Mistake(lines=(f"sacctmgr: error: Invalid unit type '{unit}'. Possible options are 'KMGTP'",))
    number, power = float(found[1]), _UNITS.get(found[2].lower(), 0)
    if name == "mem":
        return int(number * 1024.0 ** (power - 2 if power else 0))
    return round(number * (1000 if is_gpu(name) else 1) * 1024.0**power)


_READ: Final = {
    "count": _count,
    "whole": _whole,
    "seconds": _whole,
    "shares": _shares,
    "minutes": _minutes,
    "exempt": _exempt,
    "number": _number,
    "factor": _factor,
    "text": _text,
    "qos": _one_qos,
    "qoslist": _qos_list,
    "flags": _flags,
    "mode": _mode,
    "switch": _switch,
    "tres": _tres,
    "deserved": _deserved,
    "weight": _weight,
}
