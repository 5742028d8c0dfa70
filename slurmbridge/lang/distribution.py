"""How are tasks laid out: `block:cyclic,NoPack`, `plane=4`? Follows sbatch(1) --distribution."""

from __future__ import annotations

import functools

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number

_PACKING = {"pack": "Pack", "nopack": "NoPack"}
_MOST_LEVELS = 3


class _Canonical(Transformer[Token, str]):
    def plane(self, parts: list[Token]) -> str:
        size = number(parts[0])
        if size >= 1 << 31:
            raise LangError("plane size is too large", place=parts[0].start_pos or 0)
        return f"plane={size}"

    def levels(self, parts: list[Token]) -> str:
        levels = [part.lower() for part in parts if part.type != "PACKING"]
        packing = [_PACKING[part.lower()] for part in parts if part.type == "PACKING"]
        return ",".join([*([":".join(levels)] if levels else []), *packing])

    def arbitrary(self, _: list[Token]) -> str:
        return "arbitrary"


_LANGUAGE = Language("distribution", _Canonical(), "distribution")


@functools.lru_cache(maxsize=256)
def parse(text: str) -> str:
    """Canonical text: lower case, `*` for a level left open, `Pack` and `NoPack` as Slurm spells them."""
    levels, comma, packing = text.partition(",")
    parts = levels.split(":", _MOST_LEVELS)
    if len(parts) > _MOST_LEVELS:
        raise LangError("distribution is not valid", text=text, expected=(f"at most {_MOST_LEVELS} levels",))
    if len(parts) > 1:
        while parts and not parts[-1]:
            parts.pop()
        text = ":".join(part or "*" for part in parts) + comma + packing
    if not text:
        raise LangError("distribution is not valid", expected=("block", "cyclic", "plane=SIZE", "arbitrary"))
    return _LANGUAGE.parse(text)
