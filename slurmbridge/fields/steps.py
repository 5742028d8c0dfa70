"""Which columns has `squeue --steps`? A row is a running step with its job.

Follows squeue(1), the FORMAT sections for steps.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from slurmbridge.fields import text
from slurmbridge.fields.layout import Field, Registry
from slurmbridge.fields.view import View
from slurmbridge.lang import durations
from slurmbridge.model.job import Job, Step, StepId

_NULL = "(null)"


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    job: Job
    step: Step


Getter = Callable[[StepRow, View], str]


def label(row: StepRow) -> str:
    """`12.0`, `12_3.batch`, `12+1.0`."""
    return f"{text.job_label(row.job)}.{text.step_label(row.step.step_id)}"


def used_seconds(row: StepRow, view: View) -> int:
    end = row.step.end_time if row.step.end_time is not None else view.now
    return max(int(end) - int(row.step.start_time), 0)


def _frequency(row: StepRow) -> str:
    return "0-0:0" if row.step.step_id == StepId.BATCH.value else "Unknown-Unknown:Unknown"


def _cpus(row: StepRow) -> str:
    return "0" if row.step.step_id == StepId.BATCH.value else str(row.step.cpus)


def _constant(value: str) -> Getter:
    def get(row: StepRow, view: View) -> str:
        return value

    return get


def _f(
    name: str, letter: str, heading: str, get: Getter, *also: str, cut: bool = True, hidden: bool = False
) -> Field[StepRow]:
    return Field(name, letter, heading, get, also, cut, cut, hidden)


FIELDS: tuple[Field[StepRow], ...] = (
    _f("ArrayJobId", "", "ARRAY_JOB_ID", lambda r, v: str(r.job.array_job_id)),
    _f("ArrayTaskId", "", "ARRAY_TASK_ID", lambda r, v: "N/A" if r.job.array_task_id is None else str(r.job.array_task_id)),
    _f("Cluster", "", "CLUSTER", lambda r, v: v.config.cluster_name),
    _f("Container", "", "CONTAINER", _constant(_NULL)),
    _f("ContainerId", "", "CONTAINERID", _constant(_NULL)),
    _f("ContainerType", "", "CONTAINERTYPE", _constant(_NULL)),
    _f("CPUFreq", "", "CPU_FREQ", lambda r, v: _frequency(r)),
    _f("cpus-per-tres", "", "CPUS_PER_TRES", _constant(_NULL)),
    _f("JobId", "", "JOB_ID", lambda r, v: str(r.job.job_id)),
    _f("mem-per-tres", "", "MEM_PER_TRES", _constant(_NULL)),
    _f("Network", "", "NETWORK", lambda r, v: r.job.spec.network or _NULL),
    _f("Nodes", "N", "NODELIST", lambda r, v: text.fold(r.step.nodes) if r.step.nodes else "", cut=False),
    _f("NumCPUs", "", "NUM_CPUS", lambda r, v: _cpus(r)),
    _f("NumTasks", "A", "TASKS", lambda r, v: str(r.step.num_tasks)),
    _f("Partition", "P", "PARTITION", lambda r, v: r.job.allocation.partition if r.job.allocation else ""),
    _f("ResvPorts", "", "RESERVED_PORTS", _constant(_NULL)),
    _f("StartTime", "S", "START_TIME", lambda r, v: v.time(r.step.start_time)),
    _f("StdErr", "", "STDERR", lambda r, v: r.step.std_err),
    _f("StdIn", "", "STDIN", lambda r, v: r.step.std_in),
    _f("StdOut", "", "STDOUT", lambda r, v: r.step.std_out),
    _f("StepId", "i", "STEPID", lambda r, v: label(r)),
    _f("StepName", "j", "NAME", lambda r, v: r.step.name),
    _f("StepState", "", "STATE", lambda r, v: r.step.state.name),
    _f("TimeLimit", "l", "TIME_LIMIT", _constant("UNLIMITED")),
    _f("TimeUsed", "M", "TIME", lambda r, v: durations.render_short(used_seconds(r, v)), cut=False),
    _f("tres-bind", "", "TRES_BIND", _constant(_NULL)),
    _f("tres-freq", "", "TRES_FREQ", _constant(_NULL)),
    _f("tres-per-job", "", "TRES_PER_STEP", _constant(_NULL)),
    _f("tres-per-node", "b", "TRES_PER_JOB", _constant(_NULL), "Gres", hidden=True),
    _f("tres-per-socket", "", "TRES_PER_SOCKET", _constant(_NULL)),
    _f("tres-per-step", "", "TRES_PER_STEP", _constant(_NULL)),
    _f("tres-per-task", "", "TRES_PER_TASK", _constant(_NULL)),
    _f("UserId", "U", "UID", lambda r, v: str(r.job.spec.uid)),
    _f("UserName", "u", "USER", lambda r, v: v.user(r.job.spec.uid)),
)  # fmt: skip

REGISTRY: Registry[StepRow] = Registry(
    FIELDS,
    complaint="squeue: error: Invalid job step format specification: ",
    named_complaint="squeue: error: Invalid job step format specification: ",
)

DEFAULT = "%.15i %.8j %.9P %.8u %.9M %N"
