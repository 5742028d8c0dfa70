"""Which variables does `--export=ALL,A=1` pass on?

Follows sbatch(1) --export: quotes protect commas but stay part of the value.
"""

from __future__ import annotations

import functools

import msgspec
from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language


class ExportSpec(msgspec.Struct, frozen=True, kw_only=True):
    """`all`: the whole environment. `nothing`: not even a login environment (NIL). Else names and settings only."""

    all: bool = False
    nothing: bool = False
    names: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()


_Item = tuple[str, str | None]


class _Items(Transformer[Token, list[_Item]]):
    def start(self, items: list[_Item]) -> list[_Item]:
        return items

    def setting(self, parts: list[Token]) -> _Item:
        return str(parts[0]), str(parts[1]) if len(parts) > 1 else ""

    def name(self, parts: list[Token]) -> _Item:
        return str(parts[0]), None


_LANGUAGE = Language("export", _Items(), "export list")


@functools.lru_cache(maxsize=512)
def parse(text: str) -> ExportSpec:
    """Words ALL, NONE, NIL count in any case; a quote that is never closed is an error."""
    words = text.strip().upper()
    if words == "NIL":
        return ExportSpec(nothing=True)
    try:
        items = _LANGUAGE.parse(text)
    except LangError as error:
        message = f"Improperly formed environment variable ({text})"
        raise LangError(message, text=text, place=error.place, expected=error.expected) from error
    plain = [name for name, value in items if value is None]
    return ExportSpec(
        all=any(name.upper() == "ALL" for name in plain),
        names=tuple(name for name in plain if name.upper() not in ("ALL", "NONE")),
        settings=tuple((name, value) for name, value in items if value is not None),
    )


def render(spec: ExportSpec) -> str:
    """A text that parses back: `ALL,HOME,A=1`; values must be closed in their quotes."""
    if spec.nothing:
        return "NIL"
    settings = (f"{name}={value}" for name, value in spec.settings)
    return ",".join([*(["ALL"] if spec.all else ["NONE"]), *spec.names, *settings])
