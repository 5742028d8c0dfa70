"""What does `scontrol show job` print of a job?

Follows the layout of Slurm 26.05: a list of lines of `Key=Value`, most always there, some only when they were asked for.
Sources are `JobSpec` (as accepted), `Job` (what changes), and `spec.request` for what the controller only keeps.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurmbridge.commands.scontrol_show_own import own_lines
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.fields import text
from slurmbridge.lang import durations, hostlist, sizes, tres
from slurmbridge.model.job import Job, JobSpec, NodeShare
from slurmbridge.model.request import MemoryPer
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit.exempt_times import eligible_time
from slurmbridge.submit.size import shown_nodes

NULL = "(null)"
_GRES_FLAGS = (
    ("allow-task-sharing", "GresAllowTaskSharing=Yes"),
    ("disable-binding", "GresEnforceBind=No"),
    ("enforce-binding", "GresEnforceBind=Yes"),
    ("one-task-per-sharing", "GresOneTaskPerSharing=Yes"),
    ("multiple-tasks-per-sharing", "GresOneTaskPerSharing=No"),
)
_FREQUENCIES = {"low": "Low", "medium": "Medium", "high": "High", "highm1": "Highm1"}
_GOVERNORS = {
    word.lower(): word for word in ("Conservative", "OnDemand", "Performance", "PowerSave", "SchedUtil", "UserSpace")
}
_FLAGS_SHOWN = (
    JobFlag.COMPLETING, JobFlag.CONFIGURING, JobFlag.STAGE_OUT, JobFlag.RESIZING, JobFlag.REQUEUED,
    JobFlag.REQUEUE_FED, JobFlag.REQUEUE_HOLD, JobFlag.SPECIAL_EXIT, JobFlag.STOPPED, JobFlag.REVOKED,
    JobFlag.RESV_DEL_HOLD, JobFlag.SIGNALING,
)  # fmt: skip


def job_lines(job: Job, eyes: Eyes) -> list[str]:
    """All lines of one job, in Slurm's order; `eyes.flags.details` adds those of -d."""
    return [
        *_head(job, eyes),
        *_times(job, eyes),
        *_places(job, eyes),
        *_needs(job, eyes),
        *_tail(job),
        *own_lines(job, eyes),
    ]


def _head(job: Job, eyes: Eyes) -> Iterator[str]:
    spec, view = job.spec, eyes.view
    yield f"JobId={job.job_id} {_family(job, eyes)}JobName={spec.name}"
    if eyes.flags.details:
        yield f"SLUID={job.sluid}"
    if job.het_job_id:
        yield f"HetJobIdSet={_het_set(job)}"
    user, group = view.user(spec.uid), view.group(spec.gid)
    yield f"UserId={user}({spec.uid}) GroupId={group}({spec.gid}) MCS_label={spec.request.mcs_label or 'N/A'}"
    wckey = f" WCKey={spec.wckey}" if eyes.site.config.track_wckey else ""
    yield f"Priority={job.priority} Nice={spec.nice} Account={spec.account or NULL} QOS={_qos(spec)}{wckey}"
    reason = text.reason_text(job).replace(" ", "_")
    yield f"JobState={state_word(job)} Reason={reason} Dependency={text.dependency_text(job, is_array=view.is_array)}"
    yield (
        f"Requeue={int(spec.requeue)} Restarts={job.restarts} BatchFlag={int(spec.is_batch)}"
        f" Reboot={int(spec.request.reboot)} ExitCode={text.exit_text(job.exit_code)}"
    )
    if eyes.flags.details:
        yield f"DerivedExitCode={text.exit_text(job.derived_exit_code)}"


def _qos(spec: JobSpec) -> str:
    """As the user wrote it: Slurm ignores case and keeps the spelling."""
    asked = spec.request.qos
    return asked if asked and asked.lower() == spec.qos.lower() else spec.qos or NULL


def _family(job: Job, eyes: Eyes) -> str:
    if job.array_job_id:
        if job.array_task_id is not None:
            tasks = str(job.array_task_id)
        else:
            tasks = text.task_text(job.tasks, job.array_limit, eyes.view.bitstr)
        throttle = f"ArrayTaskThrottle={job.array_limit} " if job.array_limit else ""
        return f"ArrayJobId={job.array_job_id} ArrayTaskId={tasks} {throttle}"
    if job.het_job_id:
        return f"HetJobId={job.het_job_id} HetJobOffset={job.het_offset} "
    return ""


def _het_set(job: Job) -> str:
    """`12-14`: all components."""
    ids = sorted(job.het_ids) or [job.job_id]
    folded = hostlist.compress([f"{each}" for each in ids])
    return folded.strip("[]")


def state_word(job: Job) -> str:
    """The first flag that is set, else the base state."""
    return next((flag.name for flag in _FLAGS_SHOWN if flag in job.flags), job.state.name)


def _times(job: Job, eyes: Eyes) -> Iterator[str]:
    spec, view = job.spec, eyes.view
    limit = durations.render_minutes(spec.time_limit)
    least = "N/A" if spec.time_min is None else durations.render_minutes(spec.time_min)
    elapsed = durations.render_elapsed(text.run_seconds(job, view.now))
    yield f"RunTime={elapsed} TimeLimit={limit} TimeMin={least}"
    is_held = job.is_pending and job.priority == 0
    eligible = job.eligible_time if job.eligible_time is not None and not is_held else spec.begin
    yield f"SubmitTime={view.time(job.submit_time)} EligibleTime={view.time(eligible, 'Unknown')}"
    yield f"AccrueTime={view.time(None if is_held else job.accrue_time, 'Unknown')}"
    start = None if is_held else job.start_time
    if start is None and spec.begin is not None and spec.begin > view.now and job.is_pending:
        start = spec.begin
    deadline = "N/A" if spec.deadline is None else view.time(spec.deadline)
    end = view.time(_end(job, start), "Unknown")
    yield f"StartTime={view.time(start, 'Unknown')} EndTime={end} Deadline={deadline}"
    if job.start_time is not None and not job.is_pending:
        preempted = view.time(job.preempt_time, "None")
        exempt = eligible_time(job, view.config, view.accounting, view.partitions)
        yield f"PreemptEligibleTime={view.time(exempt)} PreemptTime={preempted}"
    evaluated = job.last_sched_eval if job.last_sched_eval is not None else job.submit_time
    yield (
        f"SuspendTime={view.time(job.suspend_time, 'None')} SecsPreSuspend={int(job.pre_suspend_s)}"
        f" LastSchedEval={view.time(evaluated)} Scheduler=Main"
    )


def _end(job: Job, start: float | None) -> float | None:
    """The end, or when the limit falls due; None without a limit or a start."""
    limit = job.spec.time_limit
    if job.state.is_finished:
        return job.end_time
    if job.time_limit_end is not None and not job.is_pending:
        return job.time_limit_end
    if limit is None or limit == UNLIMITED:
        return None
    return None if start is None else start + limit * 60


def _places(job: Job, eyes: Eyes) -> Iterator[str]:
    spec = job.spec
    partition = job.allocation.partition if job.allocation else ",".join(spec.partitions)
    yield f"Partition={partition} AllocNode:Sid={spec.submit_host}:{spec.submit_sid}"
    wanted = text.fold(spec.req_nodes) if spec.req_nodes else NULL
    excluded = text.fold(spec.exc_nodes) if spec.exc_nodes else NULL
    yield f"ReqNodeList={wanted} ExcNodeList={excluded}"
    expected = f" SchedNodeList={text.fold(job.sched_nodes)}" if job.is_pending and job.sched_nodes else ""
    yield f"NodeList={text.node_list(job)}{expected}"
    if spec.request.batch_features:
        yield f"BatchFeatures={spec.request.batch_features}"
    if job.batch_host:
        yield f"BatchHost={job.batch_host}"


def _needs(job: Job, eyes: Eyes) -> Iterator[str]:
    spec = job.spec
    cores, threads = _star(spec.cores_per_socket), _star(spec.threads_per_core)
    yield (
        f"NumNodes={node_range(job, eyes)} NumCPUs={_cpus(job)} NumTasks={spec.num_tasks}"
        f" CPUs/Task={spec.cpus_per_task} ReqB:S:C:T=0:0:{cores}:{threads}"
    )
    yield f"ReqTRES={tres.render(spec.req_tres) if spec.req_tres else NULL}"
    held = job.allocation.tres if job.allocation else ()
    yield f"AllocTRES={tres.render(held) if held else NULL}"
    per_socket, per_core = _star(spec.ntasks_per_socket or None), _star(spec.ntasks_per_core or None)
    yield (
        f"Socks/Node={_star(spec.sockets_per_node)} NtasksPerN:B:S:C={spec.ntasks_per_node}:0:{per_socket}:{per_core}"
        f" {_core_spec(spec, eyes)}"
    )
    if eyes.flags.details and job.allocation:
        yield from _detail_lines(job.allocation.nodes)
    yield f"MinCPUsNode={spec.pn_min_cpus} {_memory(spec)} MinTmpDiskNode={text.mib_text(spec.pn_min_tmp_mib)}"
    yield f"Features={_text(spec.features)} DelayBoot={durations.render_elapsed(spec.delay_boot)}"
    if spec.request.cluster_constraint is not None:
        yield f"ClusterFeatures={spec.request.cluster_constraint}"
    if spec.prefer:
        yield f"Prefer={spec.prefer}"
    allocated = job.allocation.licenses if job.allocation else ()
    held_licenses = ",".join(f"{term.name}:{term.count}" for term in allocated)
    yield (
        f"OverSubscribe={'YES' if spec.oversubscribe else 'NO'} Exclusive={spec.exclusive.value}"
        f" Contiguous={int(spec.contiguous)} Licenses={spec.licenses or NULL} LicensesAlloc={held_licenses or NULL}"
        f" Network={_text(spec.network)}"
    )
    if spec.reservation:
        yield f"Reservation={spec.reservation}"


def _cpus(job: Job) -> str:
    """A number, or while it waits a range where one was set."""
    most = job.spec.max_cpus if job.allocation is None else None
    return f"{text.total_cpus(job)}" if most is None else f"{text.total_cpus(job)}-{most}"


def _text(value: str | None) -> str:
    return NULL if value is None else value


def _star(value: int | None) -> str:
    return "*" if value is None else str(value)


def _core_spec(spec: JobSpec, eyes: Eyes) -> str:
    if eyes.site.config.allow_spec_resources:
        if spec.request.thread_spec is not None:
            return f"ThreadSpec={spec.request.thread_spec}"
        if spec.request.core_spec is not None:
            return f"CoreSpec={spec.request.core_spec}"
    return "CoreSpec=*"


def _memory(spec: JobSpec) -> str:
    memory = spec.memory
    if memory is None or (memory.per is not MemoryPer.GPU and memory.mib == 0):
        return "MinMemoryNode=0"
    name = {MemoryPer.NODE: "Node", MemoryPer.CPU: "CPU", MemoryPer.GPU: "TRES"}[memory.per]
    return f"MinMemory{name}={sizes.render_mib(memory.mib)}"


def node_range(job: Job, eyes: Eyes) -> str:
    """`2`, of a job that waits `1-4`: see `submit.size.shown_nodes`; a list of counts as it is, steps by their least."""
    if job.allocation is not None:
        return str(len(job.allocation.nodes))
    spec = job.spec
    largest = eyes.view.cpus_per_node(spec.partitions[0]) if spec.partitions else 0
    least, most = shown_nodes(spec, largest)
    if spec.overcommit and largest:
        least = max(least, -(-spec.num_tasks // largest))
    counts = spec.node_counts
    if len(counts) > 1 and counts[-1] == spec.max_nodes and job.state is JobState.PENDING:
        return ranges(counts)
    if counts or not most or job.state is not JobState.PENDING:
        return str(least)
    return f"{least}-{most}"


def _detail_lines(shares: tuple[NodeShare, ...]) -> Iterator[str]:
    """GRES of the whole job, then one line for each run of nodes that hold the same."""
    total: dict[str, int] = {}
    for share in shares:
        for name, milli in _device_counts(share).items():
            total[name] = total.get(name, 0) + milli
    yield f"JOB_GRES={','.join(f'{name}:{_devices(milli)}' for name, milli in total.items()) or NULL}"
    group: list[str] = []
    held = ""
    for share in shares:
        this = f"CPU_IDs={ranges(share.cpu_ids)} Mem={share.memory_mib} GRES={share_gres(share)}"
        if group and this != held:
            yield f"     Nodes={hostlist.compress_sorted(group)} {held}"
            group = []
        group.append(share.node)
        held = this
    if group:
        yield f"     Nodes={hostlist.compress_sorted(group)} {held}"


def _device_counts(share: NodeShare) -> dict[str, int]:
    counts: dict[str, int] = {}
    for device in share.devices:
        name = f"gpu:{device.type}" if device.type else "gpu"
        counts[name] = counts.get(name, 0) + device.milli
    return counts


def _devices(milli: int) -> str:
    return f"{milli / 1000:g}"


def share_gres(share: NodeShare) -> str:
    """`gpu:a100:2(IDX:0-1)` of one node; empty when none is held."""
    parts = []
    for name, milli in _device_counts(share).items():
        kind = name.partition(":")[2]
        indexes = tuple(device.index for device in share.devices if device.type == kind)
        parts.append(f"{name}:{_devices(milli)}(IDX:{ranges(indexes)})")
    return ",".join(parts)


def ranges(numbers: tuple[int, ...]) -> str:
    """`0-2,4`."""
    parts: list[str] = []
    ordered = sorted(set(numbers))
    place = 0
    while place < len(ordered):
        end = place
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        parts.append(str(ordered[place]) if end == place else f"{ordered[place]}-{ordered[end]}")
        place = end + 1
    return ",".join(parts)


def _tail(job: Job) -> Iterator[str]:
    spec = job.spec
    request = spec.request
    yield f"Command={_text(spec.command)}"
    yield f"SubmitLine={spec.submit_line or NULL}"
    yield f"WorkDir={spec.work_dir}"
    if job.admin_comment:
        yield f"AdminComment={job.admin_comment}"
    if job.system_comment:
        yield f"SystemComment={job.system_comment}"
    if spec.comment is not None:
        yield f"Comment={spec.comment}"
    if spec.extra is not None:
        yield f"Extra={spec.extra}"
    if spec.is_batch:
        yield f"StdErr={text.stdio_path(job, 'stderr', expand=True) or ''}"
        yield f"StdIn={text.stdio_path(job, 'stdin', expand=True) or '/dev/null'}"
        yield f"StdOut={text.stdio_path(job, 'stdout', expand=True) or ''}"
    if request.segment is not None:
        kept = {name for name, _ in request.recorded}
        ways = (("consolidate-segments", "ConsolidateSegments"), ("spread-segments", "SpreadSegments"))
        yield f"SegmentSize={request.segment}" + "".join(f" {shown}=Yes" for name, shown in ways if name in kept)
    if spec.switches:
        yield f"Switches={spec.switches}@{durations.render_elapsed(spec.switches_wait)}"
    if request.burst_buffer is not None:
        yield f"BurstBuffer={request.burst_buffer}"
    frequency = _frequency(request.cpu_freq)
    if frequency:
        yield frequency
    flags = _flag_words(spec)
    if flags:
        yield " ".join(flags)
    if request.oom_kill_step is not None:
        yield f"OOMKillStep={request.oom_kill_step}"
    if spec.cpus_per_gpu:
        yield f"CpusPerTres=gres/gpu:{spec.cpus_per_gpu}"
    if spec.memory is not None and spec.memory.per is MemoryPer.GPU:
        yield f"MemPerTres=gres/gpu:{spec.memory.mib}"
    for name, value in (
        ("TresBind", spec.tres_bind), ("TresFreq", spec.tres_freq), ("TresPerJob", spec.tres_per_job),
        ("TresPerNode", spec.tres_per_node), ("TresPerSocket", spec.tres_per_socket), ("TresPerTask", spec.tres_per_task),
    ):  # fmt: skip
        if value:
            yield f"{name}={value}"
    if spec.mail_type:
        yield f"MailUser={spec.mail_user or spec.user} MailType={','.join(spec.mail_type)}"
    if spec.ntasks_per_gpu:
        yield f"NtasksPerTRES={spec.ntasks_per_gpu}"
    if request.container is not None or request.container_id is not None:
        yield f"ContainerType={NULL} Container={_text(request.container)} ContainerID={_text(request.container_id)}"


def _flag_words(spec: JobSpec) -> list[str]:
    request = spec.request
    asked = {word.strip().lower() for word in (request.gres_flags or "").split(",")}
    words = [shown for word, shown in _GRES_FLAGS if word in asked]
    if spec.gres_enforce_bind is not None and not any(word.startswith("GresEnforceBind") for word in words):
        words.append(f"GresEnforceBind={'Yes' if spec.gres_enforce_bind else 'No'}")
    if request.kill_on_invalid_dep is not None:
        words.append(f"KillOnInvalidDependent={'Yes' if request.kill_on_invalid_dep else 'No'}")
    if request.spread_job:
        words.append("SpreadJob=Yes")
    return words


def _frequency(asked: str | None) -> str:
    """`--cpu-freq`: kept for the record. One value is a maximum, two are minimum and maximum."""
    if not asked:
        return ""
    limits, _, governor = asked.partition(":")
    low, _, high = limits.partition("-")
    words = []
    if high:
        words.append(f"CPU_min_freq={_FREQUENCIES.get(low.lower(), low)}")
        words.append(f"CPU_max_freq={_FREQUENCIES.get(high.lower(), high)}")
    elif low.lower() in _FREQUENCIES or low.isdecimal():
        words.append(f"CPU_max_freq={_FREQUENCIES.get(low.lower(), low)}")
    else:
        governor = governor or low
    words.append(f"Governor={_GOVERNORS.get(governor.lower(), governor or 'UserSpace')}")
    return " ".join(words)
