"""Files of scheduling cases: what is refused with which place, and what `sim decide` prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from slurmbridge.cli.sim import sim
from slurmbridge.errors import ConfigError
from slurmbridge.sched.policy import KAI
from slurmbridge.sim import case_file
from slurmbridge.sim.cases import decide
from tests.sched.small_pods import case, job, node, queue

WORLD = case(
    [node("n", 2)],
    [queue("a0", gpus=1), queue("b1", gpus=1)],
    [job("r", "a0", "1@n"), job("s", "a0", "1@n"), job("w", "b1", "1")],
    rounds=3,
)


def spoilt(path: str, value: object) -> bytes:
    """The world as a file, with one value replaced (`jobs.0.queue`)."""
    document: Any = json.loads(msgspec.json.encode({"schema": 1, "cases": [WORLD]}))
    place: Any = document["cases"][0]
    *way, last = path.split(".")
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("jobs.1.tasks.0.state", "Odd", "case case: task s-0: state Odd is not known"),
        ("jobs.1.name", "r", "case case: job r is given twice"),
        ("queues.0.parent", "b1", "case case: queues are each other's parents"),
        ("nodes.0.gpus", "two", "not a file of scheduling cases: Expected `int`, got `str` - at `$.cases[0].nodes[0].gpus`"),
        ("session.actions.0", "dance", "not a file of scheduling cases: Invalid enum value 'dance' - at `$.cases[0].session.actions[0]`"),
        ("jobs.0.tasks.0.request.gpus", -1, "case case: task r-0: a negative number of devices"),
    ],
)  # fmt: skip
def test_a_file_that_does_not_hang_together_is_refused_with_the_place(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        case_file.read(spoilt(path, value))
    assert str(refused.value) == message


@pytest.mark.parametrize(("path", "value"), [("jobs.2.queue", "x"), ("queues.2.parent", "z")])
def test_what_waits_for_a_queue_that_is_not_there_goes_on_waiting(path: str, value: str) -> None:
    (given,) = case_file.read(spoilt(path, value))
    assert {name: answer.decision for name, answer in decide(given, KAI).items()} == {
        "r": "keep",
        "s": "keep",
        "w": "stay_pending",
    }


def test_what_runs_on_a_node_that_is_gone_is_left_alone() -> None:
    (given,) = case_file.read(spoilt("jobs.1.tasks.0.node", "m"))
    assert decide(given, KAI)["s"].decision == "keep"
    assert decide(given, KAI)["w"].decision == "start"


def test_an_id_may_be_used_once() -> None:
    with pytest.raises(ConfigError, match="case case: the id is given twice"):
        case_file.read(msgspec.json.encode({"cases": [WORLD, WORLD]}))


def test_decide_prints_every_task_of_every_job(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_bytes(msgspec.json.encode({"cases": [WORLD]}))
    answer = json.loads(CliRunner().invoke(sim, ["decide", str(file)], catch_exceptions=False).output)
    assert answer == {
        "case": {
            "r": {"decision": "keep", "tasks": [{"decision": "keep", "node": "n", "gpu_group": None}]},
            "s": {"decision": "evict", "tasks": [{"decision": "evict", "node": None, "gpu_group": None}]},
            "w": {"decision": "start", "tasks": [{"decision": "start", "node": "n", "gpu_group": None}]},
        }
    }


def test_decide_tells_of_affinity_between_pods_that_is_not_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_bytes(spoilt("jobs.2.tasks.0.pod_affinity", {"topology_key": "rack"}))
    result = CliRunner().invoke(sim, ["decide", str(file)], catch_exceptions=False)
    assert result.exit_code == 0
    assert result.stderr == (
        "slurmbridge: note: affinity between pods is not looked at; 1 cases ask for it (the first: case)\n"
    )
    assert json.loads(result.stdout)["case"]["w"]["decision"] == "start"


def test_decide_tells_where_a_file_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "cases.json"
    file.write_text("{")
    result = CliRunner().invoke(sim, ["decide", str(file)])
    assert result.exit_code == 1
    assert "not a file of scheduling cases: " in result.output
