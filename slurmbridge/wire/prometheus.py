"""Figures as Prometheus reads them.

Follows "Text format details" of the Prometheus documentation ("Exposition formats", version 0.0.4). Pure: a family is a
name with what it means, its samples are (labels, number).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_OF_VALUES: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
_OF_TEXTS: Final = str.maketrans({"\\": r"\\", "\n": r"\n"})

Labels = Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Family:
    """One name. A counter only grows, and its name ends in _total."""

    name: str
    kind: Literal["counter", "gauge"]
    about: str
    samples: tuple[tuple[Labels, float], ...] = field(default=())


def counter(name: str, about: str, *samples: tuple[Labels, float]) -> Family:
    return Family(name=name, kind="counter", about=about, samples=samples)


def gauge(name: str, about: str, *samples: tuple[Labels, float]) -> Family:
    return Family(name=name, kind="gauge", about=about, samples=samples)


def render(families: Iterable[Family]) -> str:
    """ValueError: a name that Prometheus would refuse."""
    return "".join(_lines(family) for family in families)


def _lines(family: Family) -> str:
    _check(NAME, family.name)
    lines = [f"# HELP {family.name} {family.about.translate(_OF_TEXTS)}", f"# TYPE {family.name} {family.kind}"]
    lines += [f"{family.name}{_braced(labels)} {_number(value)}" for labels, value in family.samples]
    return "\n".join(lines) + "\n"


def _braced(labels: Labels) -> str:
    for name in labels:
        _check(LABEL, name)
    return "{" + ",".join(f'{k}="{v.translate(_OF_VALUES)}"' for k, v in labels.items()) + "}" if labels else ""


def _number(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))


def _check(pattern: re.Pattern[str], name: str) -> None:
    if not pattern.fullmatch(name):
        raise ValueError(f"'{name}' is no name for Prometheus")
