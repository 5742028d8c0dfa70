"""What is wrong with pods becomes Slurm's words, within a bounded time."""

from __future__ import annotations

from typing import Any

import pytest

from slurmbridge.lifecycle.ends import Death
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, NodeState, SeenPod
from slurmbridge.reconcile.trouble import REFUSALS, TABLE, Patience, Sign, next_look, refusal, trouble_of
from slurmbridge.runtime.kube.faults import Kind

PATIENCE = Patience()
FOREVER = 10_000.0


def pod(rank: int = 0, **changes: Any) -> SeenPod:
    values: dict[str, Any] = {"name": f"p{rank}", "uid": "u", "key": RunKey(1, 0), "rank": rank, "node": "n1"}
    return SeenPod(**{**values, **changes})


CASES: list[tuple[dict[str, Any], str, float]] = [
    ({"waiting": "InvalidImageName"}, "launch", 0),
    ({"waiting": "ErrImagePull"}, "launch", PATIENCE.image),
    ({"waiting": "ImagePullBackOff"}, "launch", PATIENCE.image),
    ({"waiting": "CreateContainerConfigError"}, "launch", PATIENCE.config),
    ({"life": Life.WAITING, "event": "FailedMount"}, "launch", PATIENCE.mount),
    ({"life": Life.WAITING, "event": "FailedCreatePodSandBox"}, "launch", PATIENCE.sandbox),
    ({"life": Life.WAITING, "waiting": "ContainerCreating"}, "launch", PATIENCE.start),
    ({"life": Life.UNTAKEN}, "launch", PATIENCE.start),
    ({"life": Life.ENDED, "reason": "OutOfcpu"}, "requeue", 0),
    ({"life": Life.ENDED, "reason": "OutOfnvidia.com/gpu"}, "requeue", 0),
    ({"life": Life.ENDED, "reason": "UnexpectedAdmissionError"}, "requeue", 0),
    ({"life": Life.ENDED, "reason": "SysctlForbidden"}, "launch", 0),
    ({"life": Life.ENDED, "reason": "Evicted"}, "node_fail", 0),
    ({"life": Life.ENDED, "reason": "NodeShutdown"}, "node_fail", 0),
    ({"life": Life.ENDED, "exit_reason": "OOMKilled"}, "oom", 0),
    ({"life": Life.ENDED, "exit_reason": "StartError", "last_words": "exec: no such file"}, "launch", 0),
    (
        {"life": Life.ENDED, "exit_reason": "StartError", "last_words": "failed to create shim task: context canceled"},
        "requeue",
        0,
    ),
    ({"life": Life.RUNNING, "disruption": "PreemptionByScheduler"}, "preempt", 0),
    ({"life": Life.RUNNING, "disruption": "DeletionByTaintManager"}, "node_fail", 0),
    ({"life": Life.RUNNING, "is_deleting": True}, "node_fail", 0),
    ({"life": Life.RUNNING, "node_state": NodeState.GONE}, "node_fail", 0),
    ({"life": Life.RUNNING, "node_state": NodeState.OUT_OF_SERVICE}, "node_fail", 0),
]


@pytest.mark.parametrize(("seen", "why", "after"), CASES, ids=[" ".join(map(str, case[0].values())) for case in CASES])
def test_a_sign_of_the_cluster_is_a_reason_of_slurm_after_its_time(
    seen: dict[str, Any], why: str, after: float
) -> None:
    found = trouble_of([pod(**seen)], after)
    assert found is not None and found.why == why
    early = trouble_of([pod(**seen)], after - 1)
    assert early == (found if after == 0 else None)  # a clock that is late hides nothing that is certain


@pytest.mark.parametrize("life", [Life.RUNNING, Life.ENDED])
def test_what_went_wrong_before_a_pod_started_is_forgotten(life: Life) -> None:
    assert trouble_of([pod(life=life, waiting="ImagePullBackOff", event="FailedMount")], FOREVER) is None


@pytest.mark.parametrize("life", [Life.UNTAKEN, Life.WAITING])
def test_nothing_that_waits_waits_forever(life: Life) -> None:
    assert trouble_of([pod(life=life)], FOREVER) is not None
    moment: float | None = 0.0
    while moment is not None and trouble_of([pod(life=life)], moment) is None:
        moment = next_look([pod(life=life)], moment)
    assert moment == PATIENCE.start


def test_a_silent_node_is_no_trouble_yet() -> None:
    assert trouble_of([pod(life=Life.RUNNING, node_state=NodeState.SILENT)], FOREVER) is None


def test_of_several_signs_the_cause_is_told_and_not_what_follows_from_it() -> None:
    pods = [
        pod(0, is_deleting=True),
        pod(1, life=Life.ENDED, reason="Evicted", exit_reason="OOMKilled", message="disk"),
    ]
    found = trouble_of(pods, FOREVER)
    assert found is not None and (found.why, found.rank) == ("node_fail", 1)
    assert found.message == "rank 1 on n1: its node evicted it (Evicted: disk)"


def test_every_outcome_is_one_that_a_job_can_have() -> None:
    known = {death.value for death in Death}
    assert {rule.why for rule in TABLE} <= known
    assert {rule.within for rule in TABLE} <= {"at once", *Patience.__struct_fields__}
    assert {rule.sign for rule in TABLE} == set(Sign)


def test_every_fault_of_an_api_server_is_a_refusal_in_the_end() -> None:
    assert REFUSALS.keys() == {kind.value for kind in Kind}
    for kind in Kind:
        found = refusal(kind.value, "words", 0.0, FOREVER)
        assert found is not None and found.why == "launch" and "words" in found.message


def test_a_refusal_that_stays_is_not_tried_again_and_one_that_passes_is() -> None:
    assert refusal("invalid", "", 0.0, 0.0) is not None
    assert refusal("throttled", "", 0.0, 1.0) is None
