"""Between a client and a server: passes on what both say, and cuts the connection when a word is said."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from pathlib import Path

NAME = ".s.PGSQL.5432"
"""PostgreSQL's socket in its folder."""


class CuttingProxy:
    """Listens in `folder`. `cut(word, lets_pass)`: the next packet of a client with `word` is the last that is heard of that
    connection, by the server (`lets_pass`) or by nobody; the client gets no answer."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder, self.server = folder, server / NAME
        self._word: bytes = b""
        self._lets_pass = False
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / NAME))
        self._listener.listen()
        self.cuts = 0
        self._closed = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def cut(self, word: bytes, *, lets_pass: bool) -> None:
        self._word, self._lets_pass = word, lets_pass

    def close(self) -> None:
        self._closed = True
        self._listener.close()
        for thread in self._threads:
            thread.join(5.0)

    def _accept(self) -> None:
        while not self._closed:
            if not select.select([self._listener], [], [], 0.05)[0] or self._closed:
                continue
            client, _ = self._listener.accept()
            thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(str(self.server))
            while not self._closed:
                readable = select.select([client, server], [], [], 0.05)[0]
                if client in readable:
                    said = client.recv(1 << 20)
                    if not said:
                        return
                    if self._word and self._word in said:
                        self._word, self.cuts = b"", self.cuts + 1
                        if self._lets_pass:
                            server.sendall(said)
                            time.sleep(0.2)  # it is carried out
                        return
                    server.sendall(said)
                if server in readable:
                    said = server.recv(1 << 20)
                    if not said:
                        return
                    client.sendall(said)
