"""One step from srun's side: the talk with the supervisor, signals, standard input, output, and the end.

Follows srun(1): an interrupt tells first how things stand, a second within a second ends the step; --kill-on-bad-exit
and --wait are kept here, where all tasks are seen. Standard library only.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from slurmbridge.cli.srun_ends import Ends, named
from slurmbridge.cli.srun_kept import Keeper
from slurmbridge.cli.srun_output import Mode, Sink, pattern_values
from slurmbridge.cli.srun_request import Usage, programs
from slurmbridge.cli.srun_terminal import Terminal, say
from slurmbridge.lang import filenames
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import Decoder, frame
from slurmbridge.wire.supervisor import decode, encode

BUSY_FIRST_S, BUSY_AGAIN_S = 10.0, 30.0
GATHER_S = 0.1
STDIN_CHUNK, STDIN_PENDING = 1 << 16, 1 << 20
SIGNALS = (signal.SIGINT, signal.SIGCONT)
FORWARDED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGHUP)
RESIZED = (signal.SIGWINCH,)
ENDING = (signal.SIGTERM, signal.SIGQUIT)

Gate = Callable[["Session", dict[str, Any]], None]


class Session:
    """One step from srun's side.

    As a component of a larger step: its tasks count from `offset` on, and `gate` (told what was created) decides when it
    begins; `relay` are the components that share its standard input.
    """

    def __init__(
        self, sock: socket.socket, request: dict[str, Any], *, address: str, offset: int = 0, gate: Gate | None = None
    ) -> None:
        self._sock, self._request, self.address = sock, request, address
        self._client: dict[str, Any] = request.get("client") or {}
        self._offset, self._gate, self._has_begun = offset, gate, False
        self.relay: list[Session] = [self]
        self._decoder = Decoder(wire.MAX_FRAME)
        self._out = bytearray()
        self._id = ""
        self._ends = Ends()
        self._nodes = self._ends.nodes
        self._timers: dict[str, float] = {}
        self._stdin: int | None = None
        self._stdin_to = wire.ALL_TASKS
        self._has_room = True
        self._code: int | None = None
        self._waited = self._busy_told = self._terminating = self._aborting = False
        self._last_interrupt = 0.0
        self._reason = ""
        self._kill_wait = 30
        self._terminal = Terminal(int(self._client["terminal"])) if request.get("pty") else None
        quiet_lines = not self._client.get("unbuffered")
        label = bool(self._client.get("label"))
        self._sinks = {
            wire.STDOUT: Sink(1, Mode(self._client.get("output")), label=label, width=1, whole_lines=quiet_lines),
            wire.STDERR: Sink(2, Mode(self._client.get("error")), label=label, width=1, whole_lines=quiet_lines),
        }

    def start(self, payload: bytes) -> None:
        """Ask for the step."""
        self._sock.setblocking(False)
        self._send(wire.REQUEST, payload)
        self._timers["busy"] = time.monotonic() + BUSY_FIRST_S

    @property
    def code(self) -> int | None:
        """The exit code; None until the step is over."""
        return self._code

    @property
    def status(self) -> int:
        """A wait status for the whole step, once it is over."""
        return self._ends.status() if self._id else (self._code or 0) << 8

    def wants(self) -> tuple[list[int], list[int], float | None]:
        """What to wait for: descriptors to read, to write, and a moment of the monotonic clock."""
        readers = [self._sock.fileno()]
        room = all(each._has_room and len(each._out) < STDIN_PENDING for each in self.relay)
        if self._stdin is not None and room:
            readers.append(self._stdin)
        return readers, [self._sock.fileno()] if self._out else [], min(self._timers.values(), default=None)

    def serve(self, ready: list[int], writable: list[int]) -> None:
        """Do what can be done without waiting."""
        if self._sock.fileno() in writable:
            self._flush()
        if self._stdin is not None and self._stdin in ready:
            self._read_stdin()
        if self._sock.fileno() in ready:
            self._receive()
        now = time.monotonic()
        for name in [name for name, at in self._timers.items() if at <= now]:
            del self._timers[name]
            self._due(name)

    def finish(self) -> None:
        """Nothing more comes: the last, unended lines."""
        if self._terminal is not None:
            self._terminal.restore()
        for sink in self._sinks.values():
            sink.end_all()

    @property
    def has_begun(self) -> bool:
        """Whether the step's tasks were let go."""
        return self._has_begun

    def abandon(self) -> None:
        """Another component of the same srun cannot run: this one's step goes with its connection."""
        if self._code is None:
            self._code = 1
            self._sock.close()

    # ---- the supervisor's side

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        self._out += frame(kind, payload)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                sent = self._sock.send(memoryview(self._out)[: 1 << 18])
                del self._out[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if self._code is None:
                if self._id:
                    self._ends.cut(self._id)
                    self._summarise()
                else:
                    job = self._request.get("job")
                    say(f"srun: error: Unable to create step for job {job}: Access/permission denied")
                    self._code = 1
            return
        for kind, payload in self._decoder.feed(data):
            self._frame(kind, payload)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind in self._sinks:
            task, content = wire.parse_data(payload)
            if kind == wire.STDERR:
                content = Terminal.line(content)
            self._sinks[kind].write(task + self._offset, content)
        elif kind == wire.CREATED:
            self._created(decode(payload))
        elif kind == wire.WAITING:
            self._waited = True
            self._reason = payload.decode()
        elif kind == wire.REFUSED:
            value = decode(payload)
            for line in value["lines"]:
                say(str(line))
            self._code = int(value.get("exit", 1))
        elif kind == wire.DONE:
            self._done(decode(payload))
        elif kind == wire.MESSAGE:
            say(payload.decode("utf-8", "replace"))
        elif kind == wire.ABORTED:
            self._say_aborted(int(decode(payload)["wait"]))
        elif kind == wire.ROOM:
            self._has_room = payload == b"1"
        elif kind == wire.FINISHED:
            self._summarise()

    def _created(self, value: dict[str, Any]) -> None:
        self._timers.pop("busy", None)
        self._id = f"{value['job']}.{value['step']}"
        self._kill_wait = int(value.get("kill_wait", 30))
        if self._client.get("kill") is None:
            self._client["kill"] = bool(value.get("kill_on_bad_exit"))
        if self._client.get("wait") is None:
            self._client["wait"] = int(value.get("wait_time") or 0)
        for note in value.get("notes", ()):
            say(f"srun: {note}")
        if self._waited and not self._client.get("quiet"):
            say(f"srun: Step created for StepId={self._id}")
        for index, node in enumerate(value["nodes"]):
            for task in node["tasks"]:
                self._nodes[task + self._offset] = (node["name"], index)
        if self._gate is not None:
            self._gate(self, value)
        else:
            self.begin(value, max(self._nodes, default=0), {})

    def begin(self, value: dict[str, Any], last: int, go: dict[str, Any]) -> None:
        """Open what is opened here, then let the tasks go. `last`: the highest task of the whole step."""
        try:
            self._open(value, last)
            if self._client.get("multi"):
                go["multi"] = programs(str(self._request["argv"][0]), sorted(self._nodes))
        except Usage:
            self._sock.close()
            raise
        self._has_begun = True
        self._send(wire.GO, encode(go))
        if self._terminal is not None:
            self._terminal.make_raw()
            self._resized()

    def _resized(self) -> None:
        """The task's terminal is as large as ours."""
        if self._terminal is None or not self._has_begun:
            return
        try:
            self._send(wire.SIZE, encode({"size": self._terminal.size()}))
        except OSError:  # it went away: the hangup says so
            return

    def _open(self, value: dict[str, Any], last: int) -> None:
        values = pattern_values(str(value["job"]), str(value["step"]))
        width = len(str(last))
        label, several = bool(self._client.get("label")), last > 0
        lines = label or (several and not self._client.get("unbuffered") and self._terminal is None)
        for kind, name, fd, word in ((wire.STDOUT, "output", 1, "stdout"), (wire.STDERR, "error", 2, "stderr")):
            mode = Mode(self._client.get(name))
            if mode.kind == "task" and mode.number not in self._nodes:
                mode.kind, mode.pattern = "file", str(mode.number)
            if (
                name == "error"
                and self._client.get("error") is None
                and Mode(self._client.get("output")).kind == "file"
            ):
                self._sinks[wire.STDERR] = self._sinks[wire.STDOUT]
                continue
            sink = Sink(fd, mode, label=label, width=width, whole_lines=lines)
            try:
                sink.open(values, self._nodes, Keeper(self.address, value), append=bool(self._request.get("append")))
            except OSError as error:
                raise Usage(f"srun: error: Could not open {word} file: {error.strerror}") from error
            self._sinks[kind] = sink
        self._open_stdin(values)

    def _open_stdin(self, values: dict[str, str]) -> None:
        mode = Mode(self._client.get("input"))
        elsewhere = self._gate is not None and mode.kind == "task" and mode.number not in self._nodes
        if mode.kind == "none" or self._request.get("in") or elsewhere:
            self._send(wire.STDIN_END, b"%d" % wire.ALL_TASKS)
            return
        if self._terminal is not None:
            mode.kind, mode.number = "task", self._offset
        if mode.kind == "task" and mode.number in self._nodes:
            self._stdin_to = mode.number - self._offset
            for task in self._nodes:
                if task != mode.number:
                    self._send(wire.STDIN_END, b"%d" % (task - self._offset))
            self._stdin, self.relay = 0, [self]
        elif mode.kind in ("file", "task"):
            name = mode.pattern or str(mode.number)
            try:
                self._stdin = os.open(filenames.expand(name, values), os.O_RDONLY)
            except OSError as error:
                raise Usage(f"srun: error: Could not open stdin file: {error.strerror}") from error
        elif self.relay:
            self._stdin = 0

    # ---- the user's side

    def _read_stdin(self) -> None:
        assert self._stdin is not None
        try:
            data = os.read(self._stdin, STDIN_CHUNK)
        except OSError:
            data = b""
        for each in self.relay:
            if data:
                each._send(wire.STDIN, wire.data(self._stdin_to, data))
            else:
                each._send(wire.STDIN_END, b"%d" % self._stdin_to)
        if not data:
            self._stdin = None

    def signalled(self, number: int) -> None:
        if not self._id and number in (signal.SIGINT, *ENDING):
            say(f"srun: Cancelled pending job step with signal {number}")
            job = self._request.get("job")
            say(f"srun: error: Unable to create step for job {job}: Job/step already completing or completed")
            self._code = 1
        elif number == signal.SIGCONT:
            say("srun: got SIGCONT")
        elif number == signal.SIGINT:
            self._interrupted()
        elif number in ENDING:
            say("srun: forcing job termination")
            self._end(signal.SIGTERM)
        elif number in RESIZED:
            self._resized()
        elif number in FORWARDED:
            self._send(wire.SIGNAL, encode({"signal": number}))

    def _interrupted(self) -> None:
        """The first tells how things stand, a second within a second is passed on and ends the step."""
        now = time.monotonic()
        if not self._client.get("disable_status") and now - self._last_interrupt > 1.0:
            say("srun: interrupt (one more within 1 sec to abort)")
            say(f"srun: StepId={self._id} {named(self._ends.running)}: running")
            self._last_interrupt = now
            return
        say(f"srun: sending Ctrl-C to StepId={self._id}")
        self._send(wire.SIGNAL, encode({"signal": int(signal.SIGINT)}))
        self._end(None)

    def _end(self, number: int | None) -> None:
        """End the step, by force after KillWait."""
        self._say_aborted(self._kill_wait + 2)
        if number is not None:
            self._send(wire.SIGNAL, encode({"signal": int(number)}))
        self._timers.setdefault("kill", time.monotonic() + self._kill_wait)

    def _say_aborted(self, seconds: int) -> None:
        if not self._aborting:
            self._aborting = True
            say(f"srun: Job step aborted: Waiting up to {seconds} seconds for job step to finish.")

    def _due(self, name: str) -> None:
        if name == "busy":
            if self._waited and not self._client.get("quiet"):
                job = self._request.get("job")
                word = "temporarily" if not self._busy_told else "still"
                say(f"srun: Job {job} step creation {word} disabled, retrying ({self._reason})")
                self._busy_told = True
            self._timers["busy"] = time.monotonic() + BUSY_AGAIN_S
        elif name == "tell":
            self._tell()
        elif name == "wait":
            self._first_exited()
        elif name == "kill":
            self._send(wire.SIGNAL, encode({"signal": int(signal.SIGKILL)}))

    # ---- ends

    def _done(self, value: dict[str, Any]) -> None:
        task, status = int(value["task"]) + self._offset, int(value["status"])
        self._ends.done(task, status)
        if self._terminal is not None and task == self._offset:
            self._terminal.restore()
        for sink in self._sinks.values():
            sink.end(task)
        if status:
            if status & 0x7F in (signal.SIGKILL, signal.SIGTERM) and not self._terminating:
                self._ends.is_forced = True
            self._timers.setdefault("tell", time.monotonic() + GATHER_S)
            if self._client.get("kill") and not self._terminating and self._ends.running:
                self._terminating = self._ends.is_forced = True
                self._tell()
                say(f"srun: Terminating StepId={self._id}")
                self._send(wire.SIGNAL, encode({"signal": int(signal.SIGTERM), "why": "DUE TO TASK FAILURE"}))
                self._timers.setdefault("kill", time.monotonic() + self._kill_wait)
        wait = int(self._client.get("wait") or 0)
        if wait and "wait" not in self._timers and not self._terminating:
            self._timers["wait"] = time.monotonic() + wait

    def _first_exited(self) -> None:
        if not self._ends.running or self._terminating:
            return
        self._terminating = True
        self._tell()
        say(f"srun: First task exited {self._client['wait']}s ago")
        for line in self._ends.standing(self._id):
            say(line)
        say(f"srun: Terminating StepId={self._id}")
        self._say_aborted(self._kill_wait + 2)
        self._send(wire.SIGNAL, encode({"signal": int(signal.SIGKILL)}))

    def _tell(self) -> None:
        self._timers.pop("tell", None)
        for line in self._ends.new_lines():
            if not self._client.get("quiet"):
                say(line)

    def _summarise(self) -> None:
        self._tell()
        if self._ends.is_forced and not self._client.get("quiet"):
            say(f"srun: Force Terminated StepId={self._id}")
        self._code = self._ends.exit_code()
