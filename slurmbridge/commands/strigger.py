"""strigger: programs started by events. None can be set, and none ever is.

Follows strigger(1). Slurm lets SlurmUser alone set triggers and denies everybody else, root too; here it is the same for
all. So the list is always empty, and there is nothing to clear.
"""

from __future__ import annotations

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Command, Print, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.commands.listing import is_number
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R = Arg.REQUIRED
_JOB_EVENTS = ("fini", "time")
_EVENTS = (
    *_JOB_EVENTS, "burst_buffer", "primary_slurmctld_failure", "primary_slurmctld_resumed_operation",
    "primary_slurmctld_resumed_control", "backup_slurmctld_failure", "backup_slurmctld_resumed_operation",
    "backup_slurmctld_assumed_control", "down", "drained", "draining", "primary_slurmctld_acct_buffer_full", "fail",
    "primary_slurmdbd_failure", "primary_slurmdbd_resumed_operation", "primary_database_failure",
    "primary_database_resumed_operation", "idle", "reconfig", "resume", "up",
)  # fmt: skip
_LETTERS = "ft-aAbBcCdD-eFgGhHIrRu"  # of the events
OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("set"), Opt("get"), Opt("clear"),
        *(Opt(name, letter.strip("-")) for letter, name in zip(_LETTERS, _EVENTS, strict=True)),
        Opt("flags", "", _R), Opt("id", "i", _R), Opt("jobid", "j", _R), Opt("cluster", "M", _R, "clusters"),
        Opt("clusters", "", _R), Opt("node", "n", Arg.OPTIONAL), Opt("noheader", "N"), Opt("offset", "o", _R),
        Opt("program", "p", _R), Opt("quiet", "Q"), Opt("user", "", _R), Opt("verbose", "v"), Opt("version", "V"),
        Opt("help"), Opt("usage"),
    )
)  # fmt: skip
USAGE = "Usage: strigger [--set | --get | --clear | --version] [-aAbBcCdDefFgGhHiIjnNopQrtuv]\n"
HELP = help_page(
    "Usage: strigger [--set | --get | --clear] [OPTIONS]",
    22,
    (
        ("    --set", "create a trigger: always denied"),
        ("    --get", "list triggers: there are none"),
        ("    --clear", "delete a trigger"),
        ("-a, --primary_slurmctld_failure", "when the controller fails"),
        ("-A, --primary_slurmctld_resumed_operation", "when the controller works again"),
        ("-b, --primary_slurmctld_resumed_control", "when the controller takes over again"),
        ("-B, --backup_slurmctld_failure", "when a backup controller fails"),
        ("-c, --backup_slurmctld_resumed_operation", "when a backup controller works again"),
        ("-C, --backup_slurmctld_assumed_control", "when a backup controller takes over"),
        ("    --burst_buffer", "when a burst buffer fails"),
        ("-d, --down", "when a node goes down"),
        ("-D, --drained", "when a node is drained"),
        ("    --draining", "when a node begins to drain"),
        ("-e, --primary_slurmctld_acct_buffer_full", "when records of use pile up"),
        ("-F, --fail", "when a node is to fail"),
        ("-f, --fini", "when a job ends"),
        ("-g, --primary_slurmdbd_failure", "when the accounting daemon fails"),
        ("-G, --primary_slurmdbd_resumed_operation", "when the accounting daemon works again"),
        ("-h, --primary_database_failure", "when the database fails"),
        ("-H, --primary_database_resumed_operation", "when the database works again"),
        ("-I, --idle", "when a node is idle"),
        ("-r, --reconfig", "when the configuration is read again"),
        ("-R, --resume", "when a node is back"),
        ("-t, --time", "when a job's time limit is near"),
        ("-u, --up", "when a node comes up"),
        ("    --flags=FLAG", "PERM: keep the trigger after its event"),
        ("-i, --id=#", "the trigger's number"),
        ("-j, --jobid=#", "triggers of a job"),
        ("-n, --node[=host]", "triggers of a node"),
        ("-M, --cluster=NAME", "this cluster: there is no other"),
        ("    --clusters=NAME", "the same"),
        ("-N, --noheader", "no heading"),
        ("-o, --offset=#", "seconds after the event, or before it"),
        ("-p, --program=PATH", "what to run"),
        ("-Q, --quiet", "no word when nothing is deleted"),
        ("    --user=NAME", "triggers of a user"),
        ("-v, --verbose", "say how many there are"),
        ("-V, --version", "the version"),
        ("    --help", "this text"),
        ("    --usage", "a short form of this text"),
    ),
)


def main(call: Call, site: Site) -> Command:
    """Exit code 0 for --get, 1 for the rest."""
    parsed = getopt.parse(OPTIONS, call.argv)
    if not isinstance(parsed, getopt.Parsed):
        yield from listing.errors(*parsed.lines)
        return 1
    for key, text in (("help", HELP), ("usage", USAGE), ("version", listing.VERSION + "\n")):
        if parsed.has(key):
            yield Print(text)
            return 0
    problem = _problem(parsed, site)
    if problem is not None:
        yield from listing.errors(problem)
        return 1
    if parsed.has("get"):
        if parsed.has("verbose"):
            yield from listing.errors("strigger: Read 0 trigger records")
        return 0
    yield from listing.errors(
        "slurm_set_trigger: Access/permission denied" if parsed.has("set") else "slurm_clear_trigger: No such process"
    )
    return 1


def _problem(parsed: getopt.Parsed, site: Site) -> str | None:
    for key in ("jobid", "user"):
        value = parsed.last(key)
        known = value is None or (is_number(value) if key == "jobid" else site.user_id(value) is not None)
        if not known:
            return f"strigger: error: Invalid {key} {value}"
    if sum(parsed.has(key) for key in ("set", "get", "clear")) != 1:
        return "strigger: error: You must use exactly one of the following options: --set, --get or --clear"
    number = parsed.last("id") or "0"
    if parsed.has("clear") and not any((is_number(number) and int(number), parsed.has("jobid"), parsed.has("user"))):
        return "strigger: error: You must specify a --id, --jobid, or --user to clear"
    if parsed.has("set"):
        if not any(parsed.has(event) for event in _EVENTS):
            return "strigger: error: You must specify a trigger"
        if any(parsed.has(event) for event in _JOB_EVENTS) and not parsed.has("jobid"):
            return "strigger: error: You must specify a --jobid value"
    return None
