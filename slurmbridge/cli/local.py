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

from slurmbridge.cli import unreachable
from slurmbridge.commands import table
from slurmbridge.commands.effects import Call, Effect, FileData, NoDaemon, Print, ReadFile, ReadStdin
from slurmbridge.daemon.zones import zone


class LocalSite:
    """A site without memory: every read needs the controller."""

    @staticmethod
    def time_zone(name: str) -> datetime.tzinfo:
        """Of the caller's TZ: known without a controller."""
        return zone(name)

    def __getattr__(self, name: str) -> NoReturn:
        raise NoDaemon(name)


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
        return unreachable.show(argv, silent=True)
    code, held = run(argv, mode == "first")
    if code is None and mode == "first":
        os.execv(sys.executable, [sys.executable, "-I", "-S", client, "--retry", *argv])
    show(held)
    return unreachable.show(argv, silent=False) if code is None else code
