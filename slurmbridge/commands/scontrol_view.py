"""How does scontrol lay out a record, and with whose eyes (names, clock, time format) is it read?

Follows scontrol(1): a record is lines of `Key=Value` words, below each other with three blanks of indent, or all on one
line with -o. Knows no record.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import make_view
from slurmbridge.fields.view import View
from slurmbridge.model.cluster import Partition


class Flags(msgspec.Struct, kw_only=True):
    """What the options and SCONTROL_* variables switch on."""

    all: bool = False
    details: int = 0
    one_line: bool = False
    quiet: bool = False
    verbose: int = 0
    future: bool = False
    uid: str | None = None
    json: str | None = None
    yaml: str | None = None


class Eyes(msgspec.Struct, frozen=True, kw_only=True):
    """One command line's context."""

    call: Call
    site: Site
    flags: Flags
    view: View


def look(call: Call, site: Site, flags: Flags) -> Eyes:
    """Build the context; nothing is read from the site that is not asked for later."""
    view = make_view(call, site)
    return Eyes(call=call, site=site, flags=flags, view=view)


def lay_out(lines: Iterable[str], one_line: bool, *, indent: str = "\n   ", end: str = "\n") -> str:
    """One record: the lines below each other and an empty line, or one line."""
    if one_line:
        return " ".join(line.lstrip() if line.startswith("     ") else line for line in lines) + "\n"
    return indent.join(line[3:] if line.startswith("     ") else line for line in lines) + "\n" + end


def visible_partitions(eyes: Eyes) -> list[Partition]:
    """Partitions that this caller sees: hidden ones only with -a, by their groups or as operator."""
    partitions = list(eyes.site.partitions())
    if eyes.flags.all or eyes.site.is_operator(eyes.call.uid):
        return partitions
    groups: set[str] | None = None
    seen = []
    for partition in partitions:
        if partition.hidden:
            continue
        if partition.allow_groups:
            if groups is None:
                groups = set(eyes.site.groups_of(eyes.call.user))
            if not groups.intersection(partition.allow_groups):
                continue
        seen.append(partition)
    return seen
