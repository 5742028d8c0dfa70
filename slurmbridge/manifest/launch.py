"""A job with its allocation, turned into what supervisors are told. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.manifest.environment import batch_env, job_env, task_counts, wants_login
from slurmbridge.manifest.pod_container import wish_of
from slurmbridge.manifest.pod_resources import resource_of
from slurmbridge.model.cluster import ClusterConfig, Device, Node, Partition
from slurmbridge.model.job import DeviceShare, GpuScope, Job, NodeShare
from slurmbridge.model.run import Launch, LaunchNode, RunKey
from slurmbridge.model.units import NO_TASK, UNLIMITED


class UserEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Of the user database."""

    name: str
    home: str
    shell: str


def build_launch(
    job: Job,
    *,
    script: bytes | None,
    env: Sequence[tuple[str, str]],
    config: ClusterConfig,
    nodes: Mapping[str, Node | None],
    user: UserEntry,
    components: Sequence[Job] = (),
    daemon_addr: str,
    partition: Partition | None = None,
) -> Launch:
    """`env`: as stored at submission. `script` None: no batch script (salloc, srun, a further component of a het job)."""
    spec = job.spec
    shares = job.allocation.nodes if job.allocation else ()
    counts = task_counts(spec, shares)
    submitted = dict(env)
    base = job_env(job, config, components=components, daemon_addr=daemon_addr)
    full = {**submitted, **batch_env(job, config, nodes, components=components, daemon_addr=daemon_addr, of_job=base)}
    full["SLURM_SUBMIT_DIR"] = _submit_dir(job, submitted)
    full.setdefault("TMPDIR", "/tmp")
    base["SLURM_SUBMIT_DIR"] = full["SLURM_SUBMIT_DIR"]
    over = partition.over_time_limit if partition is not None and partition.over_time_limit is not None else None
    over = config.over_time_limit if over is None else over
    limit = (
        None if spec.time_limit is None or spec.time_limit == UNLIMITED or over == UNLIMITED else spec.time_limit * 60
    )
    topology = config.topology_of(None)
    addresses = {} if topology is None else topology.addresses([share.node for share in shares])
    return Launch(
        key=RunKey(job.job_id, job.restarts),
        uid=spec.uid,
        gid=spec.gid,
        groups=spec.groups,
        user=user.name,
        group=spec.group,
        home=user.home,
        shell=user.shell,
        nodes=tuple(
            _launch_node(rank, _by_task(job, share), tasks, nodes.get(share.node), addresses.get(share.node, ("", "")))
            for rank, (share, tasks) in enumerate(zip(shares, counts, strict=True))
        ),
        script=script,
        script_args=spec.script_args,
        env=tuple(full.items()),
        base_env=tuple(base.items()),
        login_env=script is not None and wants_login(spec),
        work_dir=spec.work_dir,
        umask=spec.umask,
        std_in=spec.std_in or "/dev/null",
        std_out=spec.std_out or "",
        std_err=spec.std_err or "",
        append=spec.open_mode == "append",
        pattern_values=pattern_values(job),
        rlimits=spec.rlimits,
        time_limit_s=limit,
        kill_wait_s=config.kill_wait,
        over_time_s=0 if limit is None else over * 60,
        signal=(spec.signal.number, spec.signal.seconds, spec.signal.batch_only) if spec.signal is not None else None,
        kill_on_bad_exit=config.kill_on_bad_exit,
        wait_time_s=config.wait_time,
        task_prolog=config.task_prolog,
        task_epilog=config.task_epilog,
        mpi_default=config.mpi_default,
        max_tasks_per_node=config.max_tasks_per_node,
        max_steps=config.max_step_count,
        node_cpus=tuple((share.node, share.cpus) for share in shares),
        epoch=f"{job.start_time:.6f}" if job.start_time is not None else "",
        partition=job.allocation.partition if job.allocation else "",
        job_name=spec.name,
        account=spec.account,
        comment=spec.comment or "",
        container=wish_of(spec.request),
    )


def _submit_dir(job: Job, submitted: Mapping[str, str]) -> str:
    """Where sbatch was typed; with --chdir only the submission's own environment knows."""
    if job.spec.request.chdir is None:
        return job.spec.work_dir
    return submitted.get("SLURM_SUBMIT_DIR") or job.spec.work_dir


def _by_task(job: Job, share: NodeShare) -> NodeShare:
    """Devices of several types a task in such an order that each task's share is a stretch of them."""
    need = job.spec.gpu
    if need is None or not need.kinds or need.scope is not GpuScope.TASK:
        return share
    left = {kind: [each for each in share.devices if each.type == kind] for kind, _ in need.kinds}
    ordered: list[DeviceShare] = []
    while len(ordered) < len(share.devices) and any(left.values()):
        for kind, count in need.kinds:
            ordered += left[kind][:count]
            left[kind] = left[kind][count:]
    return replace(share, devices=tuple(ordered))


_UNKNOWN = Device()


def _launch_node(rank: int, share: NodeShare, tasks: int, node: Node | None, address: tuple[str, str]) -> LaunchNode:
    known = {device.index: device for device in node.conf.devices} if node is not None else {}
    devices = [known.get(device.index, _UNKNOWN) for device in share.devices]
    return LaunchNode(
        rank=rank,
        node=share.node,
        cpus=share.cpus,
        cpu_ids=share.cpu_ids,
        memory_mib=share.memory_mib,
        tasks=tasks,
        devices=tuple((device.index, device.milli, device.mib) for device in share.devices),
        device_files=tuple(device.file for device in devices),
        device_resources=tuple(resource_of(device) for device in devices),
        topology=address,
    )


def pattern_values(job: Job) -> tuple[tuple[str, str], ...]:
    """Letters of file names that the job decides (sbatch(1), "filename pattern"); N, n, s and t are the supervisor's."""
    task = job.array_task_id
    return (
        ("j", str(job.job_id)),
        ("J", str(job.job_id)),
        ("A", str(job.array_job_id or job.job_id)),
        ("a", str(NO_TASK if task is None else task)),
        ("b", str((NO_TASK if task is None else task) % 10)),
        ("x", job.spec.name),
        ("u", job.spec.user),
    )
