"""`scontrol show assoc_mgr`: what associations may use, and what they use now.

Follows scontrol(1). Every limit stands before what counts against it: `cpu=16(4)`, N without a limit. Counts are of live
jobs, minutes are decayed use. Use is kept by association, not by QOS, so QOS records are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from slurmbridge.commands.accounting_words import known_tres, show_tres
from slurmbridge.commands.effects import Command, Print, Site
from slurmbridge.commands.scontrol_jobs import complain
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.commands.sshare_numbers import Level, compute, run_minutes
from slurmbridge.lang import arrays
from slurmbridge.model.accounts import Assoc
from slurmbridge.model.job import Job
from slurmbridge.model.states import JobState
from slurmbridge.model.tres import Tres, count, is_gpu
from slurmbridge.submit import associations

_FLAGS = {"users": "users", "assoc": "assoc", "qos": "qos"}


class Load(msgspec.Struct, kw_only=True):
    """What counts against an association's limits."""

    running: int = 0
    accruing: int = 0
    submitted: int = 0
    tres: dict[str, int] = msgspec.field(default_factory=dict)
    used: dict[str, float] = msgspec.field(default_factory=dict)  # TRES-seconds, decayed
    wall_s: float = 0.0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    flags: frozenset[str]
    users: frozenset[str] | None = None
    accounts: frozenset[str] | None = None


def show_assoc(eyes: Eyes, words: Sequence[str]) -> Command:
    """`flags=`, `users=`, `accounts=`; `qos=` narrows only QOS records."""
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        lower = name.lower()
        if not equals:
            yield from complain(eyes, f"No value given for option {word}")
            return 0
        full = next((full for full in ("accounts", "flags", "qos", "users") if lower and full.startswith(lower)), None)
        if full is None:
            yield from complain(eyes, f"invalid entity: {word} for keyword:show assoc_mgr")
            return 1
        values[full] = value
    flags = set()
    for word in filter(None, values.get("flags", "").lower().split(",")):
        flag = next((flag for name, flag in _FLAGS.items() if name.startswith(word)), None)
        if flag is None:
            yield from complain(eyes, f"invalid flag '{word}', valid options are 'Assoc, QOS, and/or Users'")
            return 0
        flags.add(flag)
    wanted = Wanted(
        flags=frozenset(flags or {"users", "assoc"}),
        users=_names(values.get("users")),
        accounts=_names(values.get("accounts")),
    )
    if "qos" in flags:
        yield from complain(eyes, "scontrol: error: flags=qos is not offered: use is kept by association, not by QOS")
        return 1
    yield Print(_text(eyes, wanted))
    return 0


def _names(text: str | None) -> frozenset[str] | None:
    return frozenset(filter(None, text.lower().split(","))) if text is not None else None


def _text(eyes: Eyes, wanted: Wanted) -> str:
    end = "\n" if eyes.flags.one_line else "\n\n"
    parts = ["Current Association Manager state", end]
    if "users" in wanted.flags:
        users = list(_users(eyes, wanted))
        parts += ["User Records" + end, *(line + "\n" for line in users)] if users else [_NO_USERS]
        parts.append("" if eyes.flags.one_line else "\n")
    if "assoc" in wanted.flags:
        parts.append("Association Records" + end)
        glue = " " if eyes.flags.one_line else "\n    "
        parts += [glue.join(record) + "\n" for record in _records(eyes, wanted)]
    text = "".join(parts)
    return text if wanted.flags != {"users"} else text.removesuffix("\n")


_NO_USERS = "No users currently cached in Slurm.\n\n"


def _users(eyes: Eyes, wanted: Wanted) -> Iterator[str]:
    site = eyes.site
    for user in sorted(site.accounting.users, key=lambda each: each.name):
        if (wanted.users is not None and user.name not in wanted.users) or not _may_see(eyes, user.name):
            continue
        yield (
            f"UserName={_user(site, user.name)} DefAccount={user.default_account} DefWckey={user.default_wckey} "
            f"AdminLevel={user.admin_level}"
        )


def _may_see(eyes: Eyes, user: str) -> bool:
    """PrivateData=users hides other people."""
    private = eyes.site.config.private_data
    if "users" not in private and "usage" not in private:
        return True
    return user == eyes.call.user or eyes.site.is_operator(eyes.call.uid)


def _user(site: Site, name: str) -> str:
    uid = site.user_id(name)
    return f"{name}({uid if uid is not None else 4294967294})"


def _records(eyes: Eyes, wanted: Wanted) -> Iterator[list[str]]:
    site = eyes.site
    accounting = site.accounting
    levels = compute(accounting, site.usage(), site.counted_usage())
    loads = _loads(site)
    minutes = run_minutes(accounting, site.jobs(), eyes.call.now)
    order = known_tres(site.config)
    known = associations.index(accounting)
    for _, assoc in associations.tree(accounting):
        if wanted.accounts is not None and assoc.account not in wanted.accounts:
            continue
        if assoc.user and (
            (wanted.users is not None and assoc.user not in wanted.users) or not _may_see(eyes, assoc.user)
        ):
            continue
        above = None if assoc.user else associations.parent(accounting, assoc)
        siblings: Iterable[Assoc] = (assoc,)
        up = associations.parent(accounting, assoc)
        if up is not None:
            siblings = (*known.users_of.get(up.account, ()), *known.children_of.get(up.account, ()))
        total = sum(0 if each.shares_parent else each.shares for each in siblings)
        number = assoc.assoc_id
        yield _record(
            site, assoc, above, total, levels[number], loads.get(number, Load()), minutes.get(number, {}), order
        )


def _record(
    site: Site,
    assoc: Assoc,
    above: Assoc | None,
    total: int,
    level: Level,
    load: Load,
    minutes: Mapping[str, int],
    order: dict[str, int],
) -> list[str]:
    limits = assoc.limits
    user = _user(site, assoc.user) if assoc.user else ""
    used = {name: int(_whole(name, amount) // 60) for name, amount in load.used.items()}
    return [
        f"ClusterName={site.config.cluster_name} Account={assoc.account} UserName={user} Partition={assoc.partition} "
        f"Priority={assoc.priority or 0} ID={assoc.assoc_id}",
        f"SharesRaw/Norm/Level/Factor={'parent' if assoc.shares_parent else assoc.shares}/{level.norm_shares:.2f}/"
        f"{total}/{level.factor or 0.0:.2f}",
        f"UsageRaw/Norm/Efctv={level.raw:.2f}/{level.norm_usage if above or assoc.user else 1.0:.2f}/{level.effective:.2f}",
        f"ParentAccount={f'{above.account}({above.assoc_id})' if above else ''} "
        f"Lineage={associations.lineage(site.accounting, assoc)} DefAssoc={'Yes' if assoc.is_default else 'No'}",
        f"GrpJobs={_limit(limits.grp_jobs)}({load.running}) GrpJobsAccrue={_limit(limits.grp_jobs_accrue)}({load.accruing})",
        f"GrpSubmitJobs={_limit(limits.grp_submit)}({load.submitted}) GrpWall={_limit(limits.grp_wall)}({load.wall_s / 60:.2f})",
        "GrpTRES=" + _against(limits.grp_tres, {n: int(_whole(n, c)) for n, c in load.tres.items()}, order),
        "GrpTRESMins=" + _against(limits.grp_tres_mins, used, order),
        "GrpTRESRunMins=" + _against(limits.grp_tres_run_mins, minutes, order),
        f"MaxJobs={_set(limits.max_jobs, load.running)} MaxJobsAccrue={_set(limits.max_jobs_accrue, load.accruing)} "
        f"MaxSubmitJobs={_set(limits.max_submit, load.submitted)} MaxWallPJ={_plain(limits.max_wall)}",
        "MaxTRESPJ=" + show_tres(limits.max_tres_per_job, order),
        "MaxTRESPN=" + show_tres(limits.max_tres_per_node, order),
        "MaxTRESMinsPJ=" + show_tres(limits.max_tres_mins_per_job, order),
        "MinPrioThresh=",
        f"Comment={assoc.comment or '(null)'}",
    ]  # fmt: skip


def _whole(name: str, amount: float) -> float:
    return amount / 1000 if is_gpu(name) else amount


def _limit(value: int | None) -> str:
    return "N" if value is None else str(value)


def _plain(value: int | None) -> str:
    return "" if value is None else str(value)


def _set(value: int | None, own: int) -> str:
    return "" if value is None else f"{value}({own})"


def _against(limits: Tres, own: Mapping[str, int], order: Mapping[str, int]) -> str:
    """`cpu=N(4),mem=100(0)`: every TRES that is counted."""
    known = dict(limits)
    parts = []
    for name in order:
        bound = f"{int(_whole(name, count(limits, name)))}" if name in known else "N"
        parts.append(f"{name}={bound}({own.get(name, 0)})")
    return ",".join(parts)


def _loads(site: Site) -> dict[int, Load]:
    """By association, each with what is below it."""
    accounting = site.accounting
    known = associations.index(accounting)
    found: dict[int, Load] = {}

    def above(assoc: Assoc) -> Iterator[Load]:
        for each in (assoc, *associations.ancestors(accounting, assoc)):
            yield found.setdefault(each.assoc_id, Load())

    for job in site.jobs():
        assoc = known.by_id.get(job.spec.assoc_id)
        if assoc is None or job.is_finished:
            continue
        for load in above(assoc):
            _add(load, job)
    for row in site.usage():
        assoc = known.by_id.get(row.assoc_id)
        if assoc is None:
            continue
        for load in above(assoc):
            load.wall_s += row.wall_s
            for name, amount in row.raw:
                load.used[name] = load.used.get(name, 0.0) + amount
    return found


def _add(load: Load, job: Job) -> None:
    tasks = max(1, arrays.count(job.tasks))
    load.submitted += tasks
    if job.state is JobState.PENDING:
        load.accruing += tasks if job.accrue_time is not None else 0
    elif job.allocation is not None:
        load.running += 1
        for name, amount in job.allocation.tres:
            load.tres[name] = load.tres.get(name, 0) + amount
