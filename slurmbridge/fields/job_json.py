"""What does a job look like in --json and --yaml? The fields of data_parser v0.0.45, in its order.

Serves squeue and scontrol. Numbers that may be unset are objects (`set`, `infinite`, `number`); moments that did not
come are 0.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.fields import containers, text
from slurmbridge.fields import jobs as job_fields
from slurmbridge.fields.shapes import (
    COUNT,
    FLAG,
    NUMBER,
    OPTIONAL,
    STATUS,
    TEXT,
    TREE,
    WORDS,
    Entry,
    Shape,
    number,
    optional,
)
from slurmbridge.fields.structured import Value
from slurmbridge.fields.view import View
from slurmbridge.model.job import Job, NodeShare
from slurmbridge.model.request import Exclusive, MemoryPer
from slurmbridge.model.states import JobFlag
from slurmbridge.model.tres import count
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit.exempt_times import eligible_time

_NO_LIMIT_S = 365 * 86400  # a job without limit is expected to end within a year
_NO_THREADS = 0x7FFE
Getter = Callable[[Job, View], str]


def job_flags(job: Job) -> tuple[str, ...]:
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
    return tuple([name for name, holds in chosen if holds])


def _job_states(job: Job) -> tuple[str, ...]:
    return (job.state.name, *[flag.name for flag in JobFlag if flag in job.flags]) if job.flags else (job.state.name,)


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


def _gres_detail(job: Job) -> tuple[str, ...]:
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
    return tuple(details)


def _memory(job: Job, per: MemoryPer) -> int | None:
    memory = job.spec.memory
    return memory.mib if memory is not None and memory.per is per else None


_SHARED = {Exclusive.NODE: ("none",), Exclusive.USER: ("user",), Exclusive.MCS: ("mcs",), Exclusive.TOPO: ("topo",)}


def _profile(job: Job) -> tuple[str, ...]:
    return tuple(job_fields.profile_text(job).replace("NotSet", "not_set").upper().split(","))


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


_FIELDS: tuple[Entry, ...] = (
    ("account", TEXT, lambda j, v: j.spec.account),
    ("accrue_time", NUMBER, lambda j, v: j.accrue_time),
    ("admin_comment", TEXT, lambda j, v: j.admin_comment),
    ("allocating_node", TEXT, lambda j, v: j.spec.submit_host),
    ("array_job_id", NUMBER, lambda j, v: j.array_job_id),
    ("array_task_id", OPTIONAL, lambda j, v: j.array_task_id),
    ("array_max_tasks", NUMBER, lambda j, v: j.array_limit),
    ("array_task_string", TEXT, lambda j, v: text.task_text(j.tasks, j.array_limit, v.bitstr) if j.tasks else ""),
    ("association_id", COUNT, lambda j, v: j.spec.assoc_id),
    ("batch_features", TEXT, lambda j, v: j.spec.request.batch_features or ""),
    ("batch_flag", FLAG, lambda j, v: j.spec.is_batch),
    ("batch_host", TEXT, lambda j, v: j.batch_host),
    ("flags", WORDS, lambda j, v: job_flags(j)),
    ("burst_buffer", TEXT, lambda j, v: j.spec.request.burst_buffer or ""),
    ("burst_buffer_state", TEXT, ""),
    ("cluster", TEXT, lambda j, v: v.config.cluster_name),
    ("cluster_features", TEXT, ""),
    ("command", TEXT, lambda j, v: j.spec.command or ""),
    ("comment", TEXT, lambda j, v: j.spec.comment or ""),
    ("container", TEXT, lambda j, v: containers.container(j.spec.request)),
    ("container_id", TEXT, lambda j, v: j.spec.request.container_id or ""),
    ("container_type", TEXT, ""),
    ("contiguous", FLAG, lambda j, v: j.spec.contiguous),
    ("core_spec", COUNT, lambda j, v: j.spec.request.core_spec or 0),
    ("thread_spec", COUNT, lambda j, v: _NO_THREADS if j.spec.request.thread_spec is None else j.spec.request.thread_spec),
    ("cores_per_socket", OPTIONAL, lambda j, v: j.spec.cores_per_socket),
    ("billable_tres", TREE, lambda j, v: _billing(j)),
    ("cpus_per_task", NUMBER, lambda j, v: j.spec.cpus_per_task),
    ("cpu_frequency_minimum", OPTIONAL, None),
    ("cpu_frequency_maximum", OPTIONAL, None),
    ("cpu_frequency_governor", OPTIONAL, None),
    ("cpus_per_tres", TEXT, lambda j, v: f"gres/gpu:{j.spec.cpus_per_gpu}" if j.spec.cpus_per_gpu else ""),
    ("cron", TEXT, ""),
    ("deadline", NUMBER, lambda j, v: j.spec.deadline),
    ("delay_boot", NUMBER, lambda j, v: j.spec.delay_boot),
    ("dependency", TEXT, lambda j, v: text.dependency_text(j, "", v.is_array)),
    ("derived_exit_code", STATUS, lambda j, v: j.derived_exit_code),
    ("eligible_time", NUMBER, lambda j, v: j.eligible_time),
    ("end_time", NUMBER, lambda j, v: _end(j)),
    ("excluded_nodes", TEXT, lambda j, v: text.fold(j.spec.exc_nodes) if j.spec.exc_nodes else ""),
    ("exit_code", STATUS, lambda j, v: j.exit_code),
    ("extra", TEXT, lambda j, v: j.spec.extra or ""),
    ("failed_node", TEXT, ""),
    ("features", TEXT, lambda j, v: j.spec.features or ""),
    ("federation_origin", TEXT, ""),
    ("federation_siblings_active", TEXT, ""),
    ("federation_siblings_viable", TEXT, ""),
    ("gres_detail", WORDS, lambda j, v: _gres_detail(j)),
    ("group_id", COUNT, lambda j, v: j.spec.gid),
    ("group_name", TEXT, lambda j, v: v.group(j.spec.gid)),
    ("het_job_id", NUMBER, lambda j, v: j.het_job_id),
    ("het_job_id_set", TEXT, lambda j, v: job_fields.het_set(j) if j.het_job_id else ""),
    ("het_job_offset", NUMBER, lambda j, v: j.het_offset),
    ("job_id", COUNT, lambda j, v: j.job_id),
    ("job_resources", TREE, _resources),
    ("job_size_str", WORDS, ()),
    ("job_state", WORDS, lambda j, v: _job_states(j)),
    ("last_sched_evaluation", NUMBER, lambda j, v: j.last_sched_eval),
    ("licenses", TEXT, lambda j, v: j.spec.licenses),
    ("licenses_allocated", TEXT, lambda j, v: job_fields.licenses_held(j)),
    ("mail_type", WORDS, lambda j, v: tuple(j.spec.mail_type)),
    ("mail_user", TEXT, lambda j, v: j.spec.mail_user or v.user(j.spec.uid)),
    ("max_cpus", NUMBER, 0),
    ("max_nodes", NUMBER, lambda j, v: 0 if j.allocation is not None else j.spec.max_nodes or j.spec.num_tasks),
    ("mcs_label", TEXT, lambda j, v: j.spec.request.mcs_label or ""),
    ("memory_per_tres", TEXT, lambda j, v: job_fields.memory_per_gpu(j)),
    ("memory_update_delay", COUNT, 0),
    ("memory_update_margin", COUNT, 0),
    ("name", TEXT, lambda j, v: j.spec.name),
    ("network", TEXT, lambda j, v: j.spec.network or ""),
    ("nodes", TEXT, lambda j, v: text.node_list(j)),
    ("nice", COUNT, lambda j, v: j.spec.nice),
    ("tasks_per_core", OPTIONAL, lambda j, v: j.spec.ntasks_per_core or UNLIMITED),
    ("tasks_per_tres", NUMBER, lambda j, v: j.spec.ntasks_per_gpu),
    ("tasks_per_node", NUMBER, lambda j, v: j.spec.ntasks_per_node),
    ("tasks_per_socket", OPTIONAL, lambda j, v: j.spec.ntasks_per_socket or UNLIMITED),
    ("tasks_per_board", NUMBER, 0),
    ("cpus", NUMBER, lambda j, v: text.total_cpus(j)),
    ("node_count", NUMBER, lambda j, v: job_fields.node_count(j, v)),
    ("tasks", NUMBER, lambda j, v: j.spec.num_tasks),
    ("partition", TEXT, lambda j, v: job_fields.partition_text(j)),
    ("prefer", TEXT, lambda j, v: j.spec.prefer or ""),
    ("memory_per_cpu", OPTIONAL, lambda j, v: _memory(j, MemoryPer.CPU)),
    ("memory_per_node", OPTIONAL, lambda j, v: _memory(j, MemoryPer.NODE)),
    ("minimum_cpus_per_node", NUMBER, lambda j, v: j.spec.pn_min_cpus),
    ("minimum_tmp_disk_per_node", NUMBER, lambda j, v: j.spec.pn_min_tmp_mib),
    ("preempt_time", NUMBER, lambda j, v: j.preempt_time),
    ("preemptable_time", NUMBER, lambda j, v: eligible_time(j, v.config, v.accounting, v.partitions) or 0),
    ("pre_sus_time", NUMBER, lambda j, v: j.pre_suspend_s),
    ("hold", FLAG, lambda j, v: j.priority == 0),
    ("priority", NUMBER, lambda j, v: j.priority),
    ("priority_by_partition", WORDS, ()),
    ("profile", WORDS, lambda j, v: _profile(j)),
    ("qos", TEXT, lambda j, v: j.spec.qos),
    ("reboot", FLAG, lambda j, v: j.spec.request.reboot),
    ("required_nodes", TEXT, lambda j, v: text.fold(j.spec.req_nodes) if j.spec.req_nodes else ""),
    ("required_switches", COUNT, lambda j, v: j.spec.switches),
    ("requeue", FLAG, lambda j, v: j.spec.requeue),
    ("resize_time", NUMBER, 0),
    ("restart_cnt", COUNT, lambda j, v: j.restarts),
    ("resv_name", TEXT, lambda j, v: j.spec.reservation),
    ("scheduled_nodes", TEXT, lambda j, v: text.fold(j.sched_nodes) if j.is_pending and j.sched_nodes else ""),
    ("segment_size", COUNT, lambda j, v: j.spec.request.segment or 0),
    ("selinux_context", TEXT, ""),
    ("shared", WORDS, lambda j, v: _SHARED.get(j.spec.exclusive, ())),
    ("step_id", TREE, lambda j, v: _step_id(j)),
    ("sockets_per_board", COUNT, 0),
    ("sockets_per_node", OPTIONAL, lambda j, v: j.spec.sockets_per_node),
    ("start_time", NUMBER, lambda j, v: j.start_time),
    ("state_description", TEXT, lambda j, v: j.reason_text),
    ("state_reason", TEXT, lambda j, v: j.reason),
    ("standard_input", TEXT, _path("stdin", expand=False)),
    ("standard_output", TEXT, _path("stdout", expand=False)),
    ("standard_error", TEXT, _path("stderr", expand=False)),
    ("stdin_expanded", TEXT, _path("stdin", expand=True)),
    ("stdout_expanded", TEXT, _path("stdout", expand=True)),
    ("stderr_expanded", TEXT, _path("stderr", expand=True)),
    ("submit_time", NUMBER, lambda j, v: j.submit_time),
    ("submit_line", TEXT, lambda j, v: j.spec.submit_line),
    ("suspend_time", NUMBER, lambda j, v: j.suspend_time),
    ("system_comment", TEXT, lambda j, v: j.system_comment),
    ("time_limit", OPTIONAL, lambda j, v: UNLIMITED if j.spec.time_limit is None else j.spec.time_limit),
    ("time_minimum", NUMBER, lambda j, v: j.spec.time_min),
    ("threads_per_core", OPTIONAL, lambda j, v: j.spec.threads_per_core),
    ("tres_bind", TEXT, lambda j, v: j.spec.tres_bind),
    ("tres_freq", TEXT, lambda j, v: j.spec.tres_freq),
    ("tres_per_job", TEXT, lambda j, v: j.spec.tres_per_job),
    ("tres_per_node", TEXT, lambda j, v: j.spec.tres_per_node),
    ("tres_per_socket", TEXT, lambda j, v: j.spec.tres_per_socket),
    ("tres_per_task", TEXT, lambda j, v: j.spec.tres_per_task),
    ("tres_req_str", TEXT, lambda j, v: text.tres_text(j.spec.req_tres)),
    ("tres_alloc_str", TEXT, lambda j, v: text.tres_text(j.allocation.tres) if j.allocation is not None else ""),
    ("user_id", COUNT, lambda j, v: j.spec.uid),
    ("user_name", TEXT, lambda j, v: v.user(j.spec.uid)),
    ("maximum_switch_wait_time", COUNT, lambda j, v: j.spec.switches_wait),
    ("wckey", TEXT, lambda j, v: j.spec.wckey),
    ("current_working_directory", TEXT, lambda j, v: j.spec.work_dir),
)  # fmt: skip

JOB: Shape[Job] = Shape(_FIELDS, lambda job: containers.structured(job.spec.request))
"""One element of `jobs`."""
