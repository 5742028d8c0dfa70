"""What do the lines of a dump file make of the accounting entities, and what is said about it?

One `Loading` takes the lines in order and keeps a record of what is new and what changes, in sacctmgr's words.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands import sacctmgr_values as values
from slurmbridge.commands.accounting_edits import apply_to_assoc, apply_to_qos
from slurmbridge.commands.accounting_words import (
    ASSOC_WORDS,
    QOS_WORDS,
    Edit,
    Mistake,
    Word,
    find_word,
    is_word,
    known_tres,
    read_edit,
)
from slurmbridge.commands.dump_file import SHARES_OF_PARENT, Line
from slurmbridge.commands.load_report import LoadReport
from slurmbridge.commands.sacctmgr_add import admin_level
from slurmbridge.model.accounts import Account, Accounting, Assoc, Qos, User, Wckey
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.submit import association_changes as changes
from slurmbridge.submit import associations

_FAILED = " Problem with requests: Unspecified error"
_OWN = {
    "Account": (("Description", 1, "description"), ("Organization", 1, "organization")),
    "User": (
        ("AdminLevel", 2, "admin"), ("Coordinator", 2, "coordinator"), ("DefaultAccount", 8, "default_account"),
        ("DefaultWCKey", 8, "default_wckey"), ("Partition", 4, "partition"), ("WCKeys", 1, "wckeys"),
    ),
    "Cluster": (("Classification", 3, "classification"), ("Features", 3, "features"), ("Flags", 2, "flags")),
}  # fmt: skip


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Why a file is not loaded: lines for stderr."""

    lines: tuple[str, ...]


class Loading:
    """Takes lines; `accounting` is what they made so far."""

    def __init__(self, start: Accounting, config: ClusterConfig, cluster: str, *, clean: bool) -> None:
        self.accounting, self._config, self._order = start, config, known_tres(config)
        self.notes: list[tuple[str, str, str]] = []
        self._cluster, self._clean = cluster, clean
        self._parent = ""
        self._qos_names = [qos.name for qos in sorted(start.qos, key=lambda each: each.qos_id)]
        self.report = LoadReport(quotas.order(self._order, config))
        self._offices: list[tuple[Line, str, list[str]]] = []
        self._defaults: list[tuple[Line, str, str]] = []
        if cluster:
            self._begin()

    def expect(self, names: Sequence[str]) -> None:
        """QOS that the file will make: they may be named before their line."""
        self._qos_names += [name for name in names if name not in self._qos_names]

    def take(self, line: Line) -> Problem | None:
        """One line; the problem that ends it all."""
        if line.kind == "QOS":
            if self._cluster:
                text = " You need to specify all QOS before the 'Cluster - $NAME' in your file"
                return Problem(lines=(text, _FAILED))
            return self._qos(line)
        if line.kind == "Cluster":
            return self._of_cluster(line)
        if not self._cluster:
            return Problem(lines=(" You need to specify a cluster name first with 'Cluster - $NAME' in your file",))
        if line.kind == "Parent":
            self._parent = line.name.lower()
            if (self._parent, "", "") in associations.index(self.accounting).assocs:
                return None
            text = f"You need to add this parent ({line.name}) as a child before you can add children to it."
            return Problem(lines=(f" line({line.number}) {text}",))
        if not self._parent:
            self._parent = associations.ROOT
            self.report.say(
                " No parent given creating off root, If incorrect specify 'Parent - name' before any children in your file"
            )
        return self._account(line) if line.kind == "Account" else self._user(line)

    def without_default_qos(self) -> list[str]:
        """Complaint about associations whose default QOS they may not use."""
        bad = [
            assoc
            for assoc in self.accounting.assocs
            if assoc.default_qos and assoc.default_qos not in associations.effective_qos(self.accounting, assoc)
        ]
        if not bad:
            return []
        cluster = self._config.cluster_name[:10]
        return [
            "sacctmgr: error: ",
            " These associations don't have access to their default qos.",
            " Please give them access before they the default can be set to this.",
            *(f"  DefQOS = {a.default_qos:<10} C = {cluster:<10} A = {a.account:<20} U = {a.user:<9}" for a in bad),
            "",
        ]

    # ---- kinds of lines ----

    def _qos(self, line: Line) -> Problem | None:
        read = self._words(line, QOS_WORDS)
        if isinstance(read, Problem):
            return read
        edits, name = read[0], line.name.lower()
        before = associations.index(self.accounting).qos.get(name)
        if before is None:
            made = apply_to_qos(Qos(name=name, description=name), edits)
            self.accounting = changes.add_qos(self.accounting, made)
            source = values.source(self._config, self.accounting)
            set_words = {edit.word.name for edit in edits}
            unset = {name: "" for name in ("UsageFactor", "GraceTime") if name not in set_words}
            self.report.new("QOS", dict(values.qos_row(made, source)) | unset)
            self.notes.append(("Add QOS", name, ""))
            return None
        after = apply_to_qos(before, edits)
        self.report.compare("QOS", name, before, after, edits)
        if after != before:
            self.accounting = changes.edit_qos(self.accounting, {name}, lambda _: after)
            self.notes.append(("Modify QOS", name, ""))
        return None

    def _of_cluster(self, line: Line) -> Problem | None:
        name, own = line.name.lower(), self._config.cluster_name
        if name != own:
            text = f" Cluster '{name}' is not the cluster of this controller, which is '{own}'"
            return Problem(lines=(text, _FAILED))
        read = self._words(line, ASSOC_WORDS)
        if isinstance(read, Problem):
            return read
        edits, others = read
        if any(key != "flags" or value for key, value in others.items()):
            text = "sacctmgr: error: classification and features need several clusters; this is the only one"
            return Problem(lines=(text, _FAILED))
        self._begin()
        root = associations.index(self.accounting).assocs[(associations.ROOT, "", "")]
        self._edit(root, edits, "Cluster", name)
        return None

    def _begin(self) -> None:
        """The cluster is known: it counts as added, and a clean load drops what hangs on it."""
        name = self._config.cluster_name
        self._cluster = self.report.cluster = name
        if name not in self.accounting.clusters:
            self.accounting = changes.add_cluster(self.accounting, name)
            self.notes.append(("Add Clusters", name, ""))
        if self._clean:
            self._clean = False
            kept = tuple(
                assoc
                for assoc in self.accounting.assocs
                if assoc.account == associations.ROOT and assoc.user in ("", associations.ROOT)
            )
            kept = tuple(Assoc(assoc_id=a.assoc_id, account=a.account, user=a.user, qos=a.qos) for a in kept)
            self.accounting = changes.edit_users(
                replace(self.accounting, assocs=kept),
                [user.name for user in self.accounting.users if user.name != associations.ROOT],
                lambda user: replace(user, default_account=""),
            )
            self.notes.append(("Remove Associations", name, "all"))

    def _account(self, line: Line) -> Problem | None:
        read = self._words(line, ASSOC_WORDS)
        if isinstance(read, Problem):
            return read
        edits, others = read
        name, known = line.name.lower(), associations.index(self.accounting)
        record, assoc = known.accounts.get(name), known.assocs.get((name, "", ""))
        if record is None:
            inherited = name if self._parent == associations.ROOT else self._parent
            record = Account(
                name=name,
                description=others.get("description", name),
                organization=others.get("organization", inherited),
            )
            self.accounting = replace(self.accounting, accounts=(*self.accounting.accounts, record))
            self.report.new("Accounts", values.account_row(record))
            self.notes.append(("Add Accounts", name, f"description='{record.description}'"))
        else:
            after = replace(record, **others)
            for key in ("description", "organization"):
                if getattr(after, key) != getattr(record, key):
                    self.report.changed(key, "Account", name, getattr(record, key), getattr(after, key))
            self.accounting = changes.edit_accounts(self.accounting, {name}, lambda _: after)
        if assoc is None:
            made = apply_to_assoc(Assoc(assoc_id=0, account=name, parent=self._parent), edits)
            self._add_assoc(made, edits, "Account assocs", name)
            return None
        if assoc.parent != self._parent and name != associations.ROOT:
            if self._parent in associations.descendants(self.accounting, name):
                text = f" line({line.number}) Account {name} cannot be put below its own child {self._parent}"
                return Problem(lines=(text, _FAILED))
            self.report.changed("Parent", "Account", name, assoc.parent, self._parent)
            self.accounting = changes.reparent(self.accounting, name, self._parent)
            assoc = associations.index(self.accounting).assocs[(name, "", "")]
        self._edit(assoc, edits, "Account", name)
        return None

    def _user(self, line: Line) -> Problem | None:
        read = self._words(line, ASSOC_WORDS)
        if isinstance(read, Problem):
            return read
        edits, others = read
        name = line.name.lower()
        partitions = [part.lower() for part in others.get("partition", "").split(",")]
        for partition in partitions:
            key = (self._parent, name, partition)
            assoc = associations.index(self.accounting).assocs.get(key)
            if assoc is not None:
                self._edit(assoc, edits, "User", name)
                continue
            bare = Assoc(assoc_id=0, account=self._parent, user=name, partition=partition)
            self._add_assoc(apply_to_assoc(bare, edits), edits, "User assocs", f"{name} in {self._parent}")
        return self._user_record(line, name, others)

    def _user_record(self, line: Line, name: str, others: dict[str, str]) -> Problem | None:
        known = associations.index(self.accounting)
        level = admin_level(others["admin"]) if "admin" in others else None
        if "admin" in others and level is None:
            return _bad(line, f"AdminLevel={others['admin']}")
        default = others.get("default_account", "").lower()
        record = known.users.get(name)
        if record is None:
            made = User(name=name, default_account=default or self._parent, admin_level=level or "None")
            made = replace(made, default_wckey=others.get("default_wckey", ""))
            self.accounting = changes.put_user(self.accounting, made)
            row = values.user_row(made, values.source(self._config, self.accounting))
            row |= {"Admin": level or "Not Set", "Coord Accounts": others.get("coordinator", "")}
            self.report.new("Users", row)
            self.notes.append(("Add Users", name, f"admin_level={level}" if level else ""))
        else:
            after = record
            if default and default != record.default_account:
                if record.default_account:
                    self.report.changed("Default Account", "User", name, record.default_account, default)
                after = replace(after, default_account=default)
            elif not record.default_account:
                after = replace(after, default_account=self._parent)
            if level is not None and level != record.admin_level:
                self.report.changed("Admin Level", "User", name, record.admin_level, level)
                after = replace(after, admin_level=level)
            if "default_wckey" in others:
                after = replace(after, default_wckey=others["default_wckey"])
            if after != record:
                self.accounting = changes.put_user(self.accounting, after)
        for key in filter(None, others.get("wckeys", "").split(",")):
            if not any(one.name == key and one.user == name for one in self.accounting.wckeys):
                self.accounting = replace(self.accounting, wckeys=(*self.accounting.wckeys, Wckey(name=key, user=name)))
        if default:
            self._defaults.append((line, name, default))
        self._offices.append((line, name, [each.lower() for each in others.get("coordinator", "").split(",") if each]))
        return None

    def finish(self) -> Problem | None:
        """After the last line: what may name accounts that come further down."""
        for line, name, account in self._defaults:
            if not any(a.account == account for a in associations.index(self.accounting).accounts_of.get(name, ())):
                text = f" line({line.number}) User '{name}' has no association with its default account '{account}'"
                return Problem(lines=(text, _FAILED))
        if self._defaults:
            self.accounting = changes.edit_users(self.accounting, (), lambda user: user)  # marks default associations
        for line, name, accounts in self._offices:
            problem = self._appoint(line, name, accounts)
            if problem is not None:
                return problem
        return None

    def _appoint(self, line: Line, name: str, accounts: list[str]) -> Problem | None:
        known = associations.index(self.accounting).accounts
        missing = [each for each in accounts if each not in known]
        if missing:
            text = f" line({line.number}) Coordinator '{name}' of account '{missing[0]}', which does not exist"
            return Problem(lines=(text, _FAILED))
        new = [each for each in accounts if name not in known[each].coordinators]
        if not new:
            return None
        if not self.report.is_new_user(name):
            self.report.say(f" Making User '{name}' coordinator for account(s) {','.join(new)}")
        self.accounting = changes.edit_accounts(
            self.accounting, new, lambda each: replace(each, coordinators=(*each.coordinators, name))
        )
        self.notes += [("Add Account Coordinators", account, name) for account in new]
        return None

    # ---- shared ----

    def _add_assoc(self, assoc: Assoc, edits: Sequence[Edit], kind: str, where: str) -> None:
        self.accounting = changes.add_assocs(self.accounting, [assoc])
        row = values.assoc_row(assoc, values.source(self._config, self.accounting, own_limits=True))
        row["ParentName"] = assoc.parent
        if not any(edit.word.field == "shares" for edit in edits):
            row["Share"] = ""
        self.report.new(kind, row)
        self.notes.append(("Add Associations", where, ""))

    def _edit(self, assoc: Assoc, edits: Sequence[Edit], kind: str, name: str) -> None:
        after = apply_to_assoc(assoc, edits)
        self.report.compare(kind, name, assoc, after, edits)
        if after != assoc:
            self.accounting = changes.edit_assocs(self.accounting, {assoc.assoc_id}, lambda _: after)
            self.notes.append(("Modify Associations", name, ""))

    def _words(self, line: Line, words: Sequence[Word]) -> tuple[list[Edit], dict[str, str]] | Problem:
        """The settings of a line: of the association or QOS, and of the record itself."""
        edits: list[Edit] = []
        others: dict[str, str] = {}
        pools: tuple[str, ...] = ()
        for word, value, written in line.options:
            name, operator = (word[:-1], word[-1]) if word[-1:] in ("+", "-") else (word, "=")
            mine = next((key for long, least, key in _OWN.get(line.kind, ()) if is_word(name, long, least)), None)
            if mine is not None:
                others[mine] = value
                continue
            found = find_word(words, name)
            if found is None and name.lower() == "pool" and words is ASSOC_WORDS:
                wrong = quotas.unknown_pools((value,), self._config) if value else []
                if wrong:
                    return _bad(line, written, *wrong)
                pools = (value,) if value else ()
                continue
            if found is None:
                return _bad(line, written)
            if found.name in quotas.WORDS and line.kind == "Cluster":
                return _bad(line, written, quotas.NOT_OF_ROOT)
            if found.kind == "shares" and value == str(SHARES_OF_PARENT):
                value = "parent"
            if found.kind == "exempt" and value.isdecimal():
                edits.append(Edit(word=found, operator="=", value=int(value)))
                continue
            edit = read_edit(found, operator, value, self._config, self._qos_names)
            if isinstance(edit, Mistake):
                return _bad(line, written, *(each.rstrip() for each in edit.lines))
            edits.append(replace(edit, pools=pools) if edit.word.name in quotas.WORDS else edit)
        return edits, others


def _bad(line: Line, written: str, *before: str) -> Problem:
    return Problem(lines=(*before, f" Unknown option: {written}", f" Problem with line({line.number})", _FAILED))
