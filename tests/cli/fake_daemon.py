"""A stand-in for the daemon's side of a thin-client connection, for tests of the client: scripted frames."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path

from slurmbridge.wire import client as frames

Talk = Callable[["Peer"], None]


class Peer:
    """One accepted connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.decoder = frames.Decoder()
        self.waiting: list[tuple[bytes, bytes]] = []

    def receive(self) -> tuple[bytes, bytes]:
        while not self.waiting:
            data = self.connection.recv(1 << 16)
            if not data:
                raise EOFError
            self.waiting += self.decoder.feed(data)
        return self.waiting.pop(0)

    def send(self, kind: bytes, *parts: bytes) -> None:
        payload = parts[0] if kind in b"OEX" else frames.pack(*parts)
        self.connection.sendall(frames.frame(kind, payload))


class FakeDaemon:
    """Listens on `path`; the n-th connection is served by the n-th talk (the last one again and again)."""

    def __init__(self, path: Path, *talks: Talk) -> None:
        self.path, self.talks = path, talks
        self.given: list[list[bytes]] = []
        self.hellos: list[list[bytes]] = []
        self.problems: list[BaseException] = []
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(16)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        count = 0
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                peer = Peer(connection)
                try:
                    kind, payload = peer.receive()
                    while kind == b"G":  # a file that comes along unasked
                        self.given.append(frames.unpack(payload))
                        kind, payload = peer.receive()
                    assert kind == b"H"
                    self.hellos.append(frames.unpack(payload))
                    self.talks[min(count, len(self.talks) - 1)](peer)
                except (EOFError, OSError):
                    pass
                except BaseException as fault:
                    self.problems.append(fault)
            count += 1

    def __enter__(self) -> FakeDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)
        assert not self.problems, self.problems
