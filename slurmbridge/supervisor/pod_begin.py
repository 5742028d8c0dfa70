"""The beginning of a supervisor in a pod: its arguments, its place, its launch. `main` is what `pod.py` runs."""

from __future__ import annotations

import os
import signal
import socket

from slurmbridge.supervisor import kernel, pod_arguments, spawn
from slurmbridge.supervisor.loop import IN, Loop
from slurmbridge.supervisor.pod_head import PodHead
from slurmbridge.supervisor.pod_member import PodMember
from slurmbridge.supervisor.pod_place import Place
from slurmbridge.supervisor.pod_space import PodSpace, say
from slurmbridge.supervisor.pod_words import GONE, USAGE
from slurmbridge.wire import supervisor as wire


def main(words: list[str]) -> int:
    """The exit code of the container."""
    given = pod_arguments.read(words)
    if isinstance(given, str):
        say(given)
        return USAGE
    signal.signal(signal.SIGTERM, lambda number, where: os._exit(128 + number))  # nothing has begun
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.umask(0o022)
    kernel.set_name("sb-supervisor")
    spawn.allow_many_files()
    loop = Loop()
    try:
        place = Place(loop, PodSpace(), given.who, given.folders, base=given.base, words=given.words)
    except OSError as error:
        say(f"{given.base}: {error.strerror}")
        return GONE
    return _supervise(place, Contact(place).launch())


def _supervise(place: Place, found: tuple[bytes, socket.socket] | None) -> int:
    if found is None:
        return 0  # not wanted
    payload, sock = found
    header, script, env, base_env = wire.decode_launch(payload)
    supervisor: PodHead | PodMember
    if place.who.rank == 0:
        supervisor = PodHead(place, sock, header, script, env, base_env)
    else:
        supervisor = PodMember(place, sock, header, base_env)
    supervisor.run()
    return supervisor.code


class Contact:
    """The first words with the daemon: they are read one by one, so that what follows the launch is the supervisor's."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._socket: socket.socket | None = None
        self._data = bytearray()
        self._payload: bytes | None = None

    def launch(self) -> tuple[bytes, socket.socket] | None:
        """The launch, and the daemon after it. None: this pod is not wanted."""
        self._dial()
        self._place.loop.run()
        if self._payload is None or self._socket is None:
            return None
        return self._payload, self._socket

    def _dial(self) -> None:
        self._data.clear()
        self._socket = self._place.gate.supervisor()
        self._socket.setblocking(False)
        self._place.loop.watch(self._socket.fileno(), IN, self._read)

    def _read(self, events: int) -> None:
        sock = self._socket
        assert sock is not None
        size = int.from_bytes(self._data[:4], "big") if len(self._data) >= 4 else 1
        try:
            data = sock.recv(min(4 + size - len(self._data), 1 << 20)) if 1 <= size <= wire.MAX_FRAME else b""
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._place.loop.forget(sock.fileno())
            sock.close()
            self._dial()
            return
        self._data += data
        if len(self._data) < 5 or len(self._data) < 4 + int.from_bytes(self._data[:4], "big"):
            return
        kind, payload = bytes(self._data[4:5]), bytes(self._data[5:])
        self._data.clear()
        if kind == wire.LAUNCH:
            self._payload = payload
        if kind in (wire.LAUNCH, wire.UNWANTED):
            self._place.loop.forget(sock.fileno())
            self._place.loop.stop()
