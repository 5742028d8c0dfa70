"""What does a sacct command line ask for? Options into a filter for the store and a layout.

Follows sacct(1). The window of time: from midnight to now; with --state from now on; with --jobs all times.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, JobFilter, Site
from slurmbridge.commands.listing import Stop, is_number
from slurmbridge.commands.sacct_text import HELP, USAGE
from slurmbridge.errors import LangError
from slurmbridge.fields import sacct as columns
from slurmbridge.fields import states
from slurmbridge.fields.reasons import REASONS
from slurmbridge.lang import durations, hostlist, times
from slurmbridge.model.job import StepId
from slurmbridge.model.states import JobState
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R, _O = Arg.REQUIRED, Arg.OPTIONAL

_PARSABLE = {"parsable": 1, "parsable2": 2}
OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("allusers", "a"), Opt("accounts", "A", _R), Opt("allocations", "X"),
        Opt("array"), Opt("brief", "b"), Opt("batch-script", "B"), Opt("completion", "c"), Opt("constraints", "C", _R),
        Opt("delimiter", "", _R), Opt("duplicates", "D"), Opt("env-vars"), Opt("expand-patterns"), Opt("federation"),
        Opt("helpformat", "e"), Opt("helpreason"), Opt("helpstate"), Opt("help", "h"), Opt("endtime", "E", _R),
        Opt("file", "f", _R), Opt("flags", "F", _R), Opt("gid", "g", _R, "group"), Opt("group", "", _R),
        Opt("jobs", "j", _R), Opt("json", "", _O), Opt("timelimit-min", "k", _R), Opt("timelimit-max", "K", _R),
        Opt("local"), Opt("long", "l"), Opt("allclusters", "L"), Opt("cluster", "", _R, "clusters"),
        Opt("clusters", "M", _R), Opt("name", "", _R), Opt("nnodes", "i", _R), Opt("ncpus", "I", _R),
        Opt("nodelist", "N", _R), Opt("noconvert"), Opt("noheader", "n"), Opt("fields", "", _R, "format"),
        Opt("format", "o", _R), Opt("parsable", "p"), Opt("parsable2", "P"), Opt("qos", "q", _R),
        Opt("partition", "r", _R), Opt("reason", "R", _R), Opt("state", "s", _R), Opt("starttime", "S", _R),
        Opt("truncate", "T"), Opt("units", "", _R), Opt("uid", "u", _R, "user"), Opt("use-local-uid", "U"),
        Opt("usage"), Opt("user", "", _R), Opt("verbose", "v"), Opt("version", "V"), Opt("wckeys", "W", _R),
        Opt("whole-hetjob", "", _O), Opt("associations", "x", _R), Opt("yaml", "", _O),
    )
)  # fmt: skip

_STEP_WORDS = {"batch": StepId.BATCH.value, "extern": StepId.EXTERN.value, "interactive": StepId.INTERACTIVE.value}


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A sacct request: what the store selects, what is selected here, and how it is shown."""

    filter: JobFilter
    by_job: bool = False  # -j was given
    groups: frozenset[int] | None = None
    reasons: frozenset[str] | None = None
    constraints: frozenset[str] | None = None
    flags: frozenset[str] | None = None
    assocs: frozenset[str] | None = None
    nodes_range: tuple[int, int] | None = None
    cpus_range: tuple[int, int] | None = None
    limit_range: tuple[int, int] | None = None  # minutes
    placed: tuple[columns.Placed, ...] = ()
    steps: bool = True
    header: bool = True
    parsable: int = 0  # 1 = a delimiter behind each field, 2 = between them
    delimiter: str = "|"
    each_task: bool = False
    truncate: bool = False
    convert: bool = True
    unit: str = ""
    expand_patterns: bool = False
    whole_het: bool | None = None
    verbose: bool = False
    show: str = ""  # "script", "env"
    document: str = ""  # "json", "yaml"
    elsewhere: bool = False  # only clusters that are not this one


def read(call: Call, site: Site) -> Wanted | Stop:
    """The request or the end of the command."""
    scan = getopt.scan(OPTIONS, call.argv[1:])
    for given in scan.options:
        stop = _immediate(given.key, given.value)
        if stop is not None:
            return stop
    if scan.problem:
        return Stop(stderr=getopt.complain("sacct", scan.problem, hint="").lines)
    if scan.operands:
        lines = ("sacct: error: Unknown arguments:", *(f"sacct: error:  {word}" for word in scan.operands))
        return Stop(stderr=lines)
    values = {given.key: given.value or "" for given in scan.options}
    shapes = [given.key for given in scan.options if given.key in _PARSABLE]
    values = {key: value for key, value in values.items() if key not in _PARSABLE or key == shapes[-1]}
    picked = ",".join(given.value or "" for given in scan.options if given.key == "jobs")
    formats = ",".join(given.value or "" for given in scan.options if given.key == "format")
    return _typed(call, site, values, picked, formats if "format" in values else None)


def _immediate(key: str, value: str | None) -> Stop | None:
    """Options that end the command where they stand."""
    texts: dict[str, Callable[[], str]] = {
        "help": lambda: HELP,
        "usage": lambda: USAGE,
        "version": lambda: listing.VERSION + "\n",
        "helpformat": columns.help_names,
        "helpreason": _help_reasons,
        "helpstate": _help_states,
    }
    if key in texts:
        return Stop(stdout=texts[key](), exit_code=0)
    if key in ("json", "yaml"):
        stop = listing.structured_stop("sacct", key, value)
        return None if stop is None else msgspec.structs.replace(stop, exit_code=0)
    return None


def _help_reasons() -> str:
    return _table([f"{name:<39}" for name in REASONS], 2)


def _help_states() -> str:
    return _table([f"{state.name:<19}" for state in JobState], 4)


def _table(cells: list[str], width: int) -> str:
    return "".join(" ".join(cells[at : at + width]) + "\n" for at in range(0, len(cells), width))


def _typed(call: Call, site: Site, values: dict[str, str], picked: str, formats: str | None) -> Wanted | Stop:
    if "file" in values:
        return Stop(stderr=(f"{values['file']} is not a valid file",))
    if "completion" in values:
        return Stop(stderr=("Slurm job completion is disabled",))
    show = "script" if "batch-script" in values else "env" if "env-vars" in values else ""
    if {"batch-script", "env-vars"} <= set(values):
        return Stop(stderr=("sacct: fatal: Options --batch-script and --env-vars are mutually exclusive",))
    if show and not picked:
        what = "job scripts" if show == "script" else "job environment"
        text = f"When requesting {what} you must also request specific jobs with the '-j' option."
        return Stop(stderr=(f"sacct: fatal: {text}",))
    placed = _columns(call, values, formats)
    if isinstance(placed, Stop):
        return placed
    unit = values.get("units", "K")[:1] if "units" in values else ""
    if "units" in values and (not unit or unit.upper() not in "KMGTP"):
        text = "sacct: error: Invalid unit type '" + (f"{unit}'. Possible options are 'KMGTP'" if unit else "")
        return Stop(stderr=(text, "sacct: fatal: Invalid unit type"))
    chosen = _filter(call, site, values, picked)
    if isinstance(chosen, Stop):
        return chosen
    groups = _groups(site, values.get("group"))
    if isinstance(groups, Stop):
        return groups
    reasons = _reasons(values.get("reason"))
    if isinstance(reasons, Stop):
        return reasons
    flags = _flags(values.get("flags"))
    if isinstance(flags, Stop):
        return flags
    if any(not is_number(word) for word in listing.words(values.get("associations", ""))):
        return Stop(stderr=("sacct: error: Failed to unpack DBD_GET_JOBS_COND message",))
    whole = values.get("whole-hetjob")
    if whole and whole.lower() not in ("yes", "no"):
        text = f'sacct: error: Invalid --whole-hetjob value "{whole}". Valid values: [yes|no].'
        return Stop(stderr=(text,))
    nodes_range = _range(values.get("nnodes"), "node")
    cpus_range = _range(values.get("ncpus"), "cpu")
    limits = _limits(values)
    for each in (nodes_range, cpus_range, limits):
        if isinstance(each, Stop):
            return each
    clusters = listing.words(values.get("clusters", ""))
    return Wanted(
        filter=chosen,
        document=next((kind for kind in reversed(list(values)) if kind in ("json", "yaml")), ""),
        by_job=bool(picked),
        groups=groups,
        reasons=reasons,
        constraints=_set(values.get("constraints")),
        flags=flags,
        assocs=_set(values.get("associations")),
        nodes_range=None if isinstance(nodes_range, Stop) else nodes_range,
        cpus_range=None if isinstance(cpus_range, Stop) else cpus_range,
        limit_range=None if isinstance(limits, Stop) else limits,
        placed=tuple(placed),
        steps="allocations" not in values,
        header="noheader" not in values,
        parsable=next((number for key, number in _PARSABLE.items() if key in values), 0),
        delimiter=values.get("delimiter", "|"),
        each_task="array" in values,
        truncate="truncate" in values,
        convert="noconvert" not in values,
        unit=unit.upper(),
        expand_patterns="expand-patterns" in values,
        whole_het=None if whole is None else whole.lower() != "no",
        verbose="verbose" in values,
        show=show,
        elsewhere="clusters" in values and not {"all", site.config.cluster_name} & set(clusters),
    )


def _columns(call: Call, values: dict[str, str], formats: str | None) -> list[columns.Placed] | Stop:
    parts = [] if formats is None else [formats]
    if "brief" in values:
        parts.append(columns.BRIEF)
    if "long" in values:
        parts.append(columns.LONG)
    spec = ",".join(parts) if parts else call.env.get("SACCT_FORMAT", columns.DEFAULT)
    placed, bad = columns.place(spec)
    return placed if bad is None else Stop(stderr=(f'sacct: error: Invalid field requested: "{bad}"',))


def _filter(call: Call, site: Site, values: dict[str, str], picked: str) -> JobFilter | Stop:
    zone = listing.time_zone(call, site)
    try:
        start = times.parse(values["starttime"], call.now, zone, True) if values.get("starttime") else None
        end = times.parse(values["endtime"], call.now, zone, True) if values.get("endtime") else None
    except LangError as error:
        return Stop(stderr=(error.message,))
    if start is None and not picked:
        today = datetime.datetime.fromtimestamp(call.now, zone).replace(hour=0, minute=0, second=0, microsecond=0)
        start = int(call.now if values.get("state") else today.timestamp())
    if values.get("state") and end is None:
        end = start
    if start is not None and start > (call.now if end is None else end):
        first, last = times.render(start, zone), times.render(call.now if end is None else end, zone)
        return Stop(stderr=(f"sacct: error: Start time ({first}) requested is after end time ({last}).",))
    job_ids: list[tuple[int, int | None, int | None]] = []
    for word in listing.words(picked):
        pick = parse_job(word)
        if isinstance(pick, str):
            return Stop(stderr=(f"sacct: fatal: Bad job/step specified: {pick}",))
        job_ids.append(pick)
    wanted_states = []
    for word in listing.words(values.get("state", "")):
        state = states.parse_job_state(word)
        if state is None:
            return Stop(stderr=(f"sacct: fatal: unrecognized job state value '{word}'",))
        wanted_states.append(state)
    users = _users(call, site, values, bool(picked))
    if isinstance(users, Stop):
        return users
    known = {qos.name for qos in site.accounting.qos}
    for word in listing.words(values.get("qos", "")):
        if word not in known:
            valid = ",".join(qos.name for qos in sorted(site.accounting.qos, key=lambda qos: qos.qos_id))
            text = f"sacct: error: You gave a bad qos '{word}'. Valid QOS's are {valid}"
            return Stop(stderr=(text, "sacct: fatal: problem processing qos list"))
    try:
        nodes = tuple(hostlist.expand(values.get("nodelist", "")))
    except LangError:
        return Stop(stderr=("sacct: error: Invalid argument",))
    return JobFilter(
        job_ids=tuple(job_ids),
        users=users,
        accounts=tuple(listing.words(values.get("accounts", ""))),
        partitions=tuple(listing.words(values.get("partition", ""))),
        qos=tuple(listing.words(values.get("qos", ""))),
        names=tuple(listing.words(values.get("name", ""))),
        states=tuple(wanted_states),
        nodes=nodes,
        wckeys=tuple(listing.words(values.get("wckeys", ""))),
        start=None if start is None else float(start),
        end=None if end is None else float(end),
        duplicates="duplicates" in values,
        with_steps="allocations" not in values,
        with_script="batch-script" in values,
        with_env="env-vars" in values and "batch-script" not in values,
    )


def parse_job(word: str) -> tuple[int, int | None, int | None] | str:
    """(id, array task or component, step) of one element of --jobs, or what Slurm says of a wrong one."""
    match = re.fullmatch(r"\s*(\d{1,10})(?:([_+])([^.]*))?(?:\.(.*))?", word, re.ASCII)
    if match is None:
        if re.match(r"\d+", word):
            return f"{word}: JobID includes unexpected non-numeric characters"
        return word
    part: int | None = None
    if match[2]:
        what = "Job Array ID" if match[2] == "_" else "HetJob component"
        if not match[3]:
            return f"{word}: {what} must not be an empty string"
        if not is_number(match[3]) or len(match[3]) > 10:
            return f"{word}: JobID includes unexpected non-numeric characters"
        part = int(match[3])
    step: int | None = None
    if not int(match[1]):
        return f"{word}: JobID can not be zero"
    if match[4] is not None:
        if not match[4]:
            return f"{word}: StepID must not be an empty string"
        step = _STEP_WORDS.get(match[4].lower())
        if step is None:
            if not is_number(match[4]) or len(match[4]) > 10:
                return f"{word}: StepID includes unexpected non-numeric characters"
            step = int(match[4])
    return int(match[1]), part, step


def _users(call: Call, site: Site, values: dict[str, str], by_job: bool) -> tuple[int, ...] | Stop | None:
    """Whose jobs: those named, everybody's (-a, root, -j), else the caller's."""
    text = values.get("user")
    if text is None:
        return None if "allusers" in values or by_job or call.uid == 0 else (call.uid,)
    found: list[int] = []
    for word in listing.words(text):
        if word == "all":
            return None
        uid = int(word) if is_number(word) and len(word) < 11 else site.user_id(word)
        if uid is not None and site.user_name(uid) == str(uid):
            uid = None
        if uid is None:
            return Stop(stderr=(f"sacct: error: Invalid user id: {word}",))
        found.append(uid)
    return tuple(found) if found else Stop()


def _groups(site: Site, text: str | None) -> frozenset[int] | Stop | None:
    if text is None:
        return None
    found = set()
    for word in listing.words(text):
        gid = int(word) if is_number(word) and len(word) < 11 else site.group_id(word)
        if gid is None:
            return Stop(stderr=(f"sacct: error: Invalid group id: {word}",))
        found.add(gid)
    return frozenset(found)


def _reasons(text: str | None) -> frozenset[str] | Stop | None:
    if text is None:
        return None
    known = {name.lower(): name for name in REASONS}
    found = set()
    for word in listing.words(text):
        if word.lower() not in known:
            return Stop(stderr=(f"sacct: fatal: unrecognized job reason value '{word}'",))
        found.add(known[word.lower()])
    return frozenset(found)


def _range(text: str | None, what: str) -> tuple[int, int] | Stop | None:
    """N or N-M; 0 is no restriction."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    if not is_number(first) or (dash and not is_number(last)) or len(text) > 20:
        return Stop(stderr=(f'sacct: error: Invalid numeric value "{text}" for requested {what} range.',))
    low = int(first)
    return (low, int(last) if dash else low) if low or dash else None


def _limits(values: dict[str, str]) -> tuple[int, int] | Stop | None:
    """Minutes: from --timelimit-min to --timelimit-max (itself without one)."""
    if "timelimit-min" not in values:
        return None
    try:
        low = durations.parse_minutes(values["timelimit-min"])
        high = durations.parse_minutes(values["timelimit-max"]) if "timelimit-max" in values else low
    except LangError:
        return Stop(stderr=("sacct: fatal: Invalid time limit specification",))
    return low, high


FLAGS = ("none", "schedsubmit", "schedmain", "schedbackfill", "startreceived")


def _flags(text: str | None) -> frozenset[str] | Stop | None:
    if text is None:
        return None
    for word in listing.words(text):
        if word.lower() not in FLAGS:
            return Stop(stderr=(f"sacct: error: str_2_job_flags: Invalid job flag {word}",))
    return frozenset(word.lower() for word in listing.words(text))


def _set(text: str | None) -> frozenset[str] | None:
    return None if text is None else frozenset(listing.words(text))
