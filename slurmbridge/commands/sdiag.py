"""sdiag: what has the controller done since it came up, and how long did it take?

Follows sdiag(1). Planning cycles are counted as the main scheduler's; those that had to look ahead, because a job waits
for resources, also as backfill's. Requests are listed by the messages that ask for the same work in Slurm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from slurmbridge.commands import listing
from slurmbridge.commands.effects import Alter, Call, Command, Print, Site
from slurmbridge.commands.help_page import help_page
from slurmbridge.model.statistics import Cycles, Requests, Statistics
from slurmbridge.submit import getopt
from slurmbridge.submit.getopt import Arg, Opt

OPTIONS = getopt.OptTable(
    (
        Opt("autocomplete", "", Arg.REQUIRED), Opt("all", "a"), Opt("help", "h"), Opt("reset", "r"), Opt("sort-by-id", "i"),
        Opt("sort-by-time", "t"), Opt("sort-by-time2", "T"), Opt("json", "", Arg.OPTIONAL), Opt("yaml", "", Arg.OPTIONAL),
        Opt("cluster", "M", Arg.REQUIRED, "clusters"), Opt("clusters", "", Arg.REQUIRED), Opt("usage"),
        Opt("version", "V"),
    )
)  # fmt: skip

USAGE = "\nUsage: sdiag [-M cluster] [-aritT] \n"
HELP = "Usage: sdiag [OPTIONS]\n" + help_page(
    "",
    23,
    (
        ("-a, --all", "all figures"),
        ("-r, --reset", "start counting anew"),
        ("-M, --cluster=NAME", "figures of this cluster"),
        ("-i, --sort-by-id", "requests by the number of their message"),
        ("-t, --sort-by-time", "requests by their time in all"),
        ("-T, --sort-by-time2", "requests by their average time"),
        ("-V, --version", "the version"),
        ("    --json, --yaml", "not offered yet"),
        ("    --help", "this text"),
        ("    --usage", "a short form of this text"),
    ),
)
_RULE = "*" * 55


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    scan = getopt.scan(OPTIONS, call.argv[1:])
    texts = {"help": HELP, "usage": USAGE, "version": listing.VERSION + "\n"}
    for given in scan.options:
        if given.key in texts:
            yield Print(texts[given.key])
            return 0
    if scan.problem:
        yield from listing.errors(*getopt.complain("sdiag", scan.problem).lines)
        return 1
    parsed = scan.parsed
    lines = listing.cluster_problem("sdiag", parsed.last("clusters") or site.config.cluster_name, site)
    if lines:
        yield from listing.errors(*lines)
        return 1
    for kind in ("json", "yaml"):
        if parsed.has(kind):
            stop = listing.structured_stop("sdiag", kind, parsed.last(kind))
            if stop is not None:
                yield from stop.effects()
                return stop.exit_code
    if parsed.has("reset"):
        outcome = yield Alter(kind="statistics", verb="reset")
        if outcome.errno is not None:
            yield Print(f"slurm_reset_statistics: {outcome.errno.text}\n", 2)
            return 255
        yield Print("Reset scheduling statistics\n")
        return 0
    order = next((given.key for given in reversed(parsed.options) if given.key in _ORDERS), "")
    yield Print(render(site.statistics(), lambda moment: _moment(call, site, moment), order))
    return 0


def _moment(call: Call, site: Site, moment: float | None) -> str:
    if moment is None:
        return "N/A"
    return f"{listing.date_line(call, site, moment).strip()} ({int(moment)})"


_ORDERS: dict[str, Callable[[Requests], float]] = {
    "sort-by-id": lambda each: each.number,
    "sort-by-time": lambda each: -each.total_us,
    "sort-by-time2": lambda each: -(each.total_us / max(each.count, 1)),
}


def render(told: Statistics, moment: Callable[[float | None], str], order: str = "") -> str:
    """The page as sdiag prints it."""
    main, ahead = told.main, told.ahead
    minutes = (told.now - told.since) / 60
    out = [
        _RULE, f"sdiag output at {moment(told.now)}", f"Data since      {moment(told.since)}", _RULE,
        f"Server thread count:  {told.threads}", "RPC queue enabled:    0", f"Agent queue size:     {told.queued}",
        f"Agent count:          {1 if told.queued else 0}", f"Agent thread count:   {min(told.queued, 1) * 3}",
        f"DBD Agent queue size: {told.commits}", "",
        f"Jobs submitted: {told.submitted}", f"Jobs started:   {told.started}", f"Jobs completed: {told.completed}",
        f"Jobs canceled:  {told.canceled}", f"Jobs failed:    {told.failed}", "",
        f"Job states ts:  {moment(told.now)}", f"Jobs pending:   {told.pending}", f"Jobs running:   {told.running}", "",
        "Main schedule statistics (microseconds):",
        f"\tLast cycle:   {main.last_us}", f"\tMax cycle:    {main.max_us}", f"\tTotal cycles: {main.count}",
        *_if(main.count, f"\tMean cycle:   {_mean(main.total_us, main)}"),
        *_if(main.count, f"\tMean depth cycle:  {_mean(main.total_depth, main)}"),
        *_if(minutes >= 1, f"\tCycles per minute: {int(main.count / minutes) if minutes else 0}"),
        f"\tLast queue length: {main.last_queue}", "",
        "Main scheduler exit:", f"\tEnd of job queue:{main.count:2d}", *_EXITS_OF_MAIN, "",
        "Backfilling stats",
        f"\tTotal backfilled jobs (since last slurm start): {told.backfilled_ever}",
        f"\tTotal backfilled jobs (since last stats cycle start): {told.backfilled}",
        f"\tTotal backfilled heterogeneous job components: {told.backfilled_parts}",
        f"\tTotal cycles: {ahead.count}", f"\tLast cycle when: {moment(ahead.last_when)}",
        f"\tLast cycle: {ahead.last_us}", f"\tMax cycle:  {ahead.max_us}",
        *_if(ahead.count, f"\tMean cycle: {_mean(ahead.total_us, ahead)}"),
        f"\tLast depth cycle: {ahead.last_depth}", f"\tLast depth cycle (try sched): {ahead.last_depth}",
        *_if(ahead.count, f"\tDepth Mean: {_mean(ahead.total_depth, ahead)}"),
        *_if(ahead.count, f"\tDepth Mean (try depth): {_mean(ahead.total_depth, ahead)}"),
        f"\tLast queue length: {ahead.last_queue}",
        *_if(ahead.count, f"\tQueue length mean: {_mean(ahead.total_queue, ahead)}"),
        f"\tLast table size: {told.last_table}",
        *_if(ahead.count, f"\tMean table size: {_mean(told.total_table, ahead)}"),
        "", "Backfill exit", f"\tEnd of job queue: {ahead.count}", *_EXITS_OF_BACKFILL, "",
        f"Latency for 1000 calls to gettimeofday(): {told.clock_us} microseconds", "",
        "Remote Procedure Call statistics by message type", *_requests(told.messages, 40, 5, order), "",
        "Remote Procedure Call statistics by user", *_requests(told.users, 16, 8, order), "",
        "Pending RPC statistics", "\tNo pending RPCs",
    ]  # fmt: skip
    return "\n".join(out) + "\n"


_EXITS_OF_MAIN = (
    "\tHit default_queue_depth: 0", "\tHit sched_max_job_start: 0", "\tBlocked on licenses: 0", "\tHit max_rpc_cnt: 0",
    "\tTimeout (max_sched_time): 0",
)  # fmt: skip
_EXITS_OF_BACKFILL = (
    "\tHit bf_max_job_start: 0", "\tHit bf_max_job_test: 0", "\tSystem state changed: 0",
    "\tHit table size limit (bf_node_space_size): 0", "\tTimeout (bf_max_time): 0",
)  # fmt: skip
"""A cycle of ours always looks through the whole queue."""


def _if(wanted: object, line: str) -> tuple[str, ...]:
    return (line,) if wanted else ()


def _mean(total: int, cycles: Cycles) -> int:
    return total // max(cycles.count, 1)


def _requests(rows: Iterable[Requests], name_width: int, number_width: int, order: str) -> list[str]:
    found = sorted(rows, key=_ORDERS[order]) if order else list(rows)
    return [
        f"\t{each.name:<{name_width}}({each.number:{number_width}d}) count:{each.count:<6} "
        f"ave_time:{each.total_us // max(each.count, 1):<6} total_time:{each.total_us}"
        for each in found
    ]
