"""What a user asked for: command line, environment and directives merged, values typed, nothing resolved.

One `JobRequest` per job (per component of a heterogeneous job). `None` means "not given" throughout: which default then
holds is decided by `submit.resolve`, with the cluster's configuration at hand. Field names follow Slurm's long options.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.words import Word


class Exclusive(Word):
    """`--exclusive`: value as scontrol shows it."""

    NO = "NO"
    NODE = "NODE"
    USER = "USER"
    MCS = "MCS"
    TOPO = "TOPO"


class MemoryPer(Word):
    NODE = "node"
    CPU = "cpu"
    GPU = "gpu"


class Memory(msgspec.Struct, frozen=True, gc=False):
    """`--mem`, `--mem-per-cpu`, `--mem-per-gpu`: MiB per what. 0 per node or CPU = all of a node."""

    per: MemoryPer
    mib: int


class Signal(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`--signal`: number, seconds before the end, and to whom."""

    number: int
    seconds: int = 60
    batch_only: bool = False  # B:
    at_reservation: bool = False  # R:


class DependencyTerm(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One parent of one `--dependency` term; several parents of a term become several of these."""

    kind: str  # after, afterany, afterok, afternotok, aftercorr, afterburstbuffer, singleton (lower case)
    job_id: int = 0  # raw or array id; 0 for singleton
    array_task: int | None = None  # ID_5; None = the job itself or the whole array
    minutes: int = 0  # after:ID+5


class Dependency(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """All terms, joined by one operator."""

    terms: tuple[DependencyTerm, ...]
    any_of: bool = False  # joined by `?`


class ArraySpec(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`--array`: the tasks as sorted (first, last, step) runs, and `%limit` (0 = none)."""

    runs: tuple[tuple[int, int, int], ...]
    limit: int = 0
    text: str = ""  # as typed, without brackets


class GresTerm(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One `name[:type][:count]` of --gres, --gpus..., --tres-per-*."""

    name: str  # "gpu", "shard", "mps", "cpu" (tres-per-task), "license/..."
    type: str = ""
    milli: int = 1000  # 1000 = one; fractions of a GPU below 1000
    text: str = ""  # as typed


class GresRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The generic resources of one scope, with the text that scontrol shows (`gres/gpu:a100:1`)."""

    terms: tuple[GresTerm, ...]
    text: str


class LicenseTerm(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    name: str
    count: int = 1


class Provenance(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where a value came from."""

    source: str  # "command line", "environment", "directive", "default"
    place: str = ""  # variable name, or FILE:LINE:COLUMN


class JobRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """See the module docstring. Counts are as typed; text fields keep the user's spelling."""

    # identity and destination
    name: str | None = None
    comment: str | None = None
    extra: str | None = None
    account: str | None = None
    partitions: tuple[str, ...] | None = None
    qos: str | None = None
    wckey: str | None = None
    reservation: str | None = None
    clusters: str | None = None
    priority: int | None = None
    nice: int | None = None
    hold: bool = False
    # time
    time_limit: int | None = None  # minutes; UNLIMITED
    time_min: int | None = None  # minutes
    begin: int | None = None  # epoch seconds
    deadline: int | None = None  # epoch seconds
    delay_boot: int | None = None  # seconds
    signal: Signal | None = None
    # order
    dependency: Dependency | None = None
    kill_on_invalid_dep: bool | None = None
    array: ArraySpec | None = None
    requeue: bool | None = None
    # size
    nodes_min: int | None = None
    nodes_max: int | None = None
    node_counts: tuple[int, ...] = ()  # -N2,4 or 2-8:2: the allowed counts
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    ntasks_per_socket: int | None = None
    ntasks_per_core: int | None = None
    ntasks_per_gpu: int | None = None  # also --ntasks-per-tres
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    mincpus: int | None = None
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    core_spec: int | None = None
    thread_spec: int | None = None
    hint: str | None = None
    memory: Memory | None = None
    tmp_mib: int | None = None
    overcommit: bool = False
    # generic resources; scope -> terms
    gres: GresRequest | None = None  # per node (--gres, --gpus-per-node)
    gpus: GresRequest | None = None  # per job
    gpus_per_node: GresRequest | None = None
    gpus_per_socket: GresRequest | None = None
    gpus_per_task: GresRequest | None = None
    tres_per_task: GresRequest | None = None
    gpu_memory_mib: int | None = None  # ours: of each device
    gpu_fraction_milli: int | None = None  # ours: of each device
    preemptible: bool | None = None  # ours
    gres_flags: str | None = None
    gpu_bind: str | None = None
    gpu_freq: str | None = None
    tres_bind: str | None = None
    licenses: str | None = None
    license_terms: tuple[LicenseTerm, ...] = ()
    licenses_any_of: bool = False  # joined by `|`
    # where
    constraint: str | None = None
    prefer: str | None = None
    batch_features: str | None = None
    nodelist: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    contiguous: bool = False
    exclusive: Exclusive | None = None
    oversubscribe: bool = False
    spread_job: bool = False
    use_min_nodes: bool = False
    switches: int | None = None
    switches_wait: int | None = None  # seconds
    segment: int | None = None
    distribution: str | None = None  # canonical text
    no_kill: bool = False
    wait_all_nodes: bool | None = None
    stepmgr: bool = False
    reboot: bool = False
    resv_ports: int | None = None
    network: str | None = None
    # files and environment
    chdir: str | None = None
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    open_mode: str | None = None  # "append" | "truncate"
    export: str | None = None  # as typed
    export_file: str | None = None
    get_user_env: bool = False
    propagate: str | None = None
    umask: int | None = None
    # messages and records
    mail_type: tuple[str, ...] = ()  # canonical words, in Slurm's order
    mail_user: str | None = None
    acctg_freq: str | None = None
    profile: str | None = None
    cpu_freq: str | None = None
    burst_buffer: str | None = None
    cluster_constraint: str | None = None
    mcs_label: str | None = None
    oom_kill_step: int | None = None
    bell: str | None = None
    # what srun and salloc themselves do
    immediate: int | None = None  # seconds; 1: now or never
    no_shell: bool = False  # the allocation outlives salloc
    # containers (pyxis and OCI)
    container: str | None = None
    container_id: str | None = None
    container_image: str | None = None
    container_mounts: str | None = None
    container_workdir: str | None = None
    container_mount_home: bool | None = None
    container_writable: bool | None = None  # False: --container-readonly
    container_env: str | None = None
    # identity change (root only)
    uid: str | None = None
    gid: str | None = None
    # what sbatch itself does
    wrap: str | None = None
    parsable: bool = False
    quiet: bool = False
    verbose: int = 0
    wait: bool = False
    test_only: bool = False
    recorded: tuple[tuple[str, str], ...] = ()  # options kept for the record alone: (long name, text)
    provenance: tuple[tuple[str, Provenance], ...] = ()  # (field, where from) of all given fields
