"""A Slurm command without a daemon: what needs none is done here, the rest fails in Slurm's words.

The thin client starts this when no daemon answers. The command is the same generator that the daemon runs; its site
raises `NoDaemon` on every read. Usage errors, `--help`, `-V` and `scontrol show hostnames` never get that far.

Mode "first": a socket is there, so the daemon may be restarting; what was printed is held back, and once the command
needs the daemon the thin client waits for it. Mode "final": nobody will come. Mode "silent": there is a daemon that
answers nobody.
"""

from __future__ import annotations

import datetime
import errno
import os
import pwd
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn

from slurmbridge.commands import table
from slurmbridge.commands.effects import Call, Effect, FileData, NoDaemon, Print, ReadFile, ReadStdin
from slurmbridge.daemon.zones import zone

NO_CONTROLLER = "Unable to contact slurm controller (connect failure)"
SILENT = "Socket timed out on send/recv operation"
NO_DATABASE = "Unable to contact the accounting storage: no slurmbridge daemon answers"

LOADS = {  # what `scontrol show KEYWORD` says, by the keyword's beginning
    "job": "slurm_load_jobs error: ",
    "node": "slurm_load_node error: ",
    "partition": "slurm_load_partitions error: ",
    "config": "slurm_load_ctl_conf error:",
    "step": "scontrol: error: scontrol_print_step: slurm_get_job_steps((null)) failed: ",
    "licenses": "slurm_load_license error: ",
    "reservation": "slurm_load_reservations error: ",
}
PREFIXES = {  # command -> (what stands before NO_CONTROLLER, exit code), as Slurm 26.05 prints it
    "sbatch": ("sbatch: error: Batch job submission failed: ", 1),
    "squeue": ("slurm_load_jobs error: ", 1),
    "sinfo": ("slurm_load_partitions: ", 1),
    "sshare": ("Couldn't get shares from controller: ", 255),
    "sprio": ("Couldn't get priority factors from controller: ", 255),
    "srun": ("srun: error: Unable to allocate resources: ", 1),
    "salloc": ("salloc: error: Job submit/allocate failed: ", 1),
}


class LocalSite:
    """A site without memory: every read needs the controller."""

    @staticmethod
    def time_zone(name: str) -> datetime.tzinfo:
        """Of the caller's TZ: known without a controller."""
        return zone(name)

    def __getattr__(self, name: str) -> NoReturn:
        raise NoDaemon(name)


def unreachable(argv: Sequence[str]) -> tuple[str, str, int]:
    """(stdout, stderr, exit code) of a command that cannot reach the controller."""
    name, words = argv[0], [word for word in argv[1:] if not word.startswith("-")]
    if name == "sbatch" and "--test-only" in argv:
        return "", f"allocation failure: {NO_CONTROLLER}\n", 1
    if name == "scancel":
        jobs = [word for word in words if word.replace("_", "").isdecimal()]
        plain = all(not word.startswith("-") for word in argv[1:])
        if jobs and plain:
            return "", "".join(f"scancel: error: Kill job error on job id {job}: {NO_CONTROLLER}\n" for job in jobs), 8
        return "", f"slurm_load_jobs error: {NO_CONTROLLER}\n", 1
    if name == "scontrol" and words:
        return of_scontrol(words)
    if name in ("sacct", "sacctmgr", "sreport"):
        return "", f"{name}: error: {NO_DATABASE}\n", 1
    prefix, code = PREFIXES.get(name, (f"{name}: error: ", 1))
    return "", f"{prefix}{NO_CONTROLLER}\n", code


def of_scontrol(words: Sequence[str]) -> tuple[str, str, int]:
    verb = words[0].lower()
    if "ping".startswith(verb):
        return f"Slurmctld(primary) at {os.uname().nodename} is DOWN\n", "", 1
    if "show".startswith(verb) and len(words) > 1:
        for keyword, text in LOADS.items():
            if keyword.startswith(words[1].lower().rstrip("s")) or words[1].lower().startswith(keyword):
                return "", f"{text}{NO_CONTROLLER}\n", 1
    return "", f"scontrol: error: {NO_CONTROLLER}\n", 1


def read_stdin(effect: ReadStdin) -> FileData:
    data = sys.stdin.buffer.readline(effect.limit + 1) if effect.line else sys.stdin.buffer.read(effect.limit + 1)
    return FileData(errno=errno.EFBIG) if len(data) > effect.limit else FileData(data=data)


def read_file(effect: ReadFile, call: Call) -> FileData:
    """As the thin client reads it, with the caller's own rights."""
    places = [os.path.join(call.cwd, effect.name)]
    if effect.search_path and not effect.name.startswith(("/", "./", "../")):
        places += [os.path.join(folder, effect.name) for folder in call.env.get("PATH", "").split(":") if folder]
    problem = errno.ENOENT
    for path in places:
        try:
            with open(path, "rb") as stream:
                data = stream.read(effect.limit + 1)
        except OSError as fault:
            problem = problem if problem != errno.ENOENT else fault.errno or errno.EIO
            continue
        return FileData(errno=errno.EFBIG, path=path) if len(data) > effect.limit else FileData(data=data, path=path)
    return FileData(errno=problem)


def make_call(argv: Sequence[str]) -> Call:
    mask = os.umask(0o077)
    os.umask(mask)
    uid, gid = os.getuid(), os.getgid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    width = os.environ.get("COLUMNS", "")
    return Call(
        argv=tuple(argv),
        env=dict(os.environ),
        cwd=os.getcwd(),
        umask=mask,
        columns=int(width) if width.isdecimal() and int(width) else 80,
        uid=uid,
        gid=gid,
        groups=tuple(os.getgroups()),
        user=user,
        host=os.uname().nodename,
        sid=os.getsid(0),
        now=time.time(),
        stdin_is_tty=os.isatty(0),
        stdout_is_tty=os.isatty(1),
    )


class Needed(Exception):
    """The command asked for what only the daemon has."""


def perform(effect: Effect, call: Call, held: list[Print], first: bool) -> Any:
    match effect:
        case Print():
            held.append(effect)
            return None
        case ReadStdin() if not first:
            return read_stdin(effect)
        case ReadFile():
            return read_file(effect, call)
        case _:
            raise Needed


def run(argv: Sequence[str], first: bool) -> tuple[int | None, list[Print]]:
    """(exit code, or None when the daemon is needed; what was printed until then)."""
    held: list[Print] = []
    main = table.find(argv[0])
    if main is None:
        return 1, [Print(f"{argv[0]}: error: no such command\n", 2)]
    call = make_call(argv)
    try:
        command = main(call, LocalSite())
        answer: Any = None
        while True:
            try:
                effect = command.send(answer)
            except StopIteration as end:
                return int(end.value or 0), held
            answer = perform(effect, call, held, first)
    except (NoDaemon, Needed):
        return None, held


def show(held: Sequence[Print]) -> None:
    for item in held:
        stream = sys.stdout if item.fd == 1 else sys.stderr
        stream.write(item.text)
        stream.flush()


def main() -> int:
    """argv: mode, path of the thin client, command, arguments."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="surrogateescape")  # type: ignore[union-attr]
    mode, client, argv = sys.argv[1], sys.argv[2], sys.argv[3:]
    if mode == "silent":
        out, err, failure = unreachable(argv)
        sys.stderr.write((out + err).replace(NO_CONTROLLER, SILENT))
        return failure
    code, held = run(argv, mode == "first")
    if code is None and mode == "first":
        os.execv(sys.executable, [sys.executable, "-I", "-S", client, "--retry", *argv])
    show(held)
    if code is not None:
        return code
    out, err, code = unreachable(argv)
    sys.stdout.write(out)
    sys.stdout.flush()
    sys.stderr.write(err)
    return code
