"""What is wrong with the machine of a daemon? Each check is a function of the facts; the table has their order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from slurmbridge.commands.doctor import error, ok, warning
from slurmbridge.model.examination import Finding, Machine

PYTHON: Final = (3, 11)
SQLITE: Final = (3, 35)
FILES: Final = 1024
FREE_MIB: Final = 256
SHARED: Final = frozenset(
    {"9p", "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gfs2", "gpfs", "lustre", "nfs", "nfs4", "ocfs2",
     "smb3", "smbfs"}
)  # fmt: skip
"""File systems of many machines, on which SQLite's write-ahead log cannot be relied upon (sqlite.org/wal.html)."""
PASSING: Final = frozenset({"ramfs", "tmpfs"})


def _releases(machine: Machine) -> Iterator[Finding]:
    for check, name, found, least, advice in (
        ("python", "Python", machine.python, PYTHON, "install slurmbridge with Python {} or later"),
        ("sqlite", "SQLite", machine.sqlite, SQLITE, "take a Python whose SQLite is {} or later"),
    ):
        words = f"{name} {_dotted(found)}"
        if found >= least:
            yield ok(check, words)
        else:
            yield error(check, f"{words} is too old", advice.format(_dotted(least)))


def _commands(machine: Machine) -> Iterator[Finding]:
    if not machine.has_bash:
        yield error("commands.bash", "/bin/bash is missing: no command can start", "install bash")
    if not machine.has_commands:
        yield error("commands", f"{machine.scripts} has no sbatch", "install slurmbridge again")
    elif not machine.first_sbatch:
        yield error("commands", f"{machine.scripts} is not on PATH", f"export PATH={machine.scripts}:$PATH")
    elif not machine.first_sbatch.startswith(machine.scripts + "/"):
        yield warning(
            "commands", f"sbatch on PATH is another one: {machine.first_sbatch}", f"put {machine.scripts} first on PATH"
        )
    else:
        yield ok("commands", f"sbatch on PATH is {machine.first_sbatch}")


def _planner(machine: Machine) -> Iterator[Finding]:
    if machine.planner:
        yield error(
            "planner", f"the process that plans does not start, so no job ever would: {machine.planner}",
            "install what is missing: packages of Python, or libraries of the system that they load",
        )  # fmt: skip
    else:
        yield ok("planner", "the process that plans starts")


def _state(machine: Machine) -> Iterator[Finding]:
    folder = machine.state
    if not machine.state_writable:
        yield error("state", f"the state folder {folder} cannot be written", "name another with --state")
    elif machine.state_exists and machine.state_owner != machine.uid:
        yield error("state", f"the state folder {folder} is another user's", "name another with --state")
    elif machine.state_exists and machine.state_mode & 0o022:
        yield error(
            "state",
            f"others may write in the state folder {folder}: they could change what is run",
            f"chmod go-w {folder}",
        )
    else:
        yield ok("state", f"state folder {folder}" + ("" if machine.state_exists else " (made at the first start)"))
    if machine.state_filesystem in SHARED and not machine.database:
        yield error(
            "state.filesystem", f"the state folder is on a file system of many machines ({machine.state_filesystem}):"
            " the database may be damaged there", "name a folder of this machine's own with --state",
        )  # fmt: skip
    elif machine.state_filesystem in PASSING:
        yield warning(
            "state.filesystem", f"the state folder is in memory ({machine.state_filesystem}): jobs and records are lost with"
            " the machine", "name a folder on a disk with --state",
        )  # fmt: skip
    if machine.free_mib < FREE_MIB:
        yield error(
            "state.disk", f"{machine.free_mib} MiB are free where the state is: no job can be taken once they are used",
            f"make room: {FREE_MIB} MiB at the least",
        )  # fmt: skip
    else:
        yield ok("state.disk", f"{machine.free_mib} MiB free")


def _database(machine: Machine) -> Iterator[Finding]:
    if machine.database_fault:
        yield error("database", machine.database_fault, "the daemon does not start before that is mended")
    elif machine.database:
        yield ok("database", f"records: {machine.database}")
    if machine.database_doubt:
        yield warning("database.durable", machine.database_doubt, "let the server keep its defaults")


def _limits(machine: Machine) -> Iterator[Finding]:
    if machine.open_files is None or machine.open_files >= FILES:
        yield ok("files", f"open files: {'no limit' if machine.open_files is None else machine.open_files}")
    else:
        yield warning(
            "files", f"only {machine.open_files} open files are allowed: connections and jobs are refused early",
            f"raise the limit to {FILES} or more (ulimit -n, LimitNOFILE)",
        )  # fmt: skip


def _namespaces(machine: Machine) -> Iterator[Finding]:
    if machine.namespaces:
        yield ok("namespaces", "each virtual node gets a host name of its own")
    else:
        yield warning(
            "namespaces", "names of nodes do not resolve inside jobs, all virtual nodes have this host's name",
            "start the daemon as root, if scripts need it",
        )  # fmt: skip


def _configuration(machine: Machine) -> Iterator[Finding]:
    if machine.configuration:
        yield error("configuration", machine.configuration, "correct it; slurmbridge check-config reads it, too")
        return
    yield ok("configuration", f"configuration: {machine.conf_file or 'none, the defaults'}")
    if machine.mail_program and not machine.mail_program_runs:
        yield warning(
            "mail", f"MailProg {machine.mail_program} cannot be run: --mail-type sends nothing",
            "install it, or name another in slurm.conf",
        )  # fmt: skip


def _daemon(machine: Machine) -> Iterator[Finding]:
    if machine.daemon_pid is None:
        yield ok("daemon", "no daemon runs (slurmbridge up)")
    elif machine.daemon_answers:
        yield ok("daemon", f"daemon pid={machine.daemon_pid} at {machine.address}")
    else:
        yield error(
            "daemon", f"the daemon (pid={machine.daemon_pid}) does not answer at {machine.address}",
            f"see {machine.state}/daemon.log; kill -9 loses nothing, jobs run on and are found again",
        )  # fmt: skip


def _certificate(machine: Machine) -> Iterator[Finding]:
    if machine.certificate_mode is None:
        return
    if machine.certificate_mode & 0o077:
        yield error("certificate", "others can read the daemon's key", f"chmod 600 {machine.state}/daemon.pem")
    elif machine.certificate_fault:
        yield error(
            "certificate", f"the daemon's certificate cannot be used: {machine.certificate_fault}",
            f"put {machine.state}/daemon.pem back from a backup; with a new one, pods that run do not find the daemon",
        )  # fmt: skip
    else:
        yield ok("certificate", "the daemon has its key and certificate")


CHECKS: Final[tuple[Callable[[Machine], Iterator[Finding]], ...]] = (
    _releases, _commands, _planner, _state, _database, _limits, _configuration, _certificate, _daemon,
)  # fmt: skip


def judge(machine: Machine, *, virtual: bool = True) -> list[Finding]:
    """`virtual`: jobs run on this machine; else it only has the daemon."""
    checks = (*CHECKS, _namespaces) if virtual else CHECKS
    return [finding for check in checks for finding in check(machine)]


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
