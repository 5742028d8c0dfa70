"""A step for somebody outside: asked for at the daemon, joined with what the job's supervisor dials."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from slurmbridge.daemon import through
from slurmbridge.model.run import RunKey
from slurmbridge.wire import client as frames
from slurmbridge.wire import step
from slurmbridge.wire import supervisor as wire
from tests.daemon.porch import Porch, Rule, is_cut, kept, opening
from tests.daemon.test_tls import gone
from tests.patience import comes


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Rule], None]:
    return kept(tmp_path)


def answer_of(data: bytes) -> list[tuple[bytes, bytes]]:
    return frames.Decoder().feed(data)


def ordered(there: Porch) -> list[tuple[RunKey, str]]:
    """What supervisors are told to dial for, from here on."""
    orders: list[tuple[RunKey, str]] = []

    def order(key: RunKey, name: str) -> bool:
        orders.append((key, name))
        return True

    there.service.through.order = order
    return orders


async def asked(
    there: Porch, job: int, command: bytes = b"srun", more: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_unix_connection(there.path)
    writer.write(frames.frame(b"T", frames.pack(b"%d" % job, command)) + more)
    return reader, writer


def test_a_step_from_outside_is_joined_with_what_the_supervisor_dials(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        orders = ordered(there)
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        large = bytes(1 << 20)
        early = frames.frame(step.REQUEST, b"please") + frames.frame(step.STDIN, large)[:1000]
        outside, out_writer = await asked(there, 1, more=early)
        out_writer.write(frames.frame(step.STDIN, large)[1000:])
        await comes(lambda: bool(orders))
        assert orders[0][0] == RunKey(1, 0)
        inside, in_writer = await there.dial(
            opening("step", connection=orders[0][1]), frames.frame(step.CREATED, b"{}")
        )
        whole = frames.frame(step.REQUEST, b"please") + frames.frame(step.STDIN, large)
        assert await inside.readexactly(len(whole)) == whole
        assert await outside.readexactly(7) == frames.frame(step.CREATED, b"{}")
        in_writer.write(large)
        assert await outside.readexactly(len(large)) == large
        out_writer.close()
        assert await is_cut(inside)
        await gone(in_writer)

    keep(rule)


def test_only_the_supervisor_of_that_run_is_joined_and_only_once(keep: Callable[[Rule], None]) -> None:
    async def rule(there: Porch) -> None:
        orders = ordered(there)
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        _, asking = await asked(there, 1)
        await comes(lambda: bool(orders))
        for refused in (
            opening("step", job=2, token="t2", connection=orders[0][1]),
            opening("step", connection="another"),
        ):
            reader, writer = await there.dial(refused)
            assert await is_cut(reader)
            await gone(writer)
        _, writer = await there.dial(opening("step", connection=orders[0][1]))
        await comes(lambda: not there.service.through._waiting)
        reader, again = await there.dial(opening("step", connection=orders[0][1]))
        assert await is_cut(reader)
        for each in (writer, again):
            await gone(each)
        asking.close()

    keep(rule)


def test_a_step_of_another_s_job_or_of_none_is_refused(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("slurmbridge.daemon.peer.struct.unpack", lambda form, data: (1, 1002, 1002))

    async def rule(there: Porch) -> None:
        there.service.through.order = lambda key, name: True
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        for job, why in ((1, through.DENIED), (9, through.INVALID)):
            reader, writer = await asked(there, job)
            ((kind, load),) = answer_of(await reader.read())
            assert kind == step.REFUSED
            assert wire.decode(load)["lines"][0] == f"srun: error: Unable to confirm allocation for job {job}: {why}"
            writer.close()

    keep(rule)


def test_a_supervisor_that_does_not_dial_is_told_in_bounded_time(
    keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(through, "WITHIN_S", 0.05)

    async def rule(there: Porch) -> None:
        there.service.through.order = lambda key, name: True
        await there.made.submit("", "sleep 100")
        await there.made.settle()
        reader, writer = await asked(there, 1, b"sattach")
        ((_, load),) = answer_of(await reader.read())
        assert wire.decode(load)["lines"] == [f"sattach: error: Unable to reach the step of job 1: {through.SILENT}"]
        writer.close()
        await comes(lambda: not there.service.through._waiting)

    keep(rule)
