"""What do the listing commands (squeue, sinfo, sacct ...) share? Errors, versions, time zones, cluster names, repetition.

No command of its own; each function yields nothing or computes one value from a call and a site.
"""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.effects import Call, Print, Site
from slurmbridge.fields.layout import AT_ONCE
from slurmbridge.fields.structured import Value, framed, to_json, to_yaml
from slurmbridge.fields.view import View
from slurmbridge.submit import getopt

VERSION = f"slurm-wlm {SLURM_VERSION}"
_PARSERS = ("v0.0.43", "v0.0.42", "v0.0.45", "v0.0.44")
DATA_PARSER = "v0.0.45"
_STRUCTURED = frozenset({"sacct", "scontrol", "sinfo", "squeue", "sshare"})
"""Commands that write --json and --yaml."""


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """A command ends here: what it prints and its exit code. An empty line stands for a blank line."""

    stderr: tuple[str, ...] = ()
    stdout: str = ""
    exit_code: int = 1

    def effects(self) -> Iterator[Print]:
        if self.stdout:
            yield Print(self.stdout)
        yield from errors(*self.stderr)


def time_zone(call: Call, site: Site) -> datetime.tzinfo:
    """The caller's zone as the site knows it (TZ, else the machine's); UTC where the site has no opinion."""
    lookup = getattr(site, "time_zone", None)
    return lookup(call.env.get("TZ", "")) if lookup is not None else datetime.UTC


def make_view(call: Call, site: Site, *, convert: bool = True, unit: str = "", expand_patterns: bool = False) -> View:
    """The context of one listing."""

    def is_array(job_id: int) -> bool:
        job = site.job(job_id)
        return (job is not None and job.array_job_id == job_id) or bool(site.jobs_of_array(job_id))

    return View(
        config=site.config,
        now=call.now,
        tz=time_zone(call, site),
        style=call.env.get("SLURM_TIME_FORMAT", ""),
        user_name=site.user_name,
        group_name=site.group_name,
        nodes={node.name: node for node in site.nodes()},
        partitions={partition.name: partition for partition in site.partitions()},
        accounting=site.accounting,
        is_array=is_array,
        convert=convert,
        unit=unit,
        bitstr=bitstr_length(call),
        expand_patterns=expand_patterns,
    )


def is_number(text: str) -> bool:
    """Decimal digits of ASCII alone."""
    return text.isascii() and text.isdecimal()


def is_id(text: str) -> bool:
    """A number that some job, or task of an array, could have; the store knows no longer ones."""
    return is_number(text) and len(text) < 19


def bitstr_length(call: Call) -> int:
    """SLURM_BITSTR_LEN: how long the text of an array's tasks may get (0 = as long as it is)."""
    text = call.env.get("SLURM_BITSTR_LEN", "")
    return int(text) if is_number(text) and len(text) < 7 else 64


def date_line(call: Call, site: Site, now: float) -> str:
    """`Sun Nov 29 21:20:53 2026`."""
    return datetime.datetime.fromtimestamp(int(now), time_zone(call, site)).strftime("%a %b %d %H:%M:%S %Y") + "\n"


def in_pieces(lines: Iterable[str]) -> Iterator[Print]:
    """Lines with their ends, as they come, a hundred at a time: others are served between them."""
    left = iter(lines)
    while some := list(itertools.islice(left, AT_ONCE)):
        yield Print("".join(some))


def errors(*lines: str) -> Iterator[Print]:
    for line in lines:
        yield Print(line + "\n", 2)


def words(text: str) -> list[str]:
    """A comma list without empty elements."""
    return [word for word in text.split(",") if word]


def join_optional(argv: Sequence[str], shorts: str, longs: Sequence[str], no_value: str) -> list[str]:
    """Glue `-j 12` to `-j12`, `--jobs 12` to `--jobs=12`: options whose value may be left out still take the next word.

    `no_value`: letters that may stand before such an option in one word (`-hj 12`).
    """
    out: list[str] = []
    at = 0
    while at < len(argv):
        word = argv[at]
        follows = argv[at + 1] if at + 1 < len(argv) else None
        takes = follows is not None and not follows.startswith("-")
        if word == "--":
            return out + list(argv[at:])
        if takes and word.startswith("--") and "=" not in word and word[2:] in longs:
            out.append(f"{word}={follows}")
            at += 2
            continue
        is_short = len(word) >= 2 and word[0] == "-" and word[-1] in shorts and all(c in no_value for c in word[1:-1])
        if takes and is_short and follows:
            out.append(word + follows)
            at += 2
            continue
        out.append(word)
        at += 1
    return out


def cluster_problem(program: str, names: str, site: Site) -> tuple[str, ...]:
    """The lines that Slurm answers to a --clusters name it does not know; none when all are this cluster."""
    for name in names.split(","):
        if name not in (site.config.cluster_name, "all"):
            return (
                f"{program}: error: No cluster '{name}' known by database.",
                f"{program}: error: '{name}' can't be reached now, or it is an invalid entry for --cluster.  "
                "Use 'sacctmgr list clusters' to see available clusters.",
                f"{program}: fatal: Could not get cluster information",
            )
    return ()


def structured_stop(program: str, kind: str, value: str | None) -> Stop | None:
    """--json / --yaml requests that give no listing: `list` and versions that do not exist; None: a version that does."""
    if value == "list":
        plugins = "".join(f"data_parser/{name}\n" for name in _PARSERS)
        return Stop(stdout=plugins, stderr=("Possible data_parser plugins:",), exit_code=0)
    media = "x-yaml" if kind == "yaml" else kind
    tail = f"{program}: error: application/{media} output not supported by data_parser/{DATA_PARSER}"
    if value == "":
        return Stop(stderr=(f"{program}: error: data_parser_g_new: invalid plugin ", tail))
    version = (value or DATA_PARSER).partition("+")[0].removeprefix("data_parser/")
    if version not in _PARSERS:
        return Stop(
            stderr=(
                f"{program}: error: load_plugins: unable to find plugin: data_parser/{version}",
                f"{program}: error: data_parser_g_new: failure loading plugins: "
                "Plugin has invalid format or unable to be loaded",
                tail,
            )
        )
    if program not in _STRUCTURED or version != DATA_PARSER:
        asked = f"--{kind}" if version == DATA_PARSER else f"data_parser/{version}"
        return Stop(stderr=(f"{program}: error: {asked} is not available in this release of slurmbridge",))
    return None


def print_document(
    call: Call, site: Site, kind: str, name: str, elements: Iterable[str], **rest: Value
) -> Iterator[Print]:
    """Records in the frame that Slurm puts around them: the list `name` of elements as `structured.element` writes them,
    then `rest`. `kind` is json or yaml. In pieces: neither the daemon nor its other callers hold a whole listing."""
    for piece in framed(kind, name, elements, {**rest, **frame_of(call, site)}):
        yield Print(piece)


def print_whole(call: Call, site: Site, kind: str, document: Mapping[str, Value], warnings: Sequence[str]) -> Print:
    """A document that is not a list of records, in the same frame."""
    told: Value = [{"description": text, "source": ""} for text in warnings]
    whole: Value = {**document, **frame_of(call, site), "warnings": told}
    return Print(to_yaml(whole) if kind == "yaml" else to_json(whole))


def frame_of(call: Call, site: Site) -> dict[str, Value]:
    """What Slurm puts around every document: who asked what of which cluster, and no errors."""
    major, minor, micro = SLURM_VERSION.split(".")
    meta: Value = {
        "plugin": {
            "type": "",
            "name": "",
            "data_parser": f"data_parser/{DATA_PARSER}",
            "accounting_storage": "accounting_storage/slurmdbd",
        },
        "client": {"source": "", "user": call.user, "group": call.group},
        "command": list(call.argv),
        "slurm": {
            "version": {"major": major, "micro": micro, "minor": minor},
            "release": SLURM_VERSION,
            "cluster": site.config.cluster_name,
        },
    }
    return {"meta": meta, "errors": [], "warnings": []}


def complaint(program: str, problem: str) -> tuple[str, ...]:
    """The lines of a getopt mistake."""
    return getopt.complain(program, problem).lines
