"""What srun and salloc do on the user's side once the daemon gave them an allocation (frame J of `wire.client`).

srun runs its step over the job's first supervisor. salloc runs a command of the user's, in its own process group and,
on a terminal, in the foreground; meanwhile it listens to the daemon, which may say that the allocation is gone. A
connection that is cut is made again under the same nonce: the daemon that restarts finds its allocation held. It reads
the command line again, and hears what came of the allocation when it has handed it over anew, not before.
Standard library only. Follows srun(1) and salloc(1).
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from slurmbridge.wire.client import frame, pack, unpack

if TYPE_CHECKING:
    from slurmbridge.cli.thin.client import Session

AGAIN_S = 1.0
"""Pause before a cut connection is tried again."""
TOLD = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
"""Each ends the allocation; the command is waited for."""
HARMLESS = {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGKILL}
"""A command that one of these ended was ended by its user: exit code 0."""


def answer(session: Session, payload: bytes) -> int | None:
    """Do what frame J asks for and say what came of it; to a daemon that restarted and asks again, say it again.

    The exit code when the daemon is not waiting for it: it said meanwhile that the allocation is over."""
    session.handed = session.connection
    if b"J" not in session.answers:
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        what, facts, *env = unpack(payload)
        session.code, status, is_over = _use(session, what.decode(), facts, env)
        session.answers[b"J"] = frame(b"D", pack(b"%d" % session.code, b"%d" % status))
        if is_over:
            return session.code
    if session.handed is session.connection:  # one that was made meanwhile brings the question first
        session.send(session.answers[b"J"])
    return None


def _use(session: Session, what: str, facts: bytes, env: list[bytes]) -> tuple[int, int, bool]:
    """(exit code for the user, wait status for the job, whether the daemon has said its last word)."""
    known: dict[str, Any] = json.loads(facts)
    if what == "step":
        from slurmbridge.cli import srun_client

        return *srun_client.in_new_allocation([os.fsdecode(word) for word in session.argv], known), False
    if what in ("attach", "cast"):
        from slurmbridge.cli import guests

        return (guests.attach(known) if what == "attach" else guests.cast(known)), 0, False
    added = dict(entry.split(b"=", 1) for entry in env)
    return Command(session, known, {**os.environb, **added}).run()


class Command:
    """One command beside an allocation."""

    def __init__(self, session: Session, facts: dict[str, Any], env: dict[bytes, bytes]) -> None:
        self._session, self._facts, self._env = session, facts, env
        self._argv: list[str] = facts["argv"] or [_shell()]
        self._pid = 0
        self._status = 0
        self._is_done = self._hung_up = self._is_over = False
        self._untold: list[int] = []  # signals that nobody could be told of
        self._again = 0.0
        self._connected = True
        self._tty = -1

    def run(self) -> tuple[int, int, bool]:
        signals, signals_in = os.pipe()
        for end in (signals, signals_in):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(signals_in, warn_on_full_buffer=False)
        for number in (*TOLD, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, lambda number, where: None)
        program = self._find()
        if program is None:
            self._say(f'error: _fork_command: Unable to find command "{self._argv[0]}"')
            return 1, 0, False
        self._fork(program)
        while not self._is_done and not self._hung_up:
            self._turn(signals)
        if self._tty >= 0:
            _give_terminal(self._tty, os.getpgrp())
        if not self._is_done:
            return 1, 0, self._is_over
        return self._code(), self._status, self._is_over

    def _say(self, text: str) -> None:
        os.write(2, f"{self._session.command}: {text}\n".encode("utf-8", "surrogateescape"))

    def _code(self) -> int:
        number = self._status & 0x7F
        if not number:
            return self._status >> 8
        return 0 if number in HARMLESS else 1

    # ---- the command ----

    def _find(self) -> str | None:
        name = self._argv[0]
        if "/" in name:
            return name if os.path.exists(name) else None
        for folder in os.fsdecode(self._env.get(b"PATH", b"")).split(":"):
            path = os.path.join(folder or ".", name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return path
        return None

    def _fork(self, program: str) -> None:
        if os.isatty(0) and not self._facts.get("no_shell"):
            self._tty = 0
        self._pid = os.fork()
        if self._pid == 0:
            self._become(program)
        try:
            os.setpgid(self._pid, self._pid)
        except OSError:  # it has begun already, and did this itself
            pass
        if self._tty >= 0:
            _give_terminal(self._tty, self._pid)

    def _become(self, program: str) -> NoReturn:
        try:
            os.setpgid(0, 0)
            if self._tty >= 0:
                _give_terminal(self._tty, os.getpgrp())
            signal.set_wakeup_fd(-1)
            for number in (*TOLD, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE, signal.SIGALRM):
                signal.signal(number, signal.SIG_DFL)
            folder = self._facts.get("chdir")
            if folder:
                os.chdir(folder)
            os.execve(program, self._argv, self._env)
        except OSError as error:
            self._say(f"error: {program}: {error.strerror}")
        finally:
            os._exit(1)

    # ---- waiting ----

    def _turn(self, signals: int) -> None:
        readers = [signals]
        connection = self._session.connection
        if self._connected and connection is not None:
            readers.append(connection.fileno())
        ready, _, _ = select.select(readers, [], [], None if self._connected or self._is_over else AGAIN_S)
        if self._connected and len(ready) > (signals in ready):
            self._unless_cut(self._listen)
        elif not self._connected and not self._is_over:
            self._unless_cut(self._connect)
        if signals in ready:
            for number in os.read(signals, 64):
                self._signalled(number)

    def _unless_cut(self, act: Callable[[], None]) -> None:
        """A connection that breaks is no fault: the next turn makes another."""
        try:
            act()
        except Exception as fault:
            if type(fault).__name__ != "Cut":
                raise
            self._connected = False

    def _listen(self) -> None:
        for kind, payload in self._session.receive():
            if kind in (b"O", b"E"):
                self._session.print(1 if kind == b"O" else 2, payload)
            elif kind in (b"A", b"I", b"W"):
                self._session.answer(kind, payload)
            elif kind == b"J":
                self._session.handed = self._session.connection
                self._tell()
            elif kind == b"R":
                self._recalled(int(payload))
            elif kind == b"X":  # it ended while nobody was there to say so
                self._is_over, self._connected = True, False
                self._recalled(int(self._facts["kill"]))

    def _connect(self) -> None:
        if time.monotonic() < self._again:
            return
        self._again = time.monotonic() + AGAIN_S
        client = sys.modules[type(self._session).__module__]
        connection, _ = client.connect(self._session.command, self._session.entries)
        if connection is not None:
            self._connected = True
            self._session.begin(connection)

    def _tell(self) -> None:
        """Of signals, as soon as somebody listens who knows of the allocation."""
        while self._untold and self._connected and self._session.handed is self._session.connection:
            self._session.caught(self._untold[0], None)
            del self._untold[0]

    def _recalled(self, number: int) -> None:
        """The allocation is gone. Programs in the terminal's foreground that the command started hear of it."""
        if self._tty >= 0:
            group = os.tcgetpgrp(self._tty)
            if group not in (self._pid, os.getpgrp()):
                _kill_group(group, signal.SIGHUP)
        if number:
            _kill_group(self._pid, number)

    def _signalled(self, number: int) -> None:
        if number == signal.SIGCHLD:
            pid, status = os.waitpid(self._pid, os.WNOHANG | os.WUNTRACED)
            if pid and os.WIFSTOPPED(status):
                self._stopped()
            elif pid:
                self._is_done, self._status = True, status & 0xFF7F
        elif number == signal.SIGHUP:
            _kill_group(self._pid, signal.SIGHUP)
            self._hung_up = True
        elif number in TOLD:
            self._untold.append(number)
            self._unless_cut(self._tell)

    def _stopped(self) -> None:
        """The command was stopped (^Z): nobody could continue it but its own shell, so it goes on."""
        _kill_group(self._pid, signal.SIGCONT)


def _shell() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return os.environ.get("SHELL") or "/bin/sh"


def _give_terminal(tty: int, group: int) -> None:
    """To a process group, from the background too."""
    before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    try:
        os.tcsetpgrp(tty, group)
    except OSError:
        return
    finally:
        signal.signal(signal.SIGTTOU, before)


def _kill_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return
