"""A long answer is made as its caller reads it, a piece at a time; everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
import json
import pathlib

import pytest
from msgspec.structs import replace

from slurmbridge.daemon import server
from slurmbridge.wire import client as wire
from tests.daemon.controlled import site
from tests.daemon.test_hostile_callers import hello

JOBS = 600


def test_a_listing_waits_for_its_reader_and_others_do_not(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "TURN_S", 0.0)  # a rest after every piece
    asyncio.run(_listing(str(tmp_path / "socket")))


async def _listing(path: str) -> None:
    made = await site()
    core = made.controller.core
    first = await made.submit("-H")
    for job_id in range(first + 1, first + JOBS):
        core.place(replace(made.job(first), job_id=job_id))
    service = server.Service(core.memory, made.controller.performer, made.clock, lambda *_: False)
    connections: list[server.Connection] = []

    def accept() -> server.Connection:
        connections.append(server.Connection(service))
        return connections[-1]

    opened = await asyncio.get_running_loop().create_unix_server(accept, path)
    reader, writer = await asyncio.open_unix_connection(path, limit=1024)
    writer.write(hello("squeue", "--json"))
    decoder, document, code = wire.Decoder(), b"", b""
    while len(connections) < 1 or connections[0]._is_read:  # until the kernel takes no more of it
        await asyncio.sleep(0)
    for _ in range(100):
        await asyncio.sleep(0)
    held = connections[0]._transport.get_write_buffer_size()
    other_reader, other_writer = await asyncio.open_unix_connection(path)
    other_writer.write(hello("squeue", "-h", "-o", "%i", "-j", str(first)))
    answer = wire.frame(b"O", b"%d\n" % first) + wire.frame(b"X", b"0")
    assert await other_reader.readexactly(len(answer)) == answer
    other_writer.close()
    while not code:
        for kind, payload in decoder.feed(await reader.read(65536)):
            if kind == b"O":
                document += payload
            elif kind == b"X":
                code = payload
    writer.close()
    opened.close()
    assert code == b"0"
    assert held < len(document) / 4
    assert [job["job_id"] for job in json.loads(document)["jobs"]] == list(range(first, first + JOBS))
