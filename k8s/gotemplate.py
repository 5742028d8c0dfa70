"""A reader of Helm's templates: the part of Go's text/template and of sprig that the chart uses, and no more.

Follows the documentation of Go's text/template. What is not known here is an error, so the chart stays within it; the
tests of the chart on a real cluster render the same values with Helm itself and compare the objects.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

_END = r"(?:\s+-\}\}\s*|\s*\}\})"
ACTION = re.compile(rf"(?:\s*\{{\{{-\s+|\{{\{{\s*)(?P<text>.*?){_END}", re.DOTALL)
WORD = re.compile(r'\s*("(?:\\.|[^"\\])*"|\(|\)|\||:=|,|\$?[\w.$]+)')
_PIECES = Iterator[tuple[bool, str]]


class Wrong(Exception):
    """The chart leaves what this reader knows, or the values are not what the chart asks for."""


@dataclass
class Node:
    kind: str  # text, value, if, with, range
    text: str
    body: "Sequence[Node]" = ()
    otherwise: "Sequence[Node]" = ()


@dataclass
class Templates:
    """Templates that were read, and the named ones that they define."""

    named: dict[str, Sequence[Node]] = field(default_factory=dict)

    def read(self, text: str) -> Sequence[Node]:
        nodes, end = self._block(iter(list(_pieces(text))))
        if end:
            raise Wrong(f"{end} without a beginning")
        return nodes

    def _block(self, pieces: _PIECES) -> tuple[Sequence[Node], str]:
        """Nodes until `end` or `else`, and which of them it was; "" at the end of the text."""
        nodes: list[Node] = []
        for is_action, text in pieces:
            word, _, rest = text.partition(" ") if is_action else ("", "", "")
            if word in ("end", "else") and not rest:
                return nodes, word
            if word == "define":
                self.named[json.loads(rest)] = self._rest(pieces)[0]
            elif word in ("if", "with", "range"):
                body, otherwise = self._rest(pieces)
                nodes.append(Node(word, rest, body, otherwise))
            else:
                nodes.append(Node("value" if is_action else "text", text))
        return nodes, ""

    def _rest(self, pieces: _PIECES) -> tuple[Sequence[Node], Sequence[Node]]:
        body, end = self._block(pieces)
        otherwise, end = self._block(pieces) if end == "else" else ((), end)
        if end != "end":
            raise Wrong("a block that does not end")
        return body, otherwise

    def render(self, nodes: Iterable[Node], scope: Any) -> str:
        return "".join(_Rendering(self.named, {"$": scope}).of(nodes, scope))


def _pieces(text: str) -> Iterator[tuple[bool, str]]:
    """(whether it is an action, text), spaces trimmed where an action says so."""
    at = 0
    for found in ACTION.finditer(text):
        yield False, text[at : found.start()]
        yield True, found["text"].strip()
        at = found.end()
    yield False, text[at:]


# ---- functions


def text_of(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def to_yaml(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=False, sort_keys=True, width=4096, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def to_json(value: Any) -> str:
    """As Go writes it: keys sorted, no spaces, signs of HTML escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def indent(width: int, text: str) -> str:
    return "\n".join(" " * width + line for line in text.split("\n"))


def required(words: str, value: Any) -> Any:
    """Wrong, with these words, where a value is missing."""
    if value is None or value == "":
        raise Wrong(words)
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "and": lambda *values: next((value for value in values if not value), values[-1]),
    "default": lambda fallback, value=None: value or fallback,
    "eq": lambda value, *others: any(value == other for other in others),
    "hasKey": lambda mapping, key: key in mapping,
    "list": lambda *values: list(values),
    "nindent": lambda width, text: "\n" + indent(width, text),
    "not": lambda value: not value,
    "or": lambda *values: next((value for value in values if value), values[-1]),
    "quote": lambda value: json.dumps(text_of(value), ensure_ascii=False),
    "regexReplaceAll": lambda pattern, text, by: re.sub(pattern, re.sub(r"\$\{(\d+)\}", r"\\g<\1>", by), text),
    "required": required,
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toJson": to_json,
    "toYaml": to_yaml,
    "trimSuffix": lambda suffix, text: text.removesuffix(suffix),
    "trunc": lambda width, text: text[:width],
}


class _Rendering:
    """With these named templates and variables."""

    def __init__(self, named: Mapping[str, Sequence[Node]], names: Mapping[str, Any]) -> None:
        self._named, self._names = named, names

    def of(self, nodes: Iterable[Node], dot: Any) -> Iterator[str]:
        for node in nodes:
            if node.kind == "text":
                yield node.text
            elif node.kind == "value":
                yield text_of(self._value(node.text, dot))
            elif node.kind == "range":
                yield from self._range(node, dot)
            else:
                value = self._value(node.text, dot)
                inner = value if node.kind == "with" and value else dot
                yield from self.of(node.body if value else node.otherwise, inner)

    def _range(self, node: Node, dot: Any) -> Iterator[str]:
        """`range VALUE`, `range $key, $value := VALUE`."""
        names, sign, text = node.text.rpartition(":=")
        found = self._value(text, dot)
        pairs = sorted(found.items()) if isinstance(found, Mapping) else list(enumerate(found or ()))
        own = [name.strip() for name in names.split(",")] if sign else []
        for key, value in pairs:
            bound = dict(zip(own, (key, value) if len(own) == 2 else (value,), strict=False))
            yield from _Rendering(self._named, {**self._names, **bound}).of(node.body, value)

    def _value(self, text: str, dot: Any) -> Any:
        words, at = list[str](), 0
        while text[at:].strip():
            found = WORD.match(text, at)
            if found is None:
                raise Wrong(f"'{text}' is not known here")
            words.append(found[1])
            at = found.end()
        value, rest = self._pipeline(words, dot)
        if rest:
            raise Wrong(f"'{text}' goes on after its end")
        return value

    def _pipeline(self, words: Sequence[str], dot: Any) -> tuple[Any, Sequence[str]]:
        value, words = self._command(words, dot, ())
        while words and words[0] == "|":
            value, words = self._command(words[1:], dot, (value,))
        return value, words

    def _command(self, words: Sequence[str], dot: Any, piped: tuple[Any, ...]) -> tuple[Any, Sequence[str]]:
        """A function with what it is given, or a value."""
        head, rest = words[0], words[1:]
        if head not in FUNCTIONS and head != "include":
            value, rest = self._operand(words, dot)
            if piped or (rest and rest[0] not in ("|", ")")):
                raise Wrong(f"'{head}' is no function that is known here")
            return value, rest
        given: list[Any] = []
        while rest and rest[0] not in ("|", ")"):
            value, rest = self._operand(rest, dot)
            given.append(value)
        given += piped
        if head == "include":
            name, scope = given
            return "".join(_Rendering(self._named, {"$": scope}).of(self._named[name], scope)), rest
        return FUNCTIONS[head](*given), rest

    def _operand(self, words: Sequence[str], dot: Any) -> tuple[Any, Sequence[str]]:
        word, rest = words[0], words[1:]
        if word == "(":
            value, rest = self._pipeline(rest, dot)
            if not rest or rest[0] != ")":
                raise Wrong("a parenthesis stays open")
            return value, rest[1:]
        if word.startswith('"'):
            return json.loads(word), rest
        if word.isdecimal():
            return int(word), rest
        name, *steps = word.split(".")
        if name and name not in self._names:
            raise Wrong(f"'{word}' is not known here")
        value = self._names[name] if name else dot
        for step in filter(None, steps):
            value = value.get(step) if isinstance(value, Mapping) else None
        return value, rest
