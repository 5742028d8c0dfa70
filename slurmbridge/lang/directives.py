"""Which options does a batch script carry in its comments, and where exactly does each word stand?

Follows sbatch(1): `#SBATCH` lines up to the first command, read by sbatch's own quoting rules (a backslash takes any next
character, also inside quotes; `#` outside quotes ends the line, also inside a word; an empty word ends it too). `#PBS`
and `#BSUB` lines are read the same way and apply to every component; `#BRIDGE` lines are ours and follow the component
they stand in. What the words mean is not asked here.
"""

from __future__ import annotations

import functools
import re

import msgspec
from lark import Transformer
from lark.lexer import Token as LarkToken

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language

_KINDS = tuple((f"#{kind}".encode(), kind) for kind in ("SBATCH", "PBS", "BSUB", "BRIDGE"))
_PREFIXES = tuple(prefix for prefix, _ in _KINDS)
_OF_COMPONENT = ("SBATCH", "BRIDGE")
_MAX_LINE = 1 << 16  # bytes of one directive line; Slurm's own buffer for a word is 8 KiB
_MEMO_LINE = 1 << 10  # longer ones are not kept
_MEMO_SCRIPT = 16 * 1024  # longer scripts are read anew each time
PACKJOB_WARNING = 'The "packjob" component separator is deprecated. Please use "hetjob" instead.'


class Token(msgspec.Struct, frozen=True, kw_only=True):
    """One word, quotes resolved. Line and column count from 1, in characters of the script."""

    text: str
    line: int
    column: int


class Directive(msgspec.Struct, frozen=True, kw_only=True):
    """One directive line.

    `error` is what follows Slurm's `fatal: FILE: line N: `; `tokens` then holds the words before it.
    """

    line: int
    column: int
    tokens: tuple[Token, ...]
    kind: str
    component: int = 0
    error: str = ""


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that submission asks of a script.

    `problem`: the first of "empty" (no bytes), "whitespace", "no_shebang", "nul", "dos", or None. `components`: one more
    than there are hetjob lines. `warnings`: texts after `sbatch: warning: `. `body_line`: the first command, 0 for none.
    """

    directives: tuple[Directive, ...] = ()
    problem: str | None = None
    components: int = 1
    warnings: tuple[str, ...] = ()
    body_line: int = 0


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What one line says, free of its place: words with their offsets, and how it ends."""

    words: tuple[tuple[str, int], ...] = ()
    separator: str = ""  # "hetjob" or "packjob", only where no word comes before
    error: str = ""


class _Word(msgspec.Struct, frozen=True):
    text: str
    start: int
    end: int


class _End(msgspec.Struct, frozen=True):
    kind: str  # "hetjob", "packjob", ":", a quote, "#"
    start: int


class _Words(Transformer[LarkToken, tuple[list[_Word], _End | None]]):
    def line(self, parts: list[_Word | _End]) -> tuple[list[_Word], _End | None]:
        words = [part for part in parts if isinstance(part, _Word)]
        return words, next((part for part in parts if isinstance(part, _End)), None)

    def word(self, pieces: list[LarkToken]) -> _Word:
        text = "".join(_unquoted(piece) for piece in pieces)
        return _Word(text, pieces[0].start_pos or 0, pieces[-1].end_pos or 0)

    def separator(self, parts: list[LarkToken]) -> _End:
        return _End(parts[0].split(None, 1)[0].lower(), parts[0].start_pos or 0)

    def colon(self, parts: list[LarkToken]) -> _End:
        return _End(":", parts[0].start_pos or 0)

    def unmatched(self, parts: list[LarkToken]) -> _End:
        return _End(parts[0][0], parts[0].start_pos or 0)

    def comment(self, _: list[LarkToken]) -> _End:
        return _End("#", 0)


def _unquoted(piece: LarkToken) -> str:
    body = str(piece) if piece.type == "PLAIN" else piece[1:-1]
    if "\\" not in body:
        return body
    chars = iter(body)
    return "".join(next(chars, "") if char == "\\" else char for char in chars)


_SPECIAL = frozenset("\"'#\\")
_WORD = re.compile(r"\S+")
_LANGUAGE = Language("directives", _Words(), "directive", start="line")


def read_script(data: bytes) -> Script:
    """Directives and verdict of a whole script. Never raises; bytes that are no UTF-8 survive as surrogates."""
    return _remembered_script(data) if len(data) <= _MEMO_SCRIPT else _read_script(data)


def _read_script(data: bytes) -> Script:
    directives: list[Directive] = []
    warnings: list[str] = []
    component = number = body_line = start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        number += 1
        raw = data[start:end]
        start = end + 1
        kind = _kind(raw)
        if kind is None:
            stripped = raw.lstrip()
            if stripped and not stripped.startswith(b"#"):
                body_line = number
                break
            continue
        line = read_line(raw[len(kind) + 1 :])
        if line.separator and kind == "SBATCH":
            component += 1
            if line.separator == "packjob":
                warnings.append(PACKJOB_WARNING)
            continue
        directives.append(_placed(line, kind, number, component if kind in _OF_COMPONENT else 0))
    return Script(
        directives=tuple(directives),
        problem=_problem(data),
        components=component + 1,
        warnings=tuple(warnings),
        body_line=body_line,
    )


def read_line(raw: bytes) -> Line:
    """What follows the magic word of one line."""
    return _remembered(raw) if len(raw) <= _MEMO_LINE else _read_line(raw)


def _read_line(raw: bytes) -> Line:
    if len(raw) > _MAX_LINE:
        return Line(error=f"More than {_MAX_LINE} characters in [{raw[:40].decode(errors='replace').strip()}...]")
    text = raw.decode("utf-8", "surrogateescape")
    plain = _plain(text)
    return _by_grammar(text) if plain is None else plain


def _plain(text: str) -> Line | None:
    """A line of unquoted words alone, which most are: what the grammar makes of it, a tenth of the time. Else None."""
    if not _SPECIAL.isdisjoint(text):
        return None
    words = [(found.group(), found.start()) for found in _WORD.finditer(text)]
    for word, _ in words:
        if word[0] == ":" or word.lower() in ("hetjob", "packjob"):
            return None
    return Line(words=tuple(words))


def _by_grammar(text: str) -> Line:
    try:
        words, end = _LANGUAGE.parse(text)
    except LangError as error:
        return Line(error=f"{error.message} in [{text.strip()}]")
    for place, word in enumerate(words):
        if not word.text:
            return Line(words=_pairs(words[:place]))
    if end is None or end.kind == "#":
        return Line(words=_pairs(words))
    if end.kind in ("hetjob", "packjob"):
        return Line(words=_pairs(words), separator="" if words else end.kind)
    if end.kind != ":" and words and words[-1].end == end.start:
        words = words[:-1]  # the quote stands inside this word
    rest = text[words[-1].end :] if words else text.lstrip()
    complaint = "Unexpected `:`" if end.kind == ":" else f"Unmatched `{end.kind}`"
    return Line(words=_pairs(words), error=f"{complaint} in [{rest}]")


_remembered = functools.lru_cache(maxsize=8192)(_read_line)
_remembered_script = functools.lru_cache(maxsize=256)(_read_script)


def _pairs(words: list[_Word]) -> tuple[tuple[str, int], ...]:
    return tuple((word.text, word.start) for word in words)


def _placed(line: Line, kind: str, number: int, component: int) -> Directive:
    shift = len(kind) + 2
    return Directive(
        line=number,
        column=1,
        tokens=tuple([Token(text=text, line=number, column=at + shift) for text, at in line.words]),
        kind=kind,
        component=component,
        error=line.error,
    )


def _kind(raw: bytes) -> str | None:
    if not raw.startswith(_PREFIXES):
        return None
    return next(kind for prefix, kind in _KINDS if raw.startswith(prefix))


def _problem(data: bytes) -> str | None:
    if not data:
        return "empty"
    if not data.strip():
        return "whitespace"
    if not data.startswith(b"#!"):
        return "no_shebang"
    if b"\0" in data:
        return "nul"
    return "dos" if b"\r\n" in data else None
