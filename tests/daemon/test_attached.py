"""Allocations without a script live as long as their srun or salloc, and a little longer over a restart."""

from __future__ import annotations

import asyncio
import pathlib
from collections.abc import Callable, Sequence

import pytest

from slurmbridge.commands.effects import Call, Change, Component, Submit, Submitted, WaitStart
from slurmbridge.daemon.attached import GRACE_S, Attached
from slurmbridge.model.job import Job
from slurmbridge.model.request import JobRequest
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.store.protocol import Op
from slurmbridge.wire import client as wire
from tests.daemon.controlled import START, Site
from tests.daemon.post import Post, hello, with_post

ALICE = Call(argv=("salloc",), env={}, cwd="/home/alice", uid=1001, gid=1001, user="alice", group="alice", now=START)
BOB = Call(argv=("salloc",), env={}, cwd="/home/bob", uid=1002, gid=1002, user="bob", group="bob", now=START)


async def allocation(site: Site, **request: object) -> int:
    wanted = Submit(components=(Component(request=JobRequest(name="a", **request)),), batch=False)  # type: ignore[arg-type]
    answer = await site.controller.performer.perform(ALICE, wanted)
    assert isinstance(answer, Submitted)
    await site.settle()
    return answer.job_id


async def opened() -> Site:
    site = Site()
    await site.start()
    return site


async def complete(site: Site, job_id: int, status: int, call: Call = ALICE) -> object:
    change = Change(verb="complete", job_id=job_id, fields=(("status", status),))
    outcome = await site.controller.performer.perform(call, change)
    await site.advance(2)
    return outcome.results[0][1]


@pytest.mark.parametrize(
    ("status", "state"), [(0, JobState.COMPLETED), (3 << 8, JobState.FAILED), (15, JobState.FAILED)]
)
def test_an_allocation_ends_with_what_its_owner_made_of_it(status: int, state: JobState) -> None:
    async def play() -> Job:
        site = await opened()
        job_id = await allocation(site)
        assert site.job(job_id).state is JobState.RUNNING
        assert await complete(site, job_id, status) is None
        return site.job(job_id)

    job = asyncio.run(play())
    assert (job.state, job.exit_code, JobFlag.COMPLETING in job.flags) == (state, status, False)


def test_nobody_else_can_give_an_allocation_back() -> None:
    async def play() -> None:
        site = await opened()
        job_id = await allocation(site)
        assert await complete(site, job_id, 0, BOB) is not None
        assert site.job(job_id).state is JobState.RUNNING

    asyncio.run(play())


def test_who_waits_hears_how_far_the_job_has_come() -> None:
    async def play() -> list[str]:
        site = await opened()
        performer = site.controller.performer
        job_id = await allocation(site, hold=True)
        phases = [(await performer.perform(ALICE, WaitStart(job_id=job_id))).phase]
        start = asyncio.ensure_future(performer.perform(ALICE, WaitStart(job_id=job_id, known="waiting")))
        await performer.perform(ALICE, Change(verb="release", job_id=job_id))
        await site.settle()
        phases.append((await start).phase)
        await complete(site, job_id, 0)
        phases.append((await performer.perform(ALICE, WaitStart(job_id=job_id, known="ready"))).phase)
        phases.append((await performer.perform(ALICE, WaitStart(job_id=job_id, known="gone", seconds=0.01))).phase)
        return phases

    phases = asyncio.run(play())
    assert phases[0] == "waiting"
    assert phases[1] in ("new", "allocated", "ready")
    assert phases[2:] == ["gone", "gone"]


def test_a_forsaken_allocation_ends_after_a_while_unless_its_caller_came_back() -> None:
    async def play() -> tuple[Job, Job, Job]:
        site = await opened()
        lost, kept, free = await allocation(site), await allocation(site), await allocation(site, no_shell=True)
        await site.restart()
        attached = Attached()
        attached.attach(kept)
        site.controller.end_forsaken(attached)
        await site.advance(GRACE_S + 1, step=GRACE_S)
        site.controller.end_forsaken(attached)
        await site.advance(2)
        return site.job(lost), site.job(kept), site.job(free)

    lost, kept, free = asyncio.run(play())
    assert lost.state is JobState.CANCELLED
    assert kept.state is JobState.RUNNING
    assert free.state is JobState.RUNNING


def test_an_allocation_is_never_begun_again() -> None:
    async def play() -> Job:
        site = await opened()
        job_id = await allocation(site)
        await site.run("scontrol update nodename=n1 state=down reason=x", user="root")
        await site.advance(10)
        return site.job(job_id)

    assert asyncio.run(play()).state is JobState.NODE_FAIL


@pytest.mark.parametrize("farewell", [b"", wire.frame(b"F", b""), wire.frame(b"D", b"")], ids=["none", "F", "D"])
@pytest.mark.parametrize("argv", [("srun", "-H", "true"), ("salloc", "-H")])
def test_a_caller_who_goes_while_his_allocation_is_stored_takes_it_along(
    argv: tuple[str, ...], farewell: bytes, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He is cut off, or says what nobody asked for."""

    async def rule(there: Post) -> None:
        store, stored = there.made.store, list[Callable[[], None]]()
        write = store.write

        def slowly(ops: Sequence[Op], done: Callable[[Exception | None], None], *, droppable: bool = False) -> None:
            write(ops, lambda fault: stored.append(lambda: done(fault)), droppable=droppable)

        monkeypatch.setattr(store, "write", slowly)
        _, writer = await there.dial()
        writer.write(hello(*argv))
        while not stored:
            await asyncio.sleep(0)
        if farewell:
            writer.write(farewell)
        else:
            writer.transport.abort()
        while there.made.controller.memory.tally.open:  # the daemon has seen it
            await asyncio.sleep(0)
        monkeypatch.undo()
        for tell in stored:
            tell()
        while there.made.states(1) != ["CANCELLED"]:
            await asyncio.sleep(0)
        writer.close()

    async def in_time(there: Post) -> None:
        async with asyncio.timeout(60):
            await rule(there)

    with_post(in_time, tmp_path)
