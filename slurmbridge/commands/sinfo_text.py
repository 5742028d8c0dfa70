"""The words of `sinfo --help` and `--usage`."""

from __future__ import annotations

from slurmbridge.commands.help_page import help_page

USAGE = """\
Usage: sinfo [-abdelNRrsTv] [-i seconds] [-t states] [-p partition] [-n nodes]
             [-S fields] [-o format] [-O Format] [--federation] [--local]
"""

HELP = help_page(
    "Usage: sinfo [OPTIONS]",
    29,
    (
        ("-a, --all", "hidden partitions too"),
        ("-d, --dead", "only nodes that do not respond"),
        ("-e, --exact", "nodes share a line only when equal in all that is shown"),
        ("    --federation", "accepted: there is one cluster"),
        ("-F, --future", "nodes in state FUTURE too"),
        ("-h, --noheader", "no heading"),
        ("    --hide", "no hidden partitions (the default)"),
        ("-i, --iterate=seconds", "list again and again after so many seconds"),
        ("-l, --long", "more columns, and the date"),
        ("    --local", "accepted: there is one cluster"),
        ("-M, --clusters=names", "this cluster's name, or all"),
        ("-n, --nodes=NODES", "only these nodes"),
        ("    --noconvert", "accepted: memory is shown in megabytes"),
        ("-N, --Node", "a line for each node and partition"),
        ("-o, --format=format", "columns by letter"),
        ("-O, --Format=format", "columns by name"),
        ("-p, --partition=PARTITION", "only these partitions"),
        ("-r, --responding", "only nodes that respond"),
        ("-R, --list-reasons", "why nodes are down or drained"),
        ("-s, --summarize", "a line for each partition"),
        ("-S, --sort=fields", "order: letters of --format, each with + or -"),
        ("-t, --states=node_state", "only nodes in these states"),
        ("-T, --reservation", "reservations only"),
        ("-v, --verbose", "accepted"),
        ("-V, --version", "the version"),
        ("", ""),
        ("Help options:", ""),
        ("    --help", "this text"),
        ("    --helpformat", "letters of --format"),
        ("    --helpFormat", "names of --Format"),
        ("    --helpstate", "words of --states"),
        ("    --usage", "a short form of this text"),
    ),
)
