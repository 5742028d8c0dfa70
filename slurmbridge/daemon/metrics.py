"""Which figures does the daemon tell Prometheus? Gathered when they are asked for, from what is counted anyway.

Labels have only so many values: states, partitions and kinds of requests, never users, accounts or jobs.
"""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from slurmbridge.daemon.memory import Memory
from slurmbridge.model.cluster import Node
from slurmbridge.model.states import JobState, NodeBase, NodeFlag
from slurmbridge.wire.prometheus import CONTENT_TYPE, Family, counter, gauge, render

EVENTS: Final = ("submitted", "started", "completed", "canceled", "failed")
Requests = Mapping[tuple[str, str, str], int]
"""(verb, resource, outcome) -> how many requests to an API server."""


class Planned(NamedTuple):
    """Of the planner, since the daemon came up."""

    cycles: int = 0
    failures: int = 0
    seconds: float = 0.0
    last_seconds: float = 0.0


class Metrics:
    """`commits`, `is_healthy`: of the store; `asked`: requests to an API server, where there is one."""

    def __init__(
        self, memory: Memory, *, planned: Callable[[], Planned], commits: Callable[[], int], is_healthy: Callable[[], bool],
        connections: Callable[[], int], version: str, asked: Callable[[], Requests] = dict,
    ) -> None:  # fmt: skip
        self._memory, self._planned, self._commits, self._is_healthy = memory, planned, commits, is_healthy
        self._connections, self._version, self._asked = connections, version, asked

    def page(self) -> tuple[str, str]:
        return CONTENT_TYPE, render(self.families())

    def families(self) -> Iterator[Family]:
        yield gauge("slurmbridge_info", "What runs; always 1.", ({"version": self._version}, 1))
        yield from self._of_jobs()
        yield from _of_nodes(self._memory.nodes())
        yield from self._of_planner()
        yield counter("slurmbridge_store_commits_total", "Commits of the store.", ({}, self._commits()))
        yield gauge(
            "slurmbridge_store_healthy", "1: the store takes writes; 0: its disk is full or fails, or its server is away.",
            ({}, self._is_healthy()),
        )  # fmt: skip
        tally = self._memory.tally
        yield counter("slurmbridge_requests_total", "Commands and reports that were served.", ({}, tally.ever_served))
        yield counter("slurmbridge_request_seconds_total", "Time that serving them took.", ({}, tally.ever_busy_s))
        yield gauge("slurmbridge_connections", "Connections of commands and supervisors.", ({}, self._connections()))
        asked = sorted(self._asked().items())
        yield counter(
            "slurmbridge_api_requests_total",
            "Requests to the Kubernetes API server by verb, resource and outcome; a watch counts each time it begins.",
            *(({"verb": verb, "resource": what, "outcome": how}, count) for (verb, what, how), count in asked),
        )
        yield from _of_process(self._memory.start_time)

    def _of_jobs(self) -> Iterator[Family]:
        by_state: Counter[JobState] = Counter()
        waiting: Counter[str] = Counter()
        running: Counter[str] = Counter()
        for (state, partitions), number in self._memory.table.counted.items():
            by_state[state] += number
            for name in partitions:
                waiting[name] += number if state is JobState.PENDING else 0
                running[name] += number if state is JobState.RUNNING else 0
        names = [partition.name for partition in self._memory.partitions()]
        yield gauge(
            "slurmbridge_jobs", "Jobs that are remembered, by state; each task of an array counts.",
            *(({"state": state.name.lower()}, by_state[state]) for state in JobState),
        )  # fmt: skip
        for name, about, found in (
            (
                "slurmbridge_partition_jobs_pending",
                "Jobs that wait; one for several partitions counts in each.",
                waiting,
            ),
            ("slurmbridge_partition_jobs_running", "Jobs that run.", running),
        ):
            yield gauge(name, about, *(({"partition": each}, found[each]) for each in names))
        ever = self._memory.tally.ever
        yield counter(
            "slurmbridge_job_events_total", "What happened to jobs since the daemon came up.",
            *(({"event": event}, ever[event]) for event in EVENTS),
        )  # fmt: skip

    def _of_planner(self) -> Iterator[Family]:
        planned = self._planned()
        yield counter("slurmbridge_cycles_total", "Planning cycles.", ({}, planned.cycles))
        yield counter("slurmbridge_cycle_failures_total", "Cycles that broke the planner.", ({}, planned.failures))
        yield counter("slurmbridge_cycle_seconds_total", "Time that planning cycles took.", ({}, planned.seconds))
        yield gauge("slurmbridge_cycle_last_seconds", "Time of the last cycle.", ({}, planned.last_seconds))


def _of_nodes(nodes: Iterable[Node]) -> Iterator[Family]:
    bases: Counter[NodeBase] = Counter()
    flags: Counter[NodeFlag] = Counter()
    cpus = used_cpus = 0
    devices: Counter[str] = Counter()
    used_devices: Counter[str] = Counter()  # milli
    for node in nodes:
        bases[node.base] += 1
        flags.update(node.flags)
        cpus, used_cpus = cpus + node.conf.cpus, used_cpus + node.alloc_cpus
        kinds = {device.index: device.type for device in node.conf.devices}
        devices.update(kinds.values())
        for index, milli, _ in node.alloc_devices:
            used_devices[kinds.get(index, "")] += milli
    yield gauge(
        "slurmbridge_nodes", "Nodes by state.", *(({"state": base.name.lower()}, bases[base]) for base in NodeBase)
    )
    yield gauge(
        "slurmbridge_nodes_flagged", "Nodes by flag; a node may have several.",
        *(({"flag": flag.name.lower()}, flags[flag]) for flag in NodeFlag),
    )  # fmt: skip
    yield gauge("slurmbridge_cpus", "CPUs of all nodes.", ({}, cpus))
    yield gauge("slurmbridge_cpus_allocated", "CPUs that jobs hold.", ({}, used_cpus))
    yield gauge(
        "slurmbridge_gpus", "GPUs and slices of all nodes, by type.",
        *(({"type": kind}, number) for kind, number in sorted(devices.items())),
    )  # fmt: skip
    yield gauge(
        "slurmbridge_gpus_allocated", "GPUs and slices that jobs hold, parts as parts.",
        *(({"type": kind}, used_devices[kind] / 1000) for kind in sorted(devices)),
    )  # fmt: skip


def _of_process(started: float) -> Iterator[Family]:
    """By the names that client libraries give them."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield counter("process_cpu_seconds_total", "CPU time of the daemon.", ({}, used.ru_utime + used.ru_stime))
    yield gauge("process_resident_memory_bytes", "Memory of the daemon.", ({}, _resident_bytes()))
    yield gauge("process_open_fds", "Open files of the daemon.", ({}, len(os.listdir("/proc/self/fd"))))
    yield gauge("process_start_time_seconds", "When the daemon came up.", ({}, started))


def _resident_bytes() -> int:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
