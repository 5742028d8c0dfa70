"""What may `scontrol update job` change of a job, who may, and what is the job afterwards?

A table: key as scontrol takes it -> how its text becomes a typed value (`parse_field`, run where the command is parsed),
who may set it and when, and the change of the record (`apply_update`, run by the controller). Follows scontrol(1),
"Specifications for update command, jobs". Rights over the job itself are checked by the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any

import msgspec

from slurmbridge.commands import update_job_changes as changes
from slurmbridge.commands.update_job_changes import Answer, Context
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import durations, mail, sizes
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import GpuScope, Job, JobSpec
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.units import UNLIMITED

MAX_NICE = 0x7FFFFFFD


class NiceError(ValueError):
    """Too large a number."""


class JobField(msgspec.Struct, frozen=True, kw_only=True):
    """One key. `typed`: "text", "count", "range", "minutes", "seconds", "mib", "flag", "nice", "moment", "switches", "mail"."""

    key: str
    typed: str
    apply: Callable[[Job, Any, Context], Answer]
    pending: bool = False  # only while the job waits
    operator: bool = False
    least: int = 3  # shortest unique beginning that scontrol takes


FIELDS: tuple[JobField, ...] = (
    JobField(key="AdminComment", typed="text", apply=changes.copy_to_job("admin_comment"), operator=True),
    JobField(key="ArrayTaskThrottle", typed="count", apply=changes.change_throttle, least=10),
    JobField(key="Comment", typed="text", apply=changes.copy_to_spec("comment")),
    JobField(key="DelayBoot", typed="seconds", apply=changes.copy_to_spec("delay_boot"), pending=True, least=5),
    JobField(key="Extra", typed="text", apply=changes.copy_to_spec("extra"), pending=True),
    JobField(key="TimeLimit", typed="minutes", apply=changes.change_time_limit, least=5),
    JobField(key="TimeMin", typed="minutes", apply=changes.change_time_min, pending=True, least=5),
    JobField(key="Priority", typed="priority", apply=changes.change_priority, pending=True),
    JobField(key="Nice", typed="nice", apply=changes.change_nice),
    JobField(key="CPUsPerTask", typed="count", apply=changes.change_cpus_per_task, pending=True, least=9),
    JobField(key="NumCPUs", typed="range", apply=changes.change_cpus, pending=True, least=6),
    JobField(key="NumTasks", typed="count", apply=changes.change_tasks, pending=True, least=8),
    JobField(key="ReqProcs", typed="count", apply=changes.change_tasks, pending=True, least=8),
    JobField(key="Requeue", typed="flag", apply=changes.change_requeue, least=4),
    JobField(key="ReqNodes", typed="range", apply=changes.change_nodes, least=8),
    JobField(key="NumNodes", typed="range", apply=changes.change_nodes, least=8),
    JobField(key="ReqSockets", typed="count", apply=changes.copy_to_spec("sockets_per_node"), pending=True, least=4),
    JobField(key="ReqCores", typed="count", apply=changes.copy_to_spec("cores_per_socket"), pending=True, least=4),
    JobField(key="TasksPerNode", typed="count", apply=changes.change_tasks_per_node, pending=True, least=2),
    JobField(key="ReqThreads", typed="count", apply=changes.copy_to_spec("threads_per_core"), pending=True, least=4),
    JobField(key="MinCPUsNode", typed="count", apply=changes.change_node_cpus, pending=True, least=4),
    JobField(key="MinMemoryNode", typed="mib", apply=changes.memory_per(MemoryPer.NODE), pending=True, least=10),
    JobField(key="MinMemoryCPU", typed="mib", apply=changes.memory_per(MemoryPer.CPU), pending=True, least=10),
    JobField(key="MinTmpDiskNode", typed="mib", apply=changes.copy_to_spec("pn_min_tmp_mib"), pending=True, least=5),
    JobField(key="Partition", typed="text", apply=changes.change_partition, pending=True),
    JobField(key="QOS", typed="text", apply=changes.change_qos, least=2),
    JobField(key="ReservationName", typed="text", apply=changes.change_reservation, pending=True),
    JobField(key="Name", typed="text", apply=changes.copy_to_spec("name"), least=2),
    JobField(key="JobName", typed="text", apply=changes.copy_to_spec("name"), least=4),
    JobField(key="WCKey", typed="text", apply=changes.copy_to_spec("wckey")),
    JobField(key="StdErr", typed="text", apply=changes.output_in("std_err"), pending=True, least=4),
    JobField(key="StdIn", typed="text", apply=changes.output_in("std_in"), pending=True, least=4),
    JobField(key="StdOut", typed="text", apply=changes.output_in("std_out"), pending=True, least=4),
    JobField(key="Switches", typed="switches", apply=changes.change_switches, pending=True, least=5),
    JobField(
        key="wait-for-switch", typed="seconds", apply=changes.copy_to_spec("switches_wait"), pending=True, least=5
    ),
    JobField(
        key="OverSubscribe",
        typed="flag",
        apply=changes.copy_to_spec("oversubscribe"),
        pending=True,
        operator=True,
        least=2,
    ),
    JobField(
        key="Shared", typed="flag", apply=changes.copy_to_spec("oversubscribe"), pending=True, operator=True, least=2
    ),
    JobField(key="Contiguous", typed="flag", apply=changes.copy_to_spec("contiguous"), pending=True, operator=True),
    JobField(
        key="CoreSpec", typed="count", apply=changes.spec_resources("core_spec"), pending=True, operator=True, least=4
    ),
    JobField(
        key="ThreadSpec",
        typed="count",
        apply=changes.spec_resources("thread_spec"),
        pending=True,
        operator=True,
        least=4,
    ),
    JobField(key="TresBind", typed="text", apply=changes.copy_to_spec("tres_bind"), pending=True, least=5),
    JobField(key="TresFreq", typed="text", apply=changes.copy_to_spec("tres_freq"), pending=True, least=5),
    JobField(key="TresPerJob", typed="text", apply=changes.gres_in(GpuScope.JOB), pending=True, least=8),
    JobField(key="TresPerNode", typed="text", apply=changes.gres_in(GpuScope.NODE), pending=True, least=8),
    JobField(key="TresPerSocket", typed="text", apply=changes.gres_in(GpuScope.SOCKET), pending=True, least=8),
    JobField(key="TresPerTask", typed="text", apply=changes.gres_in(GpuScope.TASK), pending=True, least=8),
    JobField(key="ExcNodeList", typed="text", apply=changes.node_list_in("exc_nodes"), pending=True, least=2),
    JobField(key="NodeList", typed="text", apply=changes.node_list_in("req_nodes"), pending=True, least=8),
    JobField(key="ReqNodeList", typed="text", apply=changes.node_list_in("req_nodes"), pending=True, least=8),
    JobField(key="Features", typed="text", apply=changes.change_features, pending=True, least=1),
    JobField(key="Prefer", typed="text", apply=changes.change_prefer, pending=True, least=6),
    JobField(key="Gres", typed="text", apply=changes.gres_in(GpuScope.NODE), pending=True, least=2),
    JobField(key="Account", typed="text", apply=changes.change_account, pending=True, least=2),
    JobField(key="Dependency", typed="text", apply=changes.change_dependency, pending=True, least=1),
    JobField(key="Licenses", typed="text", apply=changes.change_licenses, least=1),
    JobField(key="EligibleTime", typed="moment", apply=changes.change_begin, pending=True, least=2),
    JobField(key="StartTime", typed="moment", apply=changes.change_begin, pending=True, least=2),
    JobField(key="Reboot", typed="flag", apply=changes.copy_to_request("reboot"), pending=True, operator=True),
    JobField(key="Deadline", typed="moment", apply=changes.change_deadline, least=3),
    JobField(key="EndTime", typed="moment", apply=changes.change_end, least=2),
    JobField(key="BurstBuffer", typed="text", apply=changes.refuse(SlurmErrno.NOT_SUPPORTED)),
    JobField(key="ClusterFeatures", typed="text", apply=changes.refuse(SlurmErrno.UNSPECIFIED), least=8),
    JobField(key="Clusters", typed="text", apply=changes.refuse(SlurmErrno.UNSPECIFIED), least=8),
    JobField(key="CPUsPerTres", typed="text", apply=changes.refuse(SlurmErrno.INVALID_TRES), least=9),
    JobField(key="SiteFactor", typed="text", apply=changes.refuse(SlurmErrno.NOT_SUPPORTED), operator=True),
    JobField(key="WorkDir", typed="text", apply=changes.change_work_dir, pending=True, least=2),
    JobField(key="MailType", typed="mail", apply=changes.change_mail, least=5),
    JobField(key="MailUser", typed="text", apply=changes.copy_to_spec("mail_user"), least=5),
    JobField(key="ResetAccrueTime", typed="flag", apply=changes.change_reset_accrue, least=5),
)
BY_KEY = {field.key: field for field in FIELDS}
_EARLY = ("Partition", "Account", "QOS")


def find_field(text: str) -> JobField | None:
    """By name or a beginning that is long enough; case does not count."""
    word = text.lower()
    for field in FIELDS:
        if field.key.lower() == word:
            return field
    for field in FIELDS:
        if len(word) >= field.least and field.key.lower().startswith(word):
            return field
    return None


def apply_update(
    job: Job,
    fields: Sequence[tuple[str, Any]],
    config: ClusterConfig,
    accounting: Accounting,
    now: float,
    is_operator: bool,
    reservations: Collection[str] = (),
) -> Answer:
    """The job after all changes, or the first refusal: then nothing changes. Keys are those of FIELDS."""
    context = Context(config=config, accounting=accounting, now=now, is_operator=is_operator, reservations=reservations)
    if job.is_finished:
        return SlurmErrno.JOB_FINISHED
    changed = job
    for key, value in sorted(fields, key=lambda pair: pair[0] not in _EARLY):
        field = BY_KEY.get(key)
        if field is None:
            return SlurmErrno.NOT_SUPPORTED
        if field.operator and not is_operator:
            return SlurmErrno.ACCESS_DENIED
        if field.pending and not job.is_pending:
            return SlurmErrno.JOB_NOT_PENDING
        answer = field.apply(changed, value, context)
        if isinstance(answer, SlurmErrno):
            return answer
        changed = answer
    return changed


def parse_value(field: JobField, text: str, parse_moment: Callable[[str], int]) -> Any:
    """The typed value of what stands behind `=`. Raises LangError with scontrol's words."""
    parsers: dict[str, Callable[[str], Any]] = {
        "text": str,
        "count": _read_count,
        "priority": _read_priority,
        "range": _read_range,
        "minutes": _read_minutes,
        "seconds": _read_seconds,
        "mib": _read_mib,
        "flag": _read_flag,
        "nice": _read_nice,
        "moment": parse_moment,
        "switches": _read_switches,
        "mail": mail.parse,
    }
    if field.key == "NumCPUs" and not text[:1].isdecimal():
        raise LangError(f'Invalid numeric value "{text}" for NumCPUs.\nscontrol: error: {_complaint(field, text)}')
    if field.key == "NumCPUs" and not text.strip("0"):
        raise LangError(_complaint(field, text), text=text)
    try:
        return parsers[field.typed](text)
    except NiceError as error:
        raise LangError(f"Nice value out of range (+/- {MAX_NICE}). Value ignored", text=text) from error
    except (LangError, ValueError) as error:
        if field.typed == "moment" and isinstance(error, LangError):
            raise
        raise LangError(_complaint(field, text), text=text) from error


def _complaint(field: JobField, text: str) -> str:
    if field.key in ("TimeLimit", "TimeMin", "DelayBoot", "ArrayTaskThrottle"):
        return f"Invalid {field.key} value"
    return f"Invalid {field.key} value: {text}"


def _read_minutes(text: str) -> int:
    """As everywhere, but that 0 is 0."""
    return durations.parse_minutes(text) if text.strip("0:-") or not text else 0


def _read_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 10:
        raise ValueError(text)
    return int(text)


def _read_priority(text: str) -> int:
    return UNLIMITED if text.upper() in ("INFINITE", "UNLIMITED") else _read_count(text)


def _read_range(text: str) -> tuple[int, int]:
    """`2`, `2-4`: (least, most); one number is both, most 0 = no upper bound."""
    least, dash, most = text.partition("-")
    low = _read_count(least)
    return low, _read_count(most) if dash else low


def _read_seconds(text: str) -> int:
    return durations.parse_seconds(text)


def _read_mib(text: str) -> int:
    """MiB without a unit, as scontrol wants it."""
    if not text.isdecimal():
        raise ValueError(text)
    return sizes.parse_mib(text)


def _read_flag(text: str) -> bool:
    word = text.lower()
    if word in ("yes", "y") or (word.isdecimal() and int(word)):
        return True
    if word in ("0", "no", "n"):
        return False
    raise ValueError(text)


def _read_nice(text: str) -> int:
    """What does not begin with a number is 0."""
    match = re.match(r"[+-]?\d{1,30}", text)
    value = int(match[0]) if match else 0 if text else 100
    if abs(value) > MAX_NICE:
        raise NiceError(text)
    return value


def _read_switches(text: str) -> tuple[int, int]:
    count, at, wait = text.partition("@")
    if not count[:1].isdecimal():
        return 0, 0
    return _read_count(count), durations.parse_minutes(wait) * 60 if at else 0


__all__ = ["BY_KEY", "FIELDS", "JobField", "JobSpec", "apply_update", "find_field", "parse_value"]
