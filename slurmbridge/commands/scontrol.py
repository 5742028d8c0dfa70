"""The scontrol command: which keyword is meant, and which module answers it?

Follows scontrol(1). Keywords and entities ignore case and may be shortened to the length that Slurm takes. Without a
keyword words are read from standard input, one command a line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from slurmbridge import SLURM_VERSION
from slurmbridge.commands import scontrol_jobs as jobs
from slurmbridge.commands import scontrol_show_other as other
from slurmbridge.commands import scontrol_update as updates
from slurmbridge.commands.effects import Alter, AlterOutcome, Call, Command, Print, Site
from slurmbridge.commands.listing import cluster_problem, structured_stop
from slurmbridge.commands.prompt import Prompt
from slurmbridge.commands.scontrol_json import print_json
from slurmbridge.commands.scontrol_refused import errnumstr, getaddrs, listpids, liststeps, not_offered, pidinfo, reboot
from slurmbridge.commands.scontrol_show import ENTITIES, show
from slurmbridge.commands.scontrol_view import Eyes, Flags, look
from slurmbridge.commands.scontrol_write_config import write_config
from slurmbridge.errors import SlurmErrno
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

VERSION = f"slurm-wlm {SLURM_VERSION}"
LEVELS = ("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4", "debug5")
OPTIONS = (
    Opt("all", "a"), Opt("details", "d"), Opt("help", "h"), Opt("hide"), Opt("clusters", "M", Arg.REQUIRED),
    Opt("cluster", "M", Arg.REQUIRED), Opt("future", "F"), Opt("oneliner", "o"), Opt("quiet", "Q"),
    Opt("uid", "u", Arg.REQUIRED), Opt("verbose", "v"), Opt("version", "V"), Opt("json", "", Arg.OPTIONAL),
    Opt("yaml", "", Arg.OPTIONAL), Opt("federation"), Opt("local"), Opt("sibling"), Opt("usage"),
    Opt("autocomplete", "", Arg.REQUIRED),
)  # fmt: skip
HELP = """\
Usage: scontrol [OPTION...] [COMMAND [WORD...]]

Options:
  -a, --all            show hidden partitions too
  -d, --details        show more of each record (twice: more still)
  -F, --future         show nodes in state FUTURE
  -h, --help           this text
      --hide           leave hidden partitions out
      --json, --yaml   listings in that format
  -M, --clusters=NAME  talk to that cluster
  -o, --oneliner       one record a line
  -Q, --quiet          print fewer messages
  -u, --uid=USER       update jobs as this user
  -v, --verbose        say more
  -V, --version        print the version

Commands:
  show ENTITY [ID]     aliases, assoc_mgr, config, daemons, hostlist, hostlistsorted, hostnames, job, licenses, node,
                       partition, reservation, step, topology
  update KEY=VALUE...  change a job, node, partition or reservation
  create, delete       partitions and reservations
  hold, uhold, release, requeue, requeuehold, suspend, resume JOB...
  top JOB...           put a job before the user's others
  notify JOB TEXT      a message to a running job
  wait_job JOB         until its nodes are ready
  write batch_script JOB [FILE|-]
  completing, ping, reconfigure, setdebug LEVEL, version, quit
"""


class Keyword(msgspec.Struct, frozen=True, kw_only=True):
    """`least`: shortest beginning. `words`: fewest and most words behind the keyword (None: any)."""

    name: str
    least: int
    run: Callable[[Eyes, Sequence[str]], Command]
    fewest: int = 0
    most: int | None = None


def main(call: Call, site: Site) -> Command:
    parsed = getopt.parse(OPTIONS, call.argv)
    if isinstance(parsed, UsageError):
        yield Print("".join(line + "\n" for line in parsed.lines), 2)
        return 1
    flags = _flags_of_environment(call)
    if call.env.get("SLURM_CLUSTERS") and not any(given.key.startswith("cluster") for given in parsed.options):
        problem = cluster_problem("scontrol", call.env["SLURM_CLUSTERS"], site)
        if problem:
            yield Print("".join(line + "\n" for line in problem), 2)
            return 1
    for given in parsed.options:
        name, value = given.key, given.value
        if name == "help":
            yield Print(HELP)
            return 0
        if name == "usage":
            yield Print("Usage: scontrol [-adFhoQvV] [--json] [--yaml] [-M NAME] [-u USER] [COMMAND [WORD...]]\n")
            return 0
        if name == "version":
            yield Print(VERSION + "\n")
            return 0
        if name in ("clusters", "cluster"):
            problem = cluster_problem("scontrol", value or "", site)
            if problem:
                yield Print("".join(line + "\n" for line in problem), 2)
                return 1
        if name in ("json", "yaml"):
            stop = structured_stop("scontrol", name, value)
            if stop is not None:
                yield from stop.effects()
                return stop.exit_code
        if name == "uid" and not _known_user(value or "", site):
            yield Print(f'scontrol: error: --uid="{value}" invalid\n', 2)
            return 1
        _set_flag(flags, name, value)
    eyes = look(call, site, flags)
    if parsed.operands:
        return (yield from command(eyes, parsed.operands))
    return (yield from _interactive(eyes))


def _known_user(text: str, site: Site) -> bool:
    return text.isdecimal() or site.user_id(text) is not None


def _flags_of_environment(call: Call) -> Flags:
    return Flags(all="SCONTROL_ALL" in call.env, future="SCONTROL_FUTURE" in call.env)


def _set_flag(flags: Flags, name: str, value: str | None) -> None:
    if name == "details":
        flags.details += 1
    elif name == "verbose":
        flags.verbose += 1
    elif name == "oneliner":
        flags.one_line = True
    elif name == "hide":
        flags.all = False
    elif name in ("all", "future", "quiet"):
        setattr(flags, name, True)
    elif name in ("json", "yaml"):
        setattr(flags, name, value or "")
    elif name == "uid":
        flags.uid = value


def _interactive(eyes: Eyes) -> Command:
    """One command a line until the input ends or `quit`; 1 when one of them failed."""
    code, prompt = 0, Prompt("scontrol", eyes.call)
    while True:
        words = yield from prompt.next()
        if words is None:
            return code
        code = (yield from command(eyes, words)) or code
        if len(words) == 1 and _is_end(words[0]):
            return code


def _is_end(word: str) -> bool:
    text = word.lower()
    return any(len(text) >= least and name.startswith(text) for name, least in (("exit", 1), ("quit", 4)))


def command(eyes: Eyes, words: Sequence[str]) -> Command:
    """One keyword with its words."""
    shown = words[0]
    word = shown.lower()
    for keyword in KEYWORDS:
        if len(word) >= keyword.least and keyword.name.startswith(word):
            break
    else:
        yield from jobs.complain(eyes, f"invalid keyword: {shown}")
        return 1
    rest = words[1:]
    if len(rest) < keyword.fewest:
        spaced = keyword.name in ("update", "create", "delete")
        yield from jobs.complain(
            eyes, f"too few arguments for {shown} keyword" if spaced else f"too few arguments for keyword:{shown}"
        )
        return 1
    if keyword.most is not None and len(rest) > keyword.most:
        is_old = keyword.name in ("verbose", "version")
        yield from jobs.complain(
            eyes, f"too many arguments for {shown} keyword" if is_old else f"too many arguments for keyword:{shown}"
        )
        return 1
    return (yield from keyword.run(eyes, rest))


# ---- small keywords ----


def _verb(name: str) -> Callable[[Eyes, Sequence[str]], Command]:
    def run(eyes: Eyes, words: Sequence[str]) -> Command:
        return (yield from jobs.change_jobs(eyes, name, words))

    return run


def _top(eyes: Eyes, words: Sequence[str]) -> Command:
    return (yield from jobs.top(eyes, words[0]))


def _notify(eyes: Eyes, words: Sequence[str]) -> Command:
    return (yield from jobs.notify(eyes, words[0], " ".join(words[1:])))


def _wait(eyes: Eyes, words: Sequence[str]) -> Command:
    return (yield from jobs.wait_job(eyes, words[0]))


def _write(eyes: Eyes, words: Sequence[str]) -> Command:
    what = words[0].lower()
    if "batch_script".startswith(what) and len(what) >= 2:
        if len(words) == 1:
            return 0
        return (yield from jobs.write_script(eyes, words[1:]))
    if what == "config":
        return (yield from write_config(eyes, words[1:]))
    yield from jobs.complain(eyes, f"invalid write argument:{words[0]}")
    return 1


def _ping(eyes: Eyes, words: Sequence[str]) -> Command:
    if eyes.flags.json is not None or eyes.flags.yaml is not None:
        return (yield from print_json(eyes, "pings", None))
    return (yield from other.ping(eyes))


def _completing(eyes: Eyes, words: Sequence[str]) -> Command:
    return (yield from other.completing(eyes))


def _reconfigure(eyes: Eyes, words: Sequence[str]) -> Command:
    outcome: AlterOutcome = yield Alter(kind="reconfigure")
    if outcome.errno is None:
        return 0
    denied = outcome.errno in (SlurmErrno.ACCESS_DENIED, SlurmErrno.USER_ID_MISSING)
    text = SlurmErrno.USER_ID_MISSING.text if denied else outcome.detail or outcome.errno.text
    yield from jobs.complain(eyes, f"slurm_reconfigure error:{text}")
    return 1


def _setdebug(eyes: Eyes, words: Sequence[str]) -> Command:
    level = words[0].lower()
    if not (level in LEVELS or (level.isdecimal() and int(level) < len(LEVELS))):
        yield from jobs.complain(eyes, f"invalid debug level: {words[0]}")
        return 1
    outcome: AlterOutcome = yield Alter(kind="debug", fields=(("level", level),))
    if outcome.errno is not None:
        yield from jobs.complain(eyes, "slurm_set_debug_level error:Permission denied")
    return int(outcome.errno is not None)


def _shutdown(eyes: Eyes, words: Sequence[str]) -> Command:
    if not eyes.site.is_admin(eyes.call.uid):
        yield from jobs.complain(eyes, f"slurm_shutdown error:{SlurmErrno.USER_ID_MISSING.text}")
        return 1
    outcome: AlterOutcome = yield Alter(kind="shutdown")
    if outcome.errno is not None:
        yield from jobs.complain(eyes, f"slurm_shutdown error:{outcome.errno.text}")
    return int(outcome.errno is not None)


def _token(eyes: Eyes, words: Sequence[str]) -> Command:
    """JSON web tokens, for slurmrestd alone, are not offered (`slurmbridge token` makes ours); checked as Slurm does."""
    for word in words:
        key, equals, value = word.partition("=")
        if key.lower() == "lifespan" and equals:
            if value.lower() not in ("infinite", "unlimited") and not value.isdecimal():
                yield Print(f'scontrol: error: Invalid numeric value "{value}" for lifespan.\n', 2)
                return 1
        elif key.lower() == "username" and equals:
            if value != eyes.call.user and not eyes.site.is_admin(eyes.call.uid):
                yield Print("scontrol: error: slurm_fetch_token: error with request: Invalid user id\n", 2)
                return 1
        else:
            yield from jobs.complain(eyes, f"Invalid option: `{word}`")
            return 1
    text = SlurmErrno.NOT_SUPPORTED.text
    yield Print(f"scontrol: error: slurm_fetch_token: error with request: {text}\n", 2)
    return 1


def _switch(name: str, value: bool) -> Callable[[Eyes, Sequence[str]], Command]:
    """`oneliner`, `details` and so on as keywords: settings of an interactive session."""

    def run(eyes: Eyes, words: Sequence[str]) -> Command:
        setattr(eyes.flags, name, int(value) if name in ("details", "verbose") else value)
        yield from ()
        return 0

    return run


def _version(eyes: Eyes, words: Sequence[str]) -> Command:
    yield Print(VERSION + "\n")
    return 0


def _help(eyes: Eyes, words: Sequence[str]) -> Command:
    yield Print(HELP)
    return 0


def _nothing(eyes: Eyes, words: Sequence[str]) -> Command:
    yield from ()
    return 0


KEYWORDS: tuple[Keyword, ...] = (
    Keyword(name="all", least=1, run=_switch("all", True)),
    Keyword(name="cancel_reboot", least=3, run=not_offered("cancel_reboot", "nodes are not rebooted"), fewest=1),
    Keyword(name="completing", least=3, run=_completing, most=0),
    Keyword(name="cluster", least=2, run=_nothing),
    Keyword(name="create", least=2, run=updates.create, fewest=1),
    Keyword(name="details", least=1, run=_switch("details", True), most=0),
    Keyword(name="exit", least=1, run=_nothing, most=0),
    Keyword(name="errnumstr", least=2, run=errnumstr),
    Keyword(name="fsdampeningfactor", least=1, run=not_offered("fsdampeningfactor", "Fair Tree has no dampening")),
    Keyword(name="help", least=2, run=_help, most=0),
    Keyword(name="hide", least=2, run=_switch("all", False)),
    Keyword(name="hold", least=4, run=_verb("hold"), fewest=1),
    Keyword(name="holdu", least=5, run=_verb("uhold"), fewest=1),
    Keyword(name="listpids", least=1, run=listpids, most=2),
    Keyword(name="listjobs", least=5, run=liststeps),
    Keyword(name="liststeps", least=5, run=liststeps),
    Keyword(name="getaddrs", least=4, run=getaddrs),
    Keyword(name="notify", least=1, run=_notify, fewest=2),
    Keyword(name="oneliner", least=1, run=_switch("one_line", True), most=0),
    Keyword(name="pidinfo", least=3, run=pidinfo),
    Keyword(name="ping", least=3, run=_ping, most=0),
    Keyword(name="power", least=3, run=not_offered("power", "nodes are not switched on or off"), fewest=1),
    Keyword(name="quiet", least=4, run=_switch("quiet", True), most=0),
    Keyword(name="quit", least=4, run=_nothing, most=0),
    Keyword(name="reboot_nodes", least=3, run=reboot),
    Keyword(name="reconfigure", least=3, run=_reconfigure, most=0),
    Keyword(name="release", least=3, run=_verb("release"), fewest=1),
    Keyword(name="requeue", least=3, run=_verb("requeue"), fewest=1),
    Keyword(name="requeuehold", least=11, run=_verb("requeuehold"), fewest=1),
    Keyword(name="resume", least=3, run=_verb("resume"), fewest=1),
    Keyword(
        name="setdebugflags", least=9, run=not_offered("setdebugflags", "the daemon has log levels only"), fewest=1
    ),
    Keyword(name="setdebug", least=2, run=_setdebug, fewest=1, most=1),
    Keyword(name="schedloglevel", least=3, run=not_offered("schedloglevel", "the daemon has one log"), fewest=1),
    Keyword(name="show", least=3, run=show, fewest=1),
    Keyword(name="shutdown", least=8, run=_shutdown),
    Keyword(name="suspend", least=2, run=_verb("suspend"), fewest=1),
    Keyword(name="takeover", least=8, run=not_offered("takeover", "there is one controller")),
    Keyword(name="token", least=3, run=_token),
    Keyword(name="top", least=3, run=_top, fewest=1, most=1),
    Keyword(name="uhold", least=5, run=_verb("uhold"), fewest=1),
    Keyword(name="update", least=1, run=updates.update, fewest=1),
    Keyword(name="delete", least=1, run=updates.delete, fewest=1),
    Keyword(name="verbose", least=4, run=_switch("verbose", True), most=0),
    Keyword(name="version", least=4, run=_version, most=0),
    Keyword(name="wait_job", least=2, run=_wait, fewest=1, most=1),
    Keyword(name="write", least=5, run=_write, fewest=1, most=3),
)
__all__ = ["ENTITIES", "KEYWORDS", "main"]
