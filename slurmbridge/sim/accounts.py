"""The tree of accounts of a replay: lines of `sacctmgr` through the command itself, then whoever the trace names besides.

A line is `sacctmgr -i add account ...` as typed in a shell (the word sacctmgr may be left out; `#` begins a comment), or
the whole file is one of `sacctmgr dump`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

import msgspec

from slurmbridge.commands import sacctmgr
from slurmbridge.commands.effects import Alter, AlterOutcome, Call, FileData, Print, ReadFile, ReadStdin, Site
from slurmbridge.model.accounts import Account, Accounting, Assoc, Qos, User
from slurmbridge.model.cluster import ClusterConfig, Node
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Reservation
from slurmbridge.sim.workload import TraceJob, at
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations

FIRST_UID = 10_000


class Books:
    """What sacctmgr reads of a site: the configuration, the entities, and nothing else."""

    def __init__(self, config: ClusterConfig, accounting: Accounting) -> None:
        self.config, self.accounting = config, accounting
        self.start_time, self.daemon_host = 0.0, "localhost"

    def is_operator(self, uid: int) -> bool:
        return True

    def is_admin(self, uid: int) -> bool:
        return True

    def coordinates(self, uid: int, account: str) -> bool:
        return True

    def jobs(self) -> Iterable[Job]:
        return ()

    def nodes(self) -> Sequence[Node]:
        return [Node(conf=conf) for conf in self.config.nodes]

    def node(self, name: str) -> Node | None:
        return next((node for node in self.nodes() if node.name == name), None)

    def reservations(self) -> Sequence[Reservation]:
        return ()

    def user_name(self, uid: int) -> str:
        return str(uid)

    def user_id(self, name: str) -> int | None:
        """Everybody exists: a trace brings its own users."""
        return FIRST_UID


def read(text: str, name: str, config: ClusterConfig) -> Accounting:
    """The entities after all lines. Raises TraceError with the line that sacctmgr refused, and why."""
    books = Books(config, associations.initial_accounting(config.cluster_name, enforced=False))
    if _is_dump(text):
        _run(books, ["sacctmgr", "-i", "load", name], name, 1, text)
        return books.accounting
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            words = shlex.split(line, comments=True)
        except ValueError as fault:
            raise at(name, number, str(fault)) from None
        if not words:
            continue
        if words[0].rpartition("/")[2] == "sacctmgr":
            words = words[1:]
        _run(books, ["sacctmgr", "-i", *words], name, number, "")
    return books.accounting


def _is_dump(text: str) -> bool:
    first = next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
    return first.split("-")[0].strip() in ("Cluster", "Parent", "QOS")


def _run(books: Books, argv: Sequence[str], name: str, number: int, file: str) -> None:
    """One command to its end; what it asks of the world is answered from the books."""
    site: Site = books  # type: ignore[assignment]  # jobs, partitions and usage are not asked for by these verbs
    command = sacctmgr.main(Call(argv=tuple(argv), env={}, cwd="/"), site)
    said: list[str] = []
    answer: object = None
    while True:
        try:
            effect = command.send(answer)
        except StopIteration as end:
            if end.value:
                raise at(name, number, " ".join("".join(said).split()) or f"sacctmgr exits with {end.value}") from None
            return
        answer = None
        match effect:
            case Print(text=text):
                said.append(text)
            case Alter(kind="accounting", verb="replace", accounting=Accounting() as wanted):
                books.accounting = msgspec.structs.replace(wanted, revision=wanted.revision + 1)
                answer = AlterOutcome()
            case Alter():
                answer = AlterOutcome()
            case ReadFile():
                answer = FileData(data=file.encode())
            case ReadStdin():
                answer = FileData()


def completed(accounting: Accounting, jobs: Sequence[TraceJob]) -> Accounting:
    """With an association for every user and account of the trace, and a QOS for each priority."""
    known = {(assoc.account, assoc.user) for assoc in accounting.assocs}
    for account in sorted({job.account for job in jobs}):
        if (account, "") not in known:
            record = Account(name=account, description=account, organization=account)
            assoc = Assoc(assoc_id=0, account=account, parent=associations.ROOT)
            accounting = changes.add_account(accounting, record, assoc)
    priorities = sorted({job.priority for job in jobs if job.priority})
    names = {qos.name for qos in accounting.qos}
    for priority in priorities:
        if qos_name(priority) not in names:
            accounting = changes.add_qos(accounting, Qos(name=qos_name(priority), priority=priority))
    if priorities:
        every = tuple(qos.name for qos in accounting.qos)
        root = associations.index(accounting).assocs[(associations.ROOT, "", "")]
        accounting = changes.edit_assocs(accounting, {root.assoc_id}, lambda a: msgspec.structs.replace(a, qos=every))
    missing = sorted({(job.account, job.user) for job in jobs} - known)
    number = accounting.next_assoc_id
    users = {user.name for user in accounting.users}
    new_users = {user: account for account, user in reversed(missing) if user not in users}
    return msgspec.structs.replace(
        accounting,
        users=(*accounting.users, *(User(name=user, default_account=account) for user, account in new_users.items())),
        assocs=(
            *accounting.assocs,
            *(
                Assoc(assoc_id=number + place, account=account, user=user)
                for place, (account, user) in enumerate(missing)
            ),
        ),
        next_assoc_id=number + len(missing),
    )


def qos_name(priority: int) -> str:
    """The QOS that stands for a priority of the trace; 0 is normal."""
    return f"priority{priority}" if priority else associations.NORMAL_QOS.name


def uids(jobs: Sequence[TraceJob]) -> dict[str, int]:
    """A number for each user."""
    return {user: FIRST_UID + place for place, user in enumerate(sorted({job.user for job in jobs}))}
