"""`sacctmgr modify account ... set RawUsage=0`: the one thing about usage that can be set."""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.commands.effects import Alter, Command, Print
from slurmbridge.commands.sacctmgr_commit import NO_PRIVILEGE, Context, agree, err, out
from slurmbridge.commands.sacctmgr_conditions import Words
from slurmbridge.model.accounts import Assoc
from slurmbridge.submit import associations


def reset_usage(context: Context, words: Words, targets: Sequence[Assoc]) -> Command:
    """RawUsage=0: forget what these accounts and all below them have used."""
    if words.other["rawusage"] != "0":
        yield err("sacctmgr: error: Raw usage can only be set to 0 (zero)")
        return 1
    if not targets:
        yield out("  Nothing modified")
        return 1
    if not context.may_change([assoc.account for assoc in targets]):
        yield Print(NO_PRIVILEGE, 2)
        return 1
    if "clusters" not in words.where:
        yield out(f"No cluster specified, resetting on local cluster {context.site.config.cluster_name}")
    if not (yield from agree(context)):
        return 0
    below = frozenset().union(*(associations.descendants(context.site.accounting, a.account) for a in targets))
    ids = tuple(assoc.assoc_id for assoc in context.site.accounting.assocs if assoc.account in below)
    note = context.note("Modify Associations", "", "rawusage=0")
    outcome = yield Alter(kind="accounting", verb="reset_usage", fields=(("assoc_ids", ids),), transactions=(note,))
    if outcome.errno is not None or outcome.conflict:
        reason = outcome.errno.text if outcome.errno is not None else "the usage is being changed by others"
        yield err(f" Error with request: {reason}")
        return 1
    return 0
