"""A daemon that says what a test tells it to, over real TLS, and real supervisors that dial it."""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import slurmbridge
from slurmbridge.daemon import certificate
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import Decoder, frame
from tests.patience import PATIENCE_S

PROGRAM = Path(str(slurmbridge.__file__)).parent / "supervisor" / "pod.py"
TOKEN = "0123456789abcdef"


class Line:
    """One connection of a pod, its opening read."""

    def __init__(self, sock: ssl.SSLSocket) -> None:
        self._socket, self._decoder = sock, Decoder(wire.MAX_FRAME)
        self._frames: list[tuple[bytes, bytes]] = []
        sock.settimeout(PATIENCE_S)
        kind, payload = self.read()
        assert kind == wire.OPENING
        self.opening = wire.decode_opening(payload)

    def read(self) -> tuple[bytes, bytes]:
        """The next frame. EOFError: the pod has ended the connection."""
        while not self._frames:
            try:
                data = self._socket.recv(1 << 16)
            except OSError as error:
                raise EOFError from error
            if not data:
                raise EOFError
            self._frames += self._decoder.feed(data)
        return self._frames.pop(0)

    def send(self, kind: bytes, payload: bytes = b"") -> None:
        self._socket.sendall(frame(kind, payload))

    def say(self, kind: bytes, **value: object) -> None:
        self.send(kind, wire.encode(value))

    def report(self, kind: str) -> dict[str, Any]:
        """The next report of that kind; others before it are passed over."""
        while True:
            what, payload = self.read()
            assert what == wire.REPORT, (what, payload)
            value = wire.decode(payload)
            if value["kind"] == kind:
                return value

    def close(self) -> None:
        self._socket.close()


class ScriptedDaemon:
    """`lines`: connections in the order in which they came, by what they are for."""

    def __init__(self, folder: Path) -> None:
        self._context, self.pin = certificate.ensure(str(folder))
        self._queues: dict[str, queue.Queue[Line]] = {what: queue.Queue() for what in ("supervisor", "client", "step")}
        self._lines: list[Line] = []
        self.turns_away = 0  # so many connections, before a word
        self.port = 0
        self.open()

    def open(self) -> None:
        """Listen (again, at the same port)."""
        self._socket = socket.create_server(("127.0.0.1", self.port))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._socket,), daemon=True).start()

    def shut(self) -> None:
        """Away: nobody listens, every connection is cut."""
        if self._socket.fileno() >= 0:
            self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()
        for line in self._lines:
            line.close()
        self._lines.clear()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                sock, _ = server.accept()
            except OSError:
                return
            if self.turns_away:
                self.turns_away -= 1
                sock.close()
                continue
            threading.Thread(target=self._welcome, args=(sock,), daemon=True).start()

    def _welcome(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            sock = self._context.wrap_socket(sock, server_side=True)
            self._keep(Line(sock))
            return
        sock.close()

    def _keep(self, line: Line) -> None:
        self._lines.append(line)
        self._queues[line.opening.what].put(line)

    def line(self, what: str = "supervisor", within: float | None = None) -> Line:
        """The next one of that kind. queue.Empty: none came."""
        return self._queues[what].get(timeout=within or PATIENCE_S)


class Pod:
    """A supervisor as a container's first process would be, but for the number of its process."""

    def __init__(
        self, daemon: ScriptedDaemon, folder: Path, *, job: int = 7, restart: int = 0, rank: int = 0,
        extra: tuple[str, ...] = (), env: dict[str, str] | None = None, pin: str = "",
    ) -> None:  # fmt: skip
        self.base, self.words, self.token = folder / f"base{rank}", folder / f"words{rank}", folder / f"token{rank}"
        self.token.write_text("projected\n")
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(PROGRAM), "--daemon", f"127.0.0.1:{daemon.port}", "--pin", pin or daemon.pin,
             "--token", str(self.token), "--job", str(job), "--restart", str(restart), "--rank", str(rank), "--node", f"n{rank}",
             "--base", str(self.base), "--words", str(self.words), *extra],
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "OF_IMAGE": "yes", "NVIDIA_VISIBLE_DEVICES": "void", **(env or {})},
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def end(self) -> int:
        """Its exit code, when it has ended by itself."""
        return self.process.wait(timeout=PATIENCE_S)

    def last_words(self) -> dict[str, Any]:
        """When it has written them; it still runs then."""
        while True:
            assert self.process.poll() is None
            with contextlib.suppress(FileNotFoundError, ValueError):
                return wire.decode(self.words.read_bytes())

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def cut_off(self) -> None:
        left = below(self.process.pid)
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.process.stderr is not None:
            self.process.stderr.close()


def below(pid: int) -> list[int]:
    """What the container's end would end."""
    try:
        children = [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []
    return children + [each for child in children for each in below(child)]


@contextlib.contextmanager
def pods(*made: Pod) -> Iterator[tuple[Pod, ...]]:
    try:
        yield made
    finally:
        for pod in made:
            pod.cut_off()


def launch(folder: Path, rank: int = 0, ranks: int = 1, script: str = "", **changes: Any) -> bytes:
    """Payload of a launch frame."""
    header = {
        "uid": os.getuid(), "gid": os.getgid(), "groups": [], "user": "alice", "group": "", "home": "/", "shell": "/bin/sh",
        "login_env": False, "work_dir": str(folder), "umask": 0o022, "in": "/dev/null", "out": f"{folder}/out-%j",
        "err": "", "append": False, "time_limit": None, "kill_wait": 5, "over_time": 0, "kill_on_bad_exit": False,
        "wait_time": 0, "mpi_default": "none", "max_tasks": 512, "max_steps": 40000, "job": 7, "restarts": 0, "rank": rank,
        "node": f"n{rank}", "cpus": 2, "batch": True, "args": [], "pattern_values": {"j": "7", "J": "7", "x": "name"},
        "rlimits": [], "signal": None, "token": TOKEN, "epoch": "1", "address_of_node": "127.0.0.1",
        "ranks": [
            {"node": f"n{each}", "cpus": 2, "tasks": 1, "devices": [], "topology": ["", ""], "memory": 64, "host": f"n{each}"}
            for each in range(ranks)
        ],
        **changes,
    }  # fmt: skip
    base = wire.join_env([("SLURM_JOB_ID", "7"), ("SLURMBRIDGE_ADDR", "unix:/of/the/host")])
    said = wire.join_env([("SLURM_JOB_ID", "7"), ("OF_JOB", "yes"), ("SLURMBRIDGE_ADDR", "unix:/of/the/host")])
    first = rank == 0
    return wire.encode_launch(header, script.encode() if first else b"", said if first else b"", base)


def srun(words: str) -> str:
    """As a job calls it: the thin client, without what starts it in a pod."""
    return f"{sys.executable} -I -S {CLIENT} srun {words}"


CLIENT = PROGRAM.parents[1] / "cli" / "thin" / "client.py"
