"""What does `sacctmgr load` say about a file? Tables of what is new, one line for each value that changes.

The values of changes are as Slurm prints them there: numbers without a limit as they are kept, TRES by their ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from slurmbridge.commands import quotas
from slurmbridge.commands import sacctmgr_fields as table
from slurmbridge.commands.accounting_words import Edit, Word
from slurmbridge.model.tres import Tres

_SHORT_RULE, _LONG_RULE = "-" * 51, "-" * 62
_ASSOC_COLUMNS = (
    "Share,GrpTRESMins,GrpTRESRunMins,GrpTRES,GrpJobs,GrpJobsAccrue,GrpMemory,GrpNodes,GrpSubmit,GrpWall,MaxTRESMins,"
    "MaxTRES,MaxTRESPerNode,MaxJobs,MaxSubmit,MaxNodes,MaxWall,QOS,DefaultQOS"
)
_QOS_COLUMNS = (
    "Name%20,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,UsageFactor,GrpTRES,"
    "GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,"
    "MaxSubmitPU,MaxTRESPA,MaxTRESRunMinsPA%22,MaxTRESRunMinsPU%22,MaxJobsPA,MaxSubmitPA,MinTRES"
)
_SHOWN = {"Fairshare": "fairshare", "Shares": "fairshare", "GrpWall": "GrpWallDuration"}


class LoadReport:
    """Collects what the lines of the file do; `lines` is the whole of stdout."""

    def __init__(self, order: dict[str, int]) -> None:
        self._order = order
        self.cluster = ""
        self._qos_said: list[str] = []
        self._said: list[str] = []
        self._rows: dict[str, list[dict[str, str]]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.cluster or self._qos_said or self._rows)

    def new(self, kind: str, row: dict[str, str]) -> None:
        """kind: QOS, Accounts, Account assocs, Users, User assocs."""
        self._rows.setdefault(kind, []).append(row)

    def is_new_user(self, name: str) -> bool:
        return any(row["Name"] == name for row in self._rows.get("Users", ()))

    def say(self, line: str) -> None:
        self._said.append(line)

    def changed(self, what: str, kind: str, name: str, old: str, new: str) -> None:
        self._said.append(_change(what, kind, name, old, new))

    def lines(self) -> list[str]:
        """For stdout."""
        lines: list[str] = []
        if "QOS" in self._rows or self._qos_said:
            lines.append("QOS")
        lines += self._table("QOS", _QOS_COLUMNS, _LONG_RULE) + self._qos_said
        lines += ([f"For cluster {self.cluster}"] if self.cluster else []) + self._said
        tables = [
            *self._table("Accounts", "Name,Description,Organization,QOS", _SHORT_RULE, "Accounts"),
            *self._table("Account assocs", "Account,ParentName," + _ASSOC_COLUMNS, _LONG_RULE, "Account Associations"),
            *self._table("Users", "Name,DefaultAccount,DefaultWCKey,QOS,AdminLevel,Coordinators", _SHORT_RULE, "Users"),
            *self._table("User assocs", "User,Account," + _ASSOC_COLUMNS, _LONG_RULE, "User Associations"),
        ]
        return lines + (tables or ([] if self._said else [" Nothing new added."]))

    def compare(self, kind: str, name: str, before: Any, after: Any, edits: Sequence[Edit]) -> None:
        """` Changed MaxJobs for Account only -1 -> 3`, for all that is another value than before."""
        said, unset = (self._qos_said, "4294967295") if kind == "QOS" else (self._said, "-1")
        for edit in edits:
            old, new = _field(before, edit), _field(after, edit)
            if old == new or edit.word.field == "comment":
                continue
            label = _SHOWN.get(edit.word.name, edit.word.name)
            if edit.word.field == "qos":
                added = ",".join(each for each in new or () if each not in (old or ()))
                if added:
                    said.append(f" Added QOS{'':<21}for {kind:<7} {name:<10} {added:>8}")
                continue
            if edit.word.field == "default_qos":
                said.append(f" Set DefaultQOS{'':<16}for {kind:<7} {name:<10} {new:>8}")
                continue
            said.append(
                _change(label, kind, name, self._text(edit.word, old, unset), self._text(edit.word, new, unset))
            )

    def _text(self, word: Word, value: Any, unset: str) -> str:
        if word.kind == "deserved":
            return quotas.show_deserved(value, self._order) or "(null)"
        if word.kind == "weight":
            return quotas.weight_text(value) or unset
        if word.kind == "tres":
            return ",".join(f"{self._order[key]}={count}" for key, count in _by_id(value, self._order)) or "(null)"
        if word.kind in ("flags", "qoslist"):
            return ",".join(value) or "(null)"
        if value is None:
            return f"{float(unset):.6f}" if word.kind == "number" else unset
        if word.kind in ("number", "factor"):
            return f"{value:.6f}"
        if word.kind == "mode":
            return "OFF" if value == "cluster" else str(value).upper()
        return str(value)

    def _table(self, key: str, columns: str, rule: str, title: str = "") -> list[str]:
        rows = self._rows.get(key)
        fields = table.columns(columns)
        if not rows or isinstance(fields, str):
            return []
        text = table.table(fields, rows, table.Style())
        return [*([title] if title else []), *text.splitlines(), rule, ""]


def _change(what: str, kind: str, name: str, old: str, new: str) -> str:
    return f" Changed {what:<21} for {kind:<7} {name:<10} {old:>8} -> {new}"


def _field(record: Any, edit: Edit) -> Any:
    top, _, inner = edit.word.field.rpartition(".")
    if top == "quota":
        return quotas.value(record, edit.pools, inner)
    return getattr(record.limits if top else record, inner)


def _by_id(tres: Tres, order: dict[str, int]) -> list[tuple[str, int]]:
    return sorted(tres, key=lambda pair: order.get(pair[0], 1 << 30))
