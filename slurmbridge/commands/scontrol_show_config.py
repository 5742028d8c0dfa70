"""What does `scontrol show config` print?

Every key of `lang.slurm_conf_keys` in its order, the value as configured (brought into Slurm's form) or Slurm's default,
with the few lines that are no keys (start time, next job id, controller). Clients read `MinJobAge = 300 sec` and the like.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.errors import LangError
from slurmbridge.lang import durations
from slurmbridge.lang.slurm_conf_keys import KEYS, ConfKey, Kind
from slurmbridge.model.cluster import ClusterConfig

_TRES = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
_UNITS = {
    Kind.SECONDS: "sec",
    Kind.MINUTES: "min",
    Kind.MICROSECONDS: "usec",
    Kind.RATE: "nodes/min",
    Kind.PERCENT: "percent",
}
_LEVELS = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")
_EXTRA_BEFORE = {"BurstBufferType": "BOOT_TIME", "HashPlugin": "HASH_VAL", "NamespaceType": "MULTIPLE_SLURMD",
                 "NodeFeaturesPlugins": "NEXT_JOB_ID", "SlurmctldHttpAuthParameters": "SlurmctldHost[0]",
                 "SrunEpilog": "SLURM_CONF"}  # fmt: skip
_LISTED = ("Prolog", "Epilog", "PrologSlurmctld", "EpilogSlurmctld")


def config_text(eyes: Eyes) -> str:
    """The whole listing."""
    lines = [f"Configuration data as of {eyes.view.time(eyes.call.now)}"]
    for key, value in config_rows(eyes):
        lines.append(f"{key:<23} = {value}")
    name = eyes.site.config.control_host
    return "\n".join(lines) + f"\n\nSlurmctld(primary) at {name} is UP\n"


def config_rows(eyes: Eyes) -> Iterator[tuple[str, str]]:
    """(key, value) in Slurm's order."""
    config = eyes.site.config
    values = dict(config.values)
    for key in KEYS:
        if key.name == "JobFileAppend":
            yield "JobDefaults", _job_defaults(config)
        if key.name in _EXTRA_BEFORE:
            yield from _extra(_EXTRA_BEFORE[key.name], eyes)
        if key.name == "DefMemPerNode" and config.def_mem_per_cpu is not None:
            continue
        if key.name == "MaxMemPerNode" and config.max_mem_per_cpu is not None:
            continue
        if key.default is None:
            if key.name in values and key.name in ("DefMemPerCPU", "MaxMemPerCPU"):
                yield key.name, values[key.name]
            elif key.name in values and key.name in _LISTED:
                yield from ((f"{key.name}[{index}]", each) for index, each in enumerate(values[key.name].split(",")))
            continue
        yield key.name, _value(key, values, eyes)


def _job_defaults(config: ClusterConfig) -> str:
    named = (("DefCpuPerGPU", config.def_cpu_per_gpu), ("DefMemPerGPU", config.def_mem_per_gpu))
    return ",".join(f"{name}={value}" for name, value in named if value is not None) or "(null)"


def _extra(name: str, eyes: Eyes) -> Iterator[tuple[str, str]]:
    config = eyes.site.config
    if name == "BOOT_TIME":
        yield name, eyes.view.time(eyes.site.start_time)
    elif name == "HASH_VAL":
        yield name, "Match"
    elif name == "MULTIPLE_SLURMD":
        yield name, "yes"
    elif name == "NEXT_JOB_ID":
        newest = max((job.job_id for job in eyes.site.jobs()), default=config.first_job_id - 1)
        yield name, str(getattr(eyes.site, "next_job_id", newest + 1))
    elif name == "SLURM_CONF":
        yield name, config.conf_file or "(null)"
        yield "SLURM_VERSION", SLURM_VERSION
    else:
        address = f"({config.control_addr})" if config.control_addr else ""
        yield name, config.control_host + address


def _value(key: ConfKey, values: Mapping[str, str], eyes: Eyes) -> str:
    config = eyes.site.config
    computed = _computed(key.name, config, eyes)
    if computed is not None:
        return computed
    if key.name not in values:
        return key.default or ""
    return _render(key, values[key.name])


def _computed(name: str, config: ClusterConfig, eyes: Eyes) -> str | None:
    """Values that are not printed as they were written."""
    if name == "ClusterName":
        return config.cluster_name
    if name == "MaxNodeCount":
        return str(len(config.nodes))
    if name == "AccountingStorageTRES":
        return ",".join(dict.fromkeys((*_TRES, *_counted(config.accounting_tres))))
    if name == "SlurmUser":
        return f"{config.slurm_user}({eyes.site.user_id(config.slurm_user) or 0})"
    if name == "MaxDBDMsgs":
        return str(max(10000, config.max_job_count * 2 + len(config.nodes) * 4))
    if name == "AccountingStoragePort" and name not in dict(config.values):
        return "6819" if "slurmdbd" in dict(config.values).get("AccountingStorageType", "") else "0"
    if name == "PreemptMode":
        return config.preempt_mode
    if name == "PreemptExemptTime":
        off = dict(config.values).get(name) == "-1"
        return "NONE" if off else durations.render_elapsed(config.preempt_exempt_time)
    if name == "PropagateResourceLimits" and config.propagate_limits_except:
        return "(null)"
    if name == "MessageTimeout":
        return f"{config.message_timeout} sec"
    return None


def _counted(names: tuple[str, ...]) -> Iterator[str]:
    """As configured, gres/gpumem and gres/gpuutil ahead of licences, as Slurm adds them for GPUs."""
    licences = [name for name in names if name.startswith("license/")]
    yield from (name for name in names if name not in licences)
    if "gres/gpu" in names:
        yield from ("gres/gpumem", "gres/gpuutil")
    yield from licences


def _render(key: ConfKey, text: str) -> str:
    kind = key.kind
    if kind in _UNITS:
        return f"{_number(text)} {_UNITS[kind]}"
    if kind in (Kind.NUMBER, Kind.SMALL):
        return _number(text)
    if kind is Kind.BOOL:
        return "yes" if text.lower() in ("yes", "up", "true", "1") else "no"
    if kind is Kind.PLUGIN:
        return "(null)" if text.lower().rpartition("/")[2] == "none" else text
    if kind is Kind.UPPER or (kind is Kind.ENUM and key.name in ("EnforcePartLimits", "PriorityUsageResetPeriod")):
        return text.upper()
    if kind in (Kind.MINUTES_TIME, Kind.DURATION):
        return _duration(text)
    if kind is Kind.MEMORY:
        return "UNLIMITED" if text in ("0", "UNLIMITED", "INFINITE") else _number(text)
    if kind is Kind.LEVEL:
        return _LEVELS[int(text)] if text.isdecimal() and int(text) < len(_LEVELS) else text.lower()
    if key.name.startswith("PropagateResourceLimits"):
        return text.upper()
    if key.name == "SuspendTime" and text == "-1":
        return "INFINITE"
    return text if text else "(null)"


def _number(text: str) -> str:
    if text.upper() in ("INFINITE", "UNLIMITED"):
        return "UNLIMITED"
    try:
        return str(int(text, 8 if text.startswith("0") and text.isdecimal() else 0))
    except ValueError:
        return text


def _duration(text: str) -> str:
    if not text.strip("0:-"):
        return "00:00:00"
    try:
        return durations.render_minutes(durations.parse_minutes(text))
    except LangError:
        return text
