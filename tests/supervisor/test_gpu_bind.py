"""Which of its step's devices a task sees under srun --gpu-bind (srun(1))."""

from __future__ import annotations

import pytest

from slurmbridge.supervisor.step_env import bound


@pytest.mark.parametrize(
    ("binding", "seen"),
    [
        ("single:1", [(4,), (5,), (6,), (7,)]),
        ("single:2", [(4,), (4,), (5,), (5,)]),
        ("map_gpu:0,1", [(4,), (5,), (4,), (5,)]),
        ("verbose,map_gpu:3,0x1", [(7,), (5,), (7,), (5,)]),
        ("mask_gpu:0x3,0xc", [(4, 5), (6, 7), (4, 5), (6, 7)]),
        ("per_task:2", [(4, 5), (6, 7), (6, 7), (6, 7)]),
        ("none", [None] * 4),
        ("closest", [None] * 4),
        ("", [None] * 4),
    ],
)
def test_a_binding_narrows_what_the_tasks_of_a_node_see(binding: str, seen: list[object]) -> None:
    assert [bound(binding, (4, 5, 6, 7), local) for local in range(4)] == seen


def test_without_devices_nothing_is_bound() -> None:
    assert bound("single:1", (), 0) is None
