"""Slurm's closed sets of words."""

from __future__ import annotations

import enum


class Word(enum.Enum):
    """A member of such a set. There is one object of each, so what it is tells it apart: an `Enum` would ask its name, in Python,
    whenever somebody looks for a flag among others.
    """

    __hash__ = object.__hash__
