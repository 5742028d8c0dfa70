"""What a Slurm command asks of the world, as values: commands are generators that yield these and get answers back.

    def main(call: Call, site: Site) -> Command

A command parses `call.argv`, yields effects, and returns its exit code. It never touches a file, clock or socket; the
daemon (or the local interpreter, for what needs no daemon) performs the effects in order. `Site` gives reads of the
controller's memory; they are plain calls, valid for the moment between two yields.

Answers: `Print` None; `ReadFile`/`ReadStdin`/`WriteFile` -> FileData; `Submit` -> Submitted | Refused; `Change` -> Outcome; `ChangeAll` -> tuple[Outcome, ...];
`WaitFor` -> tuple[Job, ...] (ended); `WaitStart` -> Progress; `HandOver`/`Recall` -> Returned; `History` -> tuple[JobRow, ...]; `Fetch` -> bytes | Refused; `KeptOutput` -> KeptPart; `Alter` -> AlterOutcome.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from slurmbridge.errors import BridgeError, SlurmErrno
from slurmbridge.model.accounts import Accounting, Transaction, UsageRow
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.job import Job, JobSpec, Step
from slurmbridge.model.plan import Reservation
from slurmbridge.model.request import JobRequest
from slurmbridge.model.statistics import Statistics
from slurmbridge.model.verdict import Refused


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One command line, as typed, with what the caller's process knows."""

    argv: tuple[str, ...]  # argv[0] = "sbatch"; undecodable bytes as surrogates (os.fsdecode)
    env: Mapping[str, str]
    cwd: str
    umask: int = 0o022
    columns: int = 80
    uid: int = 0
    gid: int = 0
    groups: tuple[int, ...] = ()
    user: str = "root"
    group: str = "root"
    host: str = "localhost"  # where it was typed
    sid: int = 0
    now: float = 0.0
    nonce: str = ""  # 32 hex digits
    stdin_is_tty: bool = False
    stdout_is_tty: bool = False
    rlimits: tuple[tuple[str, int, int], ...] = ()  # (NOFILE, soft, hard) of the caller; -1 = unlimited
    by_token: bool = False  # known by a token of his own alone


class Print(msgspec.Struct, frozen=True):
    """Text to the caller's stdout (1) or stderr (2)."""

    text: str
    fd: int = 1


class ReadFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on the caller's side, read by the caller with its own rights; at most `limit` bytes.

    `name` must occur in what the user typed or in a script already read: the client refuses anything else.
    `search_path`: look along the caller's PATH when the name has no slash and is not in the working directory (scripts).
    """

    name: str
    search_path: bool = False
    limit: int = 4 * 1024 * 1024


class ReadStdin(msgspec.Struct, frozen=True, kw_only=True):
    """All of the caller's standard input (`line`: one line), at most `limit` bytes."""

    limit: int = 4 * 1024 * 1024
    line: bool = False


class WriteFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file on the caller's side, made or replaced by the caller with its own rights and umask: answered by FileData.

    `name` must be a word that the user typed, or be made of one as Slurm makes names (`slurm-JOB.sh`, `CLUSTER.cfg`):
    the client refuses anything else. `mode`: permissions of a new file before the umask.
    """

    name: str
    data: bytes
    mode: int = 0o666


class FileData(msgspec.Struct, frozen=True, kw_only=True):
    """`errno` 0: `data` is the content and `path` the absolute path it was found under. EFBIG: over the limit."""

    data: bytes = b""
    path: str = ""
    errno: int = 0


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """One job (or het component) to submit: the request, the script's bytes and arguments, the environment to store."""

    request: JobRequest
    script: bytes = b""
    script_args: tuple[str, ...] = ()
    script_path: str | None = None  # absolute, None for stdin and --wrap
    env: tuple[tuple[str, str], ...] = ()  # after --export, ready for the job but for SLURM_* of the allocation


class Submit(msgspec.Struct, frozen=True, kw_only=True):
    """Submit one job, several components (heterogeneous), or only test (`test_only`: no job is made)."""

    components: tuple[Component, ...]
    test_only: bool = False
    batch: bool = True  # False: an allocation without a script; it is given up when its caller is gone


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """Durable. For test_only: start, cpus, nodes text, partition instead of a job."""

    job_id: int
    repeated: bool = False  # the caller had lost its connection and asked again: what was said need not be repeated
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # for who reads what is printed
    start: float | None = None
    cpus: int = 0
    nodes: str = ""
    partition: str = ""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One request about one job, array task(s) or het job, as the caller (rights are checked by the daemon).

    verb: cancel | signal | hold | uhold | release | requeue | requeuehold | suspend | resume | update | top | notify | complete.
    For cancel and signal `signal` and `scope` count ("" all, "batch", "full", "steps").
    complete: the owner gives an allocation without a script back, with the wait status of what it ran there in `fields`.
    For update `fields` are typed as slurmctld's update message (see commands.update).
    """

    verb: str
    job_id: int
    array_tasks: tuple[int, ...] | None = None  # ID_3, ID_[5-7]; None: the job itself, a whole array, a whole het job
    het_offset: int | None = None  # ID+1
    step_id: int | None = None
    signal: int = 15
    scope: str = ""
    fields: tuple[tuple[str, Any], ...] = ()
    state_filter: tuple[str, ...] = ()
    message: str = ""


class ChangeAll(msgspec.Struct, frozen=True, kw_only=True):
    """Changes asked for at once: answered by a tuple of Outcomes when all are durable; others are served meanwhile."""

    changes: tuple[Change, ...]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """Per addressed job: (label such as 12_3, None or the refusal). Durable when it arrives."""

    results: tuple[tuple[str, SlurmErrno | None], ...] = ()


class Alter(msgspec.Struct, frozen=True, kw_only=True):
    """A request about something that is no job (rights checked by the daemon).

    kind: node | partition | reservation | accounting | reconfigure | debug | shutdown | token.
    verb: create | update | delete | replace. `target`: node hostlist, partition or reservation name.
    For accounting: `accounting` replaces all entities (compare-and-set on its revision), `transactions` are recorded.
    """

    kind: str
    verb: str = "update"
    target: str = ""
    fields: tuple[tuple[str, Any], ...] = ()
    accounting: Accounting | None = None
    transactions: tuple[Transaction, ...] = ()


class AlterOutcome(msgspec.Struct, frozen=True, kw_only=True):
    errno: SlurmErrno | None = None
    detail: str = ""  # text for the user, e.g. the name given to a new reservation
    conflict: bool = False  # the accounting revision moved on: read again and retry


class WaitFor(msgspec.Struct, frozen=True, kw_only=True):
    """Until all these jobs (an array id stands for all its tasks) have ended; answered from the store for old ones."""

    job_ids: tuple[int, ...]


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs sacct wants; everything given must hold. Times are epoch seconds: runs alive within [start, end]."""

    job_ids: tuple[tuple[int, int | None, int | None], ...] = ()  # (id, array task, step), id raw or of an array
    users: tuple[int, ...] | None = None
    accounts: tuple[str, ...] = ()
    partitions: tuple[str, ...] = ()
    qos: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    states: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    wckeys: tuple[str, ...] = ()
    start: float | None = None
    end: float | None = None
    duplicates: bool = False  # -D: all restarts, else the last run of each job
    with_steps: bool = True
    with_script: bool = False
    with_env: bool = False


class History(msgspec.Struct, frozen=True, kw_only=True):
    """Accounting rows, ordered by job id (arrays by task), then restart."""

    filter: JobFilter


class JobRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run with its steps, as the store has it."""

    job: Job
    steps: tuple[Step, ...] = ()
    script: bytes | None = None
    env: tuple[tuple[str, str], ...] | None = None


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """The stored script (what="script") or environment (what="env") of a job; owner and operators only."""

    what: str
    job_id: int


class KeptOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What the controller keeps of a job's output, for who may read it: answered by KeptPart, with `size` bytes at most of
    the file `name` from `offset` on. `wait_s`: where there are none, more is waited for so long."""

    job_id: int
    name: str = ""
    offset: int = 0
    size: int = 0
    wait_s: float = 0.0


class Reports(msgspec.Struct, frozen=True, kw_only=True):
    """Rows the store keeps besides jobs. what: transactions | events | tres."""

    what: str
    start: float | None = None
    end: float | None = None


class WaitStart(msgspec.Struct, frozen=True, kw_only=True):
    """Until the job is further than `known`, the caller catches a signal, or so many seconds are over."""

    job_id: int
    known: str = "new"
    seconds: float | None = None


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job (all components of it) has come: new, waiting (the scheduler has looked at it), allocated, ready
    (its supervisors met), over, gone (nothing is left to clean up). `signal`: what the caller caught meanwhile, 0: nothing."""

    phase: str
    signal: int = 0


class HandOver(msgspec.Struct, frozen=True, kw_only=True):
    """The allocation is the caller's: it runs a step in it ("step"), a command ("command"), or looks on ("attach").

    `facts`: what the client must know besides (see `wire.client`, frame J). Answered when the client has finished, when
    the job has ended before (`is_over`), or when the client caught a signal.
    """

    job_id: int
    what: str
    facts: tuple[tuple[str, Any], ...] = ()
    env: tuple[tuple[str, str], ...] = ()


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is left of the allocation: wait for the client alone. `signal`: to what runs there, 0: none."""

    signal: int = 0


class Returned(msgspec.Struct, frozen=True, kw_only=True):
    """What the client says of what was handed over."""

    code: int = 0  # exit code for the user
    status: int = 0  # wait status for the job
    is_over: bool = False  # the job ended first; the client goes on
    signal: int = 0  # caught by the client, which goes on


class PriorityFactors(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner made the priorities of its last cycle of: answered by tuple[model.plan.Factors, ...]."""


class QueueShares(msgspec.Struct, frozen=True, kw_only=True):
    """What the planner's last cycle found associations to deserve and to use: tuple[model.plan.QueueShare, ...]."""


class Explain(msgspec.Struct, frozen=True, kw_only=True):
    """Why this job waits, by the planner's own computation: answered by model.explain.Explanation | None."""

    job_id: int


class Sleep(msgspec.Struct, frozen=True):
    """For `-i` (iterate): resume after so many seconds, or never when the caller is gone."""

    seconds: float


Effect = (
    Print | ReadFile | ReadStdin | WriteFile | Submit | Change | ChangeAll | Alter | WaitFor | History | Fetch | KeptOutput
    | Reports | PriorityFactors | Explain | QueueShares | WaitStart | HandOver | Recall | Sleep
)  # fmt: skip
Command = Generator[Effect, Any, int]
"""Yields effects, is sent their answers, returns the exit code."""


class NoDaemon(BridgeError):
    """Raised by the Site of the local interpreter: the command needs the controller, and there is none."""


class Site(Protocol):
    """Reads of the controller's memory. Rights (PrivateData) are the command's business; nothing secret is in here."""

    @property
    def config(self) -> ClusterConfig: ...
    @property
    def accounting(self) -> Accounting: ...
    @property
    def capabilities(self) -> Capabilities: ...
    def job(self, job_id: int) -> Job | None:
        """A live or recent (MinJobAge) job, array record or task by raw id."""

    def jobs(self) -> Iterable[Job]:
        """All live and recent jobs, by job id."""

    def jobs_of_array(self, array_job_id: int) -> Sequence[Job]:
        """The array record (if tasks are left) and all split tasks, by task id."""

    def jobs_of_het(self, het_job_id: int) -> Sequence[Job]: ...
    def steps(self, job_id: int) -> Sequence[Step]:
        """Running steps (batch included) of a live job."""

    def nodes(self) -> Sequence[Node]:
        """All nodes in configuration order."""

    def node(self, name: str) -> Node | None: ...
    def partitions(self) -> Sequence[Partition]:
        """In configuration order."""

    def reservations(self) -> Sequence[Reservation]: ...
    def licenses_used(self) -> Mapping[str, int]: ...
    def usage(self) -> Sequence[UsageRow]: ...
    def counted_usage(self) -> Sequence[UsageRow]:
        """What fair-share factors are made of: `usage` at the last count (every five minutes, and when the tree changes)."""

    def statistics(self) -> Statistics:
        """What the controller counted about itself."""

    def time_zone(self, name: str) -> datetime.tzinfo:
        """Of the caller's TZ; the machine's when it is empty."""

    def user_name(self, uid: int) -> str:
        """The number as text when unknown."""

    def user_id(self, name: str) -> int | None: ...
    def group_name(self, gid: int) -> str: ...
    def group_id(self, name: str) -> int | None: ...
    def groups_of(self, user: str) -> Sequence[str]:
        """All group names of a user."""

    def is_operator(self, uid: int) -> bool:
        """Operator or administrator (sacctmgr), SlurmUser, root, or the owner of a personal daemon."""

    def is_admin(self, uid: int) -> bool: ...
    def coordinates(self, uid: int, account: str) -> bool: ...
    @property
    def start_time(self) -> float:
        """When the daemon came up."""

    @property
    def daemon_host(self) -> str: ...


__all__ = [
    "Alter", "AlterOutcome", "Call", "Change", "ChangeAll", "Command", "Component", "Effect", "Explain", "Fetch", "FileData", "History",
    "JobFilter", "JobRow", "KeptOutput", "NoDaemon", "Outcome", "Print", "PriorityFactors", "QueueShares", "ReadFile", "ReadStdin", "Refused", "Reports", "WaitStart", "Progress", "HandOver", "Recall", "Returned", "Site", "Sleep", "Submit", "Submitted", "WaitFor", "WriteFile", "JobSpec",
]  # fmt: skip
