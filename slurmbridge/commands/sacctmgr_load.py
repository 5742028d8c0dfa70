"""`sacctmgr load [clean] FILE`: entities from a file of `sacctmgr dump`, all of them or none.

Follows sacctmgr(1), "Flat file dump and load". What a line names is made, or changed where the line says otherwise;
what no line names stays. `clean`: every account and association but root's goes first. A file with a mistake changes
nothing (Slurm keeps what came before it).
"""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge.commands import dump_file
from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Command, FileData, ReadFile
from slurmbridge.commands.loading import Loading, Problem
from slurmbridge.commands.sacctmgr_commit import Context, active_jobs, active_lines, agree, commit, err, out
from slurmbridge.errors import system_text
from slurmbridge.model.accounts import Accounting
from slurmbridge.submit import associations

_FAILED = " Problem with requests: Unspecified error"
_ACTIVE = " Error with request: Job(s) active, cancel job(s) before remove"
_LIMIT = 64 * 1024 * 1024


def load(context: Context, argv: Sequence[str]) -> Command:
    """The whole verb."""
    clean, cluster, name = False, "", ""
    for word in argv:
        key, equals, value = word.partition("=")
        if not equals and is_word(word, "clean", 3):
            clean = True
        elif equals and is_word(key, "Cluster", 2):
            cluster = value.lower()
        elif equals and not is_word(key, "File", 1):
            yield err(f" Unknown option: {word}", _FAILED)
            return 1
        elif name:
            yield err(f" File name already set to {name}", _FAILED)
            return 1
        else:
            name = (value if equals else word).strip("'\"")
    if not argv or (not name and not any("=" in word for word in argv)):
        yield err(" No filename given, specify one with file=''")
        return 1
    given: FileData = (yield ReadFile(name=name, limit=_LIMIT)) if name else FileData(errno=2)
    if given.errno:
        yield err(f' Unable to read "{argv[0]}": {system_text(given.errno)}')
        return 1
    if not context.is_operator:
        yield err(" Your user does not have sufficient privileges to load files.")
        return 1
    code: int = yield from _load(context, given.data.decode("utf-8", "surrogateescape"), cluster, clean)
    return code


def _load(context: Context, text: str, cluster: str, clean: bool) -> Command:
    site = context.site
    if clean:
        jobs = active_jobs(site, lambda job: job.spec.account != associations.ROOT)
        if jobs:
            yield err(_ACTIVE, *active_lines(site, jobs, "  "))
            return 1
    start = site.accounting
    loading = Loading(start, site.config, cluster, clean=clean)
    problem = _read(loading, text)
    yield out(*loading.report.lines())
    if problem is not None:
        yield err(*problem.lines)
        return 1
    if loading.accounting == start:
        return 0
    strangers = loading.without_default_qos()
    if strangers:
        yield err(*strangers)
        return 1
    if not (yield from agree(context)):
        return 0
    notes = [context.note(action, where, info) for action, where, info in loading.notes]
    if loading.accounting.qos != start.qos and not context.is_admin:
        yield err(" Problem adding QOS: Access/permission denied")
        return 1

    def change(now: Accounting) -> Accounting:
        """Again from what somebody else made of the entities meanwhile."""
        again = Loading(now, site.config, cluster, clean=clean)
        return now if _read(again, text) is not None else again.accounting

    return 0 if (yield from commit(context, change, notes)) else 1


def _read(loading: Loading, text: str) -> Problem | None:
    """Every line of the file in turn, up to the first mistake."""
    lines = list(dump_file.read(text))
    loading.expect([line.name.lower() for line in lines if isinstance(line, dump_file.Line) and line.kind == "QOS"])
    for line in lines:
        if isinstance(line, dump_file.Misformed):
            return Problem(lines=(f" Misformatted line({line.number}): {line.text}", "", _FAILED))
        problem = loading.take(line)
        if problem is not None:
            return problem
    return loading.finish()
