"""How does Slurm write counts of trackable resources, and what does `cpu=4,mem=10G` mean?

Follows sacctmgr(1) (GrpTRES and its kin) and the ReqTRES and AllocTRES of scontrol(1).
"""

from __future__ import annotations

import functools

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang import sizes
from slurmbridge.lang.grammars import Language
from slurmbridge.lang.gres import parse_milli, render_milli
from slurmbridge.model.tres import Tres, is_gpu

_MEMORY = ("mem", "gres/gpumem", "vmem")


class _Pairs(Transformer[Token, Tres]):
    def start(self, pairs: list[tuple[str, int]]) -> Tres:
        return tuple(dict(pairs).items())

    def pair(self, parts: list[Token]) -> tuple[str, int]:
        name, count = str(parts[0]), str(parts[1])
        place = parts[1].start_pos or 0
        if count == "-1":
            return name, -1
        if name in _MEMORY:
            return name, _memory(count, place)
        milli = parse_milli(count.rstrip("bB"), place)
        if is_gpu(name):
            return name, milli
        if milli % 1000:
            raise LangError("only GPUs come in fractions", place=place)
        return name, milli // 1000


def _memory(count: str, place: int) -> int:
    if count[-1] in "pP":
        return sizes.parse_mib(f"{count[:-1]}T") * 1024
    try:
        return sizes.parse_mib(count)
    except LangError as error:
        raise LangError(error.message, text=count, place=place, expected=error.expected) from error


_LANGUAGE = Language("tres", _Pairs(), "TRES specification")


@functools.lru_cache(maxsize=1024)
def parse_counts(text: str) -> Tres:
    """Counts by name in the units of `model.tres`, the last of a repeated name; -1 as it stands. Empty text: none."""
    return _LANGUAGE.parse(text) if text else ()


def render(tres: Tres) -> str:
    """`cpu=1,mem=100M,node=1,billing=1,gres/gpu=2`, in the order given."""
    return ",".join(f"{name}={render_count(name, count)}" for name, count in tres)


def render_count(name: str, count: int) -> str:
    """One count in its own unit."""
    if count < 0:
        return str(count)
    if name in _MEMORY:
        return sizes.render_mib(count)
    return render_milli(count) if is_gpu(name) else str(count)
