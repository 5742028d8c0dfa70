"""What is written beside each file of kept output: what it is, whose, and how far it has come."""

from __future__ import annotations

import json

import msgspec

from slurmbridge.spool.claim import write_file

ENDING = ".json"


class Note(msgspec.Struct, frozen=True):
    """Of a stream. As it is without one: it was just begun when the machine failed."""

    what: str = "stdout"  # of `wire.supervisor`
    path: str = ""  # as the job named it
    epoch: str = ""  # of the run that writes (`output_shelf.Writer`)
    full: bool = False  # nothing more of it is kept
    over: bool = False  # its end has come
    uid: int = -1  # its job's owner; -1: not known


def write(path: str, note: Note, *, sync: bool) -> None:
    """Beside the file at that path. JSON of Python's own, which has a way to write names that are no text. OSError."""
    write_file(path + ENDING, json.dumps(msgspec.to_builtins(note)).encode(), sync=sync)


def read(path: str) -> Note | None:
    """Of the file at that path; None: there is none that can be read."""
    try:
        with open(path + ENDING, "rb") as file:
            return msgspec.convert(json.load(file), Note)
    except (OSError, ValueError):
        return None
