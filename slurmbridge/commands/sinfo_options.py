"""What does a sinfo command line ask for? Options and SINFO_* variables into one record.

Follows sinfo(1). A default format is chosen by --long, --Node, --summarize and --list-reasons; `#` in it means: as wide
as the longest name.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Call, Site
from slurmbridge.commands.listing import Stop, is_number
from slurmbridge.commands.sinfo_text import HELP, USAGE
from slurmbridge.errors import LangError
from slurmbridge.fields import node_states
from slurmbridge.fields import nodes as node_fields
from slurmbridge.fields.letters import help_letters
from slurmbridge.lang import hostlist
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

_R, _O = Arg.REQUIRED, Arg.OPTIONAL

OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", _R), Opt("all", "a"), Opt("dead", "d"), Opt("exact", "e"), Opt("federation"),
        Opt("future", "F"), Opt("help"), Opt("helpformat"), Opt("helpFormat"), Opt("helpstate"), Opt("hide"),
        Opt("iterate", "i", _R), Opt("json", "", _O), Opt("local"), Opt("long", "l"), Opt("cluster", "", _R, "clusters"),
        Opt("clusters", "M", _R), Opt("nodes", "n", _R), Opt("noconvert"), Opt("noheader", "h"), Opt("Node", "N"),
        Opt("format", "o", _R), Opt("Format", "O", _R), Opt("partition", "p", _R), Opt("responding", "r"),
        Opt("list-reasons", "R"), Opt("summarize", "s"), Opt("sort", "S", _R), Opt("states", "t", _R),
        Opt("reservation", "T"), Opt("usage"), Opt("verbose", "v"), Opt("version", "V"), Opt("yaml", "", _O),
    )
)  # fmt: skip

# Formats: (summarize, list reasons, node-centric) -> (short, long).
_SUMMARY = "%#P %.5a %.10l %.16F %N"
_REASONS = ("%20E %9u %19H %N", "%20E %12U %19H %6t %N")
_BY_NODE = ("%#N %.6D %.#P %6t", "%#N %.6D %.#P %.11T %4c %.8z %.6m %.8d %.6w %.8f %20E")
_DEFAULT = ("%#P %.5a %.10l %.6D %.6t %N", "%#P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %.11i %N")


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """A sinfo request. None: not restricted."""

    nodes: frozenset[str] | None = None
    partitions: frozenset[str] | None = None
    states: node_states.Test | None = None
    dead: bool = False
    responding: bool = False
    future: bool = False
    exact: bool = False
    hidden: bool = False
    by_node: bool = False
    reasons: bool = False
    reservations: bool = False
    summarize: bool = False
    header: bool = True
    long: bool = False
    format: str = ""
    named: bool = False
    sort: str = "#P,-t"
    iterate: int = 0
    names_cluster: bool = False  # clusters were asked for: each list is headed by its cluster's name
    document: str = ""  # "json", "yaml"


def read(call: Call, site: Site) -> Wanted | Stop:
    """The request; operands are passed over, as sinfo does."""
    scan = getopt.scan(OPTIONS, call.argv[1:])
    for given in scan.options:
        stop = _immediate(given.key, given.value)
        if stop is not None:
            return stop
    if scan.problem:
        return Stop(stderr=getopt.complain("sinfo", scan.problem).lines)
    values = {given.key: given.value for given in scan.options}
    clusters = values.get("clusters", call.env.get("SLURM_CLUSTERS"))
    if clusters is not None:
        problem = listing.cluster_problem("sinfo", clusters, site)
        if problem:
            return Stop(stderr=problem)
    iterate = 0
    if "iterate" in values:
        text = values["iterate"] or ""
        iterate = int(text) if is_number(text) and len(text) < 10 else 0
        if not iterate:
            return Stop(stderr=(f"sinfo: error: Error: invalid entry for --iterate={text}",))
    nodes = None
    if "nodes" in values:
        try:
            nodes = frozenset(hostlist.expand(values["nodes"] or ""))
        except LangError:
            return Stop(stderr=(f"sinfo: error: '{values['nodes']}' invalid entry for --nodes",))
    test = None
    if "states" in values:
        found = node_states.parse(values["states"] or "")
        if isinstance(found, str):
            valid = ",".join(word for word, _ in node_states.WORDS)
            lines = (f'sinfo: error: Bad state string: "{found}"', f"sinfo: error: valid states: {valid}")
            return Stop(stderr=lines)
        test = found
    partitions = values.get("partition", call.env.get("SINFO_PARTITION"))
    layout, named = _format(call, scan.options, values)
    return Wanted(
        document=next((kind for kind in reversed(list(values)) if kind in ("json", "yaml")), ""),
        nodes=nodes,
        partitions=None if partitions is None else frozenset(listing.words(partitions)),
        states=test,
        dead="dead" in values,
        responding="responding" in values,
        future="future" in values or "SINFO_FUTURE" in call.env,
        exact="exact" in values,
        hidden="all" in values or "SINFO_ALL" in call.env,
        by_node="Node" in values,
        reasons="list-reasons" in values,
        reservations="reservation" in values,
        summarize="summarize" in values,
        header="noheader" not in values,
        long="long" in values,
        format=layout,
        named=named,
        sort=values.get("sort") or call.env.get("SINFO_SORT") or ("N" if "Node" in values else "#P,-t"),
        iterate=iterate,
        names_cluster=clusters is not None and "noheader" not in values,
    )


def _format(call: Call, options: list[getopt.Given], values: dict[str, str | None]) -> tuple[str, bool]:
    """(format, whether it is -O's): the last of -o and -O, the environment, then what the other options stand for."""
    for given in reversed(options):
        if given.key in ("format", "Format"):
            return given.value or "", given.key == "Format"
    long = "long" in values
    if "summarize" in values:
        return _SUMMARY, False
    if "Node" in values:
        return _BY_NODE[long], False
    if "list-reasons" in values:
        return _REASONS[long], False
    if "SINFO_FORMAT" in call.env:
        return call.env["SINFO_FORMAT"], False
    return _DEFAULT[long], False


def _immediate(key: str, value: str | None) -> Stop | None:
    """Options that end the command where they stand."""
    texts: dict[str, Callable[[], str]] = {
        "help": lambda: HELP,
        "usage": lambda: USAGE,
        "version": lambda: listing.VERSION + "\n",
        "helpformat": lambda: help_letters(node_fields.HELP_LETTERS),
        "helpFormat": node_fields.REGISTRY.help_names,
        "helpstate": lambda: "".join(f"{word}\n" for word, _ in node_states.WORDS),
    }
    if key in texts:
        return Stop(stdout=texts[key](), exit_code=0)
    if key in ("json", "yaml"):
        return listing.structured_stop("sinfo", key, value)
    return None
