"""Whoever was promised a start has it by then, whatever else the replay starts, lends or ends."""

from __future__ import annotations

import msgspec
import pytest

from slurmbridge.model.plan import Plan
from slurmbridge.sched.held import OVERRUN_S
from slurmbridge.sim import generate, site
from slurmbridge.sim.ours import Replay
from slurmbridge.sim.replay import setting
from slurmbridge.submit.associations import initial_accounting


@pytest.mark.parametrize("promised", ["idle", "lent"])
@pytest.mark.parametrize("mix", sorted(generate.MIXES))
def test_no_start_comes_later_than_it_was_first_promised(mix: str, promised: str) -> None:
    wish = generate.Wish(jobs=150, mix=mix, nodes=4, seed=5, load=2.0)
    jobs = [
        msgspec.structs.replace(job, preemptible=place % 3 > 0) for place, job in enumerate(generate.generate(wish))
    ]
    config = site.config_of(generate.cluster(wish), jobs)
    scheduling = msgspec.structs.replace(config.scheduling, promised=promised)
    config = msgspec.structs.replace(config, scheduling=scheduling)
    given = setting(jobs, generate.cluster(wish), config, initial_accounting(config.cluster_name, enforced=False))
    told: dict[int, float] = {}
    kept = 0

    def watch(plan: Plan, now: float) -> None:
        nonlocal kept
        for verdict in plan.verdicts:
            if verdict.nodes and verdict.start is not None:
                told.setdefault(verdict.job_id, verdict.start)
        for start in plan.starts:
            if start.job_id in told:
                assert now <= told.pop(start.job_id) + OVERRUN_S
                kept += 1

    core = Replay(given.jobs, given.config, given.accounting, watch=watch)
    core.run()
    assert kept > 3
    assert (core.tally.evictions > 0) == (promised == "lent")
