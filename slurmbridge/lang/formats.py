"""Which columns does `%.18i %j`, `JobID:12,Name` or `Account%-30` ask for?

Follows squeue(1) and sinfo(1) --format and --Format, sacct(1) and sacctmgr(1) format=. Which columns exist is asked
elsewhere.
"""

from __future__ import annotations

import functools

import msgspec
from lark import Transformer
from lark.lexer import Token

from slurmbridge.lang.grammars import Language, number

MOST_WIDTH = 4096
"""Wider columns are as wide as this."""


class Literal(msgspec.Struct, frozen=True):
    """Text before the first column."""

    text: str


class Column(msgspec.Struct, frozen=True):
    """`%[#][.][WIDTH]LETTER` and the text up to the next `%`. Width 0: as wide as the value."""

    letter: str
    width: int = 0
    right: bool = False
    suffix: str = ""
    fit: bool = False  # `#`: as wide as the widest value


class NamedColumn(msgspec.Struct, frozen=True):
    """`NAME[:[.]WIDTH][SUFFIX]` or `NAME[%[-]WIDTH]`. Width None: not given."""

    name: str
    width: int | None = None
    suffix: str = ""
    right: bool = False
    left: bool = False


class _Letters(Transformer[Token, tuple[Literal | Column, ...]]):
    def letters(self, parts: list[Token | Column | None]) -> tuple[Literal | Column, ...]:
        return tuple(Literal(str(part)) if isinstance(part, Token) else part for part in parts if part is not None)

    def column(self, parts: list[Token]) -> Column:
        found = {part.type: str(part) for part in parts}
        return Column(
            letter=found["LETTER"],
            width=number(found.get("WIDTH", "0"), MOST_WIDTH),
            right="DOT" in found,
            suffix=found.get("TEXT", ""),
            fit="SHARP" in found,
        )

    def nothing(self, _: list[Token]) -> None:
        return None


class _Named(Transformer[Token, tuple[NamedColumn, ...]]):
    def names(self, parts: list[NamedColumn]) -> tuple[NamedColumn, ...]:
        return tuple(parts)

    accounting = names

    def named(self, parts: list[Token]) -> NamedColumn:
        found = {part.type: str(part) for part in parts}
        width = number(found["WIDTH"], MOST_WIDTH) if "WIDTH" in found else None
        return NamedColumn(
            name=found["NAME"].strip(), width=width, suffix=found.get("SUFFIX", ""), right="DOT" in found
        )

    def counted(self, parts: list[Token]) -> NamedColumn:
        name = str(parts[0]).strip()
        if len(parts) == 1:
            return NamedColumn(name=name)
        signed = str(parts[1])
        return NamedColumn(name=name, width=number(signed.lstrip("-"), MOST_WIDTH), left=signed.startswith("-"))


_LETTERS = Language("formats", _Letters(), "format", start="letters")
_NAMES = Language("formats", _Named(), "format", start="names")
_ACCOUNTING = Language("formats", _Named(), "format", start="accounting")


@functools.lru_cache(maxsize=256)
def parse_letters(text: str) -> tuple[Literal | Column, ...]:
    """-o of squeue and sinfo. A `%` with no letter behind it says nothing."""
    return _LETTERS.parse(text)


@functools.lru_cache(maxsize=256)
def parse_names(text: str) -> tuple[NamedColumn, ...]:
    """-O of squeue and sinfo. Empty items are left out."""
    return _NAMES.parse(text)


@functools.lru_cache(maxsize=256)
def parse_sacct(text: str) -> tuple[NamedColumn, ...]:
    """-o of sacct and sstat, format= of sacctmgr and sreport. Empty items are left out."""
    return _ACCOUNTING.parse(text)


def render_letters(parts: tuple[Literal | Column, ...]) -> str:
    """The format that parses back to these parts."""
    return "".join(
        part.text
        if isinstance(part, Literal)
        else f"%{'#' if part.fit else ''}{'.' if part.right else ''}{part.width or ''}{part.letter}{part.suffix}"
        for part in parts
    )
