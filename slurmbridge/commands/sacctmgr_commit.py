"""Asking "would you like to commit?" and committing: what adding, modifying and deleting share.

A change is a function of the accounting record, so that it can be made again when somebody else was faster.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Final

import msgspec

from slurmbridge.commands.effects import Alter, AlterOutcome, Call, Effect, Print, ReadStdin, Site
from slurmbridge.commands.sacctmgr_conditions import Words
from slurmbridge.model.accounts import Accounting, Assoc, Transaction
from slurmbridge.model.job import Job

DENIED = "Access/permission denied"
NO_PRIVILEGE = (
    "sacctmgr: error: Your user doesn't have privilege to perform this action\n"
    f" Error with request: {DENIED}\n"
)  # fmt: skip
_TRIES = 20

Step = Generator[Effect, Any, bool]
Change = Callable[[Accounting], Accounting]


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and whether changes are committed without a question."""

    call: Call
    site: Site
    immediate: bool = False

    @property
    def user(self) -> str:
        return self.call.user

    @property
    def is_operator(self) -> bool:
        return self.site.is_operator(self.call.uid)

    @property
    def is_admin(self) -> bool:
        return self.site.is_admin(self.call.uid)

    def may_change(self, accounts: Iterable[str]) -> bool:
        """Operators, and coordinators of all these accounts."""
        return self.is_operator or all(self.site.coordinates(self.call.uid, account) for account in accounts)

    def note(self, action: str, where: str = "", info: str = "") -> Transaction:
        return Transaction(time=self.call.now, action=action, actor=self.user, where=where, info=info)

    def clusters_wanted(self, named: Sequence[str] | None) -> bool:
        """Whether this cluster is meant; there is no other."""
        return named is None or self.site.config.cluster_name in named


def out(*lines: str) -> Print:
    return Print("".join(line + "\n" for line in lines))


def err(*lines: str) -> Print:
    return Print("".join(line + "\n" for line in lines), 2)


def refuse(words: Words, *, nothing: str = "") -> list[Print]:
    """What is printed when the words are wrong, or set nothing (`nothing`: the line that says so)."""
    if words.complaints:
        return [out(*words.complaints)]
    if words.mistakes:
        return [err(*words.mistakes)]
    return [err(nothing)] if nothing and not words.edits and not words.other else []


COMMIT: Final = "Would you like to commit changes? (You have 30 seconds to decide)\n(N/y): "


def agree(context: Context, question: str = COMMIT) -> Step:
    """Ask; no answer is a no."""
    if context.immediate:
        return True
    yield Print(question)
    answer = yield ReadStdin(limit=256, line=True)
    yield Print("\n" if answer.data else "\nerror: Inappropriate ioctl for device\n")
    if answer.data[:1].lower() == b"y":
        return True
    yield out(" Changes Discarded")
    return False


def commit(context: Context, change: Change, notes: Sequence[Transaction]) -> Step:
    """Make the change durable; false, with a line on stderr, when that failed."""
    outcome = AlterOutcome(conflict=True)
    for _ in range(_TRIES):
        wanted = change(context.site.accounting)
        outcome = yield Alter(kind="accounting", verb="replace", accounting=wanted, transactions=tuple(notes))
        if not outcome.conflict:
            break
    if outcome.conflict:
        yield err(" Error with request: the entities are being changed by others; try again")
        return False
    if outcome.errno is not None:
        yield err(f" Error with request: {outcome.errno.text}")
        return False
    return True


def assoc_line(site: Site, assoc: Assoc, *, above: str = "") -> str:
    """`  C = oracle     A = ml                   U = alice    `, with the partition at its end."""
    cluster = site.config.cluster_name[:10]
    if not assoc.user:
        return f"  C = {cluster:<10} A = {assoc.account[:20]}" + (f" of {above}" if above else "")
    line = f"  C = {cluster:<10} A = {assoc.account[:20]:<20} U = {assoc.user[:9]:<9}"
    return line + (f" P = {assoc.partition}" if assoc.partition else "")


def active_jobs(site: Site, wanted: Callable[[Job], bool]) -> list[Job]:
    """Unfinished jobs that something to be removed still serves, one of each array."""
    seen: set[int] = set()
    found = []
    for job in site.jobs():
        number = job.array_job_id or job.job_id
        if not job.is_finished and number not in seen and wanted(job):
            seen.add(number)
            found.append(job)
    return found


def active_lines(site: Site, jobs: Sequence[Job], indent: str) -> list[str]:
    cluster = site.config.cluster_name
    return [
        f"{indent}JobID = {job.array_job_id or job.job_id:<10} C = {cluster:<10} A = {job.spec.account:<10} "
        f"U = {job.spec.user:<9} Q = {job.spec.qos:<9}"
        for job in jobs
    ]


def known_qos(site: Site) -> list[str]:
    """Names by id, as error texts list them."""
    return [qos.name for qos in sorted(site.accounting.qos, key=lambda each: each.qos_id)]
