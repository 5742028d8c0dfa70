"""A daemon in a folder of its own that goes away with it: for measuring, soaking and tests.

The commands are the installed ones, as a user calls them; a folder for jobs' files is beside the state.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence

from slurmbridge.cli import instance
from slurmbridge.cli.connection import Connection
from slurmbridge.errors import BridgeError

KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "OPENBLAS_CORETYPE")
CONF = """ClusterName={name}
SlurmctldHost=localhost
AccountingStorageType=accounting_storage/slurmdbd
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=100
PriorityType=priority/multifactor
PriorityDecayHalfLife=0
MaxArraySize=20001
MaxJobCount=200000
KillWait=5
NodeName={nodes} CPUs={cpus} Sockets=1 CoresPerSocket={cpus} ThreadsPerCore=1 RealMemory={memory}
PartitionName=work Nodes={nodes} Default=YES MaxTime=INFINITE DefaultTime=01:00:00 State=UP
"""


class Throwaway:
    """bin: folder of the commands. `folder` is made and removed by `opened`. `database`: as `up --database` has it."""

    def __init__(self, bin_folder: str, folder: str, conf: str, database: str = "") -> None:
        self.bin, self.folder, self.database = os.path.abspath(bin_folder), folder, database
        self.place = instance.locate(os.path.join(folder, "state"))
        self.work = os.path.join(folder, "work")
        os.makedirs(self.work)
        self.conf = os.path.join(folder, "slurm.conf")
        pathlib.Path(self.conf).write_text(conf)
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.env = {
            **kept,
            "PATH": f"{self.bin}:{kept.get('PATH', '/usr/bin:/bin')}",
            "SLURMBRIDGE_ADDR": self.place.address,
        }

    @property
    def pid(self) -> int | None:
        return instance.running_pid(self.place)

    def up(self) -> None:
        """Returns when commands are answered; BridgeError with the daemon's words when it does not come up."""
        argv = [f"{self.bin}/slurmbridge", "up", "--slurm-conf", self.conf, "--state", self.place.state, "--detach"]
        argv += [f"--database={self.database}"] if self.database else []
        answer = subprocess.run(argv, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if answer.returncode != 0:
            raise BridgeError(f"slurmbridge up: exit {answer.returncode}: {answer.stderr.strip()}")

    def kill(self) -> bool:
        """SIGKILL; False when no daemon runs."""
        pid = self.pid
        if pid is None:
            return False
        started = instance.start_time(pid)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        return instance.wait_gone(pid, started, 10.0)

    def down(self) -> None:
        argv = [f"{self.bin}/slurmbridge", "down", "--state", self.place.state, "--jobs"]
        answer = subprocess.run(argv, env=self.env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if answer.returncode != 0:
            self.kill()

    def run(self, argv: Sequence[str], **options: object) -> subprocess.CompletedProcess[str]:
        """A command as the user types it, in the work folder."""
        given: dict[str, object] = {"stdin": subprocess.DEVNULL, **options}
        command = [os.path.join(self.bin, argv[0]), *argv[1:]]
        return subprocess.run(command, env=self.env, cwd=self.work, capture_output=True, text=True, **given)  # type: ignore[call-overload,no-any-return]

    def connect(self) -> Connection:
        return Connection(self.place.socket)


@contextlib.contextmanager
def opened(
    bin_folder: str,
    *,
    nodes: str = "n[1-2]",
    cpus: int = 16,
    memory: int = 64000,
    extra: str = "",
    start: bool = True,
    database: str = "",
) -> Iterator[Throwaway]:
    """A daemon on virtual nodes; stopped with its jobs, and its folder removed, whatever happens."""
    folder = tempfile.mkdtemp(prefix="slurmbridge-")
    os.chmod(folder, 0o755)
    conf = CONF.format(name="throwaway", nodes=nodes, cpus=cpus, memory=memory) + extra
    daemon = Throwaway(bin_folder, folder, conf, database)
    try:
        if start:
            daemon.up()
        yield daemon
    finally:
        daemon.down()
        shutil.rmtree(folder, ignore_errors=True)


def environment(daemon: Throwaway, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a command of a user carries, for requests over an open connection."""
    return {**daemon.env, **(more or {})}
