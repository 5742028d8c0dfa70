"""Expected texts: sbatch 26.05 --array and the ArrayTaskId that scontrol then shows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.errors import LangError
from slurmbridge.lang import arrays

SHOWN = {
    "1-10:2": "1,3,5,7,9", "0-15%4": "0-15%4", "1-3,7-9%2": "1-3,7-9%2", "0-20000": "0-20000", "1-5%-1": "1-5",
    "1-5%0": "1-5", "1-5%": "1-5", "1-5%x": "1-5", "[1-3]": "1-3", "[1-3%2]": "1-3%2", "[1-3": "1-3", "1-3]": "1-3",
    "[1,3],[5]": "1,3,5", "1-10:3%2": "1,4,7,10%2", "01-03": "1-3", "1-3, 5": "1-3,5", "1-3,": "1-3", ",1": "1",
    "1,,2": "1-2", "1-5:9": "1", "3,1,2": "1-3", "1-3,1-3": "1-3", "%2": "0%2", "1%2,3": "1,3%2", "1%2%3": "1%2",
    "0-100:10": "0-100:10", "0-100:7": "0-98:7", "1-18:3": "1-16:3", "1-15:3": "1,4,7,10,13",
    "1,4,7,10,13,16,19": "1-19:3", "0-20:10": "0,10,20", "1,3,5-20:5": "1,3,5,10,15,20", "": "", ",": "",
    "1-1000:5,2": "1-2,6,11,16,21,26,31,36,41,46,51,56,61,66,71,76,81,86,91,96,...",
    "1000-1999:50,1": "1,1000,1050,1100,1150,1200,1250,1300,1350,1400,1450,1500,155...",
}  # fmt: skip
REFUSED = "5-1 1- 1:2 1-5:0 1-3: 1-3:-1 -1 1-3-5 25000 99999 0x10 1:3 a 1.5 1--3 4294967296".split()


@pytest.mark.parametrize("text", SHOWN)
def test_tasks_are_shown_as_scontrol_shows_them(text: str) -> None:
    spec = arrays.parse(text, 25000)
    assert arrays.render(spec.runs, spec.limit) == SHOWN[text]


@pytest.mark.parametrize("text", ["1 - 3", "1-3 ", *REFUSED])
def test_a_bad_array_is_refused(text: str) -> None:
    with pytest.raises(LangError):
        arrays.parse(text, 25000)


def test_a_large_array_is_one_run() -> None:
    assert arrays.parse("0-3999999%7", 4_000_001).runs == ((0, 3999999, 1),)


TASKS = st.sets(st.integers(0, 300), max_size=40).map(sorted)


@given(TASKS)
def test_runs_hold_exactly_the_tasks(tasks: list[int]) -> None:
    runs = arrays.to_runs(tasks)
    assert list(arrays.expand_runs(runs)) == tasks
    assert arrays.count(runs) == len(tasks)
    assert arrays.first(runs) == (tasks[0] if tasks else None)


@given(TASKS, st.integers(0, 50))
def test_a_rendered_array_parses_to_the_same_tasks(tasks: list[int], limit: int) -> None:
    runs = arrays.to_runs(tasks)
    spec = arrays.parse(arrays.render(runs, limit if runs else 0, width=0), 1000)
    assert (spec.runs, spec.limit) == (runs, limit if runs else 0)


@given(TASKS, st.integers(0, 300))
def test_removing_a_task_removes_only_that_one(tasks: list[int], task: int) -> None:
    rest = arrays.remove(arrays.to_runs(tasks), task)
    assert list(arrays.expand_runs(rest)) == [each for each in tasks if each != task]
    assert not arrays.contains(rest, task)
