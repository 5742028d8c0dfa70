"""Which variables does a batch script get? (sbatch(1), OUTPUT ENVIRONMENT VARIABLES; tables.md section 9)

`batch_env` has what the job and its allocation decide, as the first node sees it; `Situation` in the tables below is
what a value is made from. What only the running process knows (SLURM_TASK_PID) is the supervisor's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby

import msgspec

from slurmbridge.lang import hostlist
from slurmbridge.model.cluster import ClusterConfig, Node
from slurmbridge.model.job import Job, JobSpec, NodeShare
from slurmbridge.model.request import GresRequest, MemoryPer
from slurmbridge.model.units import UNLIMITED

DEFAULT_CONF = "/etc/slurm/slurm.conf"
ROOT_ADDR = "unix:/run/slurmbridge/socket"
"""Where commands look without being told: needs no SLURMBRIDGE_ADDR."""
YEAR_S = 365 * 86400
"""A job without time limit ends, for SLURM_JOB_END_TIME, in a year."""

LAUNCHERS = {
    "HYDRA_BOOTSTRAP": "slurm",
    "HYDRA_LAUNCHER_EXTRA_ARGS": "--external-launcher",
    "I_MPI_HYDRA_BOOTSTRAP": "slurm",
    "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "--external-launcher",
    "OMPI_MCA_plm_slurm_args": "--external-launcher",
    "PRTE_MCA_plm_slurm_args": "--external-launcher",
}
"""By these the MPI launchers start their daemons through srun."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """A job with what surrounds it."""

    job: Job
    config: ClusterConfig
    shares: tuple[NodeShare, ...]

    @property
    def spec(self) -> JobSpec:
        return self.job.spec

    @property
    def names(self) -> list[str]:
        return [share.node for share in self.shares]


def fold(counts: Sequence[int]) -> str:
    """Slurm's folding of per-node counts: `2,1(x2)`."""
    words = []
    for count, run in groupby(counts):
        repeat = len(list(run))
        words.append(f"{count}(x{repeat})" if repeat > 1 else str(count))
    return ",".join(words)


def says_tasks(spec: JobSpec) -> bool:
    """Whether the job said how many tasks it has, by itself or per node or GPU."""
    return spec.ntasks_given or spec.ntasks_per_node > 0 or spec.ntasks_per_gpu > 0


def task_counts(spec: JobSpec, shares: Sequence[NodeShare]) -> list[int]:
    """Tasks per node; a job that did not say how many has as many as its CPUs allow."""
    if spec.ntasks_per_node > 0 and not spec.ntasks_given:
        return [spec.ntasks_per_node] * len(shares)
    if says_tasks(spec):
        return [share.tasks for share in shares]
    return [max(1, share.cpus // max(1, spec.cpus_per_task)) for share in shares]


def typed(request: GresRequest | None) -> str | None:
    """GPUs as they were typed."""
    return ",".join(term.text.removeprefix("gres/gpu:") for term in request.terms) if request is not None else None


def _nonzero(number: int | None) -> str | None:
    return str(number) if number else None


def _memory(per: MemoryPer) -> Callable[[Situation], str | None]:
    def value(at: Situation) -> str | None:
        memory = at.spec.memory
        if memory is None or memory.per is not per:
            return None
        if memory.mib == 0 and at.shares and per is not MemoryPer.GPU:
            whole = at.shares[0].memory_mib
            return str(whole if per is MemoryPer.NODE else whole // max(1, at.shares[0].cpus))
        return str(memory.mib)

    return value


def _tres_per_task(at: Situation) -> str | None:
    request = at.spec.request
    words = [f"cpu={at.spec.cpus_per_task}"] if at.spec.cpus_per_task_given else []
    words += _per_task_gres(request.gpus_per_task)
    words += _per_task_gres(request.tres_per_task)
    return ",".join(words) or None


def _per_task_gres(request: GresRequest | None) -> list[str]:
    """`gres/gpu=1` per term; CPUs are told by themselves."""
    words = []
    for term in request.terms if request is not None else ():
        if term.name == "cpu":
            continue
        kind = f"{term.name}:{term.type}" if term.type else term.name
        words.append(f"gres/{kind}={term.milli / 1000:g}")
    return words


def _tres_bind(at: Situation) -> str | None:
    if at.spec.tres_bind:
        return at.spec.tres_bind
    gpus = at.spec.request.gpus_per_task
    if gpus is None:
        return None
    return f"gres/gpu:per_task:{sum(term.milli for term in gpus.terms) // 1000 or 1}"


def _plane(at: Situation) -> str | None:
    text = at.spec.request.distribution or ""
    return text.partition("=")[2].split(",")[0] or None if text.startswith("plane") else None


def _distribution(at: Situation) -> str | None:
    text = at.spec.request.distribution
    return text.partition("=")[0] if text is not None else None


def _tasks(at: Situation) -> str | None:
    return str(sum(task_counts(at.spec, at.shares))) if says_tasks(at.spec) or at.job.het_job_id else None


def _end_time(at: Situation) -> str | None:
    start = at.job.start_time
    if start is None:
        return None
    limit = at.spec.time_limit
    return str(int(start) + (YEAR_S if limit is None or limit == UNLIMITED else limit * 60))


def _licenses(at: Situation) -> str | None:
    return at.spec.licenses or None


Rule = Callable[[Situation], str | None]

OF_THE_JOB: tuple[tuple[str, Rule], ...] = (
    ("SLURM_JOB_ACCOUNT", lambda at: at.spec.account or None),
    ("SLURM_JOB_CPUS_PER_NODE", lambda at: fold([share.cpus for share in at.shares])),
    ("SLURM_JOB_ID", lambda at: str(at.job.job_id)),
    ("SLURM_JOB_NAME", lambda at: at.spec.name),
    ("SLURM_JOB_NODELIST", lambda at: hostlist.compress_sorted(at.names)),
    ("SLURM_JOB_NUM_NODES", lambda at: str(len(at.shares))),
    ("SLURM_JOB_PARTITION", lambda at: at.job.allocation.partition if at.job.allocation else None),
    ("SLURM_JOB_QOS", lambda at: at.spec.qos or None),
    ("SLURM_TASKS_PER_NODE", lambda at: fold(task_counts(at.spec, at.shares))),
    ("SLURM_NTASKS", _tasks),
    ("SLURM_NPROCS", _tasks),
    ("SLURM_CPUS_PER_TASK", lambda at: str(at.spec.cpus_per_task) if at.spec.cpus_per_task_given else None),
    ("SLURM_MEM_PER_CPU", _memory(MemoryPer.CPU)),
    ("SLURM_MEM_PER_NODE", _memory(MemoryPer.NODE)),
    ("SLURM_MEM_PER_GPU", _memory(MemoryPer.GPU)),
    ("SLURM_TRES_PER_TASK", _tres_per_task),
)
"""These exist once more per component of a heterogeneous job."""

OF_THE_RUN: tuple[tuple[str, Rule], ...] = (
    ("SLURM_CLUSTER_NAME", lambda at: at.config.cluster_name),
    ("SLURM_CONF", lambda at: at.config.conf_file or DEFAULT_CONF),
    ("SLURM_JOBID", lambda at: str(at.job.job_id)),
    ("SLURM_JOB_UID", lambda at: str(at.spec.uid)),
    ("SLURM_JOB_GID", lambda at: str(at.spec.gid)),
    ("SLURM_JOB_USER", lambda at: at.spec.user),
    ("SLURM_JOB_SLUID", lambda at: at.job.sluid or None),
    ("SLURM_JOB_EXCLUSIVE", lambda at: at.spec.exclusive.value),
    ("SLURM_JOB_OVERSUBSCRIBE", lambda at: "YES" if at.spec.oversubscribe else "NO"),
    ("SLURM_JOB_START_TIME", lambda at: str(int(at.job.start_time)) if at.job.start_time is not None else None),
    ("SLURM_JOB_END_TIME", _end_time),
    ("SLURM_NODELIST", lambda at: hostlist.compress_sorted(at.names)),
    ("SLURM_NNODES", lambda at: str(len(at.shares))),
    ("SLURM_SUBMIT_HOST", lambda at: at.spec.submit_host or None),
    ("SLURM_OOM_KILL_STEP", lambda at: str(at.spec.request.oom_kill_step or 0)),
    ("SLURM_PRIO_PROCESS", lambda at: "0"),
    ("SLURM_RESTART_COUNT", lambda at: _nonzero(at.job.restarts)),
    ("SLURM_DISTRIBUTION", _distribution),
    ("SLURM_DIST_PLANESIZE", _plane),
    ("SLURM_NTASKS_PER_NODE", lambda at: _nonzero(at.spec.ntasks_per_node)),
    ("SLURM_NTASKS_PER_SOCKET", lambda at: _nonzero(at.spec.ntasks_per_socket)),
    ("SLURM_NTASKS_PER_CORE", lambda at: _nonzero(at.spec.ntasks_per_core)),
    ("SLURM_NTASKS_PER_GPU", lambda at: _nonzero(at.spec.ntasks_per_gpu)),
    ("SLURM_CPUS_PER_GPU", lambda at: _nonzero(at.spec.cpus_per_gpu)),
    ("SLURM_THREADS_PER_CORE", lambda at: _nonzero(at.spec.request.threads_per_core)),
    ("SLURM_GPUS", lambda at: typed(at.spec.request.gpus)),
    ("SLURM_GPUS_PER_NODE", lambda at: typed(at.spec.request.gpus_per_node)),
    ("SLURM_GPUS_PER_SOCKET", lambda at: typed(at.spec.request.gpus_per_socket)),
    ("SLURM_GPU_BIND", lambda at: at.spec.request.gpu_bind),
    ("SLURM_GPU_FREQ", lambda at: at.spec.request.gpu_freq),
    ("SLURM_CPU_FREQ_REQ", lambda at: at.spec.request.cpu_freq),
    ("SLURM_TRES_BIND", _tres_bind),
    ("SLURM_OVERCOMMIT", lambda at: "1" if at.spec.overcommit else None),
    ("SLURM_NETWORK", lambda at: at.spec.network or None),
    ("SLURM_PROFILE", lambda at: at.spec.request.profile),
    ("SLURM_JOB_LICENSES", _licenses),
    ("SLURM_JOB_RESERVATION", lambda at: at.spec.reservation or None),
    ("SLURM_JOB_SEGMENT_SIZE", lambda at: _nonzero(at.spec.request.segment)),
    ("SLURM_STEPMGR", lambda at: at.names[0] if at.spec.request.stepmgr and at.names else None),
    ("SLURM_EXPORT_ENV", lambda at: at.spec.request.export),
    ("SLURM_GET_USER_ENV", lambda at: "1" if wants_login(at.spec) else None),
    ("SLURM_ARRAY_JOB_ID", lambda at: _of_array(at, at.job.array_job_id)),
    ("SLURM_ARRAY_TASK_ID", lambda at: _of_array(at, at.job.array_task_id)),
    ("SLURM_ARRAY_TASK_COUNT", lambda at: _of_array(at, at.job.array_count)),
    ("SLURM_ARRAY_TASK_MIN", lambda at: _of_array(at, at.job.array_first)),
    ("SLURM_ARRAY_TASK_MAX", lambda at: _of_array(at, at.job.array_last)),
    ("SLURM_ARRAY_TASK_STEP", lambda at: _of_array(at, at.job.array_step)),
)

OF_THE_ALLOCATION = frozenset(
    {
        "SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_CPUS_PER_GPU", "SLURM_CPUS_PER_TASK", "SLURM_DISTRIBUTION",
        "SLURM_DIST_PLANESIZE", "SLURM_GPUS", "SLURM_GPUS_PER_NODE", "SLURM_GPUS_PER_SOCKET", "SLURM_GPU_BIND",
        "SLURM_GPU_FREQ", "SLURM_JOBID", "SLURM_JOB_ACCOUNT", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_ID",
        "SLURM_JOB_NAME", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES", "SLURM_JOB_PARTITION", "SLURM_JOB_QOS",
        "SLURM_JOB_RESERVATION", "SLURM_JOB_SEGMENT_SIZE", "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU",
        "SLURM_MEM_PER_NODE", "SLURM_NETWORK", "SLURM_NNODES", "SLURM_NODELIST", "SLURM_NPROCS", "SLURM_NTASKS",
        "SLURM_NTASKS_PER_CORE", "SLURM_NTASKS_PER_GPU", "SLURM_NTASKS_PER_NODE", "SLURM_NTASKS_PER_SOCKET",
        "SLURM_OVERCOMMIT", "SLURM_PROFILE", "SLURM_SUBMIT_HOST", "SLURM_TASKS_PER_NODE", "SLURM_THREADS_PER_CORE",
        "SLURM_TRES_BIND", "SLURM_TRES_PER_TASK",
    }
)  # fmt: skip
"""What salloc gives its command (salloc(1), OUTPUT ENVIRONMENT VARIABLES)."""

OF_THE_BATCH_STEP = {
    "ENVIRONMENT": "BATCH",
    "SLURM_GTIDS": "0",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "0",
    "SLURM_STEPID": "-5",
    "SLURM_STEP_ID": "-5",
    "SLURM_TOPOLOGY_ADDR_PATTERN": "node",
}


def _of_array(at: Situation, number: int | None) -> str | None:
    return str(number) if at.job.array_job_id and at.job.array_task_id is not None else None


def wants_login(spec: JobSpec) -> bool:
    """Whether the job starts from its user's login environment: --get-user-env, --export=NONE or a list of names."""
    export = spec.request.export
    if spec.request.get_user_env:
        return True
    if export is None:
        return False
    words = {word.strip().upper() for word in export.split(",") if "=" not in word}
    return "ALL" not in words and "NIL" not in words


def job_env(job: Job, config: ClusterConfig, *, components: Sequence[Job] = (), daemon_addr: str) -> dict[str, str]:
    """What every process of the job knows, steps included."""
    at = Situation(job=job, config=config, shares=job.allocation.nodes if job.allocation else ())
    env = _filled(at, OF_THE_RUN)
    env.update(_filled(at, OF_THE_JOB))
    if components:
        env["SLURM_HET_SIZE"] = env["SLURM_PACK_SIZE"] = str(len(components))
        for component in components:
            inner = Situation(
                job=component, config=config, shares=component.allocation.nodes if component.allocation else ()
            )
            for name, value in _filled(inner, OF_THE_JOB).items():
                env[f"{name}_HET_GROUP_{component.het_offset}"] = value
                env[f"{name}_PACK_GROUP_{component.het_offset}"] = value
    if daemon_addr != ROOT_ADDR:
        env["SLURMBRIDGE_ADDR"] = daemon_addr
    return env


def _filled(at: Situation, rules: Sequence[tuple[str, Rule]]) -> dict[str, str]:
    return {name: value for name, rule in rules if (value := rule(at)) is not None}


def allocation_env(
    job: Job, config: ClusterConfig, *, components: Sequence[Job] = (), submit_dir: str
) -> dict[str, str]:
    """What the command beside an allocation is told. Where the daemon is, it knows from its own environment."""
    env = _of_allocation(job, config)
    if len(components) > 1:
        tasks = sum(
            sum(task_counts(part.spec, part.allocation.nodes if part.allocation else ())) for part in components
        )
        inner = [_of_allocation(part, config) for part in components]
        env = {name: env[name] for name in ("SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_JOB_ID", "SLURM_SUBMIT_HOST")
               if name in env}  # fmt: skip
        env["SLURM_HET_SIZE"] = env["SLURM_PACK_SIZE"] = str(len(components))
        env["SLURM_NTASKS"] = env["SLURM_NPROCS"] = str(tasks)
        for index, values in enumerate(inner):
            for name in values.keys() - {"SLURM_CLUSTER_NAME", "SLURM_CONF", "SLURM_SUBMIT_HOST"}:
                env[f"{name}_HET_GROUP_{index}"] = env[f"{name}_PACK_GROUP_{index}"] = values[name]
    env["SLURM_SUBMIT_DIR"] = submit_dir
    return env


def _of_allocation(job: Job, config: ClusterConfig) -> dict[str, str]:
    env = {
        name: value for name, value in job_env(job, config, daemon_addr=ROOT_ADDR).items() if name in OF_THE_ALLOCATION
    }
    if job.spec.request.memory is None:  # a default is told to batch scripts alone
        env = {name: value for name, value in env.items() if not name.startswith("SLURM_MEM_PER_")}
    return env


def batch_env(
    job: Job,
    config: ClusterConfig,
    nodes: Mapping[str, Node | None] | Sequence[Node] = (),
    *,
    components: Sequence[Job] = (),
    daemon_addr: str,
    of_job: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Every SLURM_* variable of the batch script, and the others that Slurm sets. `nodes` is not looked at: device
    indexes are in the allocation. `of_job`: what `job_env` gives, where it is known already."""
    if of_job is None:
        of_job = job_env(job, config, components=components, daemon_addr=daemon_addr)
    env = {**LAUNCHERS, **of_job, **OF_THE_BATCH_STEP}
    if job.allocation is None or not job.allocation.nodes:
        return env
    first = job.allocation.nodes[0]
    env["HOSTNAME"] = env["SLURMD_NODENAME"] = env["SLURM_TOPOLOGY_ADDR"] = first.node
    topology = config.topology_of(None)
    if topology is not None:
        address = topology.addresses([first.node])[first.node]
        env["SLURM_TOPOLOGY_ADDR"], env["SLURM_TOPOLOGY_ADDR_PATTERN"] = address
    env["SLURM_CPUS_ON_NODE"] = str(first.cpus)
    env.update(device_env(first))
    return env


def device_env(share: NodeShare) -> dict[str, str]:
    """Variables that pin the devices of one node. A fraction is told, and nothing here enforces it."""
    if not share.devices:
        return {}
    indexes = ",".join(str(device.index) for device in share.devices)
    env = {
        "CUDA_VISIBLE_DEVICES": indexes,
        "GPU_DEVICE_ORDINAL": indexes,
        "ROCR_VISIBLE_DEVICES": indexes,
        "ZE_AFFINITY_MASK": indexes,
        "SLURM_JOB_GPUS": indexes,
        "SLURM_GPUS_ON_NODE": str(len(share.devices)),
    }
    device = share.devices[0]
    if device.mib:
        env["SLURMBRIDGE_GPU_MEMORY"] = f"{device.mib}M"
    elif device.milli < 1000:
        env["SLURMBRIDGE_GPU_FRACTION"] = f"{device.milli / 1000:g}"
    return env
