"""Where the site lends what it keeps for promised starts: borrowers run, give way, and begin again."""

from __future__ import annotations

import asyncio

from tests.daemon.controlled import CONF, Site, check_use

LENDING = "scheduling: {order: fair, promise: age, promised: lent}\n"


def test_a_borrower_gives_way_when_the_promised_job_can_start_and_is_requeued() -> None:
    async def whole() -> None:
        made = Site(CONF, LENDING)
        await made.start()
        for line in ("add account ml", "add user alice account=ml", "add user bob account=ml"):
            assert (await made.run(f"sacctmgr -i {line}", user="root")).code == 0
        short = await made.submit("-A ml -n8 -t 60", "sleep 600")
        gang = await made.submit("-A ml -N4 -n32 -t 60", "sleep 100")
        await made.advance(5)
        firm = await made.submit("-A ml -n8 -t 120 --preemptible=no", "sleep 3000", user="bob")
        borrower = await made.submit("-A ml -n8 -t 120 --requeue --preemptible=yes", "sleep 3000", user="bob")
        await made.advance(30)
        assert made.states(short, gang, firm, borrower) == ["RUNNING", "PENDING", "PENDING", "RUNNING"]
        allocation = made.job(borrower).allocation
        assert allocation is not None and allocation.lent_to == gang
        await made.advance(800, step=10.0)
        assert made.states(short, gang, borrower) == ["COMPLETED", "COMPLETED", "RUNNING"]
        job, waited = made.job(borrower), made.job(gang)
        assert job.restarts == 1 and job.allocation is not None and not job.allocation.lent_to
        assert waited.start_time is not None and waited.start_time <= (made.job(short).end_time or 0.0) + 60
        check_use(made)

    asyncio.run(whole())
