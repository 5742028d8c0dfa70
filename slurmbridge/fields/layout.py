"""How does a format string become lines? One compiled template per listing, filled by one call per column.

Follows the output rules of squeue(1) and sinfo(1): `%[.][WIDTH]LETTER` (a dot right-aligns, a value longer than the
width is cut) and `NAME[:[.]WIDTH][SUFFIX]` (20 wide when nothing is said). A column may opt out of cutting, as node
lists and times do in Slurm.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Generic, TypeVar

import msgspec

from slurmbridge.fields.view import View

Row = TypeVar("Row")
NAMED_WIDTH = 20
AT_ONCE = 100
"""Rows of one piece of a listing."""
_DIGITS = frozenset("0123456789")


class Field(msgspec.Struct, Generic[Row], frozen=True):
    """One output column: what it is called, its heading, and how a row gives its text."""

    name: str  # of -O
    letter: str  # of -o; empty: none
    heading: str
    get: Callable[[Row, View], str]
    also: tuple[str, ...] = ()  # further -O names that Slurm takes
    cut: bool = True  # whether values longer than the width are cut
    cut_heading: bool = True
    hidden: bool = False  # --helpFormat leaves it out
    match: Callable[[Row, View], object] | None = None  # sinfo: rows that differ here are not merged


class Cell(msgspec.Struct, Generic[Row], frozen=True):
    """A placed column."""

    field: Field[Row]
    width: int = 0
    right: bool = False
    suffix: str = ""
    prefix: str = ""


class Layout(Generic[Row]):
    """A compiled format."""

    __slots__ = ("_getters", "_template", "cells", "header")

    def __init__(self, cells: Sequence[Cell[Row]], tail: str = "") -> None:
        self.cells = tuple(cells)
        heads, values = [], []
        for cell in cells:
            heads.append(cell.prefix + _pad(cell.field.heading, cell, cell.field.cut_heading) + cell.suffix)
            values.append(_literal(cell.prefix) + _spec(cell) + _literal(cell.suffix))
        self.header = "".join(heads) + tail
        self._template = "".join(values) + _literal(tail)
        self._getters = tuple(cell.field.get for cell in cells)

    def pieces(self, rows: Iterable[Row], view: View) -> Iterator[str]:
        """One line per row, some hundred lines at a time: others are served between them."""
        template, getters = self._template + "\n", self._getters
        left = iter(rows)
        while some := list(itertools.islice(left, AT_ONCE)):
            yield "".join([template % tuple([get(row, view) for get in getters]) for row in some])

    def uses(self, *names: str) -> bool:
        return any(cell.field.name in names for cell in self.cells)


class Registry(Generic[Row]):
    """The columns of one listing, by letter and by name (names ignore case)."""

    def __init__(self, fields: Sequence[Field[Row]], *, complaint: str, named_complaint: str) -> None:
        self.fields = tuple(fields)
        self.complaint, self.named_complaint = complaint, named_complaint
        self.by_letter: dict[str, Field[Row]] = {}
        self.by_name: dict[str, Field[Row]] = {}
        for field in self.fields:
            if field.letter:
                self.by_letter.setdefault(field.letter, field)
            for name in (field.name, *field.also):
                self.by_name.setdefault(name.lower(), field)

    def from_letters(self, text: str) -> tuple[Layout[Row], list[str]]:
        """The layout of an -o format and the complaints (unknown letters stay as they were written)."""
        cells: list[Cell[Row]] = []
        errors: list[str] = []
        head, *tokens = text.split("%")
        literal = head
        for token in tokens:
            if not token:
                continue
            right = token[0] == "."
            at = begin = 1 if right else 0
            while at < len(token) and token[at] in _DIGITS:
                at += 1
            letter = token[at : at + 1]
            field = self.by_letter.get(letter)
            if field is None:
                literal += "%" + token
                if letter:
                    errors.append(f"{self.complaint}{letter}")
                continue
            width = _bounded(token[begin:at])
            cells.append(Cell(field, width, right, token[at + 1 :], literal))
            literal = ""
        return Layout(cells, literal), errors

    def from_names(self, text: str) -> tuple[Layout[Row], list[str]]:
        """The layout of an -O format and the complaints (unknown names are left out)."""
        cells: list[Cell[Row]] = []
        errors: list[str] = []
        for token in text.split(","):
            if not token:
                continue
            name, colon, rest = token.partition(":")
            field = self.by_name.get(name.lower())
            if field is None:
                errors.append(f"{self.named_complaint}{name}")
                continue
            width, right, suffix = NAMED_WIDTH, False, ""
            if colon:
                right = rest.startswith(".")
                at = begin = 1 if right else 0
                while at < len(rest) and rest[at] in _DIGITS:
                    at += 1
                width, suffix = _bounded(rest[begin:at]), rest[at:]
            cells.append(Cell(field, width, right, suffix))
        return Layout(cells), errors

    def all_fields(self) -> Layout[Row]:
        """What `-o %all` gives: every lettered column between bars."""
        cells = [Cell(field, 0, False, "|") for field in self.by_letter.values()]
        return Layout([*cells[:-1], msgspec.structs.replace(cells[-1], suffix="")] if cells else cells)

    def help_names(self) -> str:
        """--helpFormat: names in four columns."""
        names = [field.name for field in self.fields if not field.hidden]
        lines = ["".join(f"{name:<20}" for name in names[at : at + 4]) for at in range(0, len(names), 4)]
        return "\n".join(lines) + "\n"


def _bounded(digits: str) -> int:
    """A width; one beyond reason is cut to what a terminal could still show."""
    return min(int(digits[:9] or 0), 4096)


def _literal(text: str) -> str:
    return text.replace("%", "%%")


def _spec(cell: Cell[Row]) -> str:
    if not cell.width:
        return "%s"
    sign = "" if cell.right else "-"
    return f"%{sign}{cell.width}.{cell.width}s" if cell.field.cut else f"%{sign}{cell.width}s"


def _pad(text: str, cell: Cell[Row], cut: bool) -> str:
    if not cell.width:
        return text
    if cut:
        text = text[: cell.width]
    return text.rjust(cell.width) if cell.right else text.ljust(cell.width)
