"""How are --json and --yaml documents written? The two serialisers of Slurm's data_parser, byte for byte.

JSON: two blanks of indentation, slashes escaped. YAML 1.1: every node tagged, plain scalars where YAML allows them, long
ones folded behind column 80 as libyaml does.
"""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec

Value: TypeAlias = "bool | int | float | str | Sequence[Value] | Mapping[str, Value] | None"

_WIDTH = 80
_NOT_PLAIN = re.compile(
    r"""^[#,\[\]{}&*!|>'"%@`]|^[?:-](\s|$)|^---|^\.\.\.|^\s|\s$|:\s|:$|\s\#|[\n\t\x00-\x1f\x7f]""", re.VERBOSE
)


_AT_ONCE = 16
"""Elements of a document that are given out together."""


def framed(kind: str, name: str, elements: Iterable[str], rest: Mapping[str, Value]) -> Iterator[str]:
    """A document in pieces. Its first entry is the list `name` of elements written already (`element`), then the rest."""
    is_yaml = kind == "yaml"
    whole: Value = {name: [], **rest}
    text = to_yaml(whole) if is_yaml else to_json(whole)
    opening = f"!!str {name}: !!seq" if is_yaml else f'"{name}": ['
    at = text.index(opening) + len(opening)
    lead, between = ("\n", "") if is_yaml else ("\n    ", ",\n    ")
    piece = text[:at]
    left = iter(elements)
    found = list(itertools.islice(left, _AT_ONCE))
    tail = text[at:] if not found else text[at:].removeprefix(" []\n") if is_yaml else "\n  " + text[at:]
    while found:
        yield piece + lead + between.join(found)
        piece, lead = "", between
        found = list(itertools.islice(left, _AT_ONCE))
    yield piece + tail


def element(kind: str, value: Value) -> str:
    """One of the list that is a document's first entry."""
    if kind == "yaml":
        return "-" + "".join(_node(value, 2, "-", 2))
    return to_json(value)[:-1].replace("\n", "\n    ")


def quoted(text: str) -> str:
    """A JSON string; listings repeat most of theirs, long ones aside."""
    return _quoted(text) if len(text) <= _WIDTH else to_json(text)[:-1]


@functools.lru_cache(maxsize=1 << 14)
def _quoted(text: str) -> str:
    return to_json(text)[:-1]


def to_json(value: Value) -> str:
    try:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()  # ten times as fast as `json`
    except UnicodeEncodeError:  # bytes of a caller that are no text
        text = json.dumps(value, indent=2, ensure_ascii=False)
    return text.replace("/", "\\/") + "\n"


def to_yaml(value: Value) -> str:
    return "%YAML 1.1\n---" + "".join(_node(value, 0, "", 0)) + "...\n\n"


def _node(value: Value, indent: int, lead: str, dash: int) -> Iterator[str]:
    """The node behind a key, a dash or the document's start, with its line end.

    `indent`: column of the keys of a mapping; `dash`: of the dashes of a sequence (a key's own column).
    """
    if isinstance(value, Mapping):
        if not value:
            yield " !!map {}\n"
            return
        yield " !!map\n"
        for key, each in value.items():
            yield f"{' ' * indent}!!str {key}:"
            yield from _node(each, indent + 2, f"{' ' * indent}!!str {key}:", indent)
    elif isinstance(value, (list, tuple)):
        if not value:
            yield " !!seq []\n"
            return
        yield " !!seq\n"
        for each in value:
            yield f"{' ' * dash}-"
            yield from _node(each, dash + 2, f"{' ' * dash}-", dash + 2)
    else:
        yield _scalar(value, len(lead), indent)


def _scalar(value: object, column: int, indent: int) -> str:
    if value is None:
        return " !!null null\n"
    if isinstance(value, bool):
        return f" !!bool {'true' if value else 'false'}\n"
    if isinstance(value, int):
        return f" !!int {value}\n"
    if isinstance(value, float):
        return f" !!float {value:f}\n"
    text = str(value)
    if not text:
        return " !!str\n"
    if not _NOT_PLAIN.search(text):
        return " !!str " + _fold(text, column + 7, indent) + "\n"
    if text.isprintable():
        return " !!str '" + _fold(text.replace("'", "''"), column + 8, indent) + "'\n"
    return f" !!str {json.dumps(text, ensure_ascii=False)}\n"


def _fold(text: str, column: int, indent: int) -> str:
    """Break at single blanks once the line is longer than the width."""
    if column + len(text) <= _WIDTH:
        return text
    out: list[str] = []
    for at, char in enumerate(text):
        alone = char == " " and text[at - 1 : at] != " " and text[at + 1 : at + 2] != " "
        if alone and column > _WIDTH and 0 < at < len(text) - 1:
            out.append("\n" + " " * indent)
            column = indent
        else:
            out.append(char)
            column += 1
    return "".join(out)
