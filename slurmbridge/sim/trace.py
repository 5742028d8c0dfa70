"""Which format is a trace in, and what does it say? SWF by its name, the others by their first line.

Every line that cannot be read is an error with its place; nothing is guessed from a broken line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import msgspec

from slurmbridge.sim import trace_csv, trace_sacct, trace_swf
from slurmbridge.sim.workload import Trace, TraceJob, at, ordered


def read(text: str, name: str) -> Trace:
    """The trace in a file of that name. Raises TraceError."""
    text = text.removeprefix("\ufeff")
    first = text.lstrip()[:1]
    if name.lower().endswith(".swf") or first == ";":
        jobs, machines, left_out = trace_swf.read(text, name)
        return _checked(Trace(jobs=ordered(jobs), machines=machines, left_out=left_out), name)
    if first == "[":
        jobs, left_out = _philly_log(text, name)
    elif trace_sacct.is_sacct(text.partition("\n")[0]):
        jobs, left_out = trace_sacct.read(text, name)
    else:
        jobs, left_out = trace_csv.read(text, name)
    return _checked(Trace(jobs=ordered(jobs), left_out=left_out), name)


def _checked(trace: Trace, name: str) -> Trace:
    """With names as Slurm keeps them: accounts and users in lower case."""
    if not trace.jobs:
        raise at(name, 1, "there is no job in it that ran")
    jobs = [msgspec.structs.replace(each, user=each.user.lower(), account=each.account.lower()) for each in trace.jobs]
    return msgspec.structs.replace(trace, jobs=tuple(jobs))


PHILLY = ("jobid", "vc", "user", "submitted_time", "start_time", "end_time", "num_gpus", "num_nodes")


def _philly_log(text: str, name: str) -> tuple[list[TraceJob], int]:
    """`cluster_job_log` of Philly: JSON with attempts; the first that has GPUs says how many, the run is all of them."""
    try:
        found = json.loads(text)
    except ValueError as fault:
        raise at(name, getattr(fault, "lineno", 1), f"not JSON: {fault}") from None
    lines = [",".join(PHILLY)]
    for entry in found if isinstance(found, list) else ():
        if not isinstance(entry, dict):
            raise at(name, 1, "an entry of the list is no job")
        attempts = [each for each in entry.get("attempts", ()) if isinstance(each, dict)]
        detail = next((each["detail"] for each in attempts if each.get("detail")), ())
        starts = [each["start_time"] for each in attempts if each.get("start_time")]
        ends = [each["end_time"] for each in attempts if each.get("end_time")]
        values = (
            entry.get("jobid"), entry.get("vc"), entry.get("user"), entry.get("submitted_time"),
            min(starts, default=""), max(ends, default="") if len(ends) == len(starts) else "",
            sum(len(each.get("gpus", ())) for each in detail), len(detail),
        )  # fmt: skip
        lines.append(_line(values))
    return trace_csv.read("\n".join(lines), name)


def _line(values: Iterable[object]) -> str:
    return ",".join(str(value or "").replace(",", ";") for value in values)
