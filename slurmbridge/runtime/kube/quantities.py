"""Kubernetes' quantities ("250m", "1.5", "64Gi", "2e3") as the whole numbers that are counted with here.

Follows "Quantity" of the Kubernetes API reference: a decimal number and a suffix, decimal (n u m k M G T P E), binary
(Ki Mi Gi Ti Pi Ei) or an exponent. Arithmetic is exact; a rest is rounded up for what is asked for and down for what is
there, so that a sum of what was granted never exceeds what exists.
"""

from __future__ import annotations

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

from slurmbridge.errors import LangError

FORM = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
SCALES = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "k": Decimal("1e3"), "M": Decimal("1e6"),
    "G": Decimal("1e9"), "T": Decimal("1e12"), "P": Decimal("1e15"), "E": Decimal("1e18"), "Ki": Decimal(2**10),
    "Mi": Decimal(2**20), "Gi": Decimal(2**30), "Ti": Decimal(2**40), "Pi": Decimal(2**50), "Ei": Decimal(2**60),
}  # fmt: skip
MEBIBYTE = Decimal(2**20)


def parse(text: str) -> Decimal:
    """The exact value; raises LangError."""
    found = FORM.fullmatch(text)
    if found is None or len(text) > 64:
        raise LangError(f"invalid quantity {text[:64]!r}", text=text)
    number, suffix, exponent = found.groups()
    return Decimal(number) * (Decimal(10) ** int(exponent) if exponent else SCALES[suffix or ""])


def milli(text: str, *, up: bool) -> int:
    """Thousandths: of CPUs, of devices."""
    return _whole(parse(text) * 1000, up)


def mebibytes(text: str, *, up: bool) -> int:
    return _whole(parse(text) / MEBIBYTE, up)


def count(text: str) -> int:
    """Whole devices; a part of one is none."""
    return _whole(parse(text), up=False)


def _whole(value: Decimal, up: bool) -> int:
    return int(value.to_integral_value(ROUND_CEILING if up else ROUND_FLOOR))
