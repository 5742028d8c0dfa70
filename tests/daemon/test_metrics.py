"""Figures for Prometheus: they follow jobs and nodes, never count down what only grows, and name no user or job."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable

from slurmbridge.daemon.metrics import Metrics, Planned
from tests.daemon.controlled import CONF, Site

SAMPLE = re.compile(r"(?P<name>[a-z_]+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")
TWO = CONF + "PartitionName=night Nodes=n[1-2] MaxTime=INFINITE\n"


def metrics_of(site: Site) -> Metrics:
    return Metrics(
        site.controller.memory, planned=lambda: Planned(7, 1, 3.5, 0.25), commits=lambda: 11, is_healthy=lambda: True,
        connections=lambda: 2, version="1.2", asked=lambda: {("list", "pods", "ok"): 4, ("create", "pods", "down"): 1},
    )  # fmt: skip


def figures(site: Site) -> dict[str, float]:
    """`name{labels}` -> value."""
    found = {}
    for line in metrics_of(site).page()[1].splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            key = match["name"] + (f"{{{match['labels']}}}" if match["labels"] else "")
            assert key not in found
            found[key] = float(match["value"])
    return found


def with_site(rule: Callable[[Site], Awaitable[None]], conf: str = TWO) -> None:
    async def whole() -> None:
        made = Site(conf)
        await made.start()
        await rule(made)

    asyncio.run(whole())


def test_jobs_are_counted_by_state_and_partition_every_task_of_an_array() -> None:
    async def rule(site: Site) -> None:
        await site.submit("-n1 -p debug")
        await site.submit("-n1 --array=1-40 -p night -H")
        await site.submit("-n1 -H -p debug,night")
        told = figures(site)
        assert (told['slurmbridge_jobs{state="running"}'], told['slurmbridge_jobs{state="pending"}']) == (1, 41)
        assert told['slurmbridge_partition_jobs_pending{partition="night"}'] == 41
        assert told['slurmbridge_partition_jobs_pending{partition="debug"}'] == 1
        assert told['slurmbridge_partition_jobs_running{partition="debug"}'] == 1
        await site.run("scancel --state=PENDING --user=alice", user="root")
        await site.advance(2)
        told = figures(site)
        assert told['slurmbridge_jobs{state="pending"}'] == 0
        assert told['slurmbridge_jobs{state="cancelled"}'] == 41
        assert told['slurmbridge_job_events_total{event="started"}'] == 1

    with_site(rule)


def test_jobs_that_are_forgotten_are_counted_no_more_but_as_what_happened() -> None:
    async def rule(site: Site) -> None:
        await site.submit("-n1 -t1", body="exit 0")
        await site.advance(700, step=50)
        site.controller.purge()
        told = figures(site)
        assert sum(value for key, value in told.items() if key.startswith("slurmbridge_jobs{")) == 0
        assert not site.controller.memory.table.counted
        assert told['slurmbridge_job_events_total{event="submitted"}'] == 1

    with_site(rule)


def test_what_is_held_of_nodes_is_counted() -> None:
    async def rule(site: Site) -> None:
        await site.submit("-n8 -p debug")
        await site.run("scontrol update nodename=n4 state=drain reason=x", user="root")
        told = figures(site)
        assert (told["slurmbridge_cpus"], told["slurmbridge_cpus_allocated"]) == (32, 8)
        assert told['slurmbridge_nodes{state="allocated"}'] == 1
        assert told['slurmbridge_nodes{state="idle"}'] == 3
        assert told['slurmbridge_nodes_flagged{flag="drain"}'] == 1

    with_site(rule)


def test_counting_anew_for_sdiag_takes_nothing_from_what_only_grows() -> None:
    async def rule(site: Site) -> None:
        await site.submit("-n1")
        before = figures(site)
        assert (await site.run("sdiag --reset", user="root")).code == 0
        after = figures(site)
        growing = [key for key in before if key.split("{")[0].endswith("_total")]
        assert growing and all(after[key] >= before[key] for key in growing)

    with_site(rule)


def test_planner_store_and_api_server_are_told_of() -> None:
    async def rule(site: Site) -> None:
        told = figures(site)
        assert told["slurmbridge_cycles_total"] == 7 and told["slurmbridge_cycle_failures_total"] == 1
        assert told["slurmbridge_cycle_seconds_total"] == 3.5 and told["slurmbridge_store_commits_total"] == 11
        assert told['slurmbridge_api_requests_total{verb="create",resource="pods",outcome="down"}'] == 1
        assert told["slurmbridge_connections"] == 2 and told["process_resident_memory_bytes"] > 1 << 20

    with_site(rule)


def test_no_label_has_a_name_that_users_choose_and_more_jobs_make_no_more_samples() -> None:
    async def rule(site: Site) -> None:
        before = figures(site).keys()
        for number in range(30):
            await site.submit(f"-n1 -J secret{number} --comment=secret{number}", user=("alice", "bob")[number % 2])
        told = figures(site)
        assert told.keys() == before
        text = metrics_of(site).page()[1]
        assert not any(word in text for word in ("alice", "bob", "secret"))

    with_site(rule)


def test_nothing_is_left_of_jobs_that_change_their_partition() -> None:
    async def rule(site: Site) -> None:
        job = await site.submit("-n1 -H -p debug")
        for name in ("night", "debug", "debug,night", "night"):
            assert (await site.run(f"scontrol update jobid={job} partition={name}", user="root")).code == 0
        told = figures(site)
        assert told['slurmbridge_partition_jobs_pending{partition="debug"}'] == 0
        assert told['slurmbridge_partition_jobs_pending{partition="night"}'] == 1
        assert len(site.controller.memory.table.counted) == 1

    with_site(rule)
