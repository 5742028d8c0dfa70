"""Where do the grammars live, and how does a text of a mini-language become values?

Each mini-language is one Lark file: package data `slurmbridge/_grammar/NAME.lark` in an installed wheel, `grammar/` of
the repository in a source tree. A parser is built on first use (LALR) and kept. Values are made while reducing, so
that deep nesting costs no recursion. Whatever goes wrong becomes a `LangError` with place and expected words.
"""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Generic, TypeVar, cast

from lark import Lark, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, VisitError
from lark.lexer import PatternStr, Token

from slurmbridge.errors import LangError

T = TypeVar("T")

MAX_TEXT = 1 << 16
"""Longer values are refused: 6,000 job ids fit, and a hostile text costs the daemon less than a second."""


class Language(Generic[T]):
    """One mini-language: a grammar file, a start rule, and the transformer that makes its values."""

    def __init__(self, name: str, transformer: Transformer[Token, T], what: str, start: str = "start") -> None:
        self.name, self.what, self.start = name, what, start
        self._transformer = transformer
        self._parser: Lark | None = None
        self._words: dict[str, str] = {}

    def parse(self, text: str) -> T:
        """The value of `text`, or `LangError`."""
        if len(text) > MAX_TEXT:
            raise LangError(f"{self.what} is too long", text=text[:80], place=MAX_TEXT)
        parser = self._parser or self._build()
        try:
            return cast(T, parser.parse(text))
        except UnexpectedInput as error:
            raise self._explain(error, text) from error
        except VisitError as error:
            if isinstance(error.orig_exc, LangError):
                raise error.orig_exc from error
            raise

    def _build(self) -> Lark:
        self._parser = Lark(
            source(self.name), parser="lalr", start=self.start, transformer=self._transformer, maybe_placeholders=False
        )
        self._words = {
            terminal.name: repr(terminal.pattern.value)
            if isinstance(terminal.pattern, PatternStr)
            else terminal.name.lower().replace("_", " ").strip()
            for terminal in self._parser.terminals
        }
        return self._parser

    def _explain(self, error: UnexpectedInput, text: str) -> LangError:
        place = error.pos_in_stream
        names: Iterable[str] = ()
        if isinstance(error, UnexpectedCharacters):
            names = error.allowed or ()
        elif isinstance(error, UnexpectedToken | UnexpectedEOF):
            names = error.expected
        if place is None or place < 0 or (isinstance(error, UnexpectedToken) and error.token.type == "$END"):
            place = len(text)
        expected = tuple(sorted(self._words.get(name, "end of text") for name in names))
        return LangError(f"{self.what} is not valid", text=text, place=place, expected=expected)


def source(name: str) -> str:
    """Text of one grammar file."""
    return (_folder() / f"{name}.lark").read_text(encoding="utf-8")


def number(text: str, most: int = 10**18) -> int:
    """Decimal digits as an int, never above `most`: a number of a million digits costs nothing."""
    digits = text.strip().lstrip("+").lstrip("0")
    return min(int(digits or "0"), most) if len(digits) <= 20 else most


def _folder() -> Traversable:
    packaged = importlib.resources.files("slurmbridge") / "_grammar"
    return packaged if packaged.is_dir() else Path(__file__).resolve().parents[2] / "grammar"
