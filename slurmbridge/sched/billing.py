"""How much is a set of TRES billed? Source: slurm.conf(5), TRESBillingWeights: by default its CPUs."""

from __future__ import annotations

import functools
from collections.abc import Iterable

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


def billing(text: str, tres: Iterable[tuple[str, int]]) -> int:
    """The billing count: weighted, or the CPUs without weights."""
    pairs = list(tres)
    if not text:
        return dict(pairs).get("cpu", 0)
    return int(weighted(text, pairs))
