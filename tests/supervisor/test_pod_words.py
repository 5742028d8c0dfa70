"""What a pod leaves to be read when it has ended, and what it reads of its container."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.supervisor import pod_env, pod_memory
from slurmbridge.supervisor.pod_words import LIMIT, exit_code, last_words

STEP = st.fixed_dictionaries(
    {"step_id": st.integers(-5, 40_000), "name": st.text(max_size=40), "state": st.just("COMPLETED"), "start": st.floats(0, 2e9),
     "submit_line": st.text(max_size=300), "nodes": st.lists(st.text(max_size=30), max_size=40), "exit": st.integers(0, 65535)}
)  # fmt: skip


@given(st.lists(STEP, max_size=60), st.text(max_size=3000) | st.just("\U0001f40c" * 600))
def test_last_words_are_a_record_that_fits(steps: list[dict[str, object]], message: str) -> None:
    report = {"kind": "ended", "time": 1.5, "status": 9, "why": "exit", "usage": {}, "steps": steps, "message": message}
    words, is_all = last_words(report)
    read = json.loads(words)
    assert len(words) <= LIMIT
    assert {name: read[name] for name in ("kind", "time", "status", "why")} == {
        "kind": "ended",
        "time": 1.5,
        "status": 9,
        "why": "exit",
    }
    assert [step["step_id"] for step in read["steps"]] == [step["step_id"] for step in steps[: len(read["steps"])]]
    assert is_all == (read == report)


@pytest.mark.parametrize(
    ("why", "status", "code"),
    [("exit", 0, 0), ("exit", 3 << 8, 3), ("exit", 9, 137), ("timeout", 15, 143), ("cancelled", 0, 143), ("oom", 125, 137),
     ("launch", 0, 1), ("node_fail", 15, 143)],
)  # fmt: skip
def test_a_container_ends_as_its_script_or_as_what_ended_it(why: str, status: int, code: int) -> None:
    assert exit_code(why, status) == code


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [("memory.events", "low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n", 2),
     ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n", 1),
     ("memory.events", "low 0\n", 0), ("nothing", "", 0)],
)  # fmt: skip
def test_what_the_kernel_killed_for_want_of_memory_is_counted(tmp_path: Path, name: str, text: str, count: int) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert pod_memory.kills(str(tmp_path)) == count


def test_a_job_has_what_the_container_has_and_over_it_what_is_said() -> None:
    env = pod_env.of_job(
        {"PATH": "/image", "A": "image", "B": "image"}, {"A": "said"}, {"B": "login", "PATH": "/login"}, "unix:/x"
    )
    assert env == {"PATH": "/opt/slurmbridge/commands:/login", "A": "said", "B": "login", "SLURMBRIDGE_ADDR": "unix:/x"}
    again = pod_env.of_job(env, {}, {}, "unix:/y")
    assert again["PATH"] == env["PATH"] and again["SLURMBRIDGE_ADDR"] == "unix:/y"


def test_a_step_from_outside_leaves_the_other_machines_files_behind_unless_they_are_here_too() -> None:
    brought = {"PATH": "/there", "LD_PRELOAD": "x", "HOSTNAME": "login", "MINE": "1"}
    container = {"PATH": "/image", "HOSTNAME": "n1"}
    env = pod_env.of_step(container, brought, "unix:/x", host_software=False)
    assert (
        env["PATH"].endswith(":/image") and env["HOSTNAME"] == "n1" and env["MINE"] == "1" and "LD_PRELOAD" not in env
    )
    env = pod_env.of_step(container, brought, "unix:/x", host_software=True)
    assert env["PATH"].endswith(":/there") and env["HOSTNAME"] == "n1" and env["LD_PRELOAD"] == "x"
