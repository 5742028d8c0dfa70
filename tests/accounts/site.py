"""A controller's memory for the tests of the accounting commands, and a loop that performs their effects."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from slurmbridge.commands import sacctmgr, sshare
from slurmbridge.commands.effects import (
    Alter,
    AlterOutcome,
    Call,
    FileData,
    Print,
    QueueShares,
    ReadFile,
    ReadStdin,
    Reports,
    WriteFile,
)
from slurmbridge.errors import SlurmErrno
from slurmbridge.model.accounts import Accounting, Transaction, UsageRow
from slurmbridge.model.cluster import ClusterConfig, Node
from slurmbridge.model.job import Job
from slurmbridge.model.plan import QueueShare
from slurmbridge.submit import associations

UIDS = {"root": 0, "slurm": 64030, "alice": 1001, "bob": 1002, "carol": 1003, "dave": 1004}
MAIN = {"sacctmgr": sacctmgr.main, "sshare": sshare.main}

# The accounts of the recorded cluster.
ACCOUNTS = """\
add cluster oracle
add qos high set priority=1000 maxjobspu=2 maxtresperuser=cpu=16
add qos long set priority=10 maxwall=14-0
add qos preempt set priority=2000 preempt=normal
add qos tiny set priority=5 maxtresperjob=cpu=2 maxwall=00:10:00 flags=DenyOnLimit
add account admin description=admin organization=root
add account research description=research organization=lab
add account physics parent=research description=physics organization=lab
add account ml parent=research description=ml organization=lab fairshare=4
add user root account=admin
add user alice account=physics defaultaccount=physics
add user alice account=ml
add user bob account=ml defaultaccount=ml
add user dave account=admin adminlevel=operator
modify account root set qos+=normal,high,long,preempt,tiny where cluster=oracle
modify user bob set qos=normal,tiny where account=ml
"""


class Answer(NamedTuple):
    rc: int
    stdout: str
    stderr: str


class MemorySite:
    """`commands.effects.Site`, as far as the accounting commands read it."""

    def __init__(self) -> None:
        self.config = ClusterConfig(
            cluster_name="oracle",
            control_host="ctl",
            control_addr="10.77.0.1",
            slurm_user="slurm",
            conf_file="/etc/slurm/slurm.conf",
            accounting_tres=("gres/gpu", "gres/gpu:a100", "license/matlab"),
            values=(("AuthAltTypes", "auth/jwt"), ("AuthAltParameters", "jwt_key=/etc/slurm/jwt_hs256.key")),
        )
        self.accounting = associations.initial_accounting("oracle")
        self.transactions: list[Transaction] = []
        self.job_list: list[Job] = []
        self.files: dict[str, str] = {}  # the caller's, by name
        self.usage_rows: list[UsageRow] = []
        self.shares: list[QueueShare] = []
        self.failing: SlurmErrno | None = None
        self.disturb: Accounting | None = None
        self.start_time = 1000.0
        self.daemon_host = "ctl"

    def jobs(self) -> Sequence[Job]:
        return self.job_list

    def nodes(self) -> Sequence[Node]:
        return ()

    def reservations(self) -> Sequence[Any]:
        return ()

    def usage(self) -> Sequence[UsageRow]:
        return self.usage_rows

    def counted_usage(self) -> Sequence[UsageRow]:
        return self.usage_rows

    def user_name(self, uid: int) -> str:
        return next((name for name, number in UIDS.items() if number == uid), str(uid))

    def user_id(self, name: str) -> int | None:
        return UIDS.get(name)

    def is_admin(self, uid: int) -> bool:
        return uid == 0 or associations.admin_level(self.accounting, self.user_name(uid)) == "Administrator"

    def is_operator(self, uid: int) -> bool:
        return uid == 0 or associations.admin_level(self.accounting, self.user_name(uid)) != "None"

    def coordinates(self, uid: int, account: str) -> bool:
        return associations.coordinates(self.accounting, self.user_name(uid), account)

    def alter(self, alter: Alter) -> AlterOutcome:
        if self.disturb is not None:
            self.accounting, self.disturb = self.disturb, None
        if self.failing is not None:
            return AlterOutcome(errno=self.failing)
        if alter.verb == "reset_usage":
            ids = dict(alter.fields)["assoc_ids"]
            self.usage_rows = [row for row in self.usage_rows if row.assoc_id not in ids]
            return AlterOutcome()
        if alter.accounting is None or alter.accounting.revision != self.accounting.revision:
            return AlterOutcome(conflict=True)
        self.accounting = replace(alter.accounting, revision=alter.accounting.revision + 1)
        self.transactions += alter.transactions
        return AlterOutcome()


def run(site: MemorySite, line: str | Sequence[str], *, user: str = "root", stdin: bytes = b"") -> Answer:
    """One command line to its end."""
    argv = tuple(shlex.split(line) if isinstance(line, str) else line)
    call = Call(argv=argv, env={}, cwd="/", uid=UIDS[user], user=user, group=user, now=2000.0)
    texts = {1: "", 2: ""}
    lines = stdin.splitlines(keepends=True)
    command = MAIN[argv[0]](call, site)  # type: ignore[arg-type]
    answer: Any = None
    while True:
        try:
            effect = command.send(answer)
        except StopIteration as stop:
            return Answer(stop.value, texts[1], texts[2])
        match effect:
            case Print():
                texts[effect.fd] += effect.text
                answer = None
            case ReadStdin():
                answer = FileData(data=lines.pop(0) if lines else b"")
            case ReadFile():
                data = site.files.get(effect.name)
                answer = FileData(errno=2) if data is None else FileData(data=data.encode(), path=effect.name)
            case WriteFile():
                answer = FileData(errno=2 if effect.name.startswith("/nowhere/") else 0)
                if not answer.errno:
                    site.files[effect.name] = effect.data.decode()
            case Alter():
                answer = site.alter(effect)
            case QueueShares():
                answer = tuple(site.shares)
            case Reports():
                answer = tuple(site.transactions)
            case _:
                raise AssertionError(f"unexpected effect {effect}")


def recorded_site() -> MemorySite:
    """With the accounts of the recorded cluster."""
    site = MemorySite()
    for line in ACCOUNTS.splitlines():
        answer = run(site, "sacctmgr -i " + line)
        assert answer.rc == 0, (line, answer)
    return site
