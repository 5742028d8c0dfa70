"""What slurmdbd.conf says is too old is forgotten; what lives, and what memory holds, is not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.retention import Retention, Span
from slurmbridge.store.protocol import PutUsage
from tests.daemon.controlled import Site, site

HOUR = Span(1, "hours")


def rule(test: Callable[[Site], Awaitable[None]]) -> Callable[[], None]:
    def run() -> None:
        async def whole() -> None:
            await test(await site())

        asyncio.run(whole())

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def keep(made: Site, **spans: Span) -> None:
    memory = made.controller.memory
    memory.config = replace(memory.config, retention=Retention(**spans))


@rule
async def test_nothing_is_forgotten_unless_the_site_says_so(made: Site) -> None:
    await made.submit("-n1", "sleep 1")
    await made.advance(90 * 86400, step=86400)
    assert await made.controller.retaining.forget() == 0


@rule
async def test_jobs_go_an_hour_after_their_end_and_their_ids_are_not_given_out_again(made: Site) -> None:
    keep(made, jobs=HOUR)
    old = await made.submit("-n1", "sleep 1")
    lives = await made.submit("-n1", "sleep 100000")
    await made.advance(3 * 3600, step=600)
    made.controller.purge()
    assert await made.controller.retaining.forget() == 1
    rows = await made.run("sacct -a -n -X -P -o JobID -S 1970-01-01", user="root")
    assert rows.out == f"{lives}\n"
    await made.restart()
    assert made.states(lives) == ["RUNNING"]
    assert await made.submit("-n1", "sleep 1") == lives + 1 == old + 2


@rule
async def test_what_memory_still_holds_stays(made: Site) -> None:
    keep(made, jobs=HOUR)
    memory = made.controller.memory
    memory.config = replace(memory.config, min_job_age=10 * 3600)
    await made.submit("-n1", "sleep 1")
    await made.advance(3 * 3600, step=600)
    assert await made.controller.retaining.forget() == 0
    memory.config = replace(memory.config, min_job_age=0)
    await made.advance(30 * 3600, step=3600)
    made.controller.purge()
    assert await made.controller.retaining.forget() == 0 and len(memory.table) == 1


@rule
async def test_a_script_that_was_purged_is_stored_again_by_the_next_that_needs_it(made: Site) -> None:
    keep(made, jobs=HOUR)
    first = await made.submit("-n1", "sleep 1")
    sha = made.job(first).spec.script_sha
    await made.advance(3 * 3600, step=600)
    made.controller.purge()
    await made.controller.retaining.forget()
    assert made.store.blob(sha) is None
    second = await made.submit("-n1", "sleep 1")
    assert made.job(second).spec.script_sha == sha and made.store.blob(sha) is not None


@rule
async def test_use_of_associations_that_are_gone_is_forgotten(made: Site) -> None:
    keep(made, usage=HOUR)
    memory = made.controller.memory
    there = memory.accounting.assocs[0].assoc_id
    rows = [UsageRow(assoc_id=number, as_of=1000.0) for number in (there, 999)]
    memory.usage_rows |= {row.assoc_id: row for row in rows}
    await made.controller.core.journal.write([PutUsage(rows=tuple(rows))])
    await made.controller.retaining.forget()
    assert there in memory.usage_rows and 999 not in memory.usage_rows
    assert [row.assoc_id for row in made.store.load(0.0).usage] == [there]
