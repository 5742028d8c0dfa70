"""A submitted job as `scontrol -o show job` words the fields that submission decides (names as scontrol's)."""

from __future__ import annotations

import datetime

from slurmbridge.lang import arrays, dependencies, durations, filenames, hostlist, sizes, tres
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.job import JobSpec
from slurmbridge.model.request import JobRequest, MemoryPer
from slurmbridge.submit.caller import Resolved
from slurmbridge.submit.size import shown_nodes

NULL = "(null)"
JOB = "JOB"
_GOVERNORS = {"ondemand": "OnDemand", "performance": "Performance", "userspace": "UserSpace"}


def shown(job: Resolved, config: ClusterConfig, het_offset: int | None) -> dict[str, str]:
    spec, request = job.spec, job.spec.request
    fields = {
        **_identity(job, spec, request),
        **_times(spec),
        **_size(spec, config),
        **_memory(spec),
        **_places(spec, request),
        **_files(spec),
        **_devices(spec, request),
        **_records(spec, request),
    }
    if request.array is not None and request.array.runs:
        fields["ArrayJobId"] = JOB
        limit = request.array.limit
        fields["ArrayTaskId"] = arrays.render(request.array.runs) + (f"%{limit}" if limit else "")
        if limit:
            fields["ArrayTaskThrottle"] = str(limit)
    if het_offset is not None:
        fields |= {"HetJobId": JOB, "HetJobOffset": str(het_offset)}
    return fields


def _identity(job: Resolved, spec: JobSpec, request: JobRequest) -> dict[str, str]:
    terms = spec.dependency.terms if spec.dependency is not None else ()
    join = "?" if spec.dependency is not None and spec.dependency.any_of else ","
    reason = job.reason_text or ("JobHeldUser" if request.hold else "None")
    return {
        "JobName": spec.name,
        "UserId": f"{spec.user}({spec.uid})",
        "GroupId": f"{spec.group}({spec.gid})",
        "MCS_label": request.mcs_label or "N/A",
        "Nice": str(spec.nice),
        "Account": spec.account,
        "QOS": request.qos or spec.qos,
        "Reason": reason.replace(" ", "_"),
        "Dependency": join.join(f"{dependencies.render_term(term)}(unfulfilled)" for term in terms) or NULL,
        "Requeue": str(int(spec.requeue)),
        "Partition": ",".join(spec.partitions),
    }


def _moment(epoch: int | None, absent: str) -> str:
    if epoch is None:
        return absent
    return datetime.datetime.fromtimestamp(epoch, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _times(spec: JobSpec) -> dict[str, str]:
    return {
        "TimeLimit": durations.render_minutes(spec.time_limit),
        "TimeMin": "N/A" if spec.time_min is None else durations.render_minutes(spec.time_min),
        "EligibleTime": _moment(spec.begin, "Unknown"),
        "StartTime": _moment(spec.begin, "Unknown"),
        "Deadline": _moment(spec.deadline, "N/A"),
        "DelayBoot": durations.render_elapsed(spec.delay_boot),
    }


def _star(value: int | None) -> str:
    return "*" if value is None else str(value)


def _size(spec: JobSpec, config: ClusterConfig) -> dict[str, str]:
    members = next(each.nodes for each in config.partitions if each.name == spec.partitions[0])
    least, most = shown_nodes(spec, max(node.cpus for node in config.nodes if node.name in members))
    nodes = f"{least}-{most}" if most else str(least)
    if spec.node_counts:
        nodes = hostlist.compress([str(count) for count in spec.node_counts]).strip("[]")
    return {
        "NumNodes": nodes,
        "ClusterFeatures": spec.request.cluster_constraint or NULL,
        "NumCPUs": str(spec.min_cpus),
        "NumTasks": str(spec.num_tasks),
        "CPUs/Task": str(spec.cpus_per_task),
        "ReqB:S:C:T": f"0:0:{_star(spec.cores_per_socket)}:{_star(spec.threads_per_core)}",
        "ReqTRES": tres.render(spec.req_tres) if spec.req_tres else NULL,
        "Socks/Node": _star(spec.sockets_per_node),
        "NtasksPerN:B:S:C": f"{spec.ntasks_per_node}:0:{spec.ntasks_per_socket or '*'}:{spec.ntasks_per_core or '*'}",
        "MinCPUsNode": str(spec.pn_min_cpus),
        "MinTmpDiskNode": sizes.render_mib(spec.pn_min_tmp_mib) if spec.pn_min_tmp_mib else "0",
    }


def _memory(spec: JobSpec) -> dict[str, str]:
    memory = spec.memory
    assert memory is not None
    text = sizes.render_mib(memory.mib) if memory.mib else "0"
    if memory.per is MemoryPer.CPU:
        return {"MinMemoryCPU": text}
    if memory.per is MemoryPer.NODE:
        return {"MinMemoryNode": text}
    return {"MinMemoryTRES": text, "MemPerTres": f"gres/gpu:{memory.mib}"}


def _nodes(names: tuple[str, ...], asked: tuple[str, ...] | None) -> str:
    if names:
        return hostlist.compress(names)
    return NULL if asked is None else ""


def _places(spec: JobSpec, request: JobRequest) -> dict[str, str]:
    fields = {
        "ReqNodeList": _nodes(spec.req_nodes, request.nodelist),
        "ExcNodeList": _nodes(spec.exc_nodes, request.exclude),
        "Features": NULL if spec.features is None else spec.features,
        "OverSubscribe": "YES" if spec.oversubscribe else "NO",
        "Exclusive": spec.exclusive.value,
        "Contiguous": str(int(spec.contiguous)),
        "Licenses": spec.licenses or NULL,
        "Network": NULL if spec.network is None else spec.network,
    }
    if spec.prefer is not None:
        fields["Prefer"] = spec.prefer
    if request.batch_features:
        fields["BatchFeatures"] = request.batch_features
    if request.segment:
        fields["SegmentSize"] = str(request.segment)
    if spec.switches:
        fields["Switches"] = f"{spec.switches}@{durations.render_elapsed(spec.switches_wait)}"
    if request.spread_job:
        fields["SpreadJob"] = "Yes"
    return fields


def _files(spec: JobSpec) -> dict[str, str]:
    values = {
        "j": JOB, "A": JOB, "a": "4294967294", "u": spec.user, "x": spec.name, "N": NULL, "t": "0", "n": "0", "s": "batch",
        "r": "0", "b": "4",
    }  # fmt: skip

    def expanded(pattern: str | None, absent: str) -> str:
        return absent if pattern is None else filenames.expand(pattern, values)

    return {
        "Command": spec.command or NULL,
        "WorkDir": spec.work_dir,
        "StdErr": expanded(spec.std_err, ""),
        "StdIn": expanded(spec.std_in, "/dev/null"),
        "StdOut": expanded(spec.std_out, ""),
    }


def _devices(spec: JobSpec, request: JobRequest) -> dict[str, str]:
    texts = {
        "TresBind": spec.tres_bind,
        "TresFreq": spec.tres_freq,
        "TresPerJob": spec.tres_per_job,
        "TresPerNode": spec.tres_per_node,
        "TresPerSocket": spec.tres_per_socket,
        "TresPerTask": spec.tres_per_task,
        "CpusPerTres": f"gres/gpu:{spec.cpus_per_gpu}" if spec.cpus_per_gpu else "",
        "NtasksPerTRES": str(spec.ntasks_per_gpu) if spec.ntasks_per_gpu else "",
        "GresEnforceBind": {True: "Yes", False: "No", None: ""}[spec.gres_enforce_bind],
        "GresOneTaskPerSharing": "No" if "multiple-tasks-per-sharing" in (request.gres_flags or "") else "",
    }
    return {name: text for name, text in texts.items() if text}


def _records(spec: JobSpec, request: JobRequest) -> dict[str, str]:
    recorded = dict(request.recorded)
    kills = request.kill_on_invalid_dep
    texts = {
        "Comment": spec.comment,
        "Extra": spec.extra,
        "OOMKillStep": None if request.oom_kill_step is None else str(request.oom_kill_step),
        "MailUser": spec.mail_user if spec.mail_type else None,
        "MailType": ",".join(spec.mail_type) if spec.mail_type else None,
        "KillOnInvalidDependent": None if kills is None else ("Yes" if kills else "No"),
        "ClusterFeatures": recorded.get("cluster-constraint"),
        "BurstBuffer": None if (request.burst_buffer or "\n").endswith("\n") else request.burst_buffer,
    }
    if "mem-update" in recorded:
        margin, _, delay = recorded["mem-update"].partition("@")
        texts["MemUpdate"] = f"{margin}%@{delay}min"
    return {name: text for name, text in texts.items() if text is not None} | _frequency(request.cpu_freq or "")


def _frequency(text: str) -> dict[str, str]:
    if not text:
        return {}
    if text in _GOVERNORS:
        return {"Governor": _GOVERNORS[text]}
    speeds, _, governor = text.partition(":")
    low, dash, high = speeds.partition("-")
    fields = {"CPU_max_freq": (high if dash else low).capitalize(), "Governor": _GOVERNORS[governor or "userspace"]}
    return fields | ({"CPU_min_freq": low} if dash else {})
