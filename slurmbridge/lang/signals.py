"""Which signal is `USR1`, and what does `--signal=B:USR1@60` ask for?

Follows sbatch(1) --signal and scancel(1) --signal: Slurm knows these names, with or without SIG, in any case.
"""

from __future__ import annotations

import functools
import re

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.request import Signal

_NUMBERS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "ABRT": 6, "KILL": 9, "USR1": 10, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15,
    "CHLD": 17, "CONT": 18, "STOP": 19, "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24,
}  # fmt: skip
NAMES = tuple(_NUMBERS)
"""What a signal may be called, besides its number."""
_NAMES = {value: key for key, value in _NUMBERS.items()}
_LAST = 64
_MOST_OPTION = 65535
"""--signal is stored as it is: a number that no kernel knows is accepted and then sends nothing."""
_MOST_SECONDS = 65535
DEFAULT_SECONDS = 60


class _Option(Transformer[Token, Signal]):
    def start(self, parts: list[Token]) -> Signal:
        found = {part.type: str(part) for part in parts}
        flags = found.get("FLAGS", "").lower()
        seconds = number(found["SECONDS"]) if "SECONDS" in found else DEFAULT_SECONDS
        if seconds > _MOST_SECONDS:
            raise LangError("seconds are out of range", expected=(f"0 to {_MOST_SECONDS}",))
        return Signal(
            number=_number_of(found["SIGNAL"].strip(), _MOST_OPTION),
            seconds=seconds,
            batch_only="b" in flags,
            at_reservation="r" in flags,
        )


_LANGUAGE = Language("signals", _Option(), "signal")


@functools.lru_cache(maxsize=512)
def parse_option(text: str) -> Signal:
    """`[R|B:]NAME[@SECONDS]`."""
    return _LANGUAGE.parse(text)


def parse_name(text: str) -> int:
    """Number of a signal given by name or number (1 to 64)."""
    return _number_of(text, _LAST)


def _number_of(text: str, most: int) -> int:
    word = text.strip().upper()
    if re.fullmatch("[0-9]+", word):
        value = number(word)
        if 1 <= value <= most:
            return value
    elif word.removeprefix("SIG") in _NUMBERS:
        return _NUMBERS[word.removeprefix("SIG")]
    raise LangError("unknown signal", text=text, expected=(f"1 to {most}", *_NUMBERS))


def name(value: int) -> str:
    """`USR1`; the number itself where Slurm has no name."""
    return _NAMES.get(value, str(value))


def render(signal: Signal) -> str:
    """`B:USR1@60`."""
    flags = ("B" if signal.batch_only else "") + ("R" if signal.at_reservation else "")
    return f"{flags + ':' if flags else ''}{name(signal.number)}@{signal.seconds}"
