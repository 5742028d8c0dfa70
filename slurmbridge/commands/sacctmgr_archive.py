"""`sacctmgr archive dump|load` (sacctmgr(1)).

slurmdbd archives what its Archive* keys name when it purges it. Here nothing is archived: what is purged is gone, and
backups are copies of the state folder. A dump that would only archive has nothing to do; one that would purge is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Command
from slurmbridge.commands.sacctmgr_commit import Context, agree, err, out

_KINDS = ("Events", "Jobs", "Reservations", "Steps", "Suspend", "TXN", "Usage")
_FILTERS = (
    "Accounts", "Associations", "Clusters", "Directory", "End", "Gid", "Jobs", "PartitionsIds", "Script", "Start", "State",
    "Steps", "Submit", "Users",
)  # fmt: skip
_LOSS = "This may result in loss of accounting database records (if Purge* options enabled)."
_DENIED = "Your user doesn't have privilege to perform this action"


def archive(context: Context, words: Sequence[str]) -> Command:
    """The whole verb; `words` begins with dump or load."""
    if words and is_word(words[0], "dump", 2):
        return (yield from _dump(context, words[1:]))
    if words and is_word(words[0], "load", 2):
        return (yield from _load(context, words[1:]))
    yield err("No valid entity in archive command", 'Input line must include, "Dump", or "load"')
    return 1


def _dump(context: Context, words: Sequence[str]) -> Command:
    for word in words:
        key, equals, _ = word.partition("=")
        if key.lower().startswith("purge") and equals:
            yield err("sacctmgr: error: archive dump purges nothing: PurgeJobAfter and its kin of slurmdbd.conf do")
            return 1
        if not any(is_word(key, name, 2) for name in (*_KINDS, *_FILTERS)):
            yield err(f" Unknown condition: {word}")
            return 1
    if not context.immediate:
        yield out(_LOSS, "Are you sure you want to continue? (You have 30 seconds to decide)")
    if not (yield from agree(context, "(N/y): ")):
        return 0
    if not context.is_admin:
        yield err(f"sacctmgr: error: {_DENIED}", " Problem dumping archive: Access/permission denied")
        return 1
    yield err("sacctmgr: accounting_storage/slurmdbd: jobacct_storage_p_archive: SUCCESS")
    return 0


def _load(context: Context, words: Sequence[str]) -> Command:
    if not context.is_admin:
        yield err(f"sacctmgr: error: {_DENIED}", " Problem loading archive file: Access/permission denied")
        return 1
    if any(word.lower().startswith("file=") for word in words):
        yield err(
            "sacctmgr: error: No archive file given to recover.",
            " Problem loading archive file: No such file or directory",
            " Note: For archive load, the file must be accessible on the slurmdbd host.",
        )
        return 1
    yield err("sacctmgr: error: Error with request.", " Problem loading archive file: Unspecified error")
    return 1
