"""sacctmgr(1): the accounting entities. Reads the options and the verb; the verbs are in the modules beside this one.

Interactive use is line by line: with no verb, commands are read from standard input until it ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from slurmbridge.commands.accounting_words import is_word
from slurmbridge.commands.effects import Call, Command, Print, Site
from slurmbridge.commands.listing import VERSION
from slurmbridge.commands.prompt import Prompt
from slurmbridge.commands.sacctmgr_add import add
from slurmbridge.commands.sacctmgr_archive import archive
from slurmbridge.commands.sacctmgr_commit import Context, err
from slurmbridge.commands.sacctmgr_delete import delete
from slurmbridge.commands.sacctmgr_dump import dump
from slurmbridge.commands.sacctmgr_fields import Style
from slurmbridge.commands.sacctmgr_load import load
from slurmbridge.commands.sacctmgr_modify import modify
from slurmbridge.commands.sacctmgr_show import Options, show
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

OPTIONS: Final = getopt.OptTable(
    (
        Opt("associations", "s"),
        Opt("help", "h"),
        Opt("usage"),
        Opt("immediate", "i"),
        Opt("json", "", Arg.OPTIONAL),
        Opt("yaml", "", Arg.OPTIONAL),
        Opt("noheader", "n"),
        Opt("oneliner", "o"),
        Opt("parsable", "p"),
        Opt("parsable2", "P"),
        Opt("quiet", "Q"),
        Opt("readonly", "r"),
        Opt("verbose", "v"),
        Opt("version", "V"),
        Opt("autocomplete", "", Arg.REQUIRED),
    )
)
VERBS: Final = (
    ("add", 3, "add"), ("archive", 3, "archive"), ("clear", 2, "clear"), ("create", 2, "add"), ("delete", 3, "delete"),
    ("dump", 2, "dump"), ("exit", 1, "exit"), ("help", 2, "help"), ("list", 3, "show"), ("load", 2, "load"),
    ("modify", 1, "modify"), ("ping", 1, "ping"), ("quit", 4, "exit"), ("reconfigure", 3, "reconfigure"),
    ("remove", 3, "delete"), ("show", 3, "show"), ("shutdown", 8, "shutdown"), ("verbose", 4, "verbose"), ("version", 4, "version"),
)  # fmt: skip
_CHANGING: Final = ("add", "delete", "modify", "load", "archive", "clear")
_NEEDS: Final = {
    "clear": (("stats",), 'No valid entity in list command\nInput line must include "Stats"\n'),
}
_MISSING: Final = {
    "clear": "the store keeps no statistics of requests",
    "reconfigure": "scontrol reconfigure reads the configuration again",
    "shutdown": "slurmbridge down stops the daemon, and with it this",
}
HELP: Final = """\
sacctmgr [<OPTION>] [<COMMAND>]
    Valid <OPTION> values are:
     -h or --help: this text
     -i or --immediate: commit changes without a question
     --json[=data_parser], --yaml[=data_parser]: users, accounts, associations, QOS, TRES, clusters and wckeys as a document
     -n or --noheader: no heading above the rows
     -o or --oneliner: accepted; every record is one line anyway
     -p or --parsable: columns end in '|'
     -P or --parsable2: columns are separated by '|'
     -Q or --quiet: dump does not repeat the file on stderr
     -r or --readonly: refuse to change anything
     -s or --associations: show the associations of users and accounts too
     -V or --version: print the version

  Valid <COMMAND> values are:
     add|create <ENTITY> <SPECS>
     delete|remove <ENTITY> where <SPECS>
     dump <CLUSTER> [file=<NAME>]: write accounts, users and QOS to a file
     list|show <ENTITY> [<SPECS>]
     load [clean] <FILE>: make what such a file names; clean: in place of what is there
     modify <ENTITY> where <SPECS> set <SPECS>
     ping, help, version

  <ENTITY>: account, association, cluster, configuration, coordinator, event, problem, qos, reservation, resource,
     runawayjobs, stats, transaction, tres, user, wckey
  <SPECS>: see sacctmgr(1) of Slurm; besides, DeservedTRES, OverQuotaWeight and QueuePriority of accounts and users,
     Preemptible=yes|no of a QOS.
"""


class Session(msgspec.Struct, frozen=True, kw_only=True):
    context: Context
    options: Options
    readonly: bool = False
    quiet: bool = False


def main(call: Call, site: Site) -> Command:
    parsed = getopt.parse(OPTIONS, call.argv)
    if isinstance(parsed, UsageError):
        yield err(*parsed.lines)
        return parsed.exit_code
    if parsed.has("help") or parsed.has("usage"):
        yield Print(HELP)
        return 0
    if parsed.has("version"):
        yield Print(VERSION + "\n")
        return 0
    separator = "|" if parsed.has("parsable") or parsed.has("parsable2") else ""
    last = [given.key for given in parsed.options if given.key.startswith("parsable")]
    style = Style(
        header=not parsed.has("noheader"), separator=separator, closing=bool(last) and last[-1] == "parsable"
    )  # fmt: skip
    session = Session(
        context=Context(call=call, site=site, immediate=parsed.has("immediate")),
        options=Options(
            style=style,
            with_assocs=parsed.has("associations"),
            document="yaml" if parsed.has("yaml") else "json" if parsed.has("json") else "",
        ),
        readonly=parsed.has("readonly"),
        quiet=parsed.has("quiet"),
    )
    if parsed.operands:
        code: int = yield from _run(session, parsed.operands)
        return code
    code = yield from _interactive(session)
    return code


def _run(session: Session, words: Sequence[str]) -> Command:
    """One command."""
    call, site = session.context.call, session.context.site
    verb = next((key for name, least, key in VERBS if is_word(words[0], name, least)), None)
    if verb is None:
        if is_word(words[0], "associations", 3):
            return 0  # the switch -s as a command: it matters in interactive use alone
        yield err(f"invalid keyword: {words[0]}")
        return 1
    if session.readonly and verb in _CHANGING:
        yield err("Can't run this command in readonly mode.")
        return 1
    rest = tuple(words[1:])
    if verb == "show":
        code = yield from show(call, site, session.options, rest)
        return code
    if verb in ("add", "modify", "delete"):
        code = yield from {"add": add, "modify": modify, "delete": delete}[verb](session.context, rest)
        return code
    if verb == "dump":
        code = yield from dump(session.context, rest, quiet=session.quiet)
        return code
    if verb == "load":
        code = yield from load(session.context, rest)
        return code
    if verb == "archive":
        code = yield from archive(session.context, rest)
        return code
    if verb in _NEEDS and not any(is_word(rest[0] if rest else "", entity, 2) for entity in _NEEDS[verb][0]):
        yield Print(_NEEDS[verb][1], 2)
        return 1
    if verb == "ping":
        yield Print(f"slurmdbd(primary) at {site.daemon_host} is UP\n")
    elif verb == "version":
        yield Print(VERSION + "\n")
    elif verb == "help":
        yield Print(HELP)
    elif verb == "shutdown" and not session.context.is_admin:
        yield err(" Problem shutting down server: Access/permission denied")
        return 1
    elif verb in _MISSING:
        yield err(f"sacctmgr: error: {verb} is not offered: {_MISSING[verb]}")
        return 1
    return 0


def _interactive(session: Session) -> Command:
    """One command a line until the input ends or `quit`; 1 when one of them failed."""
    code, prompt = 0, Prompt("sacctmgr", session.context.call)
    while True:
        words = yield from prompt.next()
        if words is None:
            return code
        if is_word(words[0], "exit", 1) or is_word(words[0], "quit", 4):
            return code
        code = (yield from _run(session, words)) or code
