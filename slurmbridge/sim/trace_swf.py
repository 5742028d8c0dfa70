"""Traces in the Standard Workload Format, version 2 (Parallel Workloads Archive; Feitelson et al.).

Eighteen numbers a line, -1 = not known; header comments `; Key: value` tell the machine. Processors lie anywhere. Jobs
that never ran (no processors, or no run time and cancelled) are left out; without a requested time the run time stands.
"""

from __future__ import annotations

from slurmbridge.sim.workload import Machine, TraceJob, at

FIELDS = 18
FAILED_OR_CANCELLED = (0, 5)
PARTIAL = (2, 3, 4)
"""Status of lines that repeat a part of a job that was swapped out; a line of its own sums them up."""
LARGEST = 1e15
NODE_CPUS = 64
"""CPUs of a node where the header counts processors alone; they may lie anywhere, so it does not matter."""


def read(text: str, name: str) -> tuple[list[TraceJob], tuple[Machine, ...], int]:
    """Jobs, the machine of the header, and how many jobs never ran. Raises TraceError with the line."""
    header: dict[str, int] = {}
    jobs: list[TraceJob] = []
    left_out = 0
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line:
            continue
        if line.startswith(";"):
            key, _, value = line.lstrip("; ").partition(":")
            words = value.split()
            if key.strip() in ("MaxProcs", "MaxNodes") and words and words[0].isdecimal():
                header[key.strip()] = int(words[0])
            continue
        job = _job(line, name, number)
        if job is None:
            left_out += 1
        else:
            jobs.append(job)
    return jobs, machines(header), left_out


def _job(line: str, name: str, number: int) -> TraceJob | None:
    words = line.split()
    if len(words) != FIELDS:
        raise at(name, number, f"{len(words)} fields where the format has {FIELDS}")
    try:
        values = [float(word) for word in words]
    except ValueError:
        bad = next(word for word in words if not _is_number(word))
        raise at(name, number, f"{bad!r} is no number") from None
    if not all(abs(value) < LARGEST for value in values):  # nor is any nan
        bad = next(word for word in words if not abs(float(word)) < LARGEST)
        raise at(name, number, f"{bad} is out of range")
    submit, wait, run, used, memory, asked, asked_s, asked_kib, status = (*values[1:5], *values[6:11])
    if submit < 0:
        raise at(name, number, "the submission time is missing")
    processors = int(asked if asked > 0 else used)
    if processors <= 0 or run < 0 or status in PARTIAL or (run == 0 and status in FAILED_OR_CANCELLED):
        return None
    kib = asked_kib if asked_kib > 0 else memory
    return TraceJob(
        id=words[0],
        submit_s=submit,
        run_s=run,
        limit_s=max(asked_s, run),
        user=f"user{int(values[11])}" if values[11] >= 0 else "user",
        account=f"group{int(values[12])}" if values[12] >= 0 else "default",
        nodes=0,
        cpus=processors,
        mem_mib=int(kib // 1024) if kib > 0 else 0,
        start_s=submit + wait if wait >= 0 else None,
    )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def machines(header: dict[str, int]) -> tuple[Machine, ...]:
    """MaxNodes equal nodes of MaxProcs CPUs in all."""
    processors, nodes = header.get("MaxProcs", 0), header.get("MaxNodes", 0)
    if not processors:
        return (Machine(node="n", count=nodes, cpus=1),) if nodes else ()
    if nodes and nodes <= processors and processors % nodes == 0 and processors // nodes > 1:
        return (Machine(node="n", count=nodes, cpus=processors // nodes),)
    whole, rest = divmod(processors, NODE_CPUS)
    found = [Machine(node="n", count=whole, cpus=NODE_CPUS)] if whole else []
    return tuple([*found, Machine(node="rest", cpus=rest)] if rest else found)
