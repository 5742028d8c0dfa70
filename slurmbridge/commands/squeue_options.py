"""What does a squeue command line ask for? Options and SQUEUE_* variables into one record.

Follows squeue(1). Order of precedence: command line, then environment. Mistakes come back as `Stop`: text and an exit
code, in squeue's words.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import Stop, is_number
from slurmbridge.commands.squeue_text import HELP, USAGE
from slurmbridge.errors import LangError
from slurmbridge.fields import jobs as job_fields
from slurmbridge.fields import states
from slurmbridge.fields import steps as step_fields
from slurmbridge.fields.letters import help_letters
from slurmbridge.lang import durations, hostlist
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R, _O = Arg.REQUIRED, Arg.OPTIONAL

# In the order in which an ambiguous beginning lists them.
OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("accounts", "A", _R), Opt("all", "a"), Opt("array", "r"), Opt("Format", "O", _R),
        Opt("format", "o", _R), Opt("federation"), Opt("help"), Opt("helpstate"), Opt("helpformat"), Opt("helpFormat"),
        Opt("hide"), Opt("iterate", "i", _R), Opt("jobs", "j", _O), Opt("json", "", _O), Opt("local"), Opt("long", "l"),
        Opt("licenses", "L", _R), Opt("cluster", "", _R, "clusters"), Opt("clusters", "M", _R), Opt("me"),
        Opt("name", "n", _R), Opt("noconvert"), Opt("node", "", _R, "nodelist"), Opt("nodes", "", _R, "nodelist"),
        Opt("nodelist", "w", _R), Opt("noheader", "h"), Opt("notme"), Opt("only-job-state"), Opt("partitions", "p", _R),
        Opt("priority", "P"), Opt("qos", "q", _R), Opt("reservation", "R", _R), Opt("running-over", "", _R),
        Opt("running-under", "", _R), Opt("sib"), Opt("sibling", "", Arg.NONE, "sib"), Opt("sort", "S", _R), Opt("start"),
        Opt("steps", "s", _O), Opt("states", "t", _R), Opt("expand-patterns"), Opt("usage"), Opt("user", "u", _R),
        Opt("users", "U", _R, "user"), Opt("verbose", "v"), Opt("version", "V"), Opt("yaml", "", _O),
    )
)  # fmt: skip

_JOB = re.compile(r"\s*(\d{1,10})(?:_(\d{1,10})|\+(\d{1,10}))?(?:\..*)?", re.ASCII)
_STEP = re.compile(r"\s*(\d{1,10})(?:_(\d{1,10})|\+(\d{1,10}))?\.(\d*).*", re.ASCII)

# Variables that stand for options, and those options.
_ENVIRONMENT = (
    ("SQUEUE_ACCOUNT", "accounts"), ("SQUEUE_LICENSES", "licenses"), ("SQUEUE_NAMES", "name"),
    ("SQUEUE_PARTITION", "partitions"), ("SQUEUE_QOS", "qos"), ("SQUEUE_SORT", "sort"), ("SQUEUE_STATES", "states"),
    ("SQUEUE_USERS", "user"), ("SLURM_CLUSTERS", "clusters"),
)  # fmt: skip
_SWITCHES = (("SQUEUE_ARRAY", "array"), ("SQUEUE_PRIORITY", "priority"), ("SQUEUE_EXPAND_PATTERNS", "expand-patterns"))


class JobPick(msgspec.Struct, frozen=True):
    """One element of --jobs."""

    job_id: int
    task: int | None = None
    offset: int | None = None


class StepPick(msgspec.Struct, frozen=True):
    """One element of --steps."""

    job_id: int
    task: int | None
    step: int


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A squeue request. None: not restricted."""

    accounts: frozenset[str] | None = None
    users: frozenset[int] | None = None
    not_users: frozenset[int] = frozenset()
    partitions: frozenset[str] | None = None
    states: frozenset[str] | None = None  # words; empty frozenset: none at all
    all_states: bool = False
    names: frozenset[str] | None = None
    qos: frozenset[str] | None = None
    licenses: frozenset[str] | None = None
    reservations: frozenset[str] | None = None
    nodes: frozenset[str] | None = None
    jobs: tuple[JobPick, ...] | None = None
    steps: tuple[StepPick, ...] | None = None
    show_steps: bool = False
    over: int | None = None  # seconds run
    under: int | None = None
    format: str = job_fields.DEFAULT
    named: bool = False  # format is -O's
    sort: str = ""
    header: bool = True
    long: bool = False
    each_task: bool = False
    each_partition: bool = False
    only_state: bool = False
    convert: bool = True
    expand_patterns: bool = False
    iterate: int = 0
    verbose: int = 0
    names_cluster: bool = False  # clusters were asked for: the list is headed by its cluster's name
    structured: str = ""  # json, yaml


_BESIDE_STATES = frozenset(
    {"accounts", "licenses", "me", "name", "nodelist", "notme", "partitions", "qos", "reservation", "steps", "user"}
)
_ONLY_STATE = (
    "squeue: fatal: Option --only-job-state only works alone, with -j (--jobs) and/or -t (--states) parameters, "
    "parameters for cluster/federation selection, and the printing options."
)


def read(call: Call, site: Site) -> tuple[Wanted | Stop, tuple[str, ...]]:
    """The request, and notes for stderr that do not stop it."""
    argv = listing.join_optional(call.argv[1:], "js", ("jobs", "job", "steps", "step"), "ahlrvP")
    scan = getopt.scan(OPTIONS, argv)
    notes: list[str] = []
    for given in scan.options:
        stop = _immediate(given.key, given.value)
        if stop is not None:
            return stop, ()
    if scan.problem:
        return Stop(stderr=getopt.complain("squeue", scan.problem).lines), ()
    parsed = scan.parsed
    if parsed.operands:
        return Stop(stderr=(f"squeue: error: Unrecognized option: {parsed.operands[0]}",), stdout=USAGE), ()
    values: dict[str, str | None] = {key: call.env[name] for name, key in _ENVIRONMENT if name in call.env}
    values.update({key: "" for name, key in _SWITCHES if name in call.env})
    from_env = set(values)
    for given in parsed.options:
        if given.key in ("format", "Format") and {"format", "Format"} - {given.key} & values.keys() - from_env:
            names = "-O (--Format)", "-o (--format)"
            this, other = names if given.key == "Format" else names[::-1]
            return Stop(stderr=(f"squeue: error: {this} is incompatible with {other}",)), ()
        values[given.key] = given.value
        from_env.discard(given.key)
    if "long" in values and ("format" in values or "Format" in values):
        letter = "o(--format)" if "format" in values else "O(--Format)"
        text = f"squeue: fatal: Options -{letter} and -l(--long) are mutually exclusive. Please remove one and retry."
        return Stop(stderr=(text,)), ()
    return _typed(call, site, values, parsed, notes), tuple(notes)


def _immediate(key: str, value: str | None) -> Stop | None:
    """Options that end the command where they stand."""
    texts: dict[str, Callable[[], str]] = {
        "help": lambda: HELP,
        "usage": lambda: USAGE,
        "version": lambda: listing.VERSION + "\n",
        "helpformat": lambda: help_letters(job_fields.HELP_LETTERS),
        "helpFormat": job_fields.REGISTRY.help_names,
        "helpstate": lambda: "".join(f"{word}\n" for word in states.HELP_STATES),
    }
    if key in texts:
        return Stop(stdout=texts[key](), exit_code=0)
    if key in ("json", "yaml"):
        return listing.structured_stop("squeue", key, value)
    return None


def _typed(
    call: Call, site: Site, values: dict[str, str | None], parsed: getopt.Parsed, notes: list[str]
) -> Wanted | Stop:
    def names(key: str) -> frozenset[str] | None:
        text = values.get(key)
        return None if text is None else frozenset(listing.words(text))

    if values.get("clusters") is not None:
        problem = listing.cluster_problem("squeue", values["clusters"] or "", site)
        if problem:
            return Stop(stderr=problem)
    wanted_states = _states(values.get("states"))
    if isinstance(wanted_states, Stop):
        return wanted_states
    picks = None if values.get("jobs") is None else _jobs(values["jobs"] or "")
    if isinstance(picks, Stop):
        return picks
    chosen = None if values.get("steps") is None else _steps(values["steps"] or "")
    if isinstance(chosen, Stop):
        return chosen
    nodes = _nodes(values.get("nodelist"), site)
    if isinstance(nodes, Stop):
        return nodes
    over, under = (_duration(values.get(key)) for key in ("running-over", "running-under"))
    for limit in (over, under):
        if isinstance(limit, Stop):
            return limit
    iterate = 0
    if values.get("iterate") is not None:
        text = values["iterate"] or ""
        iterate = int(text) if is_number(text) and len(text) < 10 else 0
        if not iterate:
            return Stop(stderr=(f"squeue: error: --iterate={text}", ""))
    users, not_users = _users(call, site, values, notes)
    show_steps, start = "steps" in values, "start" in values
    only_state = "only-job-state" in values
    if only_state and _BESIDE_STATES & {given.key for given in parsed.options}:
        return Stop(stderr=(_ONLY_STATE,))
    layout, named = _format(call, values, show_steps=show_steps, start=start, only_state=only_state)
    if start and wanted_states is None:
        wanted_states = frozenset({"PENDING"})
    if start and over is not None:
        wanted_states = frozenset()
    return Wanted(
        accounts=names("accounts"),
        users=users,
        not_users=not_users,
        partitions=names("partitions"),
        states=None if isinstance(wanted_states, str) else wanted_states,
        all_states=wanted_states == "all",
        names=names("name"),
        qos=names("qos"),
        licenses=names("licenses"),
        reservations=names("reservation"),
        nodes=nodes,
        jobs=picks,
        steps=chosen,
        show_steps=show_steps,
        over=over if isinstance(over, int) else None,
        under=under if isinstance(under, int) else None,
        format=layout,
        named=named,
        sort=values.get("sort") or ("S" if start else ""),
        header="noheader" not in values,
        long="long" in values and not start,
        each_task="array" in values,
        each_partition="priority" in values,
        only_state=only_state,
        convert="noconvert" not in values,
        expand_patterns="expand-patterns" in values,
        iterate=iterate,
        verbose=parsed.count("verbose"),
        names_cluster=values.get("clusters") is not None and "noheader" not in values,
        structured=next((key for key in reversed(list(values)) if key in ("json", "yaml")), ""),
    )


def _format(
    call: Call, values: dict[str, str | None], *, show_steps: bool, start: bool, only_state: bool
) -> tuple[str, bool]:
    """(format, whether it is -O's)."""
    if values.get("Format") is not None:
        return values["Format"] or "", True
    if values.get("format") is not None:
        return values["format"] or "", False
    if start:
        return job_fields.START, False
    if only_state:
        return job_fields.ONLY_STATE, False
    if "long" in values and not show_steps:
        return job_fields.LONG, False
    if "SQUEUE_FORMAT" in call.env:
        return call.env["SQUEUE_FORMAT"], False
    if "SQUEUE_FORMAT2" in call.env:
        return call.env["SQUEUE_FORMAT2"], True
    return (step_fields.DEFAULT if show_steps else job_fields.DEFAULT), False


def _states(text: str | None) -> frozenset[str] | str | Stop | None:
    """Words, "all", or None when nothing was said."""
    if text is None:
        return None
    if text.lower() == "all":
        return "all"
    found = set()
    for word in listing.words(text):
        state = states.parse_job_state(word)
        if state is None:
            return Stop(
                stderr=(
                    f"squeue: error: Invalid job state specified: {word}",
                    f"squeue: error: Valid job states include: {','.join(states.HELP_STATES)}",
                    "",
                )
            )
        found.add(state)
    return frozenset(found)


def _jobs(text: str) -> tuple[JobPick, ...] | Stop:
    picks = []
    for word in _outside_brackets(text):
        match = _JOB.fullmatch(word)
        if match is None or int(match[1]) == 0:
            return Stop(stderr=(f"squeue: error: Invalid job id: {word.partition(',')[0]}",))
        picks.append(JobPick(int(match[1]), _int(match[2]), _int(match[3])))
    return tuple(picks)


def _steps(text: str) -> tuple[StepPick, ...] | Stop:
    picks = []
    for word in listing.words(text):
        match = _STEP.fullmatch(word)
        if match is None:
            return Stop(stderr=(f"squeue: error: Invalid job_step id: {word}.??",))
        picks.append(StepPick(int(match[1]), _int(match[2]), int(match[4] or 0)))
    return tuple(picks)


def _outside_brackets(text: str) -> list[str]:
    """Elements of a comma list whose brackets may hold commas."""
    return [word for word in re.split(r",(?![^\[]*\])", text) if word] if "[" in text else listing.words(text)


def _int(text: str | None) -> int | None:
    return None if text is None else int(text)


def _nodes(text: str | None, site: Site) -> frozenset[str] | Stop | None:
    if text is None:
        return None
    try:
        names = hostlist.expand(text)
    except LangError:
        return Stop(stderr=(f"squeue: error: '{text}' invalid entry for --nodelist",))
    for name in names:
        if site.node(name) is None:
            return Stop(stderr=(f"squeue: error: Invalid node name {name}",))
    return frozenset(names)


def _duration(text: str | None) -> int | Stop | None:
    if text is None:
        return None
    try:
        return durations.parse_seconds(text)
    except LangError:
        return Stop(stderr=("squeue: fatal: Invalid time limit specification",))


def _users(
    call: Call, site: Site, values: dict[str, str | None], notes: list[str]
) -> tuple[frozenset[int] | None, frozenset[int]]:
    excluded = frozenset({call.uid}) if "notme" in values else frozenset[int]()
    if "me" in values:
        return frozenset({call.uid}), excluded
    text = values.get("user")
    if text is None:
        return None, excluded
    found = set()
    for word in listing.words(text):
        uid = int(word) if is_number(word) and len(word) < 11 else site.user_id(word)
        if uid is None:
            notes.extend((f"squeue: error: Invalid user: {word}", ""))
        else:
            found.add(uid)
    return frozenset(found), excluded
