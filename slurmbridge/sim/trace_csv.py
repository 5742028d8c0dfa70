"""Traces as CSV: our own layout, and those of public GPU traces, told apart by their headers.

Ours: `id,submit_s,run_s,limit_s,user,account,partition,nodes,cpus_per_node,mem_mib_per_node,gpus_per_node,gpu_milli,
gpu_mem_mib,gpu_type,preemptible,priority`. Public: the pod lists of Alibaba's cluster-trace-gpu-v2023 (OpenB), the
`cluster_log.csv` of Helios, and tables made of Philly's job log (one line a job). Those three have no time limits: a
run's own length stands for its limit.
"""

from __future__ import annotations

import csv
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence

from slurmbridge.sim.workload import TraceError, TraceJob, at

COLUMNS = (
    "id", "submit_s", "run_s", "limit_s", "user", "account", "partition", "nodes", "cpus_per_node", "mem_mib_per_node",
    "gpus_per_node", "gpu_milli", "gpu_mem_mib", "gpu_type", "preemptible", "priority",
)  # fmt: skip
NEEDED = ("id", "submit_s", "run_s")
TRUE, FALSE = ("1", "yes", "true"), ("", "0", "no", "false")
NOTHING = ("", "nan", "none", "null", "na", "unknown")


class Row:
    """One line: values by column, with errors that know where they are."""

    def __init__(self, name: str, line: int, values: Mapping[str, str]) -> None:
        self._name, self.line, self._values = name, line, values

    def text(self, column: str, default: str = "") -> str:
        value = self._values.get(column, "").strip()
        return value if value.lower() not in NOTHING else default

    def number(self, column: str, default: float = 0.0) -> float:
        text = self.text(column)
        if not text:
            return default
        try:
            value = float(text)
        except ValueError:
            raise self.wrong(f"{column}: {text!r} is no number") from None
        if not 0.0 <= value < 1e15:
            raise self.wrong(f"{column}: {text} is out of range")
        return value

    def whole(self, column: str, default: int = 0) -> int:
        value = self.number(column, float(default))
        if value != int(value):
            raise self.wrong(f"{column}: {self.text(column)} is no whole number")
        return int(value)

    def flag(self, column: str) -> bool:
        text = self.text(column).lower()
        if text not in TRUE + FALSE:
            raise self.wrong(f"{column}: {text!r} is neither yes nor no")
        return text in TRUE

    def moment(self, column: str) -> float | None:
        """Seconds, or a date as ISO 8601 writes it (UTC when it names no zone); None when nothing is said."""
        text = self.text(column)
        if not text:
            return None
        try:
            seconds = float(text)
        except ValueError:
            pass
        else:
            if not abs(seconds) < 1e15:  # nor is it nan
                raise self.wrong(f"{column}: {text} is out of range")
            return seconds
        try:
            found = datetime.datetime.fromisoformat(text)
        except ValueError:
            raise self.wrong(f"{column}: {text!r} is neither seconds nor a date") from None
        if found.tzinfo is None:
            found = found.replace(tzinfo=datetime.UTC)
        return found.timestamp()

    def wrong(self, reason: str) -> TraceError:
        return at(self._name, self.line, reason)


def rows(text: str, name: str, delimiter: str = ",") -> tuple[tuple[str, ...], Iterator[Row]]:
    """The header, and a Row for each line below it."""
    reader = csv.reader(text.splitlines(), delimiter=delimiter)
    header = tuple(word.strip() for word in next(reader, []))

    def lines() -> Iterator[Row]:
        for values in reader:
            if not values:
                continue
            if len(values) != len(header):
                raise at(name, reader.line_num, f"{len(values)} columns where the header has {len(header)}")
            yield Row(name, reader.line_num, dict(zip(header, values, strict=True)))

    return header, lines()


def _ours(row: Row) -> TraceJob:
    run = row.number("run_s")
    nodes = row.whole("nodes", 1)
    job = TraceJob(
        id=row.text("id"),
        submit_s=row.number("submit_s"),
        run_s=run,
        limit_s=max(row.number("limit_s"), run),
        user=row.text("user", "user"),
        account=row.text("account", "default"),
        partition=row.text("partition"),
        nodes=nodes,
        cpus=row.whole("cpus_per_node", 1),
        mem_mib=row.whole("mem_mib_per_node"),
        gpus=row.whole("gpus_per_node"),
        gpu_milli=row.whole("gpu_milli") or 1000,
        gpu_mem_mib=row.whole("gpu_mem_mib"),
        gpu_type=row.text("gpu_type"),
        preemptible=row.flag("preemptible"),
        priority=row.whole("priority"),
    )
    if not job.id:
        raise row.wrong("id: every job needs one")
    if nodes < 1 or job.cpus < 1:
        raise row.wrong("nodes and cpus_per_node: at least 1")
    if job.gpu_milli > 1000:
        raise row.wrong(f"gpu_milli: {job.gpu_milli} is more than a device")
    return job


def _openb(row: Row) -> TraceJob | None:
    """A pod. Pods that were never bound to a node did not run."""
    created, bound, gone = row.moment("creation_time"), row.moment("scheduled_time"), row.moment("deletion_time")
    if created is None:
        raise row.wrong("creation_time: missing")
    if bound is None or gone is None or gone <= bound:
        return None
    count, milli = row.whole("num_gpu"), row.whole("gpu_milli")
    kinds = row.text("gpu_spec").split("|")
    return TraceJob(
        id=row.text("name"),
        submit_s=created,
        run_s=gone - bound,
        limit_s=gone - bound,
        account=row.text("qos", "default"),
        cpus=max(-(-row.whole("cpu_milli") // 1000), 1),
        mem_mib=row.whole("memory_mib"),
        gpus=count,
        gpu_milli=milli if count == 1 and 0 < milli < 1000 else 1000,
        gpu_type=kinds[0] if len(kinds) == 1 else "",  # one of several kinds: any
        start_s=bound,
    )


def _helios(row: Row) -> TraceJob | None:
    submitted, started = row.moment("submit_time"), row.moment("start_time")
    run = row.number("duration")
    if submitted is None:
        raise row.wrong("submit_time: missing")
    if started is None or not run:
        return None
    gpus, cpus = row.whole("gpu_num"), row.whole("cpu_num", 1)
    nodes = max(row.whole("node_num", 1), 1)
    return TraceJob(
        id=row.text("job_id"),
        submit_s=submitted,
        run_s=run,
        limit_s=run,
        user=row.text("user", "user"),
        account=row.text("vc", "default"),
        nodes=nodes,
        cpus=max(-(-cpus // nodes), 1),
        gpus=-(-gpus // nodes),
        start_s=started,
    )


def _philly(row: Row) -> TraceJob | None:
    submitted, started, ended = row.moment("submitted_time"), row.moment("start_time"), row.moment("end_time")
    if submitted is None:
        raise row.wrong("submitted_time: missing")
    if started is None or ended is None or ended <= started:
        return None
    gpus = row.whole("num_gpus") or row.whole("gpus")
    nodes = max(row.whole("num_nodes"), -(-gpus // 8), 1)
    each = -(-gpus // nodes)
    return TraceJob(
        id=row.text("jobid"),
        submit_s=submitted,
        run_s=ended - started,
        limit_s=ended - started,
        user=row.text("user", "user"),
        account=row.text("vc", "default"),
        nodes=nodes,
        cpus=max(each, 1),
        gpus=each,
        start_s=started,
    )


Reader = Callable[[Row], TraceJob | None]
LAYOUTS: tuple[tuple[str, frozenset[str], Reader], ...] = (
    ("slurmbridge", frozenset(NEEDED), _ours),
    ("OpenB", frozenset({"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "creation_time"}), _openb),
    ("Helios", frozenset({"job_id", "gpu_num", "cpu_num", "node_num", "submit_time", "duration"}), _helios),
    ("Philly", frozenset({"jobid", "vc", "submitted_time", "start_time", "end_time"}), _philly),
)
"""(name, columns that tell it, reader of a line)"""


def read(text: str, name: str) -> tuple[list[TraceJob], int]:
    """All jobs, and how many lines are of jobs that never ran. Raises TraceError with the line."""
    header, lines = rows(text, name)
    layout = next((each for each in LAYOUTS if each[1] <= set(header)), None)
    if layout is None:
        known = ", ".join(each[0] for each in LAYOUTS)
        raise at(name, 1, f"the header is of no layout that is known ({known})")
    unknown = [column for column in header if column not in COLUMNS] if layout[2] is _ours else []
    if unknown:
        raise at(name, 1, f"unknown columns: {', '.join(unknown)}")
    jobs: list[TraceJob] = []
    seen: dict[str, int] = {}
    left_out = 0
    for row in lines:
        job = layout[2](row)
        if job is None:
            left_out += 1
            continue
        if seen.setdefault(job.id, row.line) != row.line:
            raise row.wrong(f"id: {job.id} is also that of line {seen[job.id]}")
        jobs.append(job)
    return jobs, left_out


def write(jobs: Sequence[TraceJob]) -> str:
    """Our layout: `read` gives the same jobs back."""
    lines = [",".join(COLUMNS)]
    lines += [
        ",".join(
            str(value)
            for value in (
                job.id, _short(job.submit_s), _short(job.run_s), _short(job.limit_s), job.user, job.account,
                job.partition, job.nodes, job.cpus, job.mem_mib, job.gpus, job.gpu_milli, job.gpu_mem_mib, job.gpu_type,
                "yes" if job.preemptible else "no", job.priority,
            )
        )
        for job in jobs
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _short(seconds: float) -> str:
    return str(int(seconds)) if seconds == int(seconds) else repr(seconds)
