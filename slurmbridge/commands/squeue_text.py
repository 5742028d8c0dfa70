"""The words of `squeue --help` and `--usage`."""

from __future__ import annotations

from slurmbridge.commands.help_page import help_page

USAGE = """\
Usage: squeue [-A account] [--clusters names] [-i seconds] [--job jobid]
              [-n name] [-o format] [--only-job-state] [-p partitions]
              [--qos qos] [--reservation reservation] [--sort fields] [--start]
              [--step step_id] [-t states] [-u user_name] [--usage]
              [-L licenses] [-w nodes] [--federation] [--local] [--sibling]
              [--expand-patterns] [--json=data_parser] [--yaml=data_parser]
              [--running-over=time] [--running-under=time] [-ahjlrsv]
"""

HELP = help_page(
    "Usage: squeue [OPTIONS]",
    34,
    (
        ("-A, --account=account(s)", "only jobs of these accounts"),
        ("-a, --all", "accepted: jobs of hidden partitions are shown anyway"),
        ("    --expand-patterns", "file name patterns of StdIn, StdOut and StdErr filled in"),
        ("    --federation", "accepted: there is one cluster"),
        ("-h, --noheader", "no heading"),
        ("    --hide", "accepted: jobs of hidden partitions are shown anyway"),
        ("-i, --iterate=seconds", "list again and again after so many seconds"),
        ("-j, --job=job(s)", "only these jobs: ID, ID_TASK, ID+COMPONENT"),
        ("    --local", "accepted: there is one cluster"),
        ("-l, --long", "more columns, and the date"),
        ("-L, --licenses=name(s)", "only jobs that ask for these licences"),
        ("-M, --clusters=name", "this cluster's name, or all"),
        ("    --me", "only your own jobs"),
        ("    --notme", "all but your own jobs"),
        ("-n, --name=job_name(s)", "only jobs of these names"),
        ("    --noconvert", "memory in the unit it was asked in"),
        ("-o, --format=format", "columns by letter"),
        ("-O, --Format=format", "columns by name"),
        ("    --only-job-state", "ids and states only"),
        ("-p, --partition=partition(s)", "only jobs of these partitions"),
        ("-P, --priority", "a waiting job once for each of its partitions"),
        ("-q, --qos=qos(s)", "only jobs of these QOS"),
        ("-R, --reservation=name(s)", "only jobs of these reservations"),
        ("-r, --array", "one line for each array task"),
        ("    --running-over=time", "only jobs that have run longer"),
        ("    --running-under=time", "only jobs that have run shorter"),
        ("-s, --step=step(s)", "job steps, all or these"),
        ("-S, --sort=fields", "order: letters of --format, each with + or -"),
        ("    --start", "waiting jobs with their expected start"),
        ("-t, --states=states", "only these states; all: every state"),
        ("-u, --user=user_name(s)", "only jobs of these users"),
        ("-v, --verbose", "accepted"),
        ("-V, --version", "the version"),
        ("-w, --nodelist=hostlist", "only jobs on these nodes"),
        ("", ""),
        ("Help options:", ""),
        ("    --help", "this text"),
        ("    --helpformat", "letters of --format"),
        ("    --helpFormat", "names of --Format"),
        ("    --helpstate", "words of --states"),
        ("    --usage", "a short form of this text"),
    ),
)
