"""What does a job look like in --json and --yaml? The fields of data_parser v0.0.45, in its order.

Serves squeue and scontrol. Numbers that may be unset are objects (`set`, `infinite`, `number`); moments that did not
come are 0.
"""

from __future__ import annotations

import signal
from collections.abc import Callable

from slurmbridge.fields import jobs as job_fields
from slurmbridge.fields import text
from slurmbridge.fields.structured import Value
from slurmbridge.fields.view import View
from slurmbridge.model.job import Job, NodeShare
from slurmbridge.model.request import Exclusive, MemoryPer
from slurmbridge.model.states import JobFlag
from slurmbridge.model.tres import count
from slurmbridge.model.units import UNLIMITED

_NO_LIMIT_S = 365 * 86400  # a job without limit is expected to end within a year
_NO_THREADS = 0x7FFE
_SIGNALS = {each.value: each.name.removeprefix("SIG") for each in signal.Signals}
Getter = Callable[[Job, View], Value]


def number(value: int | float | None) -> Value:
    """A value that is always set; moments that did not come are 0."""
    return {"set": True, "infinite": False, "number": int(value or 0)}


def optional(value: int | None) -> Value:
    """Unset when None, infinite when unlimited."""
    if value is None:
        return {"set": False, "infinite": False, "number": 0}
    if value >= UNLIMITED:
        return {"set": False, "infinite": True, "number": 0}
    return {"set": True, "infinite": False, "number": value}


def _or_infinite(value: int) -> Value:
    return optional(value or UNLIMITED)


def exit_status(status: int) -> Value:
    """A wait status: SUCCESS, ERROR or SIGNALED with the signal's name."""
    killed = status & 0x7F
    code = status >> 8 & 0xFF
    word = "SIGNALED" if killed else "ERROR" if code else "SUCCESS"
    return {
        "status": [word],
        "return_code": number(code),
        "signal": {"id": optional(killed or None), "name": _SIGNALS.get(killed, str(killed)) if killed else ""},
    }


def job_flags(job: Job) -> list[str]:
    request, spec = job.spec.request, job.spec
    started = job.allocation is not None
    chosen = (
        ("EXACT_TASK_COUNT_REQUESTED", spec.ntasks_given),
        ("EXACT_CPU_COUNT_REQUESTED", spec.cpus_per_task_given),
        ("ACCRUE_COUNT_CLEARED", started),
        ("JOB_WAS_RUNNING", started),
        ("EXACT_MEMORY_REQUESTED", request.memory is not None),
        ("USING_DEFAULT_ACCOUNT", request.account is None),
        ("USING_DEFAULT_PARTITION", not request.partitions),
        ("USING_DEFAULT_QOS", request.qos is None),
        ("USING_DEFAULT_WCKEY", request.wckey is None),
        ("DEPENDENT", job.is_pending and job.eligible_time is None),
        ("PARTITION_ASSIGNED", not request.partitions),
        ("JOB_IMPLICIT_MAX_NODES", spec.ntasks_given and request.nodes_min is None),
    )
    return [name for name, holds in chosen if holds]


def _job_states(job: Job) -> Value:
    return [job.state.name, *(flag.name for flag in JobFlag if flag in job.flags)]


def _end(job: Job) -> float | None:
    moment = job_fields.end_time(job)
    if moment == float("inf"):
        return (job.start_time or 0.0) + _NO_LIMIT_S if job.allocation is not None else 0.0
    return moment if job.allocation is not None or job.is_finished else 0.0


def _resources(job: Job, view: View) -> Value:
    """Which cores of which nodes it holds; null while it has none."""
    if job.allocation is None or job.is_finished:
        return None
    kinds = {name.upper() for name in view.config.select_type_parameters}
    first = "CR_CORE" if "CR_CORE" in kinds or "CR_CORE_MEMORY" in kinds else next(iter(sorted(kinds)), "NONE")
    shares = job.allocation.nodes
    return {
        "select_type": [f"{first}_MEMORY" if first == "CR_CORE" and "CR_CORE_MEMORY" in kinds else first],
        "nodes": {
            "count": len(shares),
            "select_type": ["ONE_ROW"],
            "list": text.node_list(job),
            "whole": job.spec.exclusive is Exclusive.NODE,
            "allocation": [_node(index, share, view) for index, share in enumerate(shares)],
        },
        "cpus": sum(share.cpus for share in shares),
        "threads_per_core": optional(job.spec.threads_per_core),
    }


def _node(index: int, share: NodeShare, view: View) -> Value:
    node = view.nodes.get(share.node)
    sockets = node.conf.sockets if node is not None else 1
    cores = node.conf.cores_per_socket if node is not None else max(share.cpus, 1)
    threads = node.conf.threads_per_core if node is not None else 1
    held = {cpu // threads for cpu in share.cpu_ids}
    return {
        "index": index,
        "name": share.node,
        "cpus": {"count": share.cpus, "used": share.cpus},
        "memory": {"used": share.memory_mib, "allocated": share.memory_mib},
        "sockets": [
            {
                "index": socket,
                "cores": [
                    {"index": core, "status": ["ALLOCATED" if socket * cores + core in held else "UNALLOCATED"]}
                    for core in range(cores)
                ],
            }
            for socket in range(sockets)
        ],
    }


def _gres_detail(job: Job) -> Value:
    """`gpu:a100:2(IDX:0-1)` for each node."""
    details = []
    for share in job.allocation.nodes if job.allocation is not None else ():
        kinds: dict[str, list[int]] = {}
        for device in share.devices:
            kinds.setdefault(device.type, []).append(device.index)
        amount = sum(device.milli for device in share.devices) / 1000
        if kinds:
            name = ",".join(f"gpu:{kind}" if kind else "gpu" for kind in kinds)
            indexes = text.index_text([index for found in kinds.values() for index in found])
            details.append(f"{name}:{amount:g}(IDX:{indexes})")
    return details


def _memory(job: Job, per: MemoryPer) -> Value:
    memory = job.spec.memory
    return optional(memory.mib if memory is not None and memory.per is per else None)


def _shared(job: Job) -> Value:
    words = {Exclusive.NODE: ["none"], Exclusive.USER: ["user"], Exclusive.MCS: ["mcs"], Exclusive.TOPO: ["topo"]}
    found: list[str] = words.get(job.spec.exclusive, [])
    return found


def _path(stream: str, *, expand: bool) -> Getter:
    return lambda job, view: text.stdio_path(job, stream, expand=expand) or ""


def _step_id(job: Job) -> Value:
    return {
        "sluid": job.sluid,
        "job_id": number(job.job_id),
        "step_het_component": optional(job.het_offset if job.het_job_id else None),
        "step_id": "entire",
    }


def _billing(job: Job) -> Value:
    held = job.allocation.tres if job.allocation is not None else None
    if held is None:
        return {"set": False, "infinite": False, "number": 0.0}
    return {"set": True, "infinite": False, "number": float(count(held, "billing"))}


def _unset(job: Job, view: View) -> Value:
    return optional(None)


def _zero(job: Job, view: View) -> Value:
    return number(0)


def _empty(job: Job, view: View) -> Value:
    return ""


def _none(job: Job, view: View) -> Value:
    return []


_FIELDS: tuple[tuple[str, Getter], ...] = (
    ("account", lambda j, v: j.spec.account),
    ("accrue_time", lambda j, v: number(j.accrue_time)),
    ("admin_comment", lambda j, v: j.admin_comment),
    ("allocating_node", lambda j, v: j.spec.submit_host),
    ("array_job_id", lambda j, v: number(j.array_job_id)),
    ("array_task_id", lambda j, v: optional(j.array_task_id)),
    ("array_max_tasks", lambda j, v: number(j.array_limit)),
    ("array_task_string", lambda j, v: text.task_text(j.tasks, j.array_limit, v.bitstr) if j.tasks else ""),
    ("association_id", lambda j, v: j.spec.assoc_id),
    ("batch_features", lambda j, v: j.spec.request.batch_features or ""),
    ("batch_flag", lambda j, v: j.spec.is_batch),
    ("batch_host", lambda j, v: j.batch_host),
    ("flags", lambda j, v: job_flags(j)),
    ("burst_buffer", lambda j, v: j.spec.request.burst_buffer or ""),
    ("burst_buffer_state", _empty),
    ("cluster", lambda j, v: v.config.cluster_name),
    ("cluster_features", _empty),
    ("command", lambda j, v: j.spec.command or ""),
    ("comment", lambda j, v: j.spec.comment or ""),
    ("container", lambda j, v: j.spec.request.container or ""),
    ("container_id", lambda j, v: j.spec.request.container_id or ""),
    ("container_type", _empty),
    ("contiguous", lambda j, v: j.spec.contiguous),
    ("core_spec", lambda j, v: j.spec.request.core_spec or 0),
    ("thread_spec", lambda j, v: _NO_THREADS if j.spec.request.thread_spec is None else j.spec.request.thread_spec),
    ("cores_per_socket", lambda j, v: optional(j.spec.cores_per_socket)),
    ("billable_tres", lambda j, v: _billing(j)),
    ("cpus_per_task", lambda j, v: number(j.spec.cpus_per_task)),
    ("cpu_frequency_minimum", _unset),
    ("cpu_frequency_maximum", _unset),
    ("cpu_frequency_governor", _unset),
    ("cpus_per_tres", lambda j, v: f"gres/gpu:{j.spec.cpus_per_gpu}" if j.spec.cpus_per_gpu else ""),
    ("cron", _empty),
    ("deadline", lambda j, v: number(j.spec.deadline)),
    ("delay_boot", lambda j, v: number(j.spec.delay_boot)),
    ("dependency", lambda j, v: text.dependency_text(j, "", v.is_array)),
    ("derived_exit_code", lambda j, v: exit_status(j.derived_exit_code)),
    ("eligible_time", lambda j, v: number(j.eligible_time)),
    ("end_time", lambda j, v: number(_end(j))),
    ("excluded_nodes", lambda j, v: text.fold(j.spec.exc_nodes) if j.spec.exc_nodes else ""),
    ("exit_code", lambda j, v: exit_status(j.exit_code)),
    ("extra", lambda j, v: j.spec.extra or ""),
    ("failed_node", _empty),
    ("features", lambda j, v: j.spec.features or ""),
    ("federation_origin", _empty),
    ("federation_siblings_active", _empty),
    ("federation_siblings_viable", _empty),
    ("gres_detail", lambda j, v: _gres_detail(j)),
    ("group_id", lambda j, v: j.spec.gid),
    ("group_name", lambda j, v: v.group(j.spec.gid)),
    ("het_job_id", lambda j, v: number(j.het_job_id)),
    ("het_job_id_set", lambda j, v: job_fields.het_set(j) if j.het_job_id else ""),
    ("het_job_offset", lambda j, v: number(j.het_offset)),
    ("job_id", lambda j, v: j.job_id),
    ("job_resources", _resources),
    ("job_size_str", _none),
    ("job_state", lambda j, v: _job_states(j)),
    ("last_sched_evaluation", lambda j, v: number(j.last_sched_eval)),
    ("licenses", lambda j, v: j.spec.licenses),
    ("licenses_allocated", lambda j, v: job_fields.licenses_held(j)),
    ("mail_type", lambda j, v: list(j.spec.mail_type)),
    ("mail_user", lambda j, v: j.spec.mail_user or v.user(j.spec.uid)),
    ("max_cpus", _zero),
    ("max_nodes", lambda j, v: number(0 if j.allocation is not None else j.spec.max_nodes or j.spec.num_tasks)),
    ("mcs_label", lambda j, v: j.spec.request.mcs_label or ""),
    ("memory_per_tres", lambda j, v: job_fields.memory_per_gpu(j)),
    ("memory_update_delay", lambda j, v: 0),
    ("memory_update_margin", lambda j, v: 0),
    ("name", lambda j, v: j.spec.name),
    ("network", lambda j, v: j.spec.network or ""),
    ("nodes", lambda j, v: text.node_list(j)),
    ("nice", lambda j, v: j.spec.nice),
    ("tasks_per_core", lambda j, v: _or_infinite(j.spec.ntasks_per_core)),
    ("tasks_per_tres", lambda j, v: number(j.spec.ntasks_per_gpu)),
    ("tasks_per_node", lambda j, v: number(j.spec.ntasks_per_node)),
    ("tasks_per_socket", lambda j, v: _or_infinite(j.spec.ntasks_per_socket)),
    ("tasks_per_board", _zero),
    ("cpus", lambda j, v: number(text.total_cpus(j))),
    ("node_count", lambda j, v: number(job_fields.node_count(j, v))),
    ("tasks", lambda j, v: number(j.spec.num_tasks)),
    ("partition", lambda j, v: job_fields.partition_text(j)),
    ("prefer", lambda j, v: j.spec.prefer or ""),
    ("memory_per_cpu", lambda j, v: _memory(j, MemoryPer.CPU)),
    ("memory_per_node", lambda j, v: _memory(j, MemoryPer.NODE)),
    ("minimum_cpus_per_node", lambda j, v: number(j.spec.pn_min_cpus)),
    ("minimum_tmp_disk_per_node", lambda j, v: number(j.spec.pn_min_tmp_mib)),
    ("preempt_time", lambda j, v: number(j.preempt_time)),
    ("preemptable_time", lambda j, v: number(j.start_time if j.allocation is not None else 0)),
    ("pre_sus_time", lambda j, v: number(j.pre_suspend_s)),
    ("hold", lambda j, v: j.priority == 0),
    ("priority", lambda j, v: number(j.priority)),
    ("priority_by_partition", _none),
    ("profile", lambda j, v: [w.upper() for w in job_fields.profile_text(j).replace("NotSet", "not_set").split(",")]),
    ("qos", lambda j, v: j.spec.qos),
    ("reboot", lambda j, v: j.spec.request.reboot),
    ("required_nodes", lambda j, v: text.fold(j.spec.req_nodes) if j.spec.req_nodes else ""),
    ("required_switches", lambda j, v: j.spec.switches),
    ("requeue", lambda j, v: j.spec.requeue),
    ("resize_time", _zero),
    ("restart_cnt", lambda j, v: j.restarts),
    ("resv_name", lambda j, v: j.spec.reservation),
    ("scheduled_nodes", _empty),
    ("segment_size", lambda j, v: j.spec.request.segment or 0),
    ("selinux_context", _empty),
    ("shared", lambda j, v: _shared(j)),
    ("step_id", lambda j, v: _step_id(j)),
    ("sockets_per_board", lambda j, v: 0),
    ("sockets_per_node", lambda j, v: optional(j.spec.sockets_per_node)),
    ("start_time", lambda j, v: number(j.start_time)),
    ("state_description", lambda j, v: j.reason_text),
    ("state_reason", lambda j, v: j.reason),
    ("standard_input", _path("stdin", expand=False)),
    ("standard_output", _path("stdout", expand=False)),
    ("standard_error", _path("stderr", expand=False)),
    ("stdin_expanded", _path("stdin", expand=True)),
    ("stdout_expanded", _path("stdout", expand=True)),
    ("stderr_expanded", _path("stderr", expand=True)),
    ("submit_time", lambda j, v: number(j.submit_time)),
    ("submit_line", lambda j, v: j.spec.submit_line),
    ("suspend_time", lambda j, v: number(j.suspend_time)),
    ("system_comment", lambda j, v: j.system_comment),
    ("time_limit", lambda j, v: optional(UNLIMITED if j.spec.time_limit is None else j.spec.time_limit)),
    ("time_minimum", lambda j, v: number(j.spec.time_min)),
    ("threads_per_core", lambda j, v: optional(j.spec.threads_per_core)),
    ("tres_bind", lambda j, v: j.spec.tres_bind),
    ("tres_freq", lambda j, v: j.spec.tres_freq),
    ("tres_per_job", lambda j, v: j.spec.tres_per_job),
    ("tres_per_node", lambda j, v: j.spec.tres_per_node),
    ("tres_per_socket", lambda j, v: j.spec.tres_per_socket),
    ("tres_per_task", lambda j, v: j.spec.tres_per_task),
    ("tres_req_str", lambda j, v: text.tres_text(j.spec.req_tres)),
    ("tres_alloc_str", lambda j, v: text.tres_text(j.allocation.tres) if j.allocation is not None else ""),
    ("user_id", lambda j, v: j.spec.uid),
    ("user_name", lambda j, v: v.user(j.spec.uid)),
    ("maximum_switch_wait_time", lambda j, v: j.spec.switches_wait),
    ("wckey", lambda j, v: j.spec.wckey),
    ("current_working_directory", lambda j, v: j.spec.work_dir),
)  # fmt: skip


def job_record(job: Job, view: View) -> Value:
    """One element of `jobs`."""
    return {name: get(job, view) for name, get in _FIELDS}
