"""Which features must a node have: `(cpu&avx2)|gpu`, `[rack1|rack2]`, `cpu*4`?

Follows sbatch(1) --constraint and --prefer. Whether a feature exists is not asked here. An expression is flat: a group
holds plain names only, and there are at most `MAX_NAMES` of them.
"""

from __future__ import annotations

import functools

import msgspec
from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number

MAX_NAMES = 128


class Name(msgspec.Struct, frozen=True):
    """A feature; count 0 = on every node, else on that many."""

    name: str
    count: int = 0


class And(msgspec.Struct, frozen=True):
    parts: tuple[FeatureExpr, ...] = ()
    count: int = 0


class Or(msgspec.Struct, frozen=True):
    parts: tuple[FeatureExpr, ...]
    count: int = 0


class Xor(msgspec.Struct, frozen=True):
    """`[a|b]`: every node of the job matches the same one of these."""

    parts: tuple[FeatureExpr, ...]


class Matching(msgspec.Struct, frozen=True):
    """`[a*2&b*3]`: so many nodes of each."""

    parts: tuple[Name, ...]


FeatureExpr = Name | And | Or | Xor | Matching


class _Expression(Transformer[Token, FeatureExpr]):
    def start(self, parts: list[FeatureExpr | Token]) -> FeatureExpr:
        return _fold(parts)

    def feature(self, parts: list[Token]) -> FeatureExpr:
        return Name(str(parts[0]), number(parts[1], 1 << 31) if len(parts) > 1 else 0)

    def group(self, parts: list[FeatureExpr | Token]) -> FeatureExpr:
        return _fold(parts)

    def counted(self, parts: list[FeatureExpr | Token]) -> FeatureExpr:
        inner, count = _fold(parts[:-1]), number(str(parts[-1]), 1 << 31)
        if isinstance(inner, Name):
            return Name(inner.name, count)
        return msgspec.structs.replace(inner, count=count) if isinstance(inner, And | Or) else inner

    def alike(self, parts: list[FeatureExpr]) -> FeatureExpr:
        return Xor(tuple(parts))

    def matching(self, parts: list[FeatureExpr]) -> FeatureExpr:
        return Matching(tuple(part for part in parts if isinstance(part, Name)))


def _fold(parts: list[FeatureExpr | Token]) -> FeatureExpr:
    """`a & b | c` is ((a and b) or c): no operator binds closer."""
    result: FeatureExpr | None = None
    kind: type[And] | type[Or] = And
    for part in parts:
        if isinstance(part, Token):
            kind = Or if part == "|" else And
        elif result is None:
            result = part
        elif isinstance(result, kind) and not result.count:
            result = kind((*result.parts, part))
        else:
            result = kind((result, part))
    return result if result is not None else And()


_LANGUAGE = Language("constraints", _Expression(), "feature expression")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> FeatureExpr:
    """The expression; `And()`, which every node matches, of an empty text.

    Counts outside brackets are only for an expression that is one feature (`cpu*4`), as in Slurm.
    """
    if not text:
        return And()
    if sum(text.count(sign) for sign in "&|,") >= MAX_NAMES:
        raise LangError("feature expression is too long", text=text, expected=(f"at most {MAX_NAMES} names",))
    expression = _LANGUAGE.parse(text)
    if isinstance(expression, And | Or) and any(getattr(part, "count", 0) for part in expression.parts):
        raise LangError("count in a compound expression", text=text, place=text.find("*"), expected=("[a*N&b*M]",))
    return expression


def names(expression: FeatureExpr) -> set[str]:
    """All features named."""
    if isinstance(expression, Name):
        return {expression.name}
    return {name for part in expression.parts for name in names(part)}


def matches(expression: FeatureExpr, features: set[str]) -> bool:
    """Whether a node with these features may be one of the job's; counts and likeness are for the whole allocation."""
    if isinstance(expression, Name):
        return expression.name in features
    if isinstance(expression, And):
        return all(matches(part, features) for part in expression.parts)
    return any(matches(part, features) for part in expression.parts)


def counts(expression: FeatureExpr) -> tuple[tuple[FeatureExpr, int], ...]:
    """(what, on how many nodes) of the parts that carry a count."""
    if isinstance(expression, Matching):
        return tuple((Name(part.name), part.count) for part in expression.parts)
    if isinstance(expression, Xor) or not expression.count:
        return ()
    return ((msgspec.structs.replace(expression, count=0), expression.count),)


def render(expression: FeatureExpr) -> str:
    """A text that parses back to the same expression."""
    if isinstance(expression, Name):
        return f"{expression.name}*{expression.count}" if expression.count else expression.name
    if isinstance(expression, Xor):
        return f"[{'|'.join(_grouped(part) for part in expression.parts)}]"
    if isinstance(expression, Matching):
        return f"[{'&'.join(render(part) for part in expression.parts)}]"
    text = ("&" if isinstance(expression, And) else "|").join(
        render(part) if place == 0 else _grouped(part) for place, part in enumerate(expression.parts)
    )
    return f"({text})*{expression.count}" if expression.count else text


def _grouped(part: FeatureExpr) -> str:
    return f"({render(part)})" if isinstance(part, And | Or) else render(part)
