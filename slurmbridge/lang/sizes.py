"""How many MiB is `16gb`, and how does Slurm write an amount of memory?

Follows sbatch(1) --mem: whole numbers, MiB without a unit, KiB round up. Fractions such as `1.5G` are refused.
"""

from __future__ import annotations

import functools
import re

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number

_MOST = (1 << 63) - 1
_UNITS = "KMGTPE"


class _Mebibytes(Transformer[Token, int]):
    def size(self, parts: list[Token]) -> int:
        amount = number(parts[0], _MOST + 1)
        unit = parts[1][0].upper() if len(parts) > 1 else "M"
        if unit == "K":
            return -(-amount // 1024)
        return amount << (10 * (_UNITS.index(unit) - 1))


_LANGUAGE = Language("sizes", _Mebibytes(), "size")


_PLAIN = re.compile(r"([0-9]{1,9})([MG]?)")
"""What most sizes look like: read as the grammar reads them, in a hundredth of the time."""
_SHIFTS = {"": 0, "M": 0, "G": 10}


@functools.lru_cache(maxsize=4096)
def parse_mib(text: str) -> int:
    """MiB of `--mem`, `--tmp` and the like."""
    plain = _PLAIN.fullmatch(text)
    if plain is not None:
        return int(plain[1]) << _SHIFTS[plain[2]]
    mib = _LANGUAGE.parse(text)
    if mib > _MOST:
        raise LangError("size is out of range", text=text, expected=("less than 2^63 MiB",))
    return mib


def render_mib(mib: int) -> str:
    """Exact, as TRES and scontrol show memory: `100M`, `1G`, `62.50G`; the unit grows only while halves stay exact."""
    return _exact(mib, _UNITS.index("M"))


def render_rounded(amount: float, unit: str = "") -> str:
    """Two decimals, as sacct shows measured amounts: `5.50M`, `12K`, `0`; `unit` is that of `amount` ("" = one)."""
    index = _UNITS.index(unit) if unit else -1
    while amount > 1024 and index < len(_UNITS) - 1:
        amount /= 1024
        index += 1
    shown = _UNITS[index] if index >= 0 else ""
    if amount == 0:
        return "0"
    return f"{int(amount)}{shown}" if amount == int(amount) else f"{amount:.2f}{shown}"


def _exact(amount: int, index: int) -> str:
    if amount == 0:
        return "0"
    value = float(amount)
    whole = amount
    while whole >= 1024 and whole % 512 == 0 and index < len(_UNITS) - 1:
        value /= 1024
        whole = int(value)
        index += 1
    return f"{whole}{_UNITS[index]}" if value == whole else f"{value:.2f}{_UNITS[index]}"
