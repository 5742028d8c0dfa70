"""Which devices does `gpu:a100:2,shard:4` ask for?

Follows sbatch(1) --gres, --gpus, --gpus-per-*, --tres-per-task, and adds fractions of one device (`gpu:0.5`), which Slurm
has none of. Whether the site has such a resource is not asked here.
"""

from __future__ import annotations

import functools
import re

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.request import GresRequest, GresTerm

_UNITS = {"k": 10, "m": 20, "g": 30, "t": 40, "p": 50}
_MOST = 1 << 53
_FRACTION = re.compile(r"0?\.[0-9]{1,3}|[0-9]{1,9}\.0{1,3}", re.ASCII)

SCOPES = ("gres", "gpus", "tres")


class _Terms(Transformer[Token, list[GresTerm]]):
    def __init__(self, scope: str) -> None:
        super().__init__()
        self._scope = scope

    def gres(self, terms: list[GresTerm]) -> list[GresTerm]:
        return terms

    gpus = tres = gres

    def term(self, parts: list[Token]) -> GresTerm:
        found = {part.type: part for part in parts}
        name = "gpu" if self._scope == "gpus" else str(found.get("NAME") or found["OTHER"])
        count = found.get("COUNT")
        milli = 1000 if count is None else parse_milli(count, count.start_pos or 0)
        if milli % 1000 and name != "gpu":
            raise LangError("only GPUs come in fractions", place=count.start_pos or 0 if count else 0)
        kind = str(found["TYPE"]) if "TYPE" in found else ""
        return GresTerm(name=name, type=kind, milli=milli, text=f"{name}:{kind}" if kind else name)


_LANGUAGES = {scope: Language("gres", _Terms(scope), "resource specification", start=scope) for scope in SCOPES}
_SHOWN = {"gres": "gres/", "gpus": "gres/gpu:", "tres": ""}


@functools.lru_cache(maxsize=2048)
def parse_gres(text: str, scope: str) -> GresRequest:
    """Terms in the order written, repetitions kept; `text` as scontrol shows it (`gres/gpu:a100:1`).

    `scope`: "gres" (--gres), "gpus" (--gpus, --gpus-per-*), "tres" (--tres-per-task). "none" asks for nothing.
    """
    if scope == "gres" and text.lower() == "none":
        return GresRequest(terms=(), text="")
    terms = _LANGUAGES[scope].parse(text)
    items = text.split(",")
    if scope == "tres":
        items = [f"gres/{item[5:]}" if item.startswith("gres:") else item for item in items]
    elif scope == "gres":
        items = [item.removeprefix("gres/") for item in items]
    shown = [_SHOWN[scope] + item for item in items]
    written = iter(item for item in shown if item not in ("gres/", "gres/gpu:", ""))
    named = tuple(
        GresTerm(name=term.name, type=term.type, milli=term.milli, text=item)
        for term, item in zip(terms, written, strict=False)
    )
    return GresRequest(terms=named, text=",".join(shown))


def parse_milli(text: str, place: int = 0) -> int:
    """Thousandths of a count: `2` is 2000, `1k` is 1024000, `0.5` is 500 (at most three decimals, below one)."""
    if "." in text:
        if not _FRACTION.fullmatch(text):
            raise LangError(
                "a fraction of a device has at most three decimals and is below 1",
                text=text,
                place=place,
                expected=("0.001 to 0.999", "a whole number"),
            )
        whole, _, decimals = text.partition(".")
        return int(whole or "0") * 1000 + int(decimals.ljust(3, "0"))
    shift = _UNITS.get(text[-1:].lower(), 0)
    count = number(text[:-1] if shift else text, _MOST) << shift
    if count > _MOST:
        raise LangError("count is too large", text=text, place=place)
    return count * 1000


def render(terms: tuple[GresTerm, ...]) -> str:
    """`gpu:a100:2,shard:4`: parses back to the same names, types and counts with scope "gres"."""
    return ",".join(f"{term.name}{':' + term.type if term.type else ''}:{render_milli(term.milli)}" for term in terms)


def render_milli(milli: int) -> str:
    """`2`, `0.5`."""
    whole, part = divmod(milli, 1000)
    return f"{whole}.{part:03d}".rstrip("0") if part else str(whole)
