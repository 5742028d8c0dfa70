"""A long answer is made as its caller reads it, a piece at a time; everybody else is served meanwhile."""

from __future__ import annotations

import asyncio
import itertools
import json
import pathlib

import pytest
from msgspec.structs import replace

from slurmbridge.commands import effects as fx
from slurmbridge.daemon import commanded, server
from slurmbridge.daemon.changes import AT_ONCE
from slurmbridge.errors import SlurmErrno
from slurmbridge.wire import client as wire
from tests.daemon.controlled import site
from tests.daemon.post import hello

JOBS = 600


def test_a_listing_waits_for_its_reader_and_others_do_not(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commanded, "TURN_S", 0.0)  # a rest after every piece
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


def test_many_jobs_are_cancelled_a_few_at_a_time_each_once() -> None:
    asyncio.run(_cancelling())


async def _cancelling() -> None:
    made = await site()
    core = made.controller.core
    first = await made.submit("-H")
    for job_id in range(first + 1, first + JOBS):
        core.place(replace(made.job(first), job_id=job_id))
    call = fx.Call(argv=("scancel",), env={}, cwd="/", uid=1001, user="alice", now=made.clock())
    changes = tuple(fx.Change(verb="cancel", job_id=job_id) for job_id in range(first, first + JOBS))
    answer = made.controller.performer.perform(call, fx.ChangeAll(changes=changes))
    seen: list[int] = []
    while not answer.done():
        await asyncio.sleep(0)
        seen.append(sum(job.is_pending for job in core.memory.jobs()))
    assert max(before - after for before, after in itertools.pairwise([JOBS, *seen])) <= AT_ONCE
    assert [outcome.results for outcome in answer.result()] == [
        ((str(job_id), None),) for job_id in range(first, first + JOBS)
    ]
    assert core.memory.statistics().canceled == JOBS


def test_many_tasks_of_an_array_are_cancelled_a_few_at_a_time_too() -> None:
    asyncio.run(_cancelling_tasks())


async def _cancelling_tasks() -> None:
    made = await site()
    array = await made.submit(f"-H --array=0-{JOBS}")
    first = await made.submit("-H")
    call = fx.Call(argv=("scancel",), env={}, cwd="/", uid=1001, user="alice", now=made.clock())
    changes = (
        fx.Change(verb="cancel", job_id=array, array_tasks=tuple(range(JOBS))),
        fx.Change(verb="cancel", job_id=first),
        fx.Change(verb="cancel", job_id=99999),
    )
    answer = made.controller.performer.perform(call, fx.ChangeAll(changes=changes))
    seen = [0]
    while not answer.done():
        await asyncio.sleep(0)
        seen.append(made.controller.memory.statistics().canceled)
    assert max(after - before for before, after in itertools.pairwise(seen)) <= AT_ONCE + 1
    tasks, single, unknown = answer.result()
    assert tasks.results == tuple((f"{array}_{task}", None) for task in range(JOBS))
    assert single.results == ((str(first), None),)
    assert unknown.results == (("99999", SlurmErrno.INVALID_JOB_ID),)
    assert [job.tasks for job in made.controller.memory.jobs_of_array(array) if job.is_pending] == [((JOBS, JOBS, 1),)]
