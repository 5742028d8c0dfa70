"""Which `Key=Value` pairs does a configuration file hold, and on which line?

Follows the common rules of slurm.conf, gres.conf and their kin (slurm.conf(5)): `#` starts a comment unless a backslash
stands before it, a backslash at the end of a line joins the next one, keys ignore case, a value with blanks is quoted,
`Include FILE` reads another file in that place. Several pairs share a line only behind a record key (`NodeName=`).
Touches no file: the texts of all files are handed in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from slurmbridge.errors import ConfigError

_PAIR = re.compile(r'\s*([A-Za-z0-9_.]+)\s*[-*+/]?=\s*(?:"([^"]*)"|(\S+))(?=\s|$)', re.ASCII)
_INCLUDE = re.compile(r"\s*include\s+(\S.*?)\s*$", re.IGNORECASE)
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)#.*$")
_CLUSTER = re.compile(r"^\s*ClusterName\s*=\s*\"?([^\s\"#]+)", re.IGNORECASE | re.MULTILINE)
MAX_INCLUDES = 100
"""Files that one configuration may include, one below the other or in all: a loop ends here."""


class Pair(msgspec.Struct, frozen=True):
    """One `Key=Value` as written."""

    key: str
    value: str
    file: str
    line: int

    def error(self, message: str) -> ConfigError:
        """A complaint about this pair, with its place."""
        return ConfigError(message, file=self.file, line=self.line)


class ConfLine(msgspec.Struct, frozen=True):
    """One logical line: the first pair names the record (or is the only one)."""

    pairs: tuple[Pair, ...]

    @property
    def head(self) -> Pair:
        return self.pairs[0]


def logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, text) with comments gone and continuations joined; blank lines left out."""
    parts: list[str] = []
    start = 0
    for number, raw in enumerate(text.split("\n"), 1):
        line = _COMMENT.sub(r"\1", raw.rstrip("\r")).replace("\\#", "#")
        if not parts:
            start = number
        stripped = line.rstrip()
        if stripped.endswith("\\"):
            parts.append(stripped[:-1])
            continue
        parts.append(line)
        joined = "".join(parts)
        parts = []
        if joined.strip():
            yield start, joined
    if "".join(parts).strip():
        yield start, "".join(parts)


def read_pairs(line: str, file: str, number: int) -> tuple[Pair, ...]:
    """All pairs of one logical line; anything else on it is an error in Slurm's words."""
    pairs: list[Pair] = []
    place = 0
    while place < len(line) and line[place:].strip():
        match = _PAIR.match(line, place)
        if match is None:
            raise ConfigError(f'Parse error: "{line[place:].rstrip()}"', file=file, line=number)
        value = match[2] if match[2] is not None else match[3]
        pairs.append(Pair(match[1], value, file, number))
        place = match.end()
    return tuple(pairs)


def resolve_name(conf_name: str, name: str, cluster: str = "") -> str:
    """Where an included file is: relative names lie beside the main file, `%c` is the cluster's name."""
    name = name.strip().strip('"').replace("%c", cluster.lower())
    if name.startswith("/") or "/" not in conf_name:
        return name
    return conf_name.rsplit("/", 1)[0] + "/" + name


def included_names(text: str) -> list[str]:
    """The names behind `Include`, as written, in order."""
    return [match[1] for _, line in logical_lines(text) if (match := _INCLUDE.match(line))]


def cluster_name(text: str) -> str:
    """ClusterName as far as `%c` needs it; empty when not given."""
    match = _CLUSTER.search(text)
    return match[1] if match else ""


def read_lines(files: Mapping[str, str], conf_name: str) -> Iterator[ConfLine]:
    """The lines of a file with its includes in their places."""
    text = files.get(conf_name)
    if text is None:
        raise ConfigError(f"cannot read configuration file {conf_name}", file=conf_name)
    budget = [MAX_INCLUDES]
    yield from _read(files, conf_name, conf_name, text, cluster_name(text), budget)


def _read(
    files: Mapping[str, str], root: str, file: str, text: str, cluster: str, budget: list[int]
) -> Iterator[ConfLine]:
    for number, line in logical_lines(text):
        include = _INCLUDE.match(line)
        if include is None:
            yield ConfLine(read_pairs(line, file, number))
            continue
        path = resolve_name(root, include[1], cluster)
        inner = files.get(path, files.get(include[1].strip('"')))
        budget[0] -= 1
        if inner is None:
            raise ConfigError(f'"Include" failed: cannot read {path}', file=file, line=number)
        if budget[0] < 0:
            raise ConfigError(f'"Include" failed: more than {MAX_INCLUDES} files', file=file, line=number)
        yield from _read(files, root, path, inner, cluster, budget)
