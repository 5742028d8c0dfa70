"""Where may two schedulers of the same rules differ? The knobs, and two settings of them.

`KAI` decides as that scheduler does, known faults aside; `DEFAULT` is ours. Where they differ, and why ours is better, is in
the decisions of the documentation.
"""

from __future__ import annotations

import msgspec

from slurmbridge.sched.pod_fit import Placement


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One way to decide."""

    name: str
    placement: Placement = Placement()
    cheapest_victims: bool = False  # among what the rules allow, the victims that lose least
    payers_first: bool = False  # reclaim looks at queues that could only be moved after all others
    hold_for_winners: bool = False  # what was freed for a gang is kept for it until it starts
    restart_s: float = 60.0  # what a victim loses beside the time it ran
    accumulate_after_s: float | None = None  # a gang that waited this long gathers what falls free
    accumulate_for_s: float = 14400.0  # and gives it back when even that did not help
    accumulating: int = 1  # gangs that may do so at a time
    consolidation_victims: int = 16  # jobs that one consolidation may move
    saturation_multiplier: float = 1.0  # how much less saturated a reclaimer above its share must stay
    shares_round_up: bool = False  # leftovers of a share are whole units, also for who asks for less
    domains_by_largest: bool = False  # a domain holds unequal tasks only if it holds as many of the largest
    staleness_grace_s: float = 60.0  # how long a gang may be incomplete; negative: for ever


KAI = Policy(name="kai", shares_round_up=True, domains_by_largest=True)
DEFAULT = Policy(
    name="ours", cheapest_victims=True, payers_first=True, hold_for_winners=True, accumulate_after_s=1800.0
)
PRESETS = {policy.name: policy for policy in (KAI, DEFAULT)}
