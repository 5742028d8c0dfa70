"""Readers of the shape of a job: nodes, sharing, cores, layout, named hosts (sbatch(1); wording of Slurm 26.05)."""

from __future__ import annotations

import re

from slurmbridge.errors import LangError
from slurmbridge.lang import distribution, durations, hostlist, nodes
from slurmbridge.model.request import Exclusive
from slurmbridge.model.units import UNLIMITED
from slurmbridge.submit.option import Option
from slurmbridge.submit.value import Bad, Clock, Values, error, fatal, integer, invalid


def read_nodes(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    rest = (text or "")[1:]
    if text and text.startswith("-"):  # `-3` is read as a range without its beginning
        if not rest.isdecimal():
            return error(f'"{rest}" is not a valid node count')
        return (("nodes_min", min(1, int(rest))), ("nodes_max", int(rest)), ("node_counts", ()))
    try:
        counts = nodes.parse(text or "")
    except LangError as problem:
        return error(problem.message)
    return (("nodes_min", counts.min), ("nodes_max", counts.max), ("node_counts", tuple(counts.counts)))


def read_exclusive(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    words = {
        "": Exclusive.NODE,
        "exclusive": Exclusive.NODE,
        "user": Exclusive.USER,
        "mcs": Exclusive.MCS,
        "topo": Exclusive.TOPO,
    }
    found = words.get((text or "").lower())
    return invalid(option) if found is None else (("exclusive", found), ("+shared", option.long))


_ORDINALS = ("first", "second", "third")
_SHAPE = ("sockets_per_node", "cores_per_socket", "threads_per_core")


def read_extra_node_info(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    values: list[tuple[str, object]] = []
    product = 1
    for place, part in enumerate((text or "").split(":")[:3]):
        number = re.match(r"[0-9]+", part)
        if part in ("", "*"):
            continue
        if not number or part[number.end() :][:1] not in ("", "-"):
            return error(f'Invalid numeric value "{part}" for {_ORDINALS[place]} arg of -B.', 1)
        values.append((_SHAPE[place], int(number[0])))
        product *= int(number[0])
    return (*values, ("+node-info-tasks", product if values else None))


HINTS: dict[str, Values] = {
    "compute_bound": (("threads_per_core", 1),),
    "memory_bound": (("cores_per_socket", 1), ("threads_per_core", 1)),
    "nomultithread": (("threads_per_core", 1),),
    "multithread": (),
}
_HINT_HELP = """Application hint options:
    --hint=             Bind tasks according to application hints
        compute_bound   use all cores in each socket
        memory_bound    use only one core in each socket
        [no]multithread [don't] use extra threads with in-core multi-threading
        help            show this help message
"""


def read_hint(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    word = (text or "").lower()
    if word == "help":
        return Bad((), 1, _HINT_HELP)
    if word not in HINTS:
        return error(f'unrecognized --hint argument "{text}", see --hint=help', 1)
    return (("hint", word),)  # what it sets is settled when all options are known


def read_no_kill(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    if text and text != "off":
        return invalid(option)
    return (("no_kill", not text),)


def read_distribution(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    try:
        return (("distribution", distribution.parse(text or "")),)
    except LangError:
        if (text or "").lower().startswith("plane"):
            return Bad((("error", "Invalid plane size or size not specified"), *invalid(option).lines))
        return invalid(option)


def read_switches(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    count, at, wait = (text or "").partition("@")
    found = integer(count, "--switches", 1)
    if isinstance(found, Bad):
        return found
    return (("switches", found), ("switches_wait", _switch_wait(wait) if at else None))


def _switch_wait(text: str) -> int | None:
    """Seconds; None: as long as the site allows."""
    try:
        seconds = durations.parse_seconds(text)
    except LangError:
        return None
    return None if seconds == UNLIMITED else seconds


def read_exclude(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _hosts("exclude", text or "")


def read_nodelist(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return _hosts("nodelist", text or "")


def _hosts(field: str, text: str) -> Values | Bad:
    if "/" in text:
        return ((field, ()), (f"+{field}-file", text))
    try:
        return ((field, tuple(hostlist.expand(text)) if text else ()), (f"+{field}-file", None))
    except LangError:
        return fatal("Invalid node list specified")


def read_nodefile(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    return (("nodelist", ()), ("+nodelist-file", text or ""), ("+nodefile", True))
