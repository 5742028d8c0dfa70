"""How many nodes does `-N2-8:2` allow?

Follows sbatch(1) --nodes. The message of a `LangError` is Slurm's own line, without `sbatch: error: `.
"""

from __future__ import annotations

import functools
import re

import msgspec
from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number

_MOST = (1 << 31) - 1
_UNITS = {"k": 1 << 10, "m": 1 << 20}
_NUMBER = re.compile(r"[ \t]*\+?[0-9]+[km]?[ \t]*", re.ASCII | re.IGNORECASE)


class NodeCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`counts`: the allowed ones where they are not all from min to max, else empty."""

    min: int
    max: int
    counts: tuple[int, ...] = ()


class _Counts(Transformer[Token, NodeCounts]):
    def exact(self, parts: list[Token]) -> NodeCounts:
        count = _value(parts[0])
        return NodeCounts(min=count, max=count)

    def span(self, parts: list[Token]) -> NodeCounts:
        low, high = _value(parts[0]), _value(parts[1])
        _ordered(low, high)
        return NodeCounts(min=low, max=high)

    def steps(self, parts: list[Token]) -> NodeCounts:
        low, high, step = (_value(part) for part in parts)
        counts = tuple(range(low, high, step)[:_MOST_COUNTS]) if step else ()
        if not counts:
            raise LangError("", expected=("N-M:STEP with N < M",))
        return NodeCounts(min=counts[0], max=counts[-1], counts=counts)

    def listed(self, items: list[tuple[int, int]]) -> NodeCounts:
        counts: set[int] = set()
        for low, high in items:
            _ordered(low, high)
            if high - low >= _MOST_COUNTS or len(counts) > _MOST_COUNTS:
                raise LangError("", expected=(f"at most {_MOST_COUNTS} counts",))
            counts.update(range(low, high + 1))
        return NodeCounts(min=min(counts), max=max(counts), counts=tuple(sorted(counts)))

    def item(self, parts: list[Token]) -> tuple[int, int]:
        return _value(parts[0]), _value(parts[-1])


_MOST_COUNTS = 65536


def _value(token: Token) -> int:
    text = token.strip()
    unit = _UNITS.get(text[-1].lower(), 1)
    count = number(text[:-1] if unit > 1 else text, _MOST + 1) * unit
    if count > _MOST:
        raise LangError(f'"{token}" is not a valid node count', place=token.start_pos or 0)
    return count


def _ordered(low: int, high: int) -> None:
    if high < low:
        raise LangError(f"Maximum node count {high} is less than minimum node count {low}")


_LANGUAGE = Language("nodes", _Counts(), "node count")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> NodeCounts:
    """Least, most and, where given, the very counts."""
    try:
        return _LANGUAGE.parse(text)
    except LangError as error:
        message = error.message if error.message.startswith(("Maximum", '"')) else _complaint(text)
        raise LangError(message, text=text, place=error.place, expected=error.expected) from error


def _complaint(text: str) -> str:
    """The part that Slurm quotes: the first one that is no number, the whole where steps are wrong."""
    head, dash, tail = text.partition("-")
    if dash and not tail and _NUMBER.fullmatch(head):
        return f"Maximum node count -1 is less than minimum node count {int(number(head.rstrip('kKmM '), _MOST))}"
    if dash:
        bad = next((part for part in (head, *_tail_parts(tail)) if not _NUMBER.fullmatch(part)), text)
    else:
        bad = next((part for part in text.split(",") if not _NUMBER.fullmatch(part)), text)
    return f'"{bad}" is not a valid node count'


def _tail_parts(tail: str) -> tuple[str, ...]:
    high, colon, step = tail.partition(":")
    if not colon:
        return tuple(tail.split(",")) if "," in tail else (tail,)
    return (high,) if "," in step else (high, step)


def render(counts: NodeCounts) -> str:
    """A text that parses back: `2`, `2-8`, `1,3,5`."""
    if counts.counts:
        listed = ",".join(str(count) for count in counts.counts)
        return listed if len(counts.counts) > 1 else f"{listed},{listed}"
    return str(counts.min) if counts.min == counts.max else f"{counts.min}-{counts.max}"
