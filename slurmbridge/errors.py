"""The one tree of errors that cross package borders, and the table of Slurm's own refusals.

An error knows how Slurm words it, which exit code a command ends with, and the HTTP status the REST interface gives.
Scheduling and validation return verdicts (`Refusal`), they do not raise; exceptions are for borders.

Source of wording: Slurm 26.05 `slurm_errno` messages as printed by its commands.
"""

from __future__ import annotations

import enum
import os


class SlurmErrno(enum.Enum):
    """A refusal of the controller: (Slurm's symbolic name without ESLURM_, its text, HTTP status).

    The text is what follows `sbatch: error: Batch job submission failed: ` and is printed by scontrol and scancel too.
    """

    INVALID_PARTITION_NAME = ("Invalid partition name specified", 422)
    INVALID_NODE_NAME = ("Invalid node name specified", 422)
    INVALID_NODE_COUNT = ("Node count specification invalid", 422)
    INVALID_FEATURE = ("Invalid feature specification", 422)
    INVALID_PREFER = ("Invalid preferred feature specification", 422)
    INVALID_ACCOUNT = ("Invalid account or account/partition combination specified", 422)
    INVALID_WCKEY = ("Invalid wckey specification", 422)
    INVALID_QOS = ("Invalid qos specification", 422)
    INVALID_LICENSES = ("Invalid license specification", 422)
    INVALID_GRES = ("Invalid generic resource (gres) specification", 422)
    INVALID_TRES = ("Invalid Trackable RESource (TRES) specification", 422)
    INVALID_ARRAY = ("Invalid job array specification", 422)
    INVALID_TIME_LIMIT = ("Requested time limit is invalid (missing or exceeds some limit)", 422)
    INVALID_NICE = ("Invalid --nice value", 422)
    INVALID_ACCTG_FREQ = ("Invalid accounting frequency requested", 422)
    INVALID_BATCH_FEATURE = ("Job --batch option is invalid or not a subset of --constraint", 422)
    INVALID_JOB_ID = ("Invalid job id specified", 404)
    RESERVATION_INVALID = ("Requested reservation is invalid", 422)
    DEPENDENCY = ("Job dependency problem", 422)
    NOT_SUPPORTED = ("Requested operation not supported on this system", 501)
    ACCOUNTING_POLICY = (
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        422,
    )
    TOO_MANY_REQUESTED_CPUS = ("More processors requested than permitted", 422)
    REQUESTED_NODE_CONFIG_UNAVAILABLE = ("Requested node configuration is not available", 422)
    NODES_BUSY = ("Requested nodes are busy", 409)
    ALREADY_DONE = ("Job/step already completing or completed", 409)
    ACCESS_DENIED = ("Access/permission denied", 403)
    USER_ID_MISSING = ("Invalid user id", 403)
    JOB_NOT_PENDING = ("Job is no longer pending execution", 409)
    JOB_PENDING = ("Job is pending execution", 409)
    JOB_FINISHED = ("Job has already finished", 409)
    JOB_NOT_SUSPENDED = ("Job is not suspended", 409)
    NODE_TRANSITION = ("Invalid node state transition", 409)
    NO_TOPOLOGY = ("Requested topology configuration is not available", 422)
    PARTITION_IN_USE = ("Partition is in use", 409)
    ACTIVE_FEATURES = ("Active features not subset of available features", 422)
    POWER_ACTION = ("Invalid power action", 501)
    RESERVATION_OVERLAP = ("Requested reservation overlaps with another reservation", 409)
    JOB_HELD = ("Job is in held state, pending scheduler release", 409)
    DISABLED = ("Requested operation is presently disabled", 409)
    NOT_HETJOB_COMPONENT = (
        "Operation not permitted on individual component of heterogeneous job",
        409,
    )
    MAX_JOB_COUNT = ("Slurm temporarily unable to accept job, sleeping and retrying", 503)
    JOB_ID_EXHAUSTED = ("Job ids are used up: raise MaxJobId", 503)
    PATHNAME_TOO_LONG = ("Pathname of a file, directory or other parameter too long", 422)
    ENVIRONMENT_TOO_LARGE = ("Environment too large", 413)
    SCRIPT_TOO_LARGE = ("Job script too large", 413)
    IO_ERROR = ("Error writing to the state store; nothing was submitted", 503)
    INTERNAL = ("Internal error in the controller", 500)
    INVALID_TASK_MEMORY = ("Memory required by task is not available", 422)
    JOB_SCRIPT_MISSING = ("Job script not specified or is missing", 404)
    RESERVATION_BUSY = ("Requested reservation is in use", 409)
    INVALID_PARAMETER = ("Invalid user request", 422)
    INVALID_TIME_MIN = ("Invalid time-min specification (exceeds job's time or other limits)", 422)
    INVALID_GRES_MIX = ("Invalid GRES specification (with and without type identification)", 422)
    NO_DEFAULT_PARTITION = ("No partition specified or system default partition", 422)
    GROUP_NOT_ALLOWED = ("User's group not permitted to use this partition", 403)
    INVALID_CPU_COUNT = ("CPU count specification invalid", 422)
    INVALID_TIME_VALUE = ("Invalid time specified", 422)
    JOB_NOT_RUNNING = ("Job is not running", 409)
    UNSPECIFIED = ("Unspecified error", 422)
    BAD_TASK_COUNT = ("Task count specification invalid", 422)

    @property
    def text(self) -> str:
        """Slurm's words."""
        return self.value[0]

    @property
    def http_status(self) -> int:
        """Status of the REST interface."""
        return self.value[1]


class BridgeError(Exception):
    """Root of the tree."""

    exit_code = 1


class InputError(BridgeError):
    """Something that a person wrote is wrong: the text says what and where."""


class LangError(InputError):
    """Text of a mini-language that does not parse.

    Attributes: message, place (0-based offset in `text`), expected (human words, may be empty), text.
    """

    def __init__(self, message: str, *, text: str = "", place: int = 0, expected: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.text, self.place, self.expected = message, text, place, expected


class ConfigError(InputError):
    """A configuration file is wrong: file, line (1-based) and reason."""

    def __init__(self, message: str, *, file: str = "", line: int = 0) -> None:
        where = f"{file}:{line}: " if line else (f"{file}: " if file else "")
        super().__init__(where + message)
        self.message, self.file, self.line = message, file, line


class StoreError(BridgeError):
    """The database failed: full disk, I/O error, newer schema."""


class RuntimeFault(BridgeError):
    """A place where jobs run failed."""


class ProtocolError(BridgeError):
    """The other side of a connection broke the protocol."""


def system_text(number: int) -> str:
    """The system's words for one of its error numbers, as strerror(3) has them."""
    return os.strerror(number)
