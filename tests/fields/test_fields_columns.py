"""The registries hold every column of Slurm 26.05 (squeue -o, -O, -s; sinfo; sacct)."""

from __future__ import annotations

from slurmbridge.fields import jobs, nodes, sacct, steps

JOB_LETTERS = "AaBbCcDdEeFfGgHhIiJjKkLlMmNnOoPpQqRrSsTtUuVvWwXxYyZz"


def test_squeue_has_every_letter() -> None:
    assert set(jobs.REGISTRY.by_letter) == set(JOB_LETTERS)
    assert set(jobs.HELP_LETTERS) <= set(JOB_LETTERS)


def test_squeue_has_every_name() -> None:
    hidden = {"packjobid", "packjobidset", "packjoboffset", "tres", "gres", "shared"}
    names = set(jobs.REGISTRY.by_name)
    assert hidden <= names
    assert len(names) == 126
    assert len(jobs.REGISTRY.help_names().split()) == 119


def test_steps_have_every_letter_and_name() -> None:
    assert set(steps.REGISTRY.by_letter) == set("AbijlMNPSUu")
    assert len(steps.REGISTRY.by_name) == 35


def test_sinfo_has_every_letter_and_name() -> None:
    assert set(nodes.REGISTRY.by_letter) == set("AaBbCcDdEeFfGgHhIiLlMmNnOoPpRrSsTtUuVvwXYZz")
    assert len(nodes.REGISTRY.by_name) == 50


def test_sacct_has_every_field_once_and_in_order() -> None:
    names = [column.name for column in sacct.COLUMNS]
    assert len(names) == len(set(names)) == 123
    assert sacct.help_names().split() == names


def test_every_default_format_is_understood() -> None:
    for spec in (jobs.DEFAULT, jobs.LONG, jobs.START, jobs.ONLY_STATE):
        assert jobs.REGISTRY.from_letters(spec)[1] == []
    assert steps.REGISTRY.from_letters(steps.DEFAULT)[1] == []
    for spec in (sacct.DEFAULT, sacct.BRIEF, sacct.LONG):
        assert sacct.place(spec)[1] is None


def test_a_sacct_field_is_found_by_its_beginning() -> None:
    for name, expected in (("job", "JobID"), ("j", "JobID"), ("STATE", "State"), ("jobname", "JobName")):
        column = sacct.find(name)
        assert column is not None and column.name == expected
    assert sacct.find("nosuch") is None
