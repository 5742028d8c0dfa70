"""Traces from accounting: what `sacct -P` (or -p) printed, with any fields, as long as those that matter are there.

Needed: JobID, Submit, and Elapsed or both Start and End. Used when there: User, Account, Partition, Timelimit, NNodes,
NCPUS, ReqMem, ReqTRES or AllocTRES. Priority is not: it was the order of that site at that time. Steps are passed over;
jobs that never started are left out. Source: sacct(1), "Job Accounting Fields".
"""

from __future__ import annotations

import datetime
import re

from slurmbridge.errors import LangError
from slurmbridge.lang import durations
from slurmbridge.model.units import UNLIMITED
from slurmbridge.sim.trace_csv import Row, rows
from slurmbridge.sim.workload import TraceJob

NEVER = ("unknown", "none", "")
SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)([KMGTP]?)")
"""As sacct prints amounts of memory: `62.50G`; MiB without a unit."""


def is_sacct(first_line: str) -> bool:
    """Whether a file that begins so is of sacct."""
    words = {word.strip().lower() for word in first_line.split("|")}
    return "|" in first_line and "jobid" in words and "submit" in words


def read(text: str, name: str) -> tuple[list[TraceJob], int]:
    """Jobs, and how many never started. Raises TraceError with the line."""
    lines = text.splitlines()
    if lines:
        lines[0] = lines[0].lower()
    _, found = rows("\n".join(lines), name, "|")
    jobs: list[TraceJob] = []
    left_out = 0
    for row in found:
        number = row.text("jobid")
        if not number:
            raise row.wrong("JobID: missing")
        if "." in number:
            continue
        job = _job(row, number)
        if job is None:
            left_out += 1
        else:
            jobs.append(job)
    return jobs, left_out


def _job(row: Row, number: str) -> TraceJob | None:
    submitted, started, ended = (_moment(row, column) for column in ("submit", "start", "end"))
    if submitted is None:
        raise row.wrong("Submit: missing")
    run = _elapsed(row, started, ended)
    if run is None or (started is None and not run):
        return None
    limit = _limit(row)
    tres = _tres(row)
    nodes = max(row.whole("nnodes") or int(tres.get("node", 1)), 1)
    cpus = row.whole("ncpus") or row.whole("reqcpus") or row.whole("alloccpus") or int(tres.get("cpu", 1))
    milli = round(1000 * tres.get("gres/gpu", 0.0))
    kind = next((key.removeprefix("gres/gpu:") for key in tres if key.startswith("gres/gpu:")), "")
    whole = milli % 1000 == 0
    return TraceJob(
        id=number,
        submit_s=submitted,
        run_s=run,
        limit_s=max(limit, run),
        user=row.text("user", "user"),
        account=row.text("account", "default"),
        partition=row.text("partition").split(",")[0],
        nodes=nodes,
        cpus=max(-(-cpus // nodes), 1),
        mem_mib=_memory(row, tres, nodes, max(cpus, 1)),
        gpus=-(-milli // 1000 // nodes) if whole else 1,
        gpu_milli=1000 if whole or milli > 1000 else milli,
        gpu_type=kind,
        start_s=started,
    )


def _moment(row: Row, column: str) -> float | None:
    """Local times of the site are read as UTC: only differences count."""
    text = row.text(column)
    if text.lower() in NEVER:
        return None
    if text.isdecimal():
        return row.moment(column)
    try:
        return datetime.datetime.fromisoformat(text).replace(tzinfo=datetime.UTC).timestamp()
    except ValueError:
        raise row.wrong(f"{column}: {text!r} is no time") from None


def _elapsed(row: Row, started: float | None, ended: float | None) -> float | None:
    raw = row.text("elapsedraw")
    if raw:
        return row.number("elapsedraw")
    text = row.text("elapsed")
    if not text:
        return None if started is None or ended is None else max(ended - started, 0.0)
    try:
        return float(durations.parse_seconds(text))
    except LangError as fault:
        raise row.wrong(f"Elapsed: {text!r} is no time") from fault


def _limit(row: Row) -> float:
    raw = row.text("timelimitraw")
    if raw.isdecimal():
        return 60.0 * int(raw)
    text = row.text("timelimit")
    if not text or text in ("Partition_Limit", "UNLIMITED"):
        return 0.0
    try:
        minutes = durations.parse_minutes(text)
    except LangError as fault:
        raise row.wrong(f"Timelimit: {text!r} is no time") from fault
    return 0.0 if minutes == UNLIMITED else 60.0 * minutes


def _tres(row: Row) -> dict[str, float]:
    """Counts by name, `mem` in MiB."""
    text = row.text("reqtres") or row.text("alloctres")
    found: dict[str, float] = {}
    for part in text.split(",") if text else ():
        key, equals, value = part.partition("=")
        if key == "mem":
            found[key] = _mib(row, value)
        elif key in ("cpu", "node") or key.startswith("gres/gpu"):
            try:
                found[key] = float(value)
            except ValueError:
                raise row.wrong(f"TRES: {part!r} is no count" if equals else f"TRES: {part!r} has no count") from None
            if not 0.0 <= found[key] < 1e9:  # nor is it nan
                raise row.wrong(f"TRES: {part!r} is out of range")
    return found


def _memory(row: Row, tres: dict[str, float], nodes: int, cpus: int) -> int:
    """MiB of each node. ReqMem ends in `c` or `n` (per CPU, per node) in old output, else it is of the job."""
    if "mem" in tres:
        return int(tres["mem"]) // nodes
    text = row.text("reqmem")
    if not text or text == "0":
        return 0
    per = text[-1] if text[-1] in "cn" else ""
    mib = _mib(row, text.removesuffix(per) if per else text)
    return int(mib * cpus / nodes if per == "c" else mib if per == "n" else mib / nodes)


def _mib(row: Row, text: str) -> float:
    match = SIZE.fullmatch(text)
    if match is None:
        raise row.wrong(f"memory: {text!r} is no size")
    amount, unit = float(match[1]), match[2] or "M"
    return amount / 1024 if unit == "K" else amount * 1024.0 ** "MGTP".index(unit)
