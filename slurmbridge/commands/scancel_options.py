"""What does a scancel command line ask for?

Follows scancel(1): options win over SCANCEL_* variables. Values are checked here; whether the jobs exist is not.
"""

from __future__ import annotations

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.job_targets import Target, read_target, split_targets
from slurmbridge.errors import LangError
from slurmbridge.lang import hostlist, signals
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.model.verdict import UsageError
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

OPTIONS = (
    Opt("account", "A", Arg.REQUIRED), Opt("admin-comment", "", Arg.REQUIRED), Opt("batch", "b"), Opt("ctld"),
    Opt("cron", "c"), Opt("full", "f"), Opt("hurry", "H"), Opt("interactive", "i"), Opt("clusters", "M", Arg.REQUIRED),
    Opt("cluster", "", Arg.REQUIRED, "clusters"), Opt("jobname", "", Arg.REQUIRED, "name"), Opt("me"),
    Opt("name", "n", Arg.REQUIRED), Opt("nodelist", "w", Arg.REQUIRED), Opt("partition", "p", Arg.REQUIRED),
    Opt("quiet", "Q"), Opt("qos", "q", Arg.REQUIRED), Opt("reservation", "R", Arg.REQUIRED),
    Opt("sibling", "", Arg.REQUIRED), Opt("signal", "s", Arg.REQUIRED), Opt("state", "t", Arg.REQUIRED),
    Opt("user", "u", Arg.REQUIRED), Opt("verbose", "v"), Opt("version", "V"), Opt("wckey", "", Arg.REQUIRED),
    Opt("help"), Opt("usage"), Opt("autocomplete", "", Arg.REQUIRED),
)  # fmt: skip
_VARIABLES = {
    "SCANCEL_ACCOUNT": "account", "SCANCEL_NAME": "name", "SCANCEL_PARTITION": "partition", "SCANCEL_QOS": "qos",
    "SCANCEL_STATE": "state", "SCANCEL_USER": "user", "SCANCEL_WCKEY": "wckey", "SLURM_CLUSTERS": "clusters",
}  # fmt: skip
_SWITCHES = {
    "SCANCEL_BATCH": "batch", "SCANCEL_CRON": "cron", "SCANCEL_CTLD": "ctld", "SCANCEL_FULL": "full",
    "SCANCEL_HURRY": "hurry", "SCANCEL_INTERACTIVE": "interactive", "SCANCEL_VERBOSE": "verbose",
}  # fmt: skip
_TRUE, _FALSE = ("t", "true"), ("f", "false")
USAGE = """\
Usage: scancel [-A account] [--batch] [--ctld] [--full] [--interactive] [-n job_name]
               [-p partition] [-Q] [-q qos] [-R reservation] [-s signal | integer]
               [-t PENDING | RUNNING | SUSPENDED] [--usage] [-u user_name]
               [--hurry] [-V] [-v] [-w hosts...] [--wckey=wckey]
               [job_id[_array_id][.step_id]]
"""
HELP = """\
Usage: scancel [OPTIONS] [job_id[_array_id][.step_id]]
  -A, --account=account           only jobs of this account
      --admin-comment=text        refused: scontrol update AdminComment= does it
  -b, --batch                     signal the batch shell only
  -c, --cron                      cancel a scrontab job
      --ctld                      send the request to the controller
  -f, --full                      signal the batch shell and all steps
  -H, --hurry                     do not wait for burst buffers
  -i, --interactive               ask before each job
  -M, --clusters                  clusters to talk to
      --me                        only your own jobs
  -n, --name=job_name             only jobs of this name
  -p, --partition=partition       only jobs in this partition
  -Q, --quiet                     no warnings
  -q, --qos=qos                   only jobs of this quality of service
  -R, --reservation=reservation   only jobs of this reservation
      --sibling=name              refused with a job: there is one cluster
  -s, --signal=name | integer     signal to send instead of cancelling
  -t, --state=states              only jobs in this state: PENDING, RUNNING, SUSPENDED
  -u, --user=user_name            only jobs of this user
  -V, --version                   print the version
  -v, --verbose                   say more
  -w, --nodelist                  only jobs on these nodes
      --wckey=wckey               only jobs of this workload characterization key

Help options:
  --help                          show this help message
  --usage                         display brief usage message
"""


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """None = not given. `filters`: (name, value) as scancel lists them."""

    targets: tuple[Target, ...] = ()
    account: str | None = None
    name: str | None = None
    partition: str | None = None
    qos: str | None = None
    reservation: str | None = None
    wckey: str | None = None
    uid: int | None = None
    states: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    signal: int | None = None
    scope: str = ""  # "", "batch", "full"
    interactive: bool = False
    verbose: int = 0
    quiet: bool = False
    clusters: str = ""
    filters: tuple[tuple[str, str], ...] = ()
    remarks: tuple[str, ...] = ()  # lines for stderr that stop nothing


def read(call: Call, site: Site) -> Request | UsageError | str:
    """The request, the complaint, or "help", "usage", "version"."""
    parsed = getopt.parse(OPTIONS, call.argv)
    if isinstance(parsed, UsageError):
        return parsed
    values: dict[str, str] = {}
    verbose = 0
    for variable, key in _VARIABLES.items():
        if variable in call.env:
            values[key] = call.env[variable]
    if "state" in values:
        bad = _states(values["state"], "SCANCEL_STATE")
        if isinstance(bad, UsageError):
            return bad
    remarks: list[str] = []
    for variable, key in _SWITCHES.items():
        text = call.env.get(variable, "false")
        if text.lower() in _TRUE:
            verbose += key == "verbose"
            values |= {key: "1"} if key != "verbose" else {}
        elif text.lower() not in _FALSE:
            remarks.append(f"scancel: error: Unrecognized {variable} value: {text}")
    for given in parsed.options:
        if given.key in ("help", "usage", "version"):
            return given.key
        if given.key == "verbose":
            verbose += 1
        else:
            values[given.key] = given.value if given.value is not None else "1"
            if given.key in ("me", "user"):
                values.pop("user" if given.key == "me" else "me", None)
    found = _checked(values, parsed.operands, verbose, call, site)
    if remarks and isinstance(found, UsageError):
        return UsageError(lines=(*remarks, *found.lines), exit_code=found.exit_code)
    return msgspec.structs.replace(found, remarks=tuple(remarks)) if isinstance(found, Request) else found


def _checked(
    values: dict[str, str], operands: tuple[str, ...], verbose: int, call: Call, site: Site
) -> Request | UsageError:
    uid: int | None = None
    user = values.get("user")
    if user is not None:
        uid = site.user_id(user)
        if uid is None and listing.is_id(user):
            uid = int(user)
        if uid is None:
            return _error(f"Invalid user name: {user}")
    elif "me" in values:
        uid = call.uid
    states = _states(values["state"]) if "state" in values else ()
    if isinstance(states, UsageError):
        return states
    number: int | None = None
    if "signal" in values:
        try:
            number = signals.parse_name(values["signal"])
        except LangError:
            number = 0
        if not number:
            return UsageError(lines=(f"Unknown job signal: {values['signal']}",), exit_code=1)
    for refused, why in (("sibling", "Not a valid federated job"),):
        if refused in values and operands:
            return _error(f"Kill job error on job id {operands[0]}: {why}", 191)
    if "admin-comment" in values:
        if not site.is_operator(call.uid):
            return _error("Invalid user id", 218)
        return _error("--admin-comment is not offered: use scontrol update AdminComment=")
    targets = _targets(operands, site.config.max_array_size)
    if isinstance(targets, UsageError):
        return targets
    names: tuple[str, ...] = ()
    if values.get("nodelist"):
        try:
            names = tuple(hostlist.expand(values["nodelist"]))
        except LangError:
            return _error(f"Invalid node list: {values['nodelist']}")
    filters = _filters(values, call)
    if not targets and not filters:
        return _error("No job identification provided")
    return Request(
        targets=targets, account=values.get("account"), name=values.get("name"), partition=values.get("partition"),
        qos=values.get("qos"), reservation=values.get("reservation"), wckey=values.get("wckey"), uid=uid, states=states,
        nodes=names, signal=number, scope="full" if "full" in values else "batch" if "batch" in values else "",
        interactive="interactive" in values, verbose=-1 if "quiet" in values else verbose, quiet="quiet" in values,
        clusters=values.get("clusters", ""), filters=filters,
    )  # fmt: skip


def _error(text: str, code: int = 1) -> UsageError:
    return UsageError(lines=(f"scancel: error: {text}",), exit_code=code)


def _filters(values: dict[str, str], call: Call) -> tuple[tuple[str, str], ...]:
    """In the order in which scancel lists them."""
    named = (("account", "account"), ("name", "job_name"), ("nodelist", "nodelist"), ("partition", "partition"),
             ("qos", "qos"), ("reservation", "reservation"), ("state", "state"), ("user", "user_name"), ("wckey", "wckey"))  # fmt: skip
    found = [(shown, values[key]) for key, shown in named if key in values]
    if "me" in values:
        found.append(("user_name", str(call.uid)))
    return tuple(found)


def _states(text: str, variable: str = "") -> tuple[str, ...] | UsageError:
    """One state by name or code; jobs that have ended are never found."""
    word = text.upper()
    found = [each.name for kind in (JobState, JobFlag) for each in kind if word in (each.name, each.value)]
    if found:
        return (found[0],)
    told = f"Unrecognized {variable} value: {text}" if variable else f"Invalid job state specified: {text}"
    return UsageError(lines=(told, "Valid job states are PENDING, RUNNING, and SUSPENDED"), exit_code=1)


def _targets(operands: tuple[str, ...], max_array_size: int) -> tuple[Target, ...] | UsageError:
    found = []
    for operand in operands:
        for text in filter(None, split_targets(operand)):
            target = read_target(text, max_array_size)
            if target is None or (target.step is not None and (target.is_range or not text[-1].isdecimal())):
                return _bad_target(operand, text)
            found.append(target)
    return tuple(found)


def _bad_target(operand: str, text: str) -> UsageError:
    lines = [f"scancel: error: Invalid job id {text}"]
    inner = operand.partition("[")[2].rstrip("]")
    bad = next((part for part in inner.split(",") if part and not part.replace("-", "").isdecimal()), "")
    if bad:
        lines.insert(0, f"scancel: error: _parse_single_range: Invalid range: `{bad}'")
    return UsageError(lines=tuple(lines), exit_code=1)
