"""From what a user asked for to a job as accepted, or the controller's refusal.

    resolve(request, caller, config, accounting, partitions, cluster, now=..., script_path=..., batch=True)

Steps, each a module of its own: `devices` (gres names), `destination` (partition, account, QOS), `places` (nodes,
features, licences), `size` (nodes, tasks, CPUs, memory), `time_limits`, `policy` (limits). Pure: the clock and all facts
come as arguments. Whether jobs of a dependency exist is asked through `job_exists`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from slurmbridge.errors import SlurmErrno
from slurmbridge.lang import arrays
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.job import JobSpec
from slurmbridge.model.request import Exclusive, JobRequest
from slurmbridge.model.tres import count as tres_count
from slurmbridge.model.units import UNLIMITED
from slurmbridge.model.verdict import Refused
from slurmbridge.submit import associations, devices, feasible, memory_limits, paths, places, policy, size
from slurmbridge.submit.billing import Billing
from slurmbridge.submit.caller import Caller, Cluster, Resolved
from slurmbridge.submit.destination import Destination, find_destination
from slurmbridge.submit.device_texts import device_texts
from slurmbridge.submit.known import known
from slurmbridge.submit.time_limits import find_time_limits

__all__ = ["Caller", "Cluster", "Resolved", "resolve"]

MAX_TEXT = 1024
_SHORT = ("name", "comment", "account", "mail_user", "qos", "wckey", "reservation", "network", "mcs_label", "extra")


def resolve(
    request: JobRequest,
    caller: Caller,
    config: ClusterConfig,
    accounting: Accounting,
    partitions: Sequence[Partition],
    cluster: Cluster,
    *,
    now: float,
    script_path: str | None,
    batch: bool = True,
    job_exists: Callable[[int, int | None], bool] | None = None,
    count_jobs: policy.CountJobs | None = None,
) -> Resolved | Refused:
    """One component. The order of checks is slurmctld's, for a request with several mistakes."""
    wish = devices.read_wish(request, config)
    if isinstance(wish, Refused):
        return wish
    refused = _simple_checks(request, caller)
    if refused is not None:
        return refused
    tally = size.first_tally(request)
    refused = devices.settle(request, wish, tally)
    if refused is not None and not _names_are_wrong(request, cluster, config):
        return refused
    found = places.find_places(request, cluster, config)
    if isinstance(found, Refused):
        return found
    user, uid, gid = _identity(request, caller, cluster)
    destination = find_destination(request, caller, user, config, accounting, partitions, cluster)
    if isinstance(destination, Refused):
        return destination
    if destination.qos is not None and "RequiresReservation" in destination.qos.flags and not request.reservation:
        return Refused(errno=SlurmErrno.INVALID_QOS)
    gpu = devices.need(request, wish, tally)
    if isinstance(gpu, Refused):
        return gpu
    gpus = _whole_gpus(request, wish, tally)
    counted = size.with_default_cpus(request, wish, destination.partitions[0], config)
    numbers = size.count(counted, wish, tally, gpus)
    if (request.distribution or "").startswith("arbitrary") and request.nodelist:
        if numbers.num_tasks != len(request.nodelist):
            return Refused(errno=SlurmErrno.BAD_TASK_COUNT)
    if request.array is not None and not numbers.min_nodes:
        return Refused(errno=SlurmErrno.INVALID_NODE_COUNT)
    first = destination.partitions[0]
    times = find_time_limits(request, first, _max_wall(destination, accounting, config), config, now)
    if isinstance(times, Refused):
        return times
    licences = places.find_licences(request, wish.licences, numbers.num_tasks, config)
    if isinstance(licences, Refused):
        return licences
    if not _reservations_exist(request, cluster):
        return Refused(errno=SlurmErrno.RESERVATION_INVALID)
    errno = policy.within_partitions(times.limit, numbers.min_nodes, destination.partitions, config, destination.qos)
    if errno is not None:
        return Refused(errno=errno)
    if job_exists is not None and request.dependency is not None:
        if any(term.job_id and not job_exists(term.job_id, term.array_task) for term in request.dependency.terms):
            return Refused(errno=SlurmErrno.DEPENDENCY)
    memory = size.default_memory(request, wish, first, config)
    largest = known(config).largest_memory(first)
    device_tres = devices.totals(request, wish, tally, numbers.num_tasks, numbers.min_nodes, config)
    all_gpus = tres_count(device_tres, "gres/gpu") // 1000 or gpus
    req_tres = size.request_tres(
        numbers,
        memory,
        all_gpus,
        largest,
        config.def_mem_per_cpu,
        device_tres,
        licences.tres,
        Billing.of(first, config),
    )
    numbers, memory = memory_limits.widened(
        numbers, memory, memory_limits.effective(first, config).max_mem_per_cpu, largest
    )
    if not policy.fits_memory(memory, numbers.pn_min_cpus, destination.partitions, config):
        return Refused(errno=SlurmErrno.INVALID_TASK_MEMORY)
    added = max(arrays.count(request.array.runs), 1) if request.array is not None else 1
    refused = policy.check(
        req_tres,
        times.limit,
        user,
        added,
        destination.qos,
        destination.assoc,
        accounting,
        config,
        count_jobs,
    )
    if refused is not None:
        return refused
    texts = device_texts(request, wish)
    where = paths.find_paths(request, caller.cwd, config, batch=batch)
    spec = JobSpec(
        request=request, uid=uid, gid=gid, groups=caller.groups, user=user,
        group=caller.group if gid == caller.gid else cluster.group_name(gid),
        account=destination.account, assoc_id=destination.assoc.assoc_id if destination.assoc is not None else 0,
        qos=destination.qos_name, wckey=request.wckey or "",
        partitions=tuple(each.name for each in destination.partitions),
        name=request.name or "", command=script_path, submit_line=" ".join(caller.argv), submit_host=caller.host,
        submit_sid=caller.sid, work_dir=where.work_dir, std_in=where.std_in, std_out=where.std_out,
        std_err=where.std_err, open_mode=where.open_mode, umask=request.umask if request.umask is not None else caller.umask,
        is_batch=batch,
        time_limit=times.limit, time_min=times.least, begin=times.begin, deadline=times.deadline,
        delay_boot=request.delay_boot or 0, signal=request.signal,
        min_nodes=numbers.min_nodes, max_nodes=numbers.max_nodes, node_counts=numbers.node_counts,
        num_tasks=numbers.num_tasks, ntasks_given=numbers.ntasks_given, cpus_per_task=numbers.cpus_per_task,
        cpus_per_task_given=numbers.cpus_per_task_given, min_cpus=numbers.min_cpus,
        ntasks_per_node=numbers.ntasks_per_node, ntasks_per_socket=numbers.ntasks_per_socket,
        ntasks_per_core=request.ntasks_per_core or 0, ntasks_per_gpu=request.ntasks_per_gpu or 0,
        cpus_per_gpu=counted.cpus_per_gpu or 0, pn_min_cpus=numbers.pn_min_cpus, memory=memory,
        pn_min_tmp_mib=request.tmp_mib or 0, sockets_per_node=request.sockets_per_node,
        cores_per_socket=request.cores_per_socket, threads_per_core=request.threads_per_core,
        overcommit=request.overcommit,
        gpu=gpu, tres_per_job=texts.per_job, tres_per_node=texts.per_node, tres_per_socket=texts.per_socket,
        tres_per_task=texts.per_task, tres_bind=texts.bind, tres_freq=texts.freq, gres_enforce_bind=texts.enforce_bind,
        licenses=licences.text, license_terms=licences.terms, licenses_any_of=licences.any_of, req_tres=req_tres,
        features=found.features, prefer=found.prefer, req_nodes=found.req_nodes, exc_nodes=found.exc_nodes,
        contiguous=request.contiguous, exclusive=_exclusive(request, first), oversubscribe=request.oversubscribe,
        reservation=request.reservation or "", switches=request.switches or 0, switches_wait=times.switches_wait,
        dependency=request.dependency, kill_on_invalid_dep=_kills(request, config), nice=request.nice or 0,
        requeue=config.job_requeue if request.requeue is None else request.requeue, preemptible=request.preemptible,
        comment=request.comment, extra=request.extra, network=request.network, mail_type=request.mail_type,
        mail_user=request.mail_user or user,
    )  # fmt: skip
    refused = None if request.hold else feasible.never_fits(spec, destination.partitions, config)
    if refused is not None:
        return refused
    reason = destination.reason if not request.hold else ""
    return Resolved(spec=spec, reason=reason, reason_text=destination.reason_text)


def _simple_checks(request: JobRequest, caller: Caller) -> Refused | None:
    if request.nice is not None and request.nice < 0 and not caller.is_operator:
        return Refused(errno=SlurmErrno.INVALID_NICE)
    if (request.wckey or "").startswith("*"):  # the mark of a user's default one
        return Refused(errno=SlurmErrno.INVALID_WCKEY)
    texts = [getattr(request, field) for field in _SHORT] + [",".join(request.partitions or ())]
    if any(text is not None and len(text) > MAX_TEXT for text in texts):
        return Refused(errno=SlurmErrno.PATHNAME_TOO_LONG)
    return None


def _reservations_exist(request: JobRequest, cluster: Cluster) -> bool:
    wanted = request.reservation.split(",") if request.reservation else ()
    return {*wanted} <= {each.name for each in cluster.reservations()}


def _names_are_wrong(request: JobRequest, cluster: Cluster, config: ClusterConfig) -> bool:
    return isinstance(places.find_places(request, cluster, config), Refused)


def _identity(request: JobRequest, caller: Caller, cluster: Cluster) -> tuple[str, int, int]:
    """--uid and --gid, which only root may give; both are numbers by now."""
    uid = int(request.uid) if request.uid else caller.uid
    gid = int(request.gid) if request.gid else caller.gid
    return (caller.user if uid == caller.uid else cluster.user_name(uid)), uid, gid


def _whole_gpus(request: JobRequest, wish: devices.Wish, tally: devices.Tally) -> int:
    """Devices of the whole job, for CPUs and memory per GPU."""
    if wish.job.milli:
        return wish.job.devices
    if wish.task.milli:
        return wish.task.devices * (tally.ntasks or tally.nodes_min)
    if wish.node.milli:
        return wish.node.devices * tally.nodes_min
    if wish.socket.milli:
        return wish.socket.devices * (request.sockets_per_node or 1) * tally.nodes_min
    return 0


def _max_wall(destination: Destination, accounting: Accounting, config: ClusterConfig) -> int | None:
    if "limits" not in config.enforce:
        return None
    wall = destination.qos.limits.max_wall if destination.qos is not None else None
    if wall is None and destination.assoc is not None:
        wall = associations.effective_limits(accounting, destination.assoc).max_wall
    return None if wall is None or wall >= UNLIMITED else wall


def _exclusive(request: JobRequest, partition: Partition) -> Exclusive:
    if request.exclusive is not None:
        return request.exclusive
    return Exclusive.NODE if partition.oversubscribe.upper().startswith("EXCLUSIVE") else Exclusive.NO


def _kills(request: JobRequest, config: ClusterConfig) -> bool:
    if request.kill_on_invalid_dep is not None:
        return request.kill_on_invalid_dep
    return "kill_invalid_depend" in config.dependency_parameters
