"""Job and node states, flags and reasons, spelled as Slurm spells them (tables.md sections 10 and 11)."""

from __future__ import annotations

from slurmbridge.model.words import Word


class JobState(Word):
    """Base state: value = compact code."""

    PENDING = "PD"
    RUNNING = "R"
    SUSPENDED = "S"
    COMPLETED = "CD"
    CANCELLED = "CA"
    FAILED = "F"
    TIMEOUT = "TO"
    NODE_FAIL = "NF"
    PREEMPTED = "PR"
    BOOT_FAIL = "BF"
    DEADLINE = "DL"
    OUT_OF_MEMORY = "OOM"

    def __init__(self, code: str) -> None:
        self.is_finished = code not in ("PD", "R", "S")  # asked for every job, many times a second: no call


class JobFlag(Word):
    """State flags, shown instead of the base state, the first that is set in this order. value = compact code."""

    COMPLETING = "CG"
    STAGE_OUT = "SO"
    CONFIGURING = "CF"
    RESIZING = "RS"
    REQUEUED = "RQ"
    REQUEUE_FED = "RF"
    REQUEUE_HOLD = "RH"
    SPECIAL_EXIT = "SE"
    STOPPED = "ST"
    REVOKED = "RV"
    RESV_DEL_HOLD = "RD"
    SIGNALING = "SI"


class NodeBase(Word):
    DOWN = "DOWN"
    IDLE = "IDLE"
    ALLOCATED = "ALLOCATED"
    ERROR = "ERROR"
    MIXED = "MIXED"
    FUTURE = "FUTURE"
    UNKNOWN = "UNKNOWN"


class NodeFlag(Word):
    """Flags that `+` after the base state (scontrol) or change the short form (sinfo). value = Slurm's word."""

    DRAIN = "DRAIN"
    COMPLETING = "COMPLETING"
    FAIL = "FAIL"
    MAINTENANCE = "MAINTENANCE"
    NOT_RESPONDING = "NOT_RESPONDING"
    RESERVED = "RESERVED"
    PLANNED = "PLANNED"
    POWERED_DOWN = "POWERED_DOWN"
    REBOOT_REQUESTED = "REBOOT_REQUESTED"


class PartitionState(Word):
    UP = "UP"
    DOWN = "DOWN"
    DRAIN = "DRAIN"
    INACTIVE = "INACTIVE"


class Reason:
    """Words for why a job waits or ended as it did (Slurm's 217 strings are plain text; these are used in code)."""

    NONE = "None"
    PRIORITY = "Priority"
    DEPENDENCY = "Dependency"
    DEPENDENCY_NEVER = "DependencyNeverSatisfied"
    RESOURCES = "Resources"
    PARTITION_NODE_LIMIT = "PartitionNodeLimit"
    PARTITION_TIME_LIMIT = "PartitionTimeLimit"
    PARTITION_DOWN = "PartitionDown"
    PARTITION_INACTIVE = "PartitionInactive"
    PARTITION_CONFIG = "PartitionConfig"
    HELD_USER = "JobHeldUser"
    HELD_ADMIN = "JobHeldAdmin"
    BEGIN_TIME = "BeginTime"
    LICENSES = "Licenses"
    RESERVATION = "Reservation"
    REQ_NODE_NOT_AVAIL = "ReqNodeNotAvail"
    NODE_DOWN = "NodeDown"
    BAD_CONSTRAINTS = "BadConstraints"
    ARRAY_TASK_LIMIT = "JobArrayTaskLimit"
    NON_ZERO_EXIT = "NonZeroExitCode"
    RAISED_SIGNAL = "RaisedSignal"
    TIME_LIMIT = "TimeLimit"
    LAUNCH_FAILURE = "JobLaunchFailure"
    INVALID_ACCOUNT = "InvalidAccount"
    INVALID_QOS = "InvalidQOS"
    DEADLINE = "DeadLine"
    ACCOUNT_NOT_ALLOWED = "AccountNotAllowed"
    QOS_NOT_ALLOWED = "QOSNotAllowed"
    MAX_REQUEUE = "JobHoldMaxRequeue"
    MAX_MEM_PER_LIMIT = "MaxMemPerLimit"
    ASSOC_MAX_JOBS = "AssocMaxJobsLimit"
    QOS_MAX_JOBS_PER_USER = "QOSMaxJobsPerUserLimit"
