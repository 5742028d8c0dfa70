"""When is mail sent: `END,FAIL`? Follows sbatch(1) --mail-type."""

from __future__ import annotations

import functools

from slurmbridge.errors import LangError

WORDS = (
    "ARRAY_TASKS", "INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT",
    "TIME_LIMIT_50", "TIME_LIMIT_80", "TIME_LIMIT_90", "TIME_LIMIT",
)  # fmt: skip
"""In the order in which Slurm shows them."""
_ALL = ("INVALID_DEPEND", "BEGIN", "END", "FAIL", "REQUEUE", "STAGE_OUT")


@functools.lru_cache(maxsize=512)
def parse(text: str) -> tuple[str, ...]:
    """Canonical words in Slurm's order; none where NONE is among them. Like Slurm, one known word makes a list valid."""
    given = {word.upper() for word in text.split(",")}
    if "NONE" in given:
        return ()
    if "ALL" in given:
        given.update(_ALL)
    known = tuple(word for word in WORDS if word in given)
    if not known:
        raise LangError("mail type is not valid", text=text, expected=("NONE", "ALL", *WORDS))
    return known
