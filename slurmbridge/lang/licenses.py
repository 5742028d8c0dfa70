"""Which licences does `matlab:2,ansys` ask for? Follows sbatch(1) --licenses."""

from __future__ import annotations

import functools

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.request import LicenseTerm

_MOST = (1 << 32) - 3

Licenses = tuple[tuple[LicenseTerm, ...], bool]


class _Terms(Transformer[Token, Licenses]):
    def all_of(self, terms: list[LicenseTerm]) -> Licenses:
        return tuple(terms), False

    def any_of(self, terms: list[LicenseTerm]) -> Licenses:
        return tuple(terms), True

    def term(self, parts: list[Token]) -> LicenseTerm:
        count = number(parts[1]) if len(parts) > 1 else 1
        if count > _MOST:
            raise LangError("too many licenses", place=parts[1].start_pos or 0, expected=(f"at most {_MOST}",))
        return LicenseTerm(name=str(parts[0]), count=count)


_LANGUAGE = Language("licenses", _Terms(), "license specification")


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Licenses:
    """(terms as written, whether any one of them will do)."""
    return _LANGUAGE.parse(text)


def render(terms: tuple[LicenseTerm, ...], any_of: bool = False) -> str:
    """`matlab:2,ansys:1`."""
    return ("|" if any_of else ",").join(f"{term.name}:{term.count}" for term in terms)
