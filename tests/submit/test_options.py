"""Rules of the option table itself."""

from __future__ import annotations

import pathlib

import pytest

import slurmbridge.wire.srun_options as generated
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.request import JobRequest
from slurmbridge.submit import generate, helptext
from slurmbridge.submit.option import End, Option
from slurmbridge.submit.options import BY_LONG, ENVIRONMENT, TABLE
from slurmbridge.submit.values import READERS

FIELDS = set(JobRequest.__struct_fields__)


def name(option: Option) -> str:
    return f"{option.long}-{option.commands}"


@pytest.mark.parametrize("option", TABLE, ids=name)
def test_every_option_has_one_end_and_says_why_it_is_not_honoured(option: Option) -> None:
    assert (option.end is End.HONOURED and not option.needs) == (option.why == "")
    assert not option.needs or option.needs in Capabilities.__struct_fields__


@pytest.mark.parametrize("option", TABLE, ids=name)
def test_every_option_can_be_read(option: Option) -> None:
    assert option.kind in READERS


@pytest.mark.parametrize("option", [o for o in TABLE if "b" in o.commands and o.field], ids=name)
def test_every_field_of_an_sbatch_option_is_one_of_the_request(option: Option) -> None:
    assert option.field in FIELDS | {"ignore_pbs"}


@pytest.mark.parametrize("command", list(BY_LONG))
def test_no_two_options_of_a_command_share_a_letter(command: str) -> None:
    letters = [option.short for option in BY_LONG[command].values() if option.short]
    assert len(letters) == len(set(letters))


@pytest.mark.parametrize("command", list(ENVIRONMENT))
def test_every_variable_stands_for_an_option_of_its_command(command: str) -> None:
    assert all(long.rstrip("@") in BY_LONG[command] for _, long in ENVIRONMENT[command])


def test_refused_options_are_refused_by_their_reader() -> None:
    refused = [option for option in TABLE if option.end is End.REFUSED and "b" in option.commands]
    assert {option.kind for option in refused} <= {"refused", "flag", "recorded", "external", "resv_ports"}


def test_the_standard_library_module_is_fresh() -> None:
    assert pathlib.Path(generated.__file__).read_text() == generate.module_text()


def test_the_standard_library_module_indexes_its_rows() -> None:
    assert generated.BY_LONG["ntasks"][1] == "n"
    assert generated.BY_SHORT["N"][0] == "nodes"
    assert generated.BY_LONG["cpus-per-task"][3] == ("SLURM_CPUS_PER_TASK",)
    assert "gpu-fraction" in generated.WHOLE


@pytest.mark.parametrize("command", list(BY_LONG))
def test_help_names_every_option(command: str) -> None:
    page = helptext.help_page(command)
    assert all(f"--{option.long}" in page for option in BY_LONG[command].values() if option.help)
    assert max(map(len, helptext.usage(command).splitlines())) <= 80
