"""What does a run look like in `sacct --json` and `--yaml`? The fields of data_parser v0.0.45, in its order.

A run comes with its steps. TRES are lists of objects with their numbers in the accounting database; nobody measures
energy, which is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurmbridge.fields import accounting as acc
from slurmbridge.fields import containers, text
from slurmbridge.fields.accounting import AccountRow
from slurmbridge.fields.shapes import exit_status, number, optional
from slurmbridge.fields.structured import Value
from slurmbridge.fields.view import View
from slurmbridge.lang import hostlist
from slurmbridge.model.job import Step, StepId, Usage
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.states import JobFlag
from slurmbridge.model.tres import Tres, is_gpu
from slurmbridge.model.units import UNLIMITED

_FLAGS = {"SchedMain": "STARTED_ON_SCHEDULE", "StartReceived": "START_RECEIVED"}
_UNSET: Value = {"set": False, "infinite": False, "number": 0}
Ids = Mapping[str, int]
"""TRES names and their numbers."""


def account_record(rows: Sequence[AccountRow], view: View, ids: Ids, *, script: str = "") -> Value:
    """One run: its own row first, then those of its steps."""
    row = rows[0]
    job, spec = row.job, row.job.spec
    usage = acc.usage_of(row)
    names = text.nodes_of(job)
    held = job.allocation.tres if job.allocation is not None else ()
    limit = spec.time_limit if spec.time_limit is not None else UNLIMITED
    return {
        "account": spec.account,
        "comment": {"administrator": job.admin_comment, "job": spec.comment or "", "system": job.system_comment},
        "allocation_nodes": acc.alloc_nodes(row),
        "array": {
            "job_id": job.array_job_id,
            "limits": {"max": {"running": {"tasks": job.array_limit}}},
            "task_id": optional(job.array_task_id),
            "task": text.task_text(job.tasks, job.array_limit, view.bitstr) if job.tasks else "",
        },
        "association": {
            "account": "", "cluster": view.config.cluster_name, "partition": "", "user": "", "id": spec.assoc_id,
        },
        "block": "",
        "cluster": view.config.cluster_name,
        "constraints": spec.features or "",
        "container": containers.container(spec.request),
        "sluid": job.sluid,
        "derived_exit_code": exit_status(job.derived_exit_code),
        "time": {
            "elapsed": acc.elapsed(row, view.now),
            "eligible": int(job.eligible_time or 0),
            "end": int(acc.end_of(row) or 0),
            "planned": optional(acc.planned(row, view.now)),
            "start": int(acc.start_of(row) or 0),
            "submission": int(job.submit_time),
            "suspended": acc.suspended(row, view.now),
            "system": _clock(usage.system_us if usage else 0),
            "limit": optional(limit),
            "total": _clock(usage.user_us + usage.system_us if usage else 0),
            "user": _clock(usage.user_us if usage else 0),
        },
        "exclusive": spec.exclusive.value,
        "exit_code": exit_status(job.exit_code),
        "extra": spec.extra or "",
        "failed_node": "",
        "flags": [_FLAGS[word] for word in acc.flags(row).split(",") if word in _FLAGS],
        "group": view.group(spec.gid),
        "het": {"job_id": job.het_job_id, "job_offset": optional(job.het_offset if job.het_job_id else None)},
        "job_id": job.job_id,
        "name": spec.name,
        "licenses": spec.licenses,
        "mcs": {"label": spec.request.mcs_label or ""},
        "nodes": text.fold(names) if names else "None assigned",
        "oversubscribe": "YES" if spec.oversubscribe else "NO",
        "partition": job.allocation.partition if job.allocation is not None else ",".join(spec.partitions),
        "hold": job.priority == 0,
        "priority": number(job.priority),
        "qos": spec.qos,
        "qosreq": spec.request.qos or "",
        "required": {
            "CPUs": acc.req_cpus(row),
            "memory_per_cpu": _memory(row, MemoryPer.CPU),
            "memory_per_node": _memory(row, MemoryPer.NODE),
        },
        "kill_request_user": view.user(job.cancelled_by) if job.cancelled_by is not None else "",
        "restart_cnt": job.restarts,
        "reservation": {"id": 0, "name": spec.reservation, "requested": spec.request.reservation or ""},
        "script": script,
        "segment_size": spec.request.segment or 0,
        "original_sluid": job.sluid,
        **{f"{stream}_expanded": text.stdio_path(job, stream, expand=True) or "" for stream in _STREAMS},
        **{stream: text.stdio_path(job, stream, expand=False) or "" for stream in _STREAMS_AS_GIVEN},
        "state": {"current": _states(row), "reason": acc.reason(row)},
        "steps": [step_record(each, view, ids) for each in rows if each.step is not None],
        "submit_line": spec.submit_line,
        "tres": {"allocated": tres_list(held, ids), "requested": tres_list(spec.req_tres, ids)},
        "used_gres": "",
        "user": view.user(spec.uid),
        "wckey": {"wckey": spec.wckey, "flags": []},
        "working_directory": spec.work_dir,
    }  # fmt: skip


_STREAMS = ("stdin", "stdout", "stderr")
_STREAMS_AS_GIVEN = ("stdout", "stderr", "stdin")


def step_record(row: AccountRow, view: View, ids: Ids) -> Value:
    """One step."""
    step = row.step
    assert step is not None
    usage = step.usage
    is_batch = step.step_id == StepId.BATCH.value
    frequency: Value = number(0) if is_batch else _UNSET
    held = step.tres or tuple(
        pair for pair in (row.job.allocation.tres if row.job.allocation else ()) if pair[0] != "billing"
    )
    return {
        "time": {
            "elapsed": acc.elapsed(row, view.now),
            "end": number(acc.end_of(row)),
            "start": number(acc.start_of(row)),
            "suspended": 0,
            "system": _clock(usage.system_us if usage else 0),
            "limit": {"set": False, "infinite": True, "number": 0},
            "total": _clock(usage.user_us + usage.system_us if usage else 0),
            "user": _clock(usage.user_us if usage else 0),
        },
        "exit_code": exit_status(step.exit_code),
        "nodes": {
            "count": len(step.nodes),
            "range": text.fold(step.nodes) if step.nodes else "",
            "list": list(hostlist.expand(",".join(step.nodes))) if step.nodes else [],
        },
        "tasks": {"count": step.num_tasks},
        "CPU": {
            "requested_frequency": {"min": frequency, "max": frequency},
            "governor": "0" if is_batch else "Unknown",
        },
        "kill_request_user": view.user(step.cancelled_by) if step.cancelled_by is not None else "",
        "state": [step.state.name],
        "statistics": {"CPU": {"actual_frequency": 0}, "energy": {"consumed": number(0)}},
        "step": {
            "id": f"{row.job.job_id}.{text.step_label(step.step_id)}",
            "name": step.name,
            "stderr": step.std_err,
            "stdin": step.std_in,
            "stdout": step.std_out,
            "stderr_expanded": step.std_err,
            "stdin_expanded": step.std_in,
            "stdout_expanded": step.std_out,
        },
        "submit_line": step.submit_line,
        "task": {"distribution": step.layout or "Unknown"},
        "tres": {
            "requested": _measured(row, view, ids, read=True),
            "consumed": _measured(row, view, ids, read=False),
            "allocated": tres_list(held, ids),
        },
    }


def _states(row: AccountRow) -> list[Value]:
    job = row.job
    if JobFlag.REQUEUED in job.flags and not job.is_pending:
        return [job.state.name, "REQUEUED"]
    return [job.state.name]


def _clock(micros: int) -> Value:
    return {"seconds": micros // 1_000_000, "microseconds": micros % 1_000_000}


def _memory(row: AccountRow, per: MemoryPer) -> Value:
    memory = row.job.spec.memory
    return optional(memory.mib if memory is not None and memory.per is per else None)


def tres_list(held: Tres, ids: Ids) -> Value:
    """Objects by TRES number."""
    known = sorted((pair for pair in held if pair[0] in ids), key=lambda pair: ids[pair[0]])
    return [_tres(name, count // 1000 if is_gpu(name) else count, ids) for name, count in known]


def _tres(name: str, count: int, ids: Ids) -> dict[str, Value]:
    kind, _, rest = name.partition("/")
    return {"type": kind, "name": rest, "id": ids.get(name, 0), "count": count}


def _measured(row: AccountRow, view: View, ids: Ids, *, read: bool) -> Value:
    """What a step used (`read`) or wrote: maxima and minima with their places, averages and totals."""
    usage = acc.sampled(row, view)
    if usage is None or row.step is None:
        energy: Value = [_tres("energy", 0, ids)]
        return {"max": [], "min": [], "average": energy, "total": energy}
    amounts = _amounts(usage, read)
    tasks = max(row.step.num_tasks, 1)
    placed: Value = [
        {**_tres(name, count, ids), "task": usage.max_rss_task, "node": _node_of(usage, row.step)}
        for name, count in amounts
    ]
    return {
        "max": placed,
        "min": placed,
        "average": [_tres(name, count // tasks, ids) for name, count in amounts],
        "total": [_tres(name, count, ids) for name, count in amounts],
    }


def _node_of(usage: Usage, step: Step) -> str:
    return usage.max_rss_node or (step.nodes[0] if step.nodes else "")


def _amounts(usage: Usage, read: bool) -> list[tuple[str, int]]:
    """CPU in milliseconds, memory in bytes."""
    if not read:
        return [("energy", 0), ("fs/disk", usage.disk_write)]
    return [
        ("cpu", (usage.user_us + usage.system_us) // 1000),
        ("mem", usage.max_rss_kib * 1024),
        ("energy", 0),
        ("fs/disk", usage.disk_read),
        ("vmem", usage.max_vsize_kib * 1024),
        ("pages", usage.pages),
    ]
