"""Which resource limits travel with a job: `STACK,CORE`? Follows sbatch(1) --propagate and slurm.conf(5)."""

from __future__ import annotations

import functools
import re

from slurmbridge.errors import LangError

NAMES = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
_SEPARATORS = re.compile(r"[, \t\n]+")


@functools.lru_cache(maxsize=256)
def parse(text: str) -> tuple[str, ...]:
    """Names without RLIMIT_; all for ALL, none for NONE. The `text` of an error is the name that is none."""
    if text in ("ALL", "NONE"):
        return NAMES if text == "ALL" else ()
    found: list[str] = []
    for word in _SEPARATORS.split(text):
        name = word.removeprefix("RLIMIT_")
        if word and name not in NAMES:
            raise LangError(f"Bad rlimit name: {word}", text=word, expected=("ALL", "NONE", *NAMES))
        if word:
            found.append(name)
    return tuple(dict.fromkeys(found))


Limit = tuple[str, int, int]  # name, soft, hard


def among(limits: tuple[Limit, ...], names: tuple[str, ...]) -> tuple[Limit, ...]:
    """Those of `limits` that `names` names; `ALL` names each."""
    return limits if "ALL" in names else tuple(limit for limit in limits if limit[0] in names)


def without(limits: tuple[Limit, ...], names: tuple[str, ...]) -> tuple[Limit, ...]:
    """Those that `names` does not name."""
    named = among(limits, names)
    return tuple(limit for limit in limits if limit not in named)
