"""How much is a set of TRES billed? Source: slurm.conf(5), TRESBillingWeights: by default its CPUs."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable

import msgspec

from slurmbridge.model.cluster import ClusterConfig, Partition
from slurmbridge.model.tres import is_gpu

_UNIT_MIB = {"": 1.0, "K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0 * 1024, "P": 1024.0 * 1024 * 1024}


@functools.lru_cache(maxsize=256)
def weights(text: str) -> tuple[tuple[str, float], ...]:
    """`CPU=1.0,Mem=0.25G,GRES/gpu=2` as weight of one unit (MiB for mem, device for GPUs). Bad parts are left out."""
    found = []
    for part in text.split(","):
        name, _, value = part.partition("=")
        name, value = name.strip().lower(), value.strip()
        unit = value[-1:].upper() if value[-1:].isalpha() else ""
        try:
            weight = float(value[: len(value) - len(unit)])
        except ValueError:
            continue
        if name == "mem" and unit in _UNIT_MIB:
            weight /= _UNIT_MIB[unit]
        found.append((name, weight))
    return tuple(found)


def weighted(text: str, tres: Iterable[tuple[str, int]]) -> float:
    """Sum of weight x count."""
    by_name = dict(weights(text))
    total = 0.0
    for name, count in tres:
        weight = by_name.get(name.lower())
        if weight is not None:
            total += weight * (count / 1000 if is_gpu(name) else count)
    return total


def billing(text: str, tres: Iterable[tuple[str, int]], flags: Collection[str] = ()) -> int:
    """The billing count: weighted, or the CPUs without weights.

    `flags`: of PriorityFlags; MAX_TRES bills the dearest of what a node has and all that it has not (licences),
    MAX_TRES_GRES all devices too.
    """
    pairs = list(tres)
    if not text:
        return dict(pairs).get("cpu", 0)
    if not {"MAX_TRES", "MAX_TRES_GRES"} & set(flags):
        return int(weighted(text, pairs))
    apart = ("license/", "bb/", "gres/") if "MAX_TRES_GRES" in flags else ("license/", "bb/")
    dearest = max((weighted(text, [pair]) for pair in pairs if not pair[0].startswith(apart)), default=0.0)
    return int(dearest + weighted(text, [pair for pair in pairs if pair[0].startswith(apart)]))


class Billing(msgspec.Struct, frozen=True, kw_only=True):
    """How a partition bills."""

    weights: str = ""  # TRESBillingWeights
    flags: frozenset[str] = frozenset()

    @classmethod
    def of(cls, partition: Partition, config: ClusterConfig) -> Billing:
        return cls(weights=partition.tres_billing_weights, flags=config.priority_flags)

    def count(self, tres: Iterable[tuple[str, int]]) -> int:
        return billing(self.weights, tres, self.flags)
