"""The cluster as configured and as it stands: nodes, devices, partitions, licences, the whole slurm.conf.

Configuration records come from `lang.slurm_conf`; `Node` and `Partition` are the live records (`scontrol update` may
change them). Times of limits are minutes, memory MiB.
"""

from __future__ import annotations

import re
from typing import Final, Literal

import msgspec

from slurmbridge.model.retention import Retention
from slurmbridge.model.states import NodeBase, NodeFlag, PartitionState
from slurmbridge.model.topology import Topology

DEFAULT_DEVICE_MIB: Final = 80 * 1024
"""Memory of a device whose size nobody said."""


class Device(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One device of gres.conf."""

    name: str = "gpu"
    index: int = 0
    type: str = ""
    file: str = ""
    memory_mib: int = 0  # that jobs may use; 0 = not known: fractions by memory then use DEFAULT_DEVICE_MIB
    cores: str = ""
    links: str = ""
    resource: str = ""  # by which pods ask for it, where it comes from a cluster
    whole_only: bool = False  # it stands beside slices, or is a share already: no parts of it are given out

    @property
    def is_slice(self) -> bool:
        """Whether it is a part of a device in MIG mode, by its type (`1g.10gb`, `a100_3g.20gb`): it is not shared."""
        return self.whole_only or is_mig_profile(self.type)


_PROFILE = re.compile(r"(?:.*[_-])?[0-9]+g\.[0-9]+gb(?:[+._-].*)?", re.IGNORECASE)


def is_mig_profile(kind: str) -> bool:
    """Whether a type names a MIG profile, with or without the device's name before it."""
    return _PROFILE.fullmatch(kind) is not None


class NodeConf(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node of NodeName lines (expanded), or a virtual node."""

    name: str
    address: str = ""
    host: str = ""
    cpus: int = 1
    boards: int = 1
    sockets: int = 1
    cores_per_socket: int = 1
    threads_per_core: int = 1
    real_memory: int = 1
    tmp_disk: int = 0
    weight: int = 1
    features: tuple[str, ...] = ()
    gres: str = ""  # as written: "gpu:a100:4"
    devices: tuple[Device, ...] = ()
    reason: str = ""
    state: str = "UNKNOWN"
    port: int = 6818
    core_spec_count: int = 0
    mem_spec_limit: int = 0
    extra: str = ""
    comment: str = ""
    index: int = 0  # order in the file

    @property
    def effective_cpus(self) -> int:
        """What jobs may use of them: the others are kept for the system."""
        return max(self.cpus - self.core_spec_count * max(self.threads_per_core, 1), 0)


class Health(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the cluster says that a node is, beside what an operator said of it. It goes by itself when the cause does."""

    is_down: bool = False
    drains: bool = False  # no new work
    is_silent: bool = False
    reason: str = ""
    since: float | None = None
    uid: int | None = None  # SlurmUser's: whoever a reason of the controller's own is by


class Taken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What somebody else than our jobs has of a node, or will not let jobs have, as far as the cluster tells."""

    cpus: int = 0
    memory: int = 0  # MiB
    devices: tuple[tuple[str, int], ...] = ()  # how many of each resource; which ones nobody knows
    bad: tuple[tuple[str, int], ...] = ()  # how many of these are broken, or tainted
    slots: tuple[int, ...] = ()  # those of the bad ones that are known, by index
    trouble: str = ""  # what is said of the first of them
    jobs: int | None = None  # so many jobs at most: pods of a node are limited


class Others(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """`Taken` as the planner has to have it: devices by index."""

    cpus: int = 0
    memory: int = 0  # MiB
    devices: tuple[int, ...] = ()  # indexes
    drained: str = ""  # those of them that are broken or tainted, as Gres= has them: gpu:a100:1


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A node as it stands. Allocated amounts are derived from running jobs by the daemon's `Nodes` index."""

    conf: NodeConf
    base: NodeBase = NodeBase.IDLE
    flags: frozenset[NodeFlag] = frozenset()
    reason: str = ""
    reason_uid: int | None = None
    reason_time: float | None = None
    alloc_cpus: int = 0
    alloc_memory: int = 0
    alloc_devices: tuple[tuple[int, int, int], ...] = ()  # (index, milli, mib) in use
    running_jobs: tuple[int, ...] = ()
    completing_jobs: tuple[int, ...] = ()
    owner_uid: int | None = None  # exclusive=user
    free_memory: int | None = None  # MiB, measured
    cpu_load: float | None = None
    boot_time: float = 0.0
    slurmd_start_time: float = 0.0
    last_busy_time: float = 0.0
    features_active: tuple[str, ...] = ()
    os: str = ""
    arch: str = "x86_64"
    comment: str = ""
    extra: str = ""
    others: Others = Others()

    @property
    def name(self) -> str:
        return self.conf.name


class NodeEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which a node was not at work (sacctmgr show event)."""

    node: str
    start: float
    end: float | None  # None: not over
    state: str  # "DOWN", "DRAIN", "DOWN+DRAIN" ...
    reason: str
    uid: int | None


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A PartitionName line (or what scontrol made of it). None = not set."""

    name: str
    nodes: tuple[str, ...] = ()  # expanded, in configuration order
    nodes_text: str = ""  # as written
    default: bool = False
    state: PartitionState = PartitionState.UP
    max_time: int | None = None  # minutes; None = unlimited
    default_time: int | None = None
    max_nodes: int | None = None
    min_nodes: int = 0
    allow_groups: tuple[str, ...] = ()  # empty = ALL
    allow_accounts: tuple[str, ...] = ()
    deny_accounts: tuple[str, ...] = ()
    allow_qos: tuple[str, ...] = ()
    deny_qos: tuple[str, ...] = ()
    alloc_nodes: str = "ALL"
    qos: str = ""
    hidden: bool = False
    root_only: bool = False
    req_resv: bool = False
    disable_root_jobs: bool = False
    exclusive_user: bool = False
    exclusive_topo: bool = False
    lln: bool = False
    oversubscribe: str = "NO"  # NO, EXCLUSIVE, YES:n, FORCE:n
    over_time_limit: int | None = None
    priority_job_factor: int = 1
    priority_tier: int = 1
    preempt_mode: str = ""  # empty: the cluster's
    grace_time: int = 0
    max_cpus_per_node: int | None = None
    max_cpus_per_socket: int | None = None
    def_mem_per_node: int | None = None
    def_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    max_mem_per_cpu: int | None = None
    job_defaults: str = ""
    suspend_time: int | None = None
    tres_billing_weights: str = ""
    topology: str = ""  # of topology.yaml; empty: the cluster's
    index: int = 0


class LicenseConf(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    total: int


DEFAULT_POOL: Final = "default"
Placement = Literal["binpack", "spread"]


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A declared set of nodes that quotas are counted in. Pools are disjoint and have nothing to do with partitions."""

    name: str
    nodes: tuple[str, ...] = ()  # names, in configuration order
    node_selector: tuple[tuple[str, str], ...] = ()  # or the labels its nodes have, where nodes come from a cluster
    placement: Placement = "binpack"  # of jobs on nodes: fill nodes up, or the emptiest first
    device_placement: Placement = "binpack"  # of fractions on a node's devices


class Scheduling(msgspec.Struct, frozen=True, kw_only=True):
    """How jobs are ordered. Ours: section `scheduling` of the site file."""

    order: Literal["auto", "plain", "fair"] = "auto"  # auto: queues take turns where a quota is set, one line elsewhere
    backfill: Literal["priority", "shortest", "aged"] = "priority"  # inside a queue that takes turns
    promise: Literal["turn", "claim", "age"] = "turn"  # who is promised the next start
    nodes: Literal["configured", "lasting"] = (
        "configured"  # filled first: by configuration, or those in use for longest
    )
    promised: Literal["idle", "lent"] = "idle"  # what is kept for a promised start, until then
    history: float = 1.0  # how much past use counts against a queue when what is idle is shared out


class ClusterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that slurm.conf and its companions say.

    `values` has every plain key as (Slurm's own spelling, text as `scontrol show config` prints it before defaults);
    what the code acts on has a field of its own.
    """

    cluster_name: str = "cluster"
    conf_file: str = ""  # path, empty when no file was given
    control_host: str = "localhost"
    control_addr: str = ""
    slurm_user: str = "root"
    nodes: tuple[NodeConf, ...] = ()
    partitions: tuple[Partition, ...] = ()
    pools: tuple[Pool, ...] = ()  # as declared; `all_pools` has the rest, too
    scheduling: Scheduling = Scheduling()
    licenses: tuple[LicenseConf, ...] = ()
    gres_types: tuple[str, ...] = ()
    values: tuple[tuple[str, str], ...] = ()  # key -> text, in file order, last wins already applied
    without_effect: tuple[tuple[str, int, str], ...] = ()  # (file, line, key) of known keys that mean nothing here
    down_nodes: tuple[tuple[tuple[str, ...], str, str], ...] = ()  # (names, state, reason)
    first_job_id: int = 1
    max_job_id: int = 67_043_328
    max_job_count: int = 10_000
    max_step_count: int = 40_000
    max_tasks_per_node: int = 512
    max_array_size: int = 1001
    max_array_tasks: int = 1001
    max_batch_requeue: int = 5
    requeue_exit: frozenset[int] = frozenset()  # exit codes after which a batch job is begun again
    requeue_exit_hold: frozenset[int] = frozenset()  # the same, and it is held
    min_job_age: int = 300
    kill_wait: int = 30
    message_timeout: int = 10
    inactive_limit: int = 0
    wait_time: int = 0
    kill_on_bad_exit: bool = False
    job_requeue: bool = True
    job_file_append: bool = False
    enforce_part_limits: str = "NO"  # NO, ANY, ALL
    enforce: frozenset[str] = frozenset()  # of AccountingStorageEnforce: associations, limits, qos, safe, wckeys
    def_mem_per_cpu: int | None = None
    def_mem_per_node: int | None = None
    def_mem_per_gpu: int | None = None
    def_cpu_per_gpu: int | None = None
    max_mem_per_cpu: int | None = None
    max_mem_per_node: int | None = None
    select_type_parameters: frozenset[str] = frozenset({"CR_CPU"})
    select_type: str = "select/cons_tres"
    over_time_limit: int = 0
    complete_wait: int = 0
    return_to_service: int = 0
    priority_type: str = "priority/multifactor"
    priority_weight_age: int = 0
    priority_weight_assoc: int = 0
    priority_weight_fairshare: int = 0
    priority_weight_job_size: int = 0
    priority_weight_partition: int = 0
    priority_weight_qos: int = 0
    priority_weight_tres: str = ""
    priority_max_age: int = 7 * 86400  # seconds
    priority_decay_half_life: int = 7 * 86400
    priority_usage_reset_period: str = "NONE"  # NONE, NOW, DAILY, WEEKLY, MONTHLY, QUARTERLY, YEARLY
    priority_flags: frozenset[str] = frozenset()  # capitals, as `PRIORITY_FLAGS` has them
    priority_favor_small: bool = False
    preempt_type: str = "preempt/none"
    preempt_mode: str = "OFF"
    preempt_exempt_time: int = 0  # seconds; a QOS may say otherwise
    preempt_parameters: str = ""
    scheduler_type: str = "sched/backfill"
    scheduler_parameters: str = ""
    dependency_parameters: str = ""
    accounting_tres: tuple[str, ...] = ()
    store_flags: frozenset[str] = frozenset()
    propagate_limits: tuple[str, ...] = ("ALL",)
    propagate_limits_except: tuple[str, ...] = ()  # where there are any, all others travel
    mail_prog: str = ""
    mail_domain: str = ""
    private_data: frozenset[str] = frozenset()
    allow_spec_resources: bool = False
    track_wckey: bool = False
    topology: str = "topology/default"
    topology_param: str = ""
    topologies: tuple[Topology, ...] = ()
    mpi_default: str = "none"
    task_prolog: str = ""
    task_epilog: str = ""
    prolog: str = ""
    epilog: str = ""
    spool_dir: str = ""  # SlurmdSpoolDir, for display
    retention: Retention = Retention()  # of slurmdbd.conf
    dbd_values: tuple[tuple[str, str], ...] = ()  # keys of slurmdbd.conf as written, for display

    def topology_of(self, partition: Partition | None) -> Topology | None:
        """The topology that jobs of a partition follow; None: all nodes are equally near."""
        name = partition.topology if partition is not None else ""
        for each in self.topologies:
            if each.name == name or (not name and each.cluster_default):
                return each
        return None

    def partition(self, name: str) -> Partition | None:
        return next((p for p in self.partitions if p.name == name), None)

    @property
    def default_partition(self) -> Partition | None:
        return next((p for p in self.partitions if p.default), None)

    @property
    def all_pools(self) -> tuple[Pool, ...]:
        """The declared pools and, unless they hold every node, "default" with the nodes that are in none.

        Nodes are names; pools by labels count as empty until the daemon has put their nodes in.
        """
        taken = {name for pool in self.pools for name in pool.nodes}
        rest = tuple(node.name for node in self.nodes if node.name not in taken)
        declared = {pool.name: pool for pool in self.pools}
        if DEFAULT_POOL in declared:
            mine = declared[DEFAULT_POOL]
            whole = msgspec.structs.replace(mine, nodes=mine.nodes + rest)
            return tuple(whole if pool.name == DEFAULT_POOL else pool for pool in self.pools)
        return (*self.pools, Pool(name=DEFAULT_POOL, nodes=rest)) if rest or not self.pools else self.pools
