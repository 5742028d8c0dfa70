"""Cycles that are left out would have started nothing."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pytest

from slurmbridge.model.plan import Plan
from slurmbridge.sched.cycle import Memo
from slurmbridge.sched.fit import rules_of
from slurmbridge.sched.snapshot import Snapshot
from slurmbridge.sched.vain import Vain
from slurmbridge.sim import accounts, generate, site
from slurmbridge.sim.ours import Replay
from slurmbridge.sim.replay import Setting, setting
from slurmbridge.submit.associations import initial_accounting


class Asked(Vain):
    """Leaves out nothing, and remembers what could have been."""

    vain = False
    count = 0

    def is_vain(self, snapshot: Snapshot, memo: Memo, came: Iterable[int] | None) -> bool:
        self.vain = super().is_vain(snapshot, memo, came)
        self.count += self.vain
        return False


def crowded(mix: str) -> Setting:
    wish = generate.Wish(jobs=120, mix=mix, nodes=4, seed=11, load=1.3)
    jobs = [msgspec.structs.replace(job, preemptible=False) for job in generate.generate(wish)]
    config = site.config_of(generate.cluster(wish), jobs)
    return setting(jobs, generate.cluster(wish), config, initial_accounting(config.cluster_name, enforced=False))


@pytest.mark.parametrize("mix", sorted(generate.MIXES))
def test_a_cycle_that_is_called_vain_starts_nothing_and_leaving_it_out_changes_no_run(mix: str) -> None:
    given = crowded(mix)
    whole = Replay(given.jobs, given.config, given.accounting)
    asked = whole._vain = Asked(rules_of(given.config))

    def watch(plan: Plan, now: float) -> None:
        assert not (asked.vain and plan.starts)

    whole._watch = watch
    assert Replay(given.jobs, given.config, given.accounting).run() == whole.run()
    assert asked.count > 10


def test_where_promised_room_is_lent_no_cycle_is_vain_while_some_run_may_be_ended() -> None:
    given = crowded("gangs")
    jobs = [msgspec.structs.replace(job, preemptible=True) for job in given.jobs]
    core = Replay(jobs, given.config, given.accounting)
    asked = core._vain = Asked(rules_of(given.config))

    def watch(plan: Plan, now: float) -> None:
        assert not (asked.vain and core._snapshot.running)

    core._watch = watch
    core.run()
    assert core.tally.evictions


def test_where_somebody_could_have_to_give_way_no_cycle_is_vain() -> None:
    given = crowded("gangs")
    text = "add account team1 DeservedTRES=gres/gpu=8\n"
    jobs = [msgspec.structs.replace(job, preemptible=True) for job in given.jobs]
    known = accounts.completed(accounts.read(text, "tree", given.config), jobs)
    core = Replay(jobs, given.config, known)
    asked = core._vain = Asked(rules_of(given.config))
    core.run()
    assert asked.count == 0
