"""Which devices does gres.conf give a node, and do they match what slurm.conf promises?

Follows gres.conf(5): a line is for all nodes or for those of its NodeName, `File=` lists one device per file (all
together one device with MultipleFiles), `Count=` makes devices without files, `AutoDetect=` is accepted: nothing is
detected, devices that slurm.conf promises and no line describes exist by index alone. Knows no other part of a node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from slurmbridge.errors import ConfigError, LangError
from slurmbridge.lang import hostlist
from slurmbridge.lang.slurm_conf_lines import ConfLine, Pair
from slurmbridge.model.cluster import Device

_COUNT = re.compile(r"(\d+)([KMGTP]?)", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4, "p": 1024**5}
AUTO_DETECT = ("off", "nvml", "nvidia", "rsmi", "oneapi", "nrt", "full")
MAX_DEVICES = 1024
"""Devices of one line that has files, as in Slurm."""


class GresLine(msgspec.Struct, kw_only=True):
    name: str = ""
    type: str = ""
    count: int | None = None
    files: tuple[str, ...] = ()
    cores: str = ""
    links: str = ""
    nodes: frozenset[str] | None = None  # None: all
    multiple_files: bool = False
    auto_detect: str = ""


class Promise(msgspec.Struct, frozen=True):
    """One term of a node's `Gres=`."""

    name: str
    type: str
    count: int


def read_gres(lines: Iterable[ConfLine], gres_types: Sequence[str]) -> tuple[GresLine, ...]:
    """All lines of gres.conf that describe something."""
    return tuple(line for each in lines if (line := _read_line(each, gres_types)).name)


def _read_line(line: ConfLine, gres_types: Sequence[str]) -> GresLine:
    read = GresLine()
    for pair in line.pairs:
        key, value = pair.key.lower(), pair.value
        if key == "name":
            if value.lower() not in gres_types:
                raise pair.error(f"gres.conf: {value} is not one of GresTypes")
            read.name = value.lower()
        elif key == "type":
            read.type = value
        elif key == "count":
            read.count = _count(pair, value)
        elif key in ("file", "files", "multiplefiles"):
            read.files = tuple(_files(pair))
            read.multiple_files = key == "multiplefiles"
        elif key == "nodename":
            read.nodes = frozenset(_hosts(pair))
        elif key in ("cores", "cpus"):
            read.cores = value
        elif key in ("links", "link"):
            read.links = value
        elif key == "autodetect":
            if value.lower() not in AUTO_DETECT:
                raise pair.error(f"unknown AutoDetect {value}")
            read.auto_detect = value.lower()
        elif key not in ("flags", "uniqueid"):
            raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
    if read.files and read.count is not None and not read.multiple_files and read.name == "gpu":
        if read.count != len(read.files):
            raise line.head.error(f"Count={read.count} does not match the number of files ({len(read.files)})")
    return read


def _hosts(pair: Pair) -> list[str]:
    try:
        return hostlist.expand(pair.value)
    except LangError as error:
        raise pair.error(f"Invalid hostlist: {pair.value}") from error


def _files(pair: Pair) -> list[str]:
    found = _hosts(pair)
    if len(found) > MAX_DEVICES:
        raise pair.error(f"more than {MAX_DEVICES} files: {pair.value}")
    if len(set(found)) != len(found):
        raise pair.error(f"duplicate device file name in {pair.value}")
    return found


def _count(pair: Pair, text: str) -> int:
    match = _COUNT.fullmatch(text)
    if match is None:
        raise pair.error(f"Invalid GRES data for {pair.key}, Count={text}")
    return int(match[1]) * _UNITS[match[2].lower()]


def promises(gres: str) -> tuple[Promise, ...]:
    """The terms of `gpu:a100:4(S:0-1),shard:16`; ValueError for what is none."""
    found = []
    for term in re.sub(r"\([^)]*\)", "", gres).split(","):
        parts = [part for part in term.strip().split(":") if part != "no_consume"]
        if not parts[0]:
            continue
        match = _COUNT.fullmatch(parts[-1]) if len(parts) > 1 else None
        count = int(match[1]) * _UNITS[match[2].lower()] if match else 1
        kind = parts[1 : -1 if match else None]
        if len(kind) > 1:
            raise ValueError(term)
        found.append(Promise(parts[0].lower(), kind[0] if kind else "", count))
    return tuple(found)


def is_configured(gres: str, gres_types: Sequence[str]) -> str:
    """Empty, or what is wrong with a node's `Gres=`."""
    try:
        terms = promises(gres)
    except ValueError as error:
        return str(error)
    unknown = [term.name for term in terms if term.name not in gres_types]
    return f"{unknown[0]} is not one of GresTypes" if unknown else ""


def devices_of(node: str, gres: str, lines: Sequence[GresLine]) -> tuple[tuple[Device, ...], str]:
    """Devices of one node, and the reason to drain it when gres.conf has fewer than slurm.conf promises."""
    devices: list[Device] = []
    for promise in promises(gres):
        if promise.name != "gpu" and not any(line.name == promise.name and line.files for line in lines):
            continue
        matching = [
            line for line in lines
            if line.name == promise.name and (line.nodes is None or node in line.nodes)
            and (not promise.type or not line.type or line.type == promise.type)
        ]  # fmt: skip
        found = [device for line in matching for device in _devices(line, promise)]
        if matching and len(found) < promise.count:
            return tuple(
                devices
            ), f"gres/{promise.name} count reported lower than configured ({len(found)} < {promise.count})"
        if not matching:
            found = [Device(name=promise.name, type=promise.type)] * promise.count
        devices += found[: promise.count]
    return tuple(_numbered(devices)), ""


def _devices(line: GresLine, promise: Promise) -> list[Device]:
    kind = line.type or promise.type
    if line.multiple_files:
        device = Device(name=line.name, type=kind, file=",".join(line.files), cores=line.cores, links=line.links)
        return [device] * (line.count or 1)
    if line.files:
        return [Device(name=line.name, type=kind, file=file, cores=line.cores, links=line.links) for file in line.files]
    return [Device(name=line.name, type=kind, cores=line.cores, links=line.links)] * (line.count or 1)


def _numbered(devices: Sequence[Device]) -> list[Device]:
    """Indexes count per name, over all types."""
    counters: dict[str, int] = {}
    numbered = []
    for device in devices:
        index = counters.get(device.name, 0)
        counters[device.name] = index + 1
        numbered.append(msgspec.structs.replace(device, index=index))
    return numbered


__all__ = ["ConfigError", "GresLine", "Promise", "devices_of", "is_configured", "promises", "read_gres"]
