"""Are values as their schema asks? The part of JSON Schema (2020-12) that values.schema.json uses, and no more."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}
RULES: dict[str, tuple[str, Callable[[Any, Any], bool], str]] = {
    "enum": ("", lambda value, words: value in words, "is one of {}"),
    "maxLength": ("string", lambda value, most: len(value) <= most, "has at most {} characters"),
    "maximum": ("number", lambda value, most: value <= most, "is at most {}"),
    "minItems": ("array", lambda value, least: len(value) >= least, "has at least {} entries"),
    "minLength": ("string", lambda value, least: len(value) >= least, "has at least {} characters"),
    "minProperties": ("object", lambda value, least: len(value) >= least, "has at least {} keys"),
    "minimum": ("number", lambda value, least: value >= least, "is at least {}"),
    "pattern": ("string", lambda value, pattern: re.search(pattern, value) is not None, "matches {}"),
}
"""Keyword -> the type that it is about, the rule, and what a person is told."""
KNOWN = {
    *RULES, "$schema", "additionalProperties", "items", "properties", "propertyNames", "required", "title", "type",
}  # fmt: skip


def problems(value: Any, schema: Any, place: str = "values") -> Iterator[str]:
    """What is wrong, each with its place. ValueError: the schema has a keyword that is not known here."""
    if isinstance(schema, bool):
        if not schema:
            yield f"{place} is not known"
        return
    unknown = schema.keys() - KNOWN
    if unknown:
        raise ValueError(f"{place}: the schema has {', '.join(sorted(unknown))}")
    kinds = schema.get("type")
    if kinds is not None:
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if not any(TYPES[kind](value) for kind in kinds):
            yield f"{place} is of type {' or '.join(kinds)}"
            return
    for keyword, (kind, holds, words) in RULES.items():
        if keyword in schema and (not kind or TYPES[kind](value)) and not holds(value, schema[keyword]):
            yield f"{place} {words.format(schema[keyword])}"
    if isinstance(value, Mapping):
        yield from _of_mapping(value, schema, place)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, each in enumerate(value):
            yield from problems(each, schema.get("items", True), f"{place}[{number}]")


def _of_mapping(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{place}.{name} is missing"
    for name, each in value.items():
        yield from problems(name, schema.get("propertyNames", True), f"the name {place}.{name}")
        yield from problems(each, properties.get(name, schema.get("additionalProperties", True)), f"{place}.{name}")
