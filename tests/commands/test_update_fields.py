"""What an update may change, who may, and what the record is afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from slurmbridge.commands.update_fields import (
    apply_node_update,
    apply_partition_update,
    apply_reservation,
    apply_update,
)
from slurmbridge.commands.update_partition import find_field, parse_value
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang.slurm_conf import read_cluster
from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig, Node, NodeConf, Partition
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Reservation
from slurmbridge.model.request import Memory, MemoryPer
from slurmbridge.model.states import NodeBase, NodeFlag
from slurmbridge.model.units import UNLIMITED
from tests.commands.sample_site import NOW, SampleSite, job, running

CONF = """\
GresTypes=gpu
AccountingStorageTRES=gres/gpu,license/matlab
Licenses=matlab:10
NodeName=n[1-4] CPUs=8 Feature=rack1
NodeName=g1 CPUs=8 Gres=gpu:4
PartitionName=debug Nodes=n[1-4] Default=YES
PartitionName=gpu Nodes=g1
"""


def config() -> ClusterConfig:
    return read_cluster({"slurm.conf": CONF}, "slurm.conf", cpus=1, memory_mib=1)


def update(before: Job, *fields: tuple[str, Any], operator: bool = False) -> Job | SlurmErrno:
    return apply_update(before, fields, config(), Accounting(), now=NOW, is_operator=operator)


def changed(before: Job, *fields: tuple[str, Any], operator: bool = False) -> Job:
    after = update(before, *fields, operator=operator)
    assert isinstance(after, Job), after
    return after


def test_the_size_of_a_waiting_job_changes_with_what_it_asks_for() -> None:
    after = changed(job(12), ("NumTasks", 3), ("MinMemoryCPU", 200), ("Gres", "gpu:2"), ("Licenses", "matlab:2"))
    assert after.spec.memory == Memory(MemoryPer.CPU, 200)
    assert after.spec.tres_per_node == "gres/gpu:2"
    assert after.spec.req_tres == (
        ("cpu", 3), ("mem", 600), ("node", 1), ("billing", 3), ("gres/gpu", 2000), ("license/matlab", 2),
    )  # fmt: skip


def test_users_lengthen_waiting_jobs_and_shorten_running_ones() -> None:
    run = replace(running(13, ("n1",), time_limit=30), time_limit_end=NOW + 1000)
    assert changed(job(12, time_limit=10), ("TimeLimit", 100)).spec.time_limit == 100
    assert update(run, ("TimeLimit", 60)) is SlurmErrno.ACCESS_DENIED
    assert changed(run, ("TimeLimit", 20)).time_limit_end == NOW - 8 + 1200
    assert changed(run, ("TimeLimit", 60), operator=True).spec.time_limit == 60


@pytest.mark.parametrize(
    ("field", "errno"),
    [
        (("Nice", -5), SlurmErrno.ACCESS_DENIED),
        (("Priority", 100), SlurmErrno.JOB_HELD),
        (("AdminComment", "x"), SlurmErrno.ACCESS_DENIED),
        (("QOS", "nosuch"), SlurmErrno.INVALID_QOS),
        (("Account", "nosuch"), SlurmErrno.INVALID_ACCOUNT),
        (("Partition", "nosuch"), SlurmErrno.INVALID_PARTITION_NAME),
        (("Features", "nosuch"), SlurmErrno.INVALID_FEATURE),
        (("ReqNodeList", "n9"), SlurmErrno.INVALID_NODE_NAME),
        (("Gres", "tape:1"), SlurmErrno.INVALID_GRES),
        (("Licenses", "nosuch"), SlurmErrno.INVALID_LICENSES),
        (("Dependency", "afterok:12"), SlurmErrno.DEPENDENCY),
        (("Deadline", 5), SlurmErrno.INVALID_TIME_VALUE),
        (("Deadline", int(NOW) + 3600), SlurmErrno.ACCESS_DENIED),
        (("Contiguous", True), SlurmErrno.ACCESS_DENIED),
        (("OverSubscribe", True), SlurmErrno.ACCESS_DENIED),
        (("CoreSpec", 1), SlurmErrno.ACCESS_DENIED),
        (("NumTasks", 0), SlurmErrno.INVALID_CPU_COUNT),
        (("CPUsPerTask", 0), SlurmErrno.INVALID_CPU_COUNT),
        (("NumNodes", (0, 0)), SlurmErrno.INVALID_NODE_COUNT),
        (("ReservationName", "nosuch"), SlurmErrno.RESERVATION_INVALID),
        (("EndTime", int(NOW) + 3600), SlurmErrno.JOB_NOT_RUNNING),
        (("NumNodes", (4, 2)), SlurmErrno.INVALID_NODE_COUNT),
    ],
)
def test_a_user_is_refused(field: tuple[str, Any], errno: SlurmErrno) -> None:
    assert update(job(12), field) is errno


def test_a_running_job_keeps_its_size() -> None:
    assert update(running(13, ("n1",)), ("NumTasks", 3)) is SlurmErrno.JOB_NOT_PENDING


def test_nothing_changes_when_one_of_several_changes_is_refused() -> None:
    assert update(job(12), ("Name", "x"), ("Partition", "nosuch")) is SlurmErrno.INVALID_PARTITION_NAME


def test_a_later_start_takes_the_eligible_time_away() -> None:
    waiting = replace(job(12), eligible_time=NOW)
    assert changed(waiting, ("StartTime", int(NOW) + 60)).eligible_time is None
    assert changed(waiting, ("Dependency", "")).spec.dependency is None


def test_an_operators_hold_and_priority() -> None:
    held = changed(replace(job(12), priority=5), ("Priority", 0), operator=True)
    assert (held.priority, held.held_by, held.reason) == (0, "admin", "JobHeldAdmin")
    assert update(held, ("Priority", 7), operator=True) is SlurmErrno.JOB_HELD
    assert changed(held, ("Priority", UNLIMITED), operator=True).held_by == ""


def test_a_drained_node_returns_without_its_reason() -> None:
    node = SampleSite().nodes()[2]
    drained = apply_node_update(node, (("State", "DRAIN"), ("Reason", "disk")), now=NOW, uid=0)
    assert not isinstance(drained, SlurmErrno)
    assert (drained.flags, drained.reason, drained.reason_uid) == (frozenset({NodeFlag.DRAIN}), "disk", 0)
    back = apply_node_update(drained, (("State", "RESUME"),), now=NOW, uid=0)
    assert not isinstance(back, SlurmErrno)
    assert (back.flags, back.reason) == (frozenset(), "")
    assert apply_node_update(node, (("State", "RESUME"),), now=NOW, uid=0) is SlurmErrno.NODE_TRANSITION
    down = apply_node_update(node, (("State", "DOWN"), ("Reason", "x")), now=NOW, uid=0)
    assert not isinstance(down, SlurmErrno) and down.base is NodeBase.DOWN


# (updates in turn, what the last one leaves: "state|reason"), as Slurm 26.05.5 left a node
TRANSITIONS = (
    ("drain:a", "IDLE+DRAIN|a"),
    ("drain:a drain:b", "IDLE+DRAIN|b"),
    ("drain:a undrain", "IDLE|"),
    ("undrain", "IDLE|"),
    ("resume", "Invalid node state transition"),
    ("drain:a idle", "IDLE|"),
    ("fail:a", "IDLE+FAIL|a"),
    ("fail:a resume", "IDLE|"),
    ("fail:a undrain", "IDLE|"),
    ("fail:a idle", "IDLE|"),
    ("fail:a drain:b", "IDLE+DRAIN|b"),
    ("down:a", "DOWN|a"),
    ("down:a drain:b", "DOWN+DRAIN|b"),
    ("down:a drain:b undrain", "DOWN|b"),
    ("down:a fail:b undrain", "DOWN+FAIL|b"),
    ("down:a drain:b resume", "IDLE|"),
    ("down:a idle", "IDLE|"),
    ("future", "FUTURE|"),
    ("drain:a future", "FUTURE|"),
    ("future resume", "IDLE|"),
    ("power_down", "Invalid power action"),
    ("cancel_reboot", "Invalid node state transition"),
    ("mixed", "Invalid node state transition"),
    ("allocated", "Invalid node state transition"),
    ("unknown", "Invalid node state transition"),
    (":foo", "IDLE|"),
    ("drain:a :b", "IDLE+DRAIN|b"),
    ("drain:a :", "IDLE+DRAIN|a"),
)


@pytest.mark.parametrize(("updates", "left"), TRANSITIONS, ids=[updates for updates, _ in TRANSITIONS])
def test_states_of_nodes_follow_each_other_as_in_slurm(updates: str, left: str) -> None:
    node = Node(conf=NodeConf(name="n1"))
    for update in updates.split():
        state, colon, reason = update.partition(":")
        fields = ((("State", state.upper()),) if state else ()) + ((("Reason", reason),) if colon else ())
        after = apply_node_update(node, fields, now=NOW, uid=7)
        if isinstance(after, SlurmErrno):
            assert after.text == left
            return
        node = after
    words = [node.base.value, *sorted(flag.value for flag in node.flags)]
    assert f"{'+'.join(words)}|{node.reason}" == left
    assert (node.reason_uid, node.reason_time) == ((7, NOW) if node.reason else (None, None))


def test_a_busy_node_cannot_be_put_off() -> None:
    busy = replace(Node(conf=NodeConf(name="n1")), running_jobs=(3,))
    assert apply_node_update(busy, (("State", "FUTURE"),), now=NOW, uid=0) is SlurmErrno.NODE_TRANSITION


def test_partitions_are_made_and_changed() -> None:
    known = ("n1", "n2", "n3")
    made = apply_partition_update(None, "tmp", (("Nodes", "n1"), ("MaxTime", 10)), known)
    assert isinstance(made, Partition) and (made.nodes, made.max_time, made.min_nodes) == (("n1",), 10, 1)
    more = apply_partition_update(made, "tmp", (("Nodes", "+n3"), ("State", "DRAIN")), known)
    assert isinstance(more, Partition) and more.nodes == ("n1", "n3")
    assert apply_partition_update(made, "tmp", (("Nodes", "n9"),), known) is SlurmErrno.INVALID_NODE_NAME


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        ("preemptmode=foo", "Invalid input: preemptmode=foo"),
        ("preemptmode=CANCEL,REQUEUE", "Invalid input: preemptmode=CANCEL,REQUEUE"),
        ("preemptmode=gang,suspend", "PreemptMode=GANG is a cluster-wide option and cannot be set at partition level"),
        ("gracetime=x", "Invalid GraceTime value: x"),
    ],
)
def test_what_partitions_may_say_of_preemption(typed: str, complaint: str) -> None:
    key, _, value = typed.partition("=")
    field = find_field(key)
    assert field is not None
    with pytest.raises(LangError) as refused:
        parse_value(field, value, typed)
    assert str(refused.value) == complaint
    assert parse_value(field, "60" if key == "gracetime" else "within,cancel", "") in (60, "WITHIN,CANCEL")


def reserve(present: tuple[Reservation, ...], verb: str, name: str, *fields: tuple[str, Any]) -> Any:
    return apply_reservation(present, verb, name, fields, SampleSite(), now=NOW)


def test_reservations_do_not_overlap_and_find_names_and_nodes() -> None:
    start = int(NOW) + 60
    when = (("StartTime", start), ("Duration", 10), ("Users", ("", ("alice",))))
    first, name = reserve((), "create", "", *when, ("Nodes", "n4"))
    assert (name, first[0].nodes, first[0].flags) == ("alice_1", ("n4",), ("SPEC_NODES",))
    assert reserve(first, "create", "b", *when, ("Nodes", "n4")) is SlurmErrno.RESERVATION_OVERLAP
    both, _ = reserve(first, "create", "b", *when, ("NodeCnt", 2))
    assert (both[1].nodes, both[1].partition) == (("n1", "n2"), "debug")
    longer, _ = reserve(both, "update", "b", ("Duration", 20))
    assert longer[1].end_time == start + 1200
    assert reserve(both, "delete", "nosuch") is SlurmErrno.RESERVATION_INVALID
    assert reserve((), "create", "c", *when, ("Nodes", "n4"), ("Flags", ("DAILY",))) is SlurmErrno.NOT_SUPPORTED


def test_output_files_move_with_the_work_folder() -> None:
    before = job(12, work_dir="/home/alice", std_out="/home/alice/o.%j", std_err="/tmp/e")
    after = changed(before, ("WorkDir", "/data")).spec
    assert (after.work_dir, after.std_out, after.std_err) == ("/data", "/data/o.%j", "/tmp/e")


def test_an_end_time_becomes_the_limit_of_a_running_job() -> None:
    run = running(13, ("n1",), time_limit=30)
    assert run.start_time is not None
    assert changed(run, ("EndTime", int(run.start_time) + 1200)).spec.time_limit == 20


def test_tasks_stay_within_a_range_of_cpus() -> None:
    ranged = changed(job(12), ("NumCPUs", (2, 4)))
    assert (ranged.spec.min_cpus, ranged.spec.max_cpus) == (2, 4)
    assert update(ranged, ("NumTasks", 6)) is SlurmErrno.INVALID_CPU_COUNT
    more = changed(ranged, ("NumTasks", 4), ("CPUsPerTask", 2))
    assert (more.spec.min_cpus, more.spec.num_tasks) == (4, 4)
    assert update(ranged, ("NumCPUs", (0, 0))) is SlurmErrno.INVALID_CPU_COUNT
    assert changed(ranged, ("NumCPUs", (3, 3))).spec.max_cpus is None
