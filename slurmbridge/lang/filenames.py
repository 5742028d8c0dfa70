"""Which file does a pattern such as `slurm-%A_%4a.out` name?

Follows sbatch(1), "filename pattern". Standard library only, because supervisors use it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_LETTER = re.compile(r"%([0-9]*)([A-Za-z%])|%\Z")
_NUMERIC = frozenset("AJabjnrst")  # letters that a width pads; %s of a batch step is a word and stays
_MOST_DIGITS = 10


def expand(pattern: str, values: Mapping[str, str]) -> str:
    """Replace %-letters by `values`; unknown ones stay, a lone % at the end goes.

    A width pads numbers with zeros, to ten digits at most. A backslash anywhere turns replacement off and disappears.
    """
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def one(match: re.Match[str]) -> str:
        width, letter = match.groups()
        if letter is None or letter == "%":
            return letter or ""
        value = values.get(letter)
        if value is None:
            return match[0]
        if width and letter in _NUMERIC and value.isdecimal():
            digits = int(width) if len(width) < 3 else _MOST_DIGITS
            return value.zfill(min(digits, _MOST_DIGITS))
        return value

    return _LETTER.sub(one, pattern)
