"""Whom else does a change of an account touch? Those below that take the value from above, as Slurm lists them."""

from __future__ import annotations

from typing import Any, Final

from slurmbridge.commands.sacctmgr_commit import Context, assoc_line
from slurmbridge.model.accounts import Assoc
from slurmbridge.submit import associations

INHERITED: Final = frozenset(
    {
        "priority", "qos", "default_qos", "limits.max_jobs", "limits.max_jobs_accrue", "limits.max_submit",
        "limits.max_wall", "limits.max_tres_per_job", "limits.max_tres_per_node", "limits.max_tres_mins_per_job",
    }
)  # fmt: skip
"""What children take from their account."""


def heirs(context: Context, account: str, fields: set[str]) -> list[str]:
    """Associations below that take at least one of these values from above; TRES limits are merged, so always."""
    known = associations.index(context.site.accounting)
    lines: list[str] = []
    for child in (*known.users_of.get(account, ()), *known.children_of.get(account, ())):
        taken = {field for field in fields if "_tres" in field or _own(child, field) in (None, "")}
        if not taken:
            continue
        lines.append(f"{assoc_line(context.site, child):<41}")
        if not child.user:
            lines += heirs(context, child.account, taken)
    return lines


def _own(assoc: Assoc, field: str) -> Any:
    if field == "qos" and assoc.qos is not None and associations.is_change(assoc.qos):
        return None
    top, _, inner = field.rpartition(".")
    return getattr(assoc.limits if top else assoc, inner)
