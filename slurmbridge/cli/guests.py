"""sattach and sbcast on the user's side: both speak to the supervisor of a job's first node (`wire.step`).

Who may, the supervisor decides by the peer's uid. Words and exit codes follow sattach(1) and sbcast(1). Standard library
only.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
from collections.abc import Iterator
from typing import Any

from slurmbridge.cli.srun_output import Mode, Sink
from slurmbridge.cli.srun_reach import reach
from slurmbridge.cli.srun_terminal import say
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import Decoder, frame, pack
from slurmbridge.wire.supervisor import decode, encode

STDIN_CHUNK = 1 << 16
LOST = "the job's supervisor is gone"


def attach(facts: dict[str, Any]) -> int:
    """Show what a running step's tasks write, and pass standard input on: the exit code.

    facts: "address", "step", "label", "quiet", "input", "output", "error" (all, none, or a task's number).
    """
    try:
        sock = reach(str(facts["address"]), "sattach", dict(os.environ))
    except OSError as error:
        say(f"sattach: error: Unable to connect to the step: {error.strerror}")
        return 1
    with sock:
        return _Watch(sock, facts).run()


class _Watch:
    """One step that is looked on at."""

    def __init__(self, sock: socket.socket, facts: dict[str, Any]) -> None:
        self._sock, self._facts = sock, facts
        self._decoder = Decoder(wire.MAX_FRAME)
        self._left: set[int] = set()
        self._worst = 0
        self._code: int | None = None
        self._sinks: dict[bytes, Sink] = {}
        self._stdin = facts.get("input") != "none"

    def run(self) -> int:
        self._sock.sendall(frame(wire.ATTACH, pack(wire.VERSION, encode({"step": self._facts["step"]}))))
        while self._code is None:
            readers = [self._sock.fileno(), *([0] if self._stdin and self._left else [])]
            ready, _, _ = select.select(readers, [], [])
            if 0 in ready:
                self._pass_on()
            if self._sock.fileno() in ready:
                self._receive()
        for sink in self._sinks.values():
            sink.end_all()
        return self._code

    def _pass_on(self) -> None:
        data = os.read(0, STDIN_CHUNK)
        if not data:
            self._stdin = False
            return
        task = self._facts.get("input")
        number = int(task) if task not in (None, "all") else wire.ALL_TASKS
        self._sock.sendall(frame(wire.STDIN, wire.data(number, data)))

    def _receive(self) -> None:
        data = self._sock.recv(1 << 18)
        if not data and self._code is None:
            self._code = self._worst if not self._left else 1
        for kind, payload in self._decoder.feed(data):
            self._frame(kind, payload)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind in self._sinks:
            task, content = wire.parse_data(payload)
            only = self._facts.get("output" if kind == wire.STDOUT else "error")
            if only in (None, "all", str(task)):
                self._sinks[kind].write(task, content)
        elif kind == wire.CREATED:
            self._created(decode(payload))
        elif kind == wire.DONE:
            value = decode(payload)
            self._done(int(value["task"]), int(value["status"]))
        elif kind == wire.REFUSED:
            for line in decode(payload)["lines"]:
                say(str(line))
            self._code = int(decode(payload).get("exit", 1))
        elif kind == wire.FINISHED:
            self._code = self._worst

    def _created(self, value: dict[str, Any]) -> None:
        self._left = {task for node in value["nodes"] for task in node["tasks"]}
        width, label = len(str(max(self._left, default=0))), bool(self._facts.get("label"))
        lines = label or len(self._left) > 1
        self._sinks = {
            kind: Sink(fd, Mode(None), label=label, width=width, whole_lines=lines)
            for kind, fd in ((wire.STDOUT, 1), (wire.STDERR, 2))
        }
        for task, status in value.get("done", ()):
            self._done(task, status)

    def _done(self, task: int, status: int) -> None:
        self._left.discard(task)
        for sink in self._sinks.values():
            sink.end(task)
        code = status >> 8 if not status & 0x7F else status & 0x7F
        self._worst = max(self._worst, code)
        if status & 0x7F:
            say(f"sattach: error: task {task} killed by signal {status & 0x7F}")
        elif status:
            say(f"sattach: error: task {task} exited with exit code {code}")


def cast(facts: dict[str, Any]) -> int:
    """Copy a file to the job's nodes: the exit code, the errno of what failed.

    facts: "address", "source", "dest", "force", "preserve", "block" (bytes).
    """
    try:
        source = os.open(str(facts["source"]), os.O_RDONLY)
    except OSError as error:
        say(f"sbcast: error: Can't open `{facts['source']}`: {error.strerror}")
        return 255
    status = os.fstat(source)
    request: dict[str, Any] = {
        "dest": os.path.join(os.getcwd(), str(facts["dest"])),
        "mode": status.st_mode & 0o777,
        "force": bool(facts.get("force")),
    }
    if facts.get("preserve"):
        request["times"] = [status.st_atime, status.st_mtime]
    try:
        with reach(str(facts["address"]), "sbcast", dict(os.environ)) as sock:
            return _send(sock, source, request, int(facts.get("block") or wire.BLOCK))
    except OSError as error:
        say(f"sbcast: error: {error.strerror}")
        return error.errno or 1


def _send(sock: socket.socket, source: int, request: dict[str, Any], block: int) -> int:
    sock.sendall(frame(wire.CAST, pack(wire.VERSION, encode(request))))
    for kind, payload in _frames(sock):
        if kind == wire.MORE:
            data = os.read(source, min(block, wire.BLOCK))
            with contextlib.suppress(BrokenPipeError):  # it gave up meanwhile: what it said is still to be read
                sock.sendall(frame(wire.STDIN if data else wire.STDIN_END, data))
        elif kind == wire.FINISHED:
            value = decode(payload)
            number = int(value["errno"])
            if number:
                say(f"sbcast: error: REQUEST_FILE_BCAST({value['node']}): {os.strerror(number)}")
            return number
        elif kind == wire.REFUSED:
            break
    say(f"sbcast: error: {LOST}")
    return 1


def _frames(sock: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    decoder = Decoder(wire.MAX_FRAME)
    while data := sock.recv(1 << 16):
        yield from decoder.feed(data)
