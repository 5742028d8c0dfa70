"""The arguments of a supervisor in a pod, as `manifest.pod.arguments` writes them."""

from __future__ import annotations

from typing import NamedTuple

from slurmbridge.supervisor.pod_gate import Who
from slurmbridge.supervisor.pod_place import BASE, WORDS

ONE = frozenset({"--daemon", "--pin", "--token", "--job", "--restart", "--rank", "--node", "--base", "--words"})
NEEDED = ("--daemon", "--pin", "--token", "--job", "--restart", "--rank")
PIN_LENGTH = 64


class Arguments(NamedTuple):
    who: Who
    folders: list[tuple[str, str]]  # of --same
    base: str
    words: str


def read(words: list[str]) -> Arguments | str:
    """Or what is wrong with them."""
    given: dict[str, str] = {}
    folders: list[tuple[str, str]] = []
    left = iter(words)
    for word in left:
        value = next(left, None)
        if word == "--same":
            target = next(left, None)
            if value is None or target is None:
                return "--same needs a source and a target"
            folders.append((value, target))
        elif word not in ONE:
            return f"unknown argument {word}"
        elif value is None:
            return f"{word} needs a value"
        else:
            given[word] = value
    missing = [name for name in NEEDED if name not in given]
    if missing:
        return f"{', '.join(missing)} missing"
    host, _, port = given["--daemon"].rpartition(":")
    numbers = [port, given["--job"], given["--restart"], given["--rank"]]
    if not host or not all(number.isascii() and number.isdecimal() for number in numbers):
        return "the daemon is HOST:PORT; job, restart and rank are numbers"
    pin = given["--pin"].lower().replace(":", "")
    if len(pin) != PIN_LENGTH or set(pin) - set("0123456789abcdef"):
        return "--pin is no SHA-256 in hex"
    who = Who(
        host.removeprefix("[").removesuffix("]"), int(port), pin, given["--token"], int(given["--job"]),
        int(given["--restart"]), int(given["--rank"]),
    )  # fmt: skip
    return Arguments(who, folders, given.get("--base", BASE), given.get("--words", WORDS))
