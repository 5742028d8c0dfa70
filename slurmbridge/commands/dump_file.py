"""How is a `sacctmgr dump` file written and read? Lines of `Kind - 'name':Option=value:Option='text'`.

Follows sacctmgr(1), "Flat file dump and load". Colons and equals signs inside quotes are text. The words after a name
are those of `sacctmgr modify`; what is not set is not written, so that it stays inherited when the file is loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from slurmbridge.commands import quotas
from slurmbridge.lang.tres import render_count
from slurmbridge.model.accounts import Accounting, Assoc, Limits, Qos
from slurmbridge.model.tres import Tres
from slurmbridge.submit import associations

SHARES_OF_PARENT: Final = 2147483647
"""How the file writes Fairshare=parent."""
KINDS: Final = ("Cluster", "Parent", "Account", "User", "QOS")
HEAD: Final = """\
# Accounting entities of one cluster, as `sacctmgr dump` writes and `sacctmgr load` reads them.
# First every QOS, then the cluster; each `Parent` line says under which account the lines below it belong.
# Words after a name may be left out and stand in any order, with the meaning they have in `sacctmgr modify`.
"""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line that says something. `options`: (word as written, value without quotes), with its text for messages."""

    number: int
    kind: str
    name: str
    options: tuple[tuple[str, str, str], ...] = ()  # (word, value, as written)


class Misformed(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    text: str


def read(text: str) -> Iterator[Line | Misformed]:
    """Every line but blank ones and remarks, in order."""
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        head, dash, rest = line.partition("-")
        kind = next((each for each in KINDS if each.lower() == head.strip().lower()), None)
        if kind is None or not dash:
            yield Misformed(number=number, text=line)
            continue
        name, *parts = _split(rest.strip())
        options = []
        for part in filter(None, parts):
            word, equals, value = part.partition("=")
            if not equals:
                yield Misformed(number=number, text=line)
                break
            options.append((word, _unquoted(value), part))
        else:
            yield Line(number=number, kind=kind, name=_unquoted(name), options=tuple(options))


def _split(text: str) -> list[str]:
    """At colons outside quotes."""
    parts, start, quote = [], 0, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == ":":
            parts.append(text[start:place])
            start = place + 1
    parts.append(text[start:])
    return parts


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"" else text


# ---- writing ----


def write(accounting: Accounting, cluster: str) -> tuple[list[str], list[str]]:
    """(QOS lines and the cluster's, the lines of the tree): what `sacctmgr dump` repeats on stderr, too."""
    known = associations.index(accounting)
    head = [_line("QOS", qos.name, _qos_options(qos)) for qos in sorted(accounting.qos, key=lambda each: each.qos_id)]
    root = known.assocs.get((associations.ROOT, "", ""))
    head.append(_line("Cluster", cluster, _assoc_options(root) if root is not None else []))
    lines: list[str] = []
    for _depth, assoc in associations.tree(accounting):
        if assoc.user:
            continue
        users, children = known.users_of.get(assoc.account, ()), known.children_of.get(assoc.account, ())
        if not users and not children:
            continue
        lines.append(_line("Parent", assoc.account, []))
        lines += [_line("User", user.user, [*_user_options(accounting, user), *_assoc_options(user)]) for user in users]
        for child in children:
            account = known.accounts.get(child.account)
            own = [("Description", account.description), ("Organization", account.organization)] if account else []
            lines.append(
                _line("Account", child.account, [*((k, _quoted(v)) for k, v in own if v), *_assoc_options(child)])
            )
    return head, lines


def _line(kind: str, name: str, options: list[tuple[str, str]]) -> str:
    return f"{kind} - {_quoted(name)}" + "".join(f":{word}={value}" for word, value in options)


def _quoted(text: str) -> str:
    return f'"{text}"' if "'" in text else f"'{text}'"


def _tres(tres: Tres) -> str:
    shown = []
    for name, count in sorted(tres):
        text = render_count(name, count)
        shown.append(f"{name}={text}")
    return ",".join(shown)


def _present(rows: list[tuple[str, object]]) -> list[tuple[str, str]]:
    """Without what is not set; TRES as text."""
    found = []
    for word, value in rows:
        if value is None or value == () or value == "":
            continue
        found.append((word, _tres(value) if isinstance(value, tuple) else str(value)))
    return found


def _user_options(accounting: Accounting, assoc: Assoc) -> list[tuple[str, str]]:
    user = associations.index(accounting).users.get(assoc.user)
    rows: list[tuple[str, str]] = [("Partition", assoc.partition)]
    if user is not None:
        rows.append(("DefaultAccount", user.default_account))
        rows.append(("DefaultWCKey", user.default_wckey))
        rows.append(("AdminLevel", "" if user.admin_level == "None" else user.admin_level))
    rows.append(("Coordinator", ",".join(associations.coordinated(accounting, assoc.user))))
    rows.append(("WCKeys", ",".join(key.name for key in accounting.wckeys if key.user == assoc.user)))
    rows.append(("Comment", assoc.comment))
    return [(word, _quoted(value)) for word, value in rows if value]


def _assoc_options(assoc: Assoc) -> list[tuple[str, str]]:
    limits = assoc.limits
    rows: list[tuple[str, object]] = [
        ("DefaultQOS", _quoted(assoc.default_qos) if assoc.default_qos else None),
        ("Fairshare", SHARES_OF_PARENT if assoc.shares_parent else assoc.shares),
        *_grp_tres(limits, first="GrpTRESMins"),
        ("GrpJobs", limits.grp_jobs), ("GrpJobsAccrue", limits.grp_jobs_accrue), ("GrpSubmitJobs", limits.grp_submit),
        ("GrpWall", limits.grp_wall), ("MaxTRESMinsPerJob", limits.max_tres_mins_per_job),
        ("MaxTRESPerJob", limits.max_tres_per_job), ("MaxTRESPerNode", limits.max_tres_per_node),
        ("MaxJobs", limits.max_jobs), ("MaxJobsAccrue", limits.max_jobs_accrue), ("MaxSubmitJobs", limits.max_submit),
        ("MaxWallDurationPerJob", limits.max_wall), ("Priority", assoc.priority),
        ("QOS", None if assoc.qos is None else _quoted(",".join(sorted(assoc.qos)))),
    ]  # fmt: skip
    return [*_present(rows), *quotas.dump_words(assoc)]


def _grp_tres(limits: Limits, first: str) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [
        ("GrpTRES", limits.grp_tres), ("GrpTRESMins", limits.grp_tres_mins),
        ("GrpTRESRunMins", limits.grp_tres_run_mins),
    ]  # fmt: skip
    return rows if first == "GrpTRES" else [*rows[1:], rows[0]]


def _qos_options(qos: Qos) -> list[tuple[str, str]]:
    limits = qos.limits

    def text(value: str) -> str | None:
        return _quoted(value) if value else None

    rows: list[tuple[str, object]] = [
        ("Description", text(qos.description)), ("Flags", text(",".join(qos.flags))),
        ("GraceTime", qos.grace_time or None), ("GrpJobsAccrue", limits.grp_jobs_accrue), ("GrpJobs", limits.grp_jobs),
        ("GrpSubmitJobs", limits.grp_submit), *_grp_tres(limits, first="GrpTRES"), ("GrpWall", limits.grp_wall),
        ("LimitFactor", None if qos.limit_factor is None else f"{qos.limit_factor:f}"),
        ("MaxJobsPA", qos.max_jobs_per_account), ("MaxJobsPU", limits.max_jobs),
        ("MaxJobsAccruePA", qos.max_jobs_accrue_per_account), ("MaxJobsAccruePU", limits.max_jobs_accrue),
        ("MaxSubmitJobsPA", qos.max_submit_per_account), ("MaxSubmitJobsPU", limits.max_submit),
        ("MaxTRESMinsPerJob", limits.max_tres_mins_per_job), ("MaxTRESPerAccount", qos.max_tres_per_account),
        ("MaxTRESPerJob", limits.max_tres_per_job), ("MaxTRESPerNode", limits.max_tres_per_node),
        ("MaxTRESPerUser", qos.max_tres_per_user), ("MaxTRESRunMinsPerAccount", qos.max_tres_run_mins_per_account),
        ("MaxTRESRunMinsPerUser", qos.max_tres_run_mins_per_user), ("MaxWallDurationPerJob", limits.max_wall),
        ("MinPrioThresh", qos.min_prio_threshold), ("MinTRESPerJob", qos.min_tres_per_job),
        ("Preempt", text(",".join(sorted(qos.preempt)))),
        ("PreemptMode", None if qos.preempt_mode == "cluster" else text(qos.preempt_mode)),
        ("PreemptExemptTime", qos.preempt_exempt_time), ("Priority", qos.priority or None),
        ("UsageFactor", None if qos.usage_factor == 1.0 else f"{qos.usage_factor:f}"),
        ("UsageThreshold", None if qos.usage_threshold is None else f"{qos.usage_threshold:f}"),
        ("Preemptible", None if qos.preemptible is None else ("yes" if qos.preemptible else "no")),
    ]  # fmt: skip
    return _present(rows)
