"""What `slurmbridge doctor` gathers, and what it finds. Only data.

Facts are gathered where files, processes and clusters may be touched (`cli`, `runtime.kube`); `commands.doctor_machine` and
`commands.doctor_kube` judge them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import msgspec

from slurmbridge.model.pods import PodTemplate


class Level(enum.Enum):
    OK = "ok"
    WARNING = "warning"  # it works, but not all of it, or not as meant
    ERROR = "error"  # it does not work


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    level: Level
    check: str  # state.disk, kube.rights ...: stays the same, for scripts
    text: str  # what is so, and what that means
    advice: str = ""  # what to do; empty where there is nothing to do


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """Of the machine that the daemon runs on, or shall run on."""

    python: tuple[int, ...] = ()
    sqlite: tuple[int, ...] = ()
    has_bash: bool = True
    scripts: str = ""  # folder of the commands
    has_commands: bool = True
    first_sbatch: str = ""  # on PATH; empty: none
    planner: str = ""  # why the process that plans does not start; empty: it does
    uid: int = 0
    state: str = ""
    state_exists: bool = False
    state_owner: int = 0
    state_mode: int = 0
    state_writable: bool = True
    state_filesystem: str = ""  # type; empty: not known
    free_mib: int = 0
    database: str = ""  # a server that has the records, and what it is like; empty: they are in the state folder
    database_fault: str = ""  # why it cannot be used
    database_doubt: str = ""  # what could lose records there
    open_files: int | None = None  # None: no limit
    namespaces: bool = True  # whether a process may have a host name and mounts of its own
    configuration: str = ""  # why the configuration cannot be read; empty: it can
    conf_file: str = ""
    mail_program: str = ""  # MailProg; empty: no mail is sent
    mail_program_runs: bool = True
    daemon_pid: int | None = None
    daemon_answers: bool = False
    address: str = ""
    certificate_mode: int | None = None  # None: there is none
    certificate_fault: str = ""


class ExaminedNode(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    is_ready: bool = True
    kubelet: tuple[int, int] = (0, 0)
    runtime: str = ""  # containerd://2.1.9
    devices: Mapping[str, tuple[int, int]] = {}  # resource -> (capacity, allocatable)
    labels: Mapping[str, str] = {}


class Lacking(msgspec.Struct, frozen=True, kw_only=True):
    """A right that is missing, in words."""

    what: str
    without: str  # empty: no job can run


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A PersistentVolumeClaim that partitions name."""

    name: str
    is_there: bool | None = None  # None: we may not look
    phase: str = ""
    access_modes: tuple[str, ...] = ()


class Examined(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster, as far as it may be looked at; None: it may not, or it did not answer."""

    server: str
    namespace: str
    fault: str = ""  # why it is of no use; nothing else is known then
    release: tuple[int, int] = (0, 0)
    lacking: tuple[Lacking, ...] | None = ()
    nodes: tuple[ExaminedNode, ...] | None = ()
    groups: frozenset[str] = frozenset()  # APIs that are served
    skew_s: float | None = None  # how far our clock is before its own
    level: str | None = ""  # of pod security that the namespace enforces; empty: none
    claims: tuple[Claim, ...] = ()
    tainted: tuple[str, ...] = ()  # devices of that resource's vendor with a taint of their own, in words
    gpu_resource: str = "nvidia.com/gpu"
    templates: Mapping[str, PodTemplate] = {}  # by partition
