"""Job, step and allocation records.

`JobSpec` is what the controller accepted (fixed but for `scontrol update`); `Job` adds identity and everything that
changes. A pending array is ONE Job whose `tasks` holds the indexes not yet started; a task that starts, is held or is
changed by itself splits off as a Job of its own (`lifecycle.arrays`). Heterogeneous components are Jobs with
consecutive ids and a common `het_job_id`.

Records are never changed and hold nothing that could hold them, so no search for garbage goes through them (`gc=False`); of
a job only what differs from the defaults is encoded.
"""

from __future__ import annotations

import enum

import msgspec

from slurmbridge.model.request import (
    Dependency,
    Exclusive,
    JobRequest,
    LicenseTerm,
    Memory,
    Signal,
)
from slurmbridge.model.states import JobFlag, JobState, Reason
from slurmbridge.model.tres import Tres
from slurmbridge.model.words import Word


class GpuScope(Word):
    JOB = "job"
    NODE = "node"
    SOCKET = "socket"
    TASK = "task"


class GpuNeed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """GPUs of one job, after resolution: how many devices of what, and how much of each.

    `count` devices per `scope`; each device is taken whole (milli = 1000, mib = 0), by portion (milli < 1000) or by
    memory (mib > 0). Other gres (shard, mps) are turned into a portion here. Of several types: `kinds` says how many of
    each, `count` is their sum and `type` is empty.
    """

    scope: GpuScope
    count: int
    type: str = ""
    milli: int = 1000
    mib: int = 0
    kinds: tuple[tuple[str, int], ...] = ()


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """A job as accepted: resolved names, counts and limits. Text fields are what scontrol shows."""

    request: JobRequest
    uid: int
    gid: int
    groups: tuple[int, ...] = ()  # supplementary
    user: str  # names at submission; displays look them up again
    group: str
    account: str
    assoc_id: int = 0  # 0 = none
    qos: str = "normal"
    lifted: tuple[str, ...] = ()  # limits of partitions that the QOS lifts, for the planner: see `submit.lifting`
    wckey: str = ""
    partitions: tuple[str, ...]  # candidates, in the user's order
    name: str
    command: str | None = None  # absolute path of the script, None for --wrap and stdin
    submit_line: str = ""
    submit_host: str = ""
    submit_sid: int = 0
    work_dir: str
    std_in: str | None = None  # None: /dev/null
    std_out: str | None = None  # patterns, absolute; None: none (no batch script)
    std_err: str | None = None  # None: same as std_out
    open_mode: str = "truncate"
    umask: int = 0o022
    is_batch: bool = True
    script_sha: str = ""  # hex SHA-256 of the stored script
    script_args: tuple[str, ...] = ()
    env_sha: str = ""  # hex SHA-256 of the stored environment
    rlimits: tuple[tuple[str, int, int], ...] = ()  # (NOFILE, soft, hard): --propagate
    # time
    time_limit: int | None = None  # minutes; None = UNLIMITED shown, partition has none either
    time_min: int | None = None
    begin: int | None = None
    deadline: int | None = None
    delay_boot: int = 0
    signal: Signal | None = None
    # size
    min_nodes: int = 1
    max_nodes: int | None = None  # None: no upper bound
    node_counts: tuple[int, ...] = ()
    num_tasks: int = 1  # with ntasks_given False: derived
    ntasks_given: bool = False
    cpus_per_task: int = 1
    cpus_per_task_given: bool = False
    min_cpus: int = 1  # NumCPUs while pending
    max_cpus: int | None = None  # as an update said (NumCPUs=2-4): tasks do not go beyond
    ntasks_per_node: int = 0  # 0 = not given, as are the next ones
    ntasks_per_socket: int = 0
    ntasks_per_core: int = 0
    ntasks_per_gpu: int = 0
    cpus_per_gpu: int = 0
    pn_min_cpus: int = 1  # MinCPUsNode
    memory: Memory | None = None  # None: nothing asked and no default: not counted
    pn_min_tmp_mib: int = 0
    sockets_per_node: int | None = None
    cores_per_socket: int | None = None
    threads_per_core: int | None = None
    overcommit: bool = False
    # resources
    gpu: GpuNeed | None = None
    tres_per_job: str = ""  # as scontrol shows them
    tres_per_node: str = ""
    tres_per_socket: str = ""
    tres_per_task: str = ""
    tres_bind: str = ""
    tres_freq: str = ""
    gres_enforce_bind: bool | None = None
    licenses: str = ""
    license_terms: tuple[LicenseTerm, ...] = ()
    licenses_any_of: bool = False
    req_tres: Tres = ()
    # where
    features: str | None = None
    prefer: str | None = None
    req_nodes: tuple[str, ...] = ()
    exc_nodes: tuple[str, ...] = ()
    contiguous: bool = False
    exclusive: Exclusive = Exclusive.NO
    oversubscribe: bool = False
    reservation: str = ""
    switches: int = 0
    switches_wait: int = 0
    # order and restart
    dependency: Dependency | None = None
    kill_on_invalid_dep: bool = False
    nice: int = 0
    requeue: bool = True
    preemptible: bool | None = None
    # records
    comment: str | None = None
    extra: str | None = None
    network: str | None = None
    mail_type: tuple[str, ...] = ()
    mail_user: str = ""


class DeviceShare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A device of a node, whole or in part."""

    index: int  # on the node, as in gres.conf
    type: str = ""
    milli: int = 1000
    mib: int = 0


class NodeShare(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a job holds on one node."""

    node: str
    cpus: int
    cpu_ids: tuple[int, ...] = ()  # Slurm's abstract CPU numbers
    memory_mib: int = 0
    devices: tuple[DeviceShare, ...] = ()
    tasks: int = 1  # tasks of the layout on this node


class Allocation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A gang's places, in rank order."""

    partition: str
    nodes: tuple[NodeShare, ...]
    tres: Tres = ()
    licenses: tuple[LicenseTerm, ...] = ()
    lent_to: int = 0  # who was promised these places: the run is ended when that job can start


class Evicted(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A run was chosen to give way. Stays on the job that is pending again until its next start."""

    mode: str  # REQUEUE, CANCEL, SUSPEND
    for_job: int = 0  # 0: for no one (a gang that lost a member)
    reason: str = "preempt"  # preempt, reclaim, consolidate, stale
    until: float = 0.0  # end of its grace time
    moved: bool = False  # it was to start elsewhere at once


class Charge(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the use of a run is counted: settled when it ends, so that all who count it agree."""

    half_life: float  # PriorityDecayHalfLife in seconds, 0 = use never fades
    factor: float = 1.0  # UsageFactor of its QOS
    qos_ids: tuple[int, ...] = ()  # QOS that are charged too: its own and the partition's
    lasting: tuple[int, ...] = ()  # those of them whose use never fades (NoDecay)


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False, omit_defaults=True):
    """Identity plus what changes. Times are epoch seconds (float in store, whole seconds when shown)."""

    job_id: int
    spec: JobSpec
    sluid: str = ""
    restarts: int = 0  # also the epoch of the run: (job_id, restarts) names a run for good
    array_job_id: int = 0  # 0 = no array
    array_task_id: int | None = None  # of a task that split off
    tasks: tuple[tuple[int, int, int], ...] = ()  # not yet started tasks of the array record, as runs
    array_limit: int = 0  # %limit, 0 = none
    array_first: int = 0  # of the array as submitted: SLURM_ARRAY_TASK_MIN, MAX, STEP, COUNT
    array_last: int = 0
    array_step: int = 0
    array_count: int = 0
    het_job_id: int = 0  # 0 = not heterogeneous
    het_offset: int = 0
    het_ids: tuple[int, ...] = ()
    state: JobState = JobState.PENDING
    flags: frozenset[JobFlag] = frozenset()
    reason: str = Reason.NONE
    reason_text: str = ""  # longer text that scontrol shows instead
    priority: int = 1  # 0 = held
    held_by: str = ""  # "", "user", "admin"
    submit_time: float
    eligible_time: float | None = None
    accrue_time: float | None = None
    start_time: float | None = None  # of the run; while pending: expected
    end_time: float | None = None
    suspend_time: float | None = None  # when it was last suspended or resumed
    pre_suspend_s: float = 0.0  # run time until then
    last_sched_eval: float | None = None
    is_stopped: bool = False  # suspended, or ended while it was
    preempt_time: float | None = None  # when this run was chosen to give way
    evicted: Evicted | None = None
    sched_nodes: tuple[str, ...] = ()  # while pending: where it is expected to start
    allocation: Allocation | None = None
    batch_host: str = ""
    exit_code: int = 0  # wait status: exit << 8 | signal
    derived_exit_code: int = 0
    dep_done: frozenset[int] = frozenset()  # positions of satisfied dependency terms
    dep_failed: frozenset[int] = frozenset()
    admin_comment: str = ""
    system_comment: str = ""
    cancelled_by: int | None = None  # uid
    kill_reason: str = (
        ""  # why a running job is being ended: "cancel", "timeout", "requeue", "requeue_hold", "node_fail"
    )
    time_limit_end: float | None = None  # when the limit falls due, wall clock (display)
    failures: int = 0  # runs that were lost with a node and begun again
    is_cut: bool = False  # the run's limit was shortened (--time-min)
    whole_limit: int | None = None  # of a run that was cut: what comes back when the job is requeued
    usage: Usage | None = None  # of the whole run, from the supervisors
    charge: Charge | None = None  # of a run that ended
    time_mailed: int = 0  # percent of the time limit that a message told of
    revision: int = 0  # grows with each change

    @property
    def is_array_record(self) -> bool:
        """Whether this stands for tasks that have not started."""
        return bool(self.tasks)

    @property
    def suspended_s(self) -> float:
        """Seconds of the run in which it was suspended; that which goes on is not counted."""
        if self.start_time is None or self.suspend_time is None:
            return 0.0
        return max(0.0, self.suspend_time - self.start_time - self.pre_suspend_s)

    @property
    def is_without_cpus(self) -> bool:
        """Whether others may have its CPUs: it is suspended. Memory and devices stay its own until its last process ends."""
        return self.state is JobState.SUSPENDED or self.is_stopped

    @property
    def gave_way(self) -> bool:
        """Whether it is suspended for another job, and goes on by itself."""
        return self.state is JobState.SUSPENDED and self.evicted is not None and self.evicted.mode == "SUSPEND"

    @property
    def may_requeue(self) -> bool:
        """An allocation without a script is its caller's: it ends with the caller and is never begun again."""
        return self.spec.requeue and self.spec.is_batch

    @property
    def is_pending(self) -> bool:
        return self.state is JobState.PENDING

    @property
    def is_finished(self) -> bool:
        return self.state.is_finished


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What processes used. Microseconds, KiB as the kernel reports them; node and task of the maximum."""

    user_us: int = 0
    system_us: int = 0
    max_rss_kib: int = 0
    max_rss_node: str = ""
    max_rss_task: int = 0
    max_vsize_kib: int = 0
    sum_rss_kib: int = 0  # of the greatest of each task; 0 in records of old: not known
    sum_vsize_kib: int = 0
    disk_read: int = 0  # bytes
    disk_write: int = 0
    pages: int = 0


class StepId(enum.Enum):
    """Steps that are no number; value as in SLURM_STEP_ID (32-bit, negative)."""

    BATCH = -5
    EXTERN = -4
    INTERACTIVE = -6
    PENDING = -3


class Step(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One step of one run; key (job_id, restarts, step_id)."""

    job_id: int
    restarts: int = 0
    step_id: int  # >= 0, or a value of StepId
    name: str = ""
    state: JobState = JobState.RUNNING
    start_time: float
    end_time: float | None = None
    nodes: tuple[str, ...] = ()
    num_tasks: int = 1
    cpus: int = 1
    tres: Tres = ()
    exit_code: int = 0
    layout: str = ""  # "Block", "Cyclic" ...
    submit_line: str = ""
    std_out: str = ""
    std_err: str = ""
    std_in: str = ""
    usage: Usage | None = None
    cancelled_by: int | None = None
