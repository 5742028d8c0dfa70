"""Which columns can sacctmgr show, and how is a table laid out? `format=` of every entity reads the same list of names.

Widths and headings are Slurm's; a negative width is left-aligned. A value that does not fit ends in `+`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from slurmbridge.commands.accounting_words import is_word


class Field(msgspec.Struct, frozen=True):
    """`name` with its shortest form, what stands above the column, and its width."""

    name: str
    least: int
    heading: str
    width: int

    @property
    def key(self) -> str:
        """By which entities give their values."""
        return self.heading


class Style(msgspec.Struct, frozen=True, kw_only=True):
    header: bool = True
    separator: str = ""  # "|" for -p and -P
    closing: bool = False  # -p: also after the last column


# Searched in this order.
FIELDS: Final = tuple(
    Field(*row)
    for row in (
        ("Accounts", 3, "Account", 10), ("ActionRaw", 7, "ActionRaw", 10), ("Action", 4, "Action", 20),
        ("Actor", 4, "Actor", 10), ("AdminLevel", 2, "Admin", 9), ("Allocated", 7, "Allocated", 9),
        ("Associations", 2, "Assocs", 10), ("Classification", 3, "Class", 9),
        ("ClusterNodes", 8, "Cluster Nodes", 20), ("Clusters", 2, "Cluster", 10), ("Comment", 3, "Comment", 20),
        ("Coordinators", 3, "Coord Accounts", 20), ("ControlHost", 8, "ControlHost", 15),
        ("ControlPort", 8, "ControlPort", 12), ("CountAllowed", 6, "# Allowed", 10), ("Count", 3, "Count", 6),
        ("DefaultAccount", 8, "Def Acct", 10), ("DefaultQOS", 8, "Def QOS", 9), ("DefaultWCKey", 8, "Def WCKey", 10),
        ("DeservedTRES", 5, "DeservedTRES", 20), ("Description", 3, "Descr", 20), ("Duration", 2, "Duration", 13),
        ("Extra", 2, "Extra", 20), ("EventRaw", 6, "EventRaw", 8), ("Event", 2, "Event", 7), ("End", 2, "TimeEnd", 19),
        ("Federation", 3, "Federation", 10), ("Features", 3, "Features", 20), ("FedStateRaw", 9, "FedStateRaw", 11),
        ("FedState", 4, "FedState", 12), ("Fairshare", 2, "Share", 9), ("Flags", 2, "Flags", 20),
        ("GraceTime", 3, "GraceTime", 10), ("GrpCPUMins", 7, "GrpCPUMins", 11),
        ("GrpCPURunMins", 7, "GrpCPURunMins", 13), ("GrpCPUs", 6, "GrpCPUs", 8), ("GrpTRESMins", 8, "GrpTRESMins", 13),
        ("GrpTRESRunMins", 8, "GrpTRESRunMins", 13), ("GrpTRES", 7, "GrpTRES", 13), ("GrpJobsAccrue", 8, "GrpJobsAccrue", 13),
        ("GrpJobs", 4, "GrpJobs", 7), ("GrpMemory", 4, "GrpMem", 7), ("GrpNodes", 4, "GrpNodes", 8),
        ("GrpSubmitJobs", 4, "GrpSubmit", 9), ("GrpWall", 4, "GrpWall", 11), ("ID", 2, "ID", 6), ("Info", 3, "Info", 20), ("InstanceId", 9, "InstanceId", 20), ("InstanceType", 9, "InstanceType", 20),
        ("LastConsumed", 8, "LastConsumed", 12), ("LimitFactor", 6, "LimitFactor", 11), ("Lineage", 1, "Lineage", -20),
        ("MaxCPUMinsPerJob", 7, "MaxCPUMins", 11), ("MaxCPURunMins", 8, "MaxCPURunMinsPU", 15),
        ("MaxCPUsPerUser", 11, "MaxCPUsPU", 9), ("MaxCPUsPU", 9, "MaxCPUsPU", 9), ("MaxCPUsPerJob", 7, "MaxCPUs", 8),
        ("MaxJobsAccruePerAccount", 17, "MaxJobsAccruePA", 15), ("MaxJobsAccruePA", 15, "MaxJobsAccruePA", 15),
        ("MaxJobsAccruePerUser", 17, "MaxJobsAccruePU", 15), ("MaxJobsAccruePU", 15, "MaxJobsAccruePU", 15),
        ("MaxJobsAccrue", 8, "MaxJobsAccrue", 13), ("MaxJobsPerAccount", 11, "MaxJobsPA", 9),
        ("MaxJobsPA", 9, "MaxJobsPA", 9), ("MaxJobsPerUser", 11, "MaxJobsPU", 9), ("MaxJobsPU", 9, "MaxJobsPU", 9),
        ("MaxJobs", 4, "MaxJobs", 7), ("MaxNodesPerUser", 12, "MaxNodesPU", 10), ("MaxNodesPerJob", 4, "MaxNodes", 8),
        ("MaxSubmitJobsPerAccount", 17, "MaxSubmitPA", 11), ("MaxSubmitJobsPA", 15, "MaxSubmitPA", 11),
        ("MaxSubmitPA", 11, "MaxSubmitPA", 11), ("MaxSubmitJobsPerUser", 14, "MaxSubmitPU", 11),
        ("MaxSubmitJobsPU", 14, "MaxSubmitPU", 11), ("MaxSubmitPU", 11, "MaxSubmitPU", 11),
        ("MaxSubmitJobs", 4, "MaxSubmit", 9), ("MaxTRESPerAccount", 11, "MaxTRESPA", 13), ("MaxTRESPA", 9, "MaxTRESPA", 13),
        ("MaxTRESPerJob", 7, "MaxTRES", 13), ("MaxTRESPJ", 7, "MaxTRES", 13),
        ("MaxTRESPerNode", 11, "MaxTRESPerNode", 14), ("MaxTRESPN", 9, "MaxTRESPerNode", 14),
        ("MaxTRESPerUser", 11, "MaxTRESPU", 13), ("MaxTRESPU", 9, "MaxTRESPU", 13),
        ("MaxTRESMinsPerJob", 8, "MaxTRESMins", 13), ("MaxTRESMinsPJ", 8, "MaxTRESMins", 13),
        ("MaxTRESRunMinsPerAccount", 15, "MaxTRESRunMinsPA", 16), ("MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPA", 16),
        ("MaxTRESRunMinsPerUser", 8, "MaxTRESRunMinsPU", 16), ("MaxTRESRunMinsPU", 8, "MaxTRESRunMinsPU", 16),
        ("MaxWallDurationPerJob", 4, "MaxWall", 11), ("MinCPUs", 7, "MinCPUs", 8), ("MinPrioThreshold", 4, "MinPrioThres", 12),
        ("MinTRESPerJob", 7, "MinTRES", 13), ("Name", 2, "Name", 10), ("NodeCount", 5, "NodeCount", 9),
        ("NodeInx", 5, "NodeInx", 9), ("NodeNames", 5, "NodeName", -15), ("Organization", 1, "Org", 20),
        ("OverQuotaWeight", 5, "OverQuotaWeight", 15), ("ParentID", 7, "ParentID", 8), ("ParentName", 7, "ParentName", 10),
        ("Partition", 4, "Partition", 10), ("Pool", 4, "Pool", 10), ("PreemptMode", 8, "PreemptMode", 11),
        ("PreemptExemptTime", 8, "PreemptExemptTime", 19), ("Preemptible", 9, "Preemptible", 11),
        ("Preempt", 7, "Preempt", 10), ("Priority", 3, "Priority", 10), ("Problem", 1, "Problem", 40),
        ("QOSLevel", 3, "QOS", 20), ("QOSRAW", 4, "QOS_RAW", 10), ("QueuePriority", 3, "QueuePriority", 13),
        ("Reason", 1, "Reason", 30), ("RPC", 2, "RPC", 5), ("Share", 1, "Share", 9), ("StateRaw", 6, "StateRaw", 8),
        ("State", 2, "State", 6), ("ServerType", 10, "ServerType", 10), ("Server", 3, "Server", 10),
        ("Start", 4, "TimeStart", 19), ("TimeEnd", 6, "TimeEnd", 19), ("TimeStart", 8, "TimeStart", 19),
        ("TimeSubmit", 6, "TimeSubmit", 19), ("TimeStamp", 2, "Time", 19), ("TRES", 2, "TRES", 20), ("Type", 2, "Type", 8),
        ("UnusedWall", 2, "UnusedWall", 10), ("UsageFactor", 6, "UsageFactor", 11), ("UsageThreshold", 6, "UsageThres", 10),
        ("User", 1, "User", 10), ("WCKeys", 2, "WCKeys", 20), ("Where", 2, "Where", 20),
    )
)  # fmt: skip


ACCOUNT: Final = next(field for field in FIELDS if field.heading == "Account")


def find(text: str) -> Field | str:
    """The column of one `format=` element (`Name`, `Name%20`, `Name%-20`), or Slurm's complaint."""
    name, percent, width = text.partition("%")
    field = next((field for field in FIELDS if is_word(name, field.name, field.least)), None)
    if field is None:
        return f"Unknown field '{name.lower()}'"
    if percent and re.fullmatch(r"-?\d{1,5}", width) and int(width):
        return msgspec.structs.replace(field, width=int(width))
    return field


def columns(text: str) -> list[Field] | str:
    """All columns of a comma list."""
    found: list[Field] = []
    for part in filter(None, text.split(",")):
        field = find(part)
        if isinstance(field, str):
            return field
        found.append(field)
    return found


def has_width(text: str, field: Field) -> bool:
    """Whether a comma list asks for this column with a width of its own."""
    return any("%" in part and is_word(part.partition("%")[0], field.name, field.least) for part in text.split(","))


def table(fields: Sequence[Field], rows: Iterable[Mapping[str, str]], style: Style) -> str:
    """Heading, rule and rows; a column that a row does not have is blank."""
    lines: list[str] = []
    if style.separator:
        end = style.separator if style.closing else ""
        if style.header:
            lines.append(style.separator.join(field.heading for field in fields) + end)
        lines += [style.separator.join(row.get(field.key, "") for field in fields) + end for row in rows]
    else:
        if style.header:
            lines.append("".join(_cell(field.heading[: abs(field.width)], field.width) for field in fields))
            lines.append("".join("-" * abs(field.width) + " " for field in fields))
        lines += ["".join(_cell(row.get(field.key, ""), field.width) for field in fields) for row in rows]
    return "".join(line + "\n" for line in lines)


def _cell(text: str, width: int) -> str:
    room = abs(width)
    if len(text) > room:
        text = text[: room - 1] + "+"
    return (text.ljust(room) if width < 0 else text.rjust(room)) + " "
