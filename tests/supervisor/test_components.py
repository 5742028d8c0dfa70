"""Components of an srun: their command lines, environments, and what their tasks are told of the whole."""

from __future__ import annotations

import pytest

from slurmbridge.cli.srun_components import components, groups, inherited, of_component
from slurmbridge.cli.srun_request import Usage, parse
from slurmbridge.cli.srun_run import merged
from slurmbridge.supervisor.step_request import checked_whole


def test_a_colon_parts_command_lines() -> None:
    words = ["srun", "-l", "-n1", "a", ":", "-n2", "b", "x"]
    assert components(words) == [["srun", "-l", "-n1", "a"], ["srun", "-n2", "b", "x"]]


def test_a_component_inherits_all_but_size_and_place() -> None:
    first, second = (parse(line, {}) for line in components(["srun", "-l", "-n4", "-w", "n1", "a", ":", "b"]))
    command = inherited(second, first)
    assert ("label" in command.options, "ntasks" in command.options, "nodelist" in command.options) == (
        True,
        False,
        False,
    )
    assert command.program == ("b",)


@pytest.mark.parametrize(("text", "found"), [("0", ["0"]), ("1,0", ["0", "1"]), ("0-2", ["0", "1", "2"])])
def test_groups_are_numbers_and_ranges(text: str, found: list[str]) -> None:
    assert groups(text) == found


@pytest.mark.parametrize("text", ["x", "", "1-", "[0"])
def test_what_is_no_group_is_refused(text: str) -> None:
    with pytest.raises(Usage):
        groups(text)


def test_a_component_sees_its_own_counts() -> None:
    env = {"SLURM_NTASKS": "3", "SLURM_NTASKS_HET_GROUP_1": "2", "SLURM_CPUS_PER_TASK": "4", "HOME": "/"}
    assert of_component(env, "1") == {
        "SLURM_NTASKS": "2",
        "SLURM_NTASKS_HET_GROUP_1": "2",
        "HOME": "/",
    }


def test_the_whole_is_told_by_node_in_the_order_of_names() -> None:
    nodes = [{"name": "n10", "tasks": [0], "cpus": 1}, {"name": "n2", "tasks": [0, 1], "cpus": 4}]
    assert merged(nodes) == {"nodes": ["n2", "n10"], "tasks": [2, 1], "cpus": [4, 1]}


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        {"leader": "1", "offset": 0, "node_offset": 0, "nodes": ["n1"], "tasks": [], "cpus": [1]},
        {"leader": "1", "offset": -1, "node_offset": 0, "nodes": ["n1"], "tasks": [1], "cpus": [1]},
        {"leader": "1\0", "offset": 0, "node_offset": 0, "nodes": ["n1"], "tasks": [1], "cpus": [1]},
    ],
)
def test_nonsense_about_the_whole_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="het"):
        checked_whole(value)
