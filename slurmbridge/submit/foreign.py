"""What do #PBS and #BSUB lines ask for, in sbatch's words?

Follows sbatch's own translation (Slurm 26.05): letters map to long options, `-l` and `-W` to several. What has no
counterpart is left out there and here; `LEFT_OUT` says why, for `slurmbridge lint`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.submit.getopt import Arg, Given, Opt, OptTable, scan
from slurmbridge.submit.value import Bad, error

Pairs = list[tuple[str, str | None]]
"""(long option, text) in the order in which they count."""


class Translated(msgspec.Struct, frozen=True):
    """`pairs` count; `left_out` are the words that mean nothing to sbatch. `bad` ends the submission after `pairs`."""

    pairs: tuple[tuple[str, str | None], ...] = ()
    left_out: tuple[str, ...] = ()
    bad: Bad | None = None


LEFT_OUT = "sbatch has no counterpart and leaves it out"

_PBS_PLAIN = {
    "A": "account", "a": "begin", "d": "chdir", "w": "chdir", "e": "error", "J": "array", "t": "array", "M": "mail-user",
    "N": "job-name", "o": "output", "p": "nice", "q": "partition", "v": "export",
}  # fmt: skip
_PBS_FLAGS = {"h": ("hold", None), "V": ("export", "ALL")}
_PBS_NO_VALUE = "hIVz"

PBS = OptTable(
    [
        Opt("", letter, Arg.NONE if letter in _PBS_NO_VALUE else Arg.REQUIRED)
        for letter in "aAcCdDehIjJklmMNopqrStuvVwWz"
    ]
)

_BSUB_PLAIN = {
    "c": "chdir", "e": "error", "J": "job-name", "m": "nodelist", "M": "mem-per-cpu", "o": "output", "q": "partition",
    "W": "time", "x": "exclusive",
}  # fmt: skip
BSUB = OptTable([Opt("", letter, Arg.NONE if letter == "x" else Arg.REQUIRED) for letter in "ceJmMnoqWx"])

_MAIL = {"a": "FAIL", "b": "BEGIN", "e": "END"}


def translate(kind: str, words: Sequence[str]) -> Translated:
    """Words of one "PBS" or "BSUB" line."""
    if kind == "BSUB":
        words = ["-c" if word == "-cwd" else word for word in words]
    found = scan(PBS if kind == "PBS" else BSUB, words, permute=False)
    pairs: Pairs = []
    left_out: list[str] = []
    for given in found.options:
        (_pbs if kind == "PBS" else _bsub)(given, pairs, left_out)
    bad = None
    if found.problem:
        bad = Bad((("program", found.problem), ("error", "Unrecognized command line parameter ?")), 1)
    elif found.operands:
        bad = error(f"Invalid argument: {found.operands[0]}", 1)
    return Translated(tuple(pairs), tuple(left_out), bad)


def _bsub(given: Given, pairs: Pairs, left_out: list[str]) -> None:
    text = given.value or ""
    if given.key == "n":
        pairs.append(("ntasks", text.rpartition(",")[2]))
    elif given.key == "M":
        pairs.append(("mem-per-cpu", text + "K" if text.isdecimal() else text))
    else:
        pairs.append((_BSUB_PLAIN[given.key], given.value))


def _pbs(given: Given, pairs: Pairs, left_out: list[str]) -> None:
    letter, text = given.key, given.value or ""
    if letter in _PBS_PLAIN:
        pairs.append((_PBS_PLAIN[letter], text))
    elif letter in _PBS_FLAGS:
        pairs.append(_PBS_FLAGS[letter])
    elif letter == "m":
        kinds = ",".join(_MAIL[char] for char in text if char in _MAIL)
        pairs.append(("mail-type", kinds or "NONE"))
    elif letter == "l":
        for resource in text.split(","):
            _resource(resource, pairs, left_out)
    elif letter == "W":
        for attribute in _attributes(text):
            name, _, value = attribute.partition("=")
            if name == "depend":
                pairs.append(("dependency", value))
            else:
                left_out.append(f"-W {attribute}")
    else:
        left_out.append(f"-{letter} {text}".rstrip())


def _attributes(text: str) -> list[str]:
    """`depend=a:1,b:2,umask=22` has two attributes: a part without `=` continues the one before."""
    parts: list[str] = []
    for part in text.split(","):
        if parts and "=" not in part:
            parts[-1] += "," + part
        else:
            parts.append(part)
    return parts


def _nodes(value: str, pairs: Pairs, left_out: list[str]) -> None:
    """`2:ppn=3`, `n1+n2`."""
    head, *rest = value.split(":")
    if head.isdecimal():
        pairs.append(("nodes", head))
    elif head:
        pairs.append(("nodelist", ",".join(part.split(":")[0] for part in value.split("+"))))
        rest = rest if "+" not in value else []
    for part in rest:
        name, _, count = part.partition("=")
        if name == "ppn" and count.isdecimal():
            pairs.append(("ntasks", str(int(head) * int(count)) if head.isdecimal() else count))
        elif "=" in part:
            _resource(part, pairs, left_out)
        else:
            left_out.append(f"-l nodes=...:{part}")


def _select(value: str, pairs: Pairs, left_out: list[str]) -> None:
    """`2:ncpus=4:mem=1gb`."""
    head, *rest = value.split(":")
    pairs.append(("nodes", head))
    for part in rest:
        _resource(part, pairs, left_out)


def _accelerator(value: str, pairs: Pairs, left_out: list[str]) -> None:
    if value.lower() == "true":
        pairs.append(("gres", "gpu:1"))
    else:
        left_out.append(f"-l accelerator={value}")


_COMPOSED: dict[str, Callable[[str, Pairs, list[str]], None]] = {
    "accelerator": _accelerator,
    "nodes": _nodes,
    "select": _select,
}
_RESOURCES = {
    "cput": "time", "file": "tmp", "mem": "mem", "mpiprocs": "ntasks-per-node", "mppnodes": "nodelist",
    "ncpus": "mincpus", "nice": "nice", "pcput": "time", "walltime": "time",
}  # fmt: skip


def _resource(text: str, pairs: Pairs, left_out: list[str]) -> None:
    name, _, value = text.partition("=")
    if name in _COMPOSED:
        _COMPOSED[name](value, pairs, left_out)
    elif name in _RESOURCES:
        pairs.append((_RESOURCES[name], value))
    elif name in ("naccelerators", "ngpus"):
        pairs.append(("gres", f"gpu:{value}"))
    else:
        left_out.append(f"-l {text}")
