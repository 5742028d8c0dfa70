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
    cheapest_victims: bool = False  # leave out every victim that the winner does not need
    hold_for_winners: bool = False  # what was freed for a gang is kept until it starts
    consolidation_victims: int = 16  # jobs that one consolidation may move
    saturation_multiplier: float = 1.0  # how much less saturated a reclaimer above its share must stay
    staleness_grace_s: float = 60.0  # how long a gang may be incomplete; negative: for ever


KAI = Policy(name="kai")
DEFAULT = Policy(name="ours", cheapest_victims=True, hold_for_winners=True)
PRESETS = {policy.name: policy for policy in (KAI, DEFAULT)}
