"""How does a table of fields become a record of --json or --yaml, thousands of times over?

A `Shape` is compiled once: the text around the values is a template, so that a JSON record costs one call for each value
and no record is built only to be taken apart again. As a value (YAML, tests) it is the same table. Records stand in the
list that is the first entry of a document.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from slurmbridge.fields.structured import Value, element, quoted
from slurmbridge.fields.view import View
from slurmbridge.model.units import UNLIMITED

Row = TypeVar("Row")
_SIGNALS = {each.value: each.name.removeprefix("SIG") for each in signal.Signals}
_FIELD = " " * 6  # where the fields of a record stand
_INNER = " " * 8
_OPEN = "{\n" + _INNER
_NEXT = ",\n" + _INNER
_CLOSE = "\n" + _FIELD + "}"
_END = "\n    }"  # of a record


def number(value: int | float | None) -> Value:
    """A value that is always set; moments that did not come are 0."""
    return {"set": True, "infinite": False, "number": int(value or 0)}


def optional(value: int | None) -> Value:
    """Unset when None, infinite when unlimited."""
    if value is None:
        return {"set": False, "infinite": False, "number": 0}
    if value >= UNLIMITED:
        return {"set": False, "infinite": True, "number": 0}
    return {"set": True, "infinite": False, "number": value}


def exit_status(status: int) -> Value:
    """A wait status: SUCCESS, ERROR or SIGNALED with the signal's name."""
    killed = status & 0x7F
    code = status >> 8 & 0xFF
    word = "SIGNALED" if killed else "ERROR" if code else "SUCCESS"
    return {
        "status": [word],
        "return_code": number(code),
        "signal": {"id": optional(killed or None), "name": _SIGNALS.get(killed, str(killed)) if killed else ""},
    }


class Kind(msgspec.Struct, frozen=True):
    """What a raw value is in a record, and its JSON text where a field's value stands."""

    value: Callable[[Any], Value]
    json: Callable[[Any], str]


def _nested(value: Value) -> str:
    return "null" if value is None else element("json", value).replace("\n", "\n" + "  ")


def _number_text(value: int | float | None) -> str:
    return f'{_OPEN}"set": true{_NEXT}"infinite": false{_NEXT}"number": {int(value or 0)}{_CLOSE}'


_UNSET_TEXT = _nested(optional(None))
_INFINITE_TEXT = _nested(optional(UNLIMITED))


def _optional_text(value: int | None) -> str:
    if value is None:
        return _UNSET_TEXT
    return _INFINITE_TEXT if value >= UNLIMITED else _number_text(value)


def _itself(value: Value) -> Value:
    return value


def _list(values: Sequence[str]) -> Value:
    return list(values)


@functools.lru_cache(maxsize=1024)
def _words_text(values: tuple[str, ...]) -> str:
    return _nested(values)


@functools.lru_cache(maxsize=1024)
def _status_text(status: int) -> str:
    return _nested(exit_status(status))


TEXT = Kind(_itself, quoted)
COUNT = Kind(_itself, str)
FLAG = Kind(_itself, {True: "true", False: "false"}.__getitem__)
NUMBER = Kind(number, _number_text)
OPTIONAL = Kind(optional, _optional_text)
STATUS = Kind(exit_status, _status_text)
WORDS = Kind(_list, _words_text)  # of a tuple
TREE = Kind(_itself, _nested)

Entry = tuple[str, Kind, Any]
"""Name, kind, and how to get the raw value of (row, view): or the value itself, where it is always the same."""


class Shape(Generic[Row]):
    """A compiled table. `own`: fields that Slurm has not, which stand behind the others where there are any."""

    def __init__(self, table: Sequence[Entry], own: Callable[[Row], Mapping[str, Value]] | None = None) -> None:
        self._table, self._own = tuple(table), own
        parts = []
        self._writers: list[tuple[Callable[[Any], str], Callable[[Row, View], Any]]] = []
        for name, kind, get in table:
            if callable(get):
                parts.append(f"{_FIELD}{_literal(quoted(name))}: %s")
                self._writers.append((kind.json, get))
            else:
                parts.append(f"{_FIELD}{_literal(quoted(name))}: {_literal(kind.json(get))}")
        self._template = "{\n" + ",\n".join(parts) + _END

    def value(self, row: Row, view: View) -> Mapping[str, Value]:
        found = {name: kind.value(get(row, view) if callable(get) else get) for name, kind, get in self._table}
        return found | dict(self._own(row)) if self._own is not None else found

    def text(self, row: Row, view: View, kind: str) -> str:
        """As an element of the document's list; `kind` is json or yaml."""
        if kind == "yaml":
            return element(kind, self.value(row, view))
        text = self._template % tuple([write(get(row, view)) for write, get in self._writers])
        own = self._own(row) if self._own is not None else None
        if not own:
            return text
        more = ",\n".join(f"{_FIELD}{quoted(name)}: {_nested(value)}" for name, value in own.items())
        return f"{text.removesuffix(_END)},\n{more}{_END}"


def _literal(text: str) -> str:
    return text.replace("%", "%%")
