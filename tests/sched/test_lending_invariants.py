"""What holds wherever promised room is lent: nobody is ended in vain, and no promised start moves, whatever partitions overlap."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from slurmbridge.model.accounts import Accounting, Assoc, Qos
from slurmbridge.model.cluster import ClusterConfig, Partition, Scheduling
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta
from slurmbridge.sched.cycle import Memo, plan_cycle
from slurmbridge.sched.snapshot import Snapshot
from tests.sched.evicting import ended, marked
from tests.sched.small_cluster import CPU_NODES, NOW, carried_out, cluster, job, node, plan_of

MOST = 400
"""Events; a run is lent room three times at most, so replays end."""
ACCOUNTS = "abc"
PARTITIONS = (
    Partition(name="all", nodes=CPU_NODES, default=True),
    Partition(name="same", nodes=CPU_NODES),
    Partition(name="some", nodes=CPU_NODES[2:]),
)
RECORDS = Accounting(
    assocs=(
        Assoc(assoc_id=1, account="root"),
        *(Assoc(assoc_id=2 + place, account=name, parent="root") for place, name in enumerate(ACCOUNTS)),
        *(Assoc(assoc_id=12 + place, account=name, user="alice") for place, name in enumerate(ACCOUNTS)),
    ),
    qos=(Qos(name="normal"), Qos(name="high", priority=10)),
)
Drawn = dict[str, Any]


@st.composite
def works(draw: st.DrawFn) -> Drawn:
    nodes = draw(st.sampled_from([1, 1, 2, 3, 4]))
    return {
        "account": draw(st.sampled_from(ACCOUNTS)),
        "nodes": nodes,
        "tasks": nodes * draw(st.sampled_from([1, 4, 8])),
        "where": draw(st.sampled_from(["all", "same", "some", "some,all"] if nodes < 3 else ["all", "same"])),
        "limit": draw(st.sampled_from([10, 30, 60, 100, 300, 1000])),
        "part": draw(st.sampled_from([0.05, 0.3, 1.0])),
        "after": draw(st.sampled_from([0, 0, 60, 600, 3600])),
        "goes": draw(st.booleans()),
        "qos": draw(st.sampled_from(["normal", "normal", "normal", "high"])),
    }


def site(reserve: int, nodes: str) -> ClusterConfig:
    scheduling = Scheduling(order="fair", backfill="aged", promise="age", promised="lent", nodes=nodes)  # type: ignore[arg-type]
    return cluster(
        nodes=tuple(node(name) for name in CPU_NODES),
        partitions=PARTITIONS,
        enforce=frozenset(),
        scheduling=scheduling,
        scheduler_parameters=f"bf_job_part_count_reserve={reserve}",
    )


def jobs(written: list[Drawn]) -> list[Job]:
    found, when = [], NOW
    for number, each in enumerate(written, start=1):
        when += each["after"]
        fields: Drawn = {
            "assoc_id": 12 + ACCOUNTS.index(each["account"]),
            "partitions": tuple(each["where"].split(",")),
            "num_tasks": each["tasks"],
            "min_nodes": each["nodes"],
            "max_nodes": each["nodes"],
            "time_limit": each["limit"],
            "preemptible": each["goes"],
            "qos": each["qos"],
        }
        record = {"submit_time": when, "eligible_time": when, "accrue_time": when}
        found.append(job(number, record=record, **fields))
    return found


def ends_at(snapshot: Snapshot, written: list[Drawn]) -> dict[int, float]:
    """When each run is over: it takes a part of its limit."""
    lasts = {number: 60.0 * each["limit"] * each["part"] for number, each in enumerate(written, start=1)}
    return {number: (each.job.start_time or 0.0) + lasts[number] for number, each in snapshot.running.items()}


@settings(max_examples=80, deadline=None)
@given(
    written=st.lists(works(), min_size=4, max_size=14),
    reserve=st.sampled_from([1, 1, 3]),
    nodes=st.sampled_from(["configured", "lasting"]),
    grace_s=st.sampled_from([0, 0, 120]),
)
def test_nobody_is_ended_in_vain_or_twice_where_promised_room_is_lent(
    written: list[Drawn], reserve: int, nodes: str, grace_s: int
) -> None:
    config, records = (
        site(reserve, nodes),
        replace(RECORDS, qos=tuple(replace(each, grace_time=grace_s) for each in RECORDS.qos)),
    )
    snapshot = Snapshot.empty().apply(Delta(version=1, config=config, accounting=records))
    memo, now, coming = Memo.empty(), NOW, jobs(written)
    due: dict[int, float] = {}  # when those for whom somebody is ended are to start
    for _ in range(MOST):
        gone = tuple(number for number, end in ends_at(snapshot, written).items() if end <= now)
        came = tuple(each for each in coming if each.submit_time <= now)
        if gone or came:
            coming = [each for each in coming if each.submit_time > now]
            snapshot = snapshot.apply(Delta(version=snapshot.version + 1, jobs=came, gone=gone))
        snapshot = ended(snapshot, now)
        plan, memo = plan_cycle(snapshot, config, now, memo)
        assert plan == plan_of(snapshot, now), "the memo changed the answer"
        for start in plan.starts:
            due.pop(start.job_id, None)
        assert all(when > now for when in due.values()), "room was made for a job that does not start"
        victims = [each.job_id for each in plan.evictions]
        assert len(set(victims)) == len(victims)
        assert not {each.for_job for each in plan.evictions} & set(due), (
            "more is ended for whom something is being freed"
        )
        due |= {each.for_job: now + each.grace_s for each in plan.evictions}
        snapshot = marked(carried_out(snapshot, plan, now), plan, now)
        events = [*ends_at(snapshot, written).values(), *(each.submit_time for each in coming), *due.values()]
        if not events:
            assert not snapshot.waiting
            return
        now = max(min(events), now)
    raise AssertionError("no rest")
