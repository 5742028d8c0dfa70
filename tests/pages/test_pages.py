"""Man pages and shell completion say what the commands take, and nothing else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from slurmbridge.cli.described import described
from slurmbridge.commands.pages import bash, manpage, zsh
from slurmbridge.commands.pages import described as describing
from slurmbridge.commands.pages.described import PURPOSES, describe, rows_of_help
from slurmbridge.commands.pages.values import BUILT_IN, SOURCES
from slurmbridge.commands.table import COMMANDS
from slurmbridge.submit.options import LETTERS
from tests.pages.shells import BASH, SHARE, ZSH, bash_offers, fake_commands, zsh_completes

NAMES = sorted(PURPOSES)


def test_every_slurm_command_has_a_page_and_a_completion() -> None:
    assert sorted(name for name in COMMANDS if name != "slurmbridge") == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_option_of_the_table_is_described(name: str) -> None:
    command = describe(name)
    assert [choice.long for choice in command.choices if not choice.help] == []
    if COMMANDS[name].module and name not in LETTERS:
        assert {choice.long for choice in command.choices} == {
            opt.long for opt in describing.options_of(name) if opt.long != "autocomplete"
        }


@pytest.mark.parametrize("name", NAMES)
def test_every_source_of_values_is_known_to_the_shells(name: str) -> None:
    command = describe(name)
    sources = {choice.values.source for choice in command.choices} | {
        each.source for each in command.words.keys.values()
    }
    sources |= {word[1:] for words in command.words.branches.values() for word in words if word.startswith("@")}
    assert sources - {""} <= SOURCES.keys() | BUILT_IN


def test_help_texts_are_read_with_letters_names_placeholders_and_the_lines_that_go_on() -> None:
    rows = rows_of_help(
        "Usage: x\n  -A, --account=name(s)     only these\n      --all            all\n"
        "     -h or --help: this text\n    -o, --format=          columns, and\n                           more\n"
        "Other:\n    not an option\n"
    )
    assert [(row.short, row.longs, row.meta, row.text) for row in rows] == [
        ("A", ("account",), "name(s)", "only these"),
        ("", ("all",), "", "all"),
        ("h", ("help",), "", "this text"),
        ("o", ("format",), "", "columns, and more"),
    ]


def test_a_text_never_becomes_a_request_or_an_escape_of_roff() -> None:
    assert manpage.text(".SH a\\fB\n'x") == "\\&.SH a\\efB\n\\&'x"


def test_the_page_tells_what_is_refused_and_why() -> None:
    page = manpage.manpage(describe("sbatch"), package="slurmbridge")
    assert ".I Refused:" in page and ".I Recorded:" in page and "\\fBSBATCH_PARTITION\\fR" in page


@pytest.mark.skipif(shutil.which("mandoc") is None, reason="mandoc is not installed")
def test_pages_are_without_fault_for_mandoc(tmp_path: Path) -> None:
    for command in (*map(describe, NAMES), described()):
        page = tmp_path / f"{command.name}.1"
        page.write_text(manpage.manpage(command, package="slurmbridge"))
        lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True, check=False)
        assert [line for line in lint.stdout.splitlines() if "missing date" not in line] == []


def test_completions_are_scripts_that_bash_reads() -> None:
    for path in BASH.iterdir():
        subprocess.run(["bash", "-n", path], check=True)


@pytest.mark.parametrize(
    ("line", "offers"),
    [
        ("sbatch --part", ["--partition="]),
        ("sbatch --partition=b", ["batch"]),
        ("sbatch --partition=batch,l", ["batch,long"]),
        ("sbatch -p lo", ["long"]),
        ("sbatch -plo", ["-plong"]),
        ("sbatch -w n", ["n1", "n2"]),
        ("sbatch -C s", ["ssd"]),
        ("sbatch --mail-type=END,F", ["END,FAIL"]),
        ("sbatch -A ch", ["chem"]),
        ("sbatch --licenses=m", ["matlab"]),
        ("sbatch --hold --wrap", ["--wrap="]),
        ("squeue -t pend", ["pending"]),
        ("squeue -O JobArr", ["JobArrayId"]),
        ("sacct --format=MaxRSSN", ["MaxRSSNode"]),
        ("scancel 1", ["12", "13_1"]),
        ("scontrol up", ["update"]),
        ("scontrol show job ", ["12", "13_1"]),
        ("scontrol -o show job ", ["12", "13_1"]),
        ("scontrol hold 12 ", ["12", "13_1"]),
        ("scontrol update JobId=12 Ti", ["TimeLimit=", "TimeMin="]),
        ("scontrol update NodeName=n1 State=d", ["DOWN", "DRAIN"]),
        ("scontrol update NodeName=", ["n1", "n2"]),
        ("sacctmgr -i modify user alice set MaxSub", ["MaxSubmitJobs="]),
        ("sacctmgr show ass", ["association"]),
        ("slurmbridge check", ["check-config"]),
        ("slurmbridge bench d", ["daemon"]),
    ],
)
def test_bash_offers_what_the_tables_and_the_controller_know(line: str, offers: list[str], tmp_path: Path) -> None:
    fake_commands(tmp_path)
    assert bash_offers(line, tmp_path) == offers


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("sbatch --parti", "sbatch --partition="),
        ("sbatch --partition=batch,lo", "sbatch --partition=batch,long"),
        ("sbatch -p lo", "sbatch -p long"),
        ("sbatch --mail-type=END,FA", "sbatch --mail-type=END,FAIL"),
        ("squeue -t pend", "squeue -t pending"),
        ("scontrol upd", "scontrol update "),
        ("scontrol update NodeName=n1 State=DO", "scontrol update NodeName=n1 State=DOWN"),
        ("slurmbridge che", "slurmbridge check-config "),
    ],
)
def test_zsh_completes_what_the_tables_and_the_controller_know(line: str, after: str, tmp_path: Path) -> None:
    fake_commands(tmp_path)
    assert zsh_completes(line, tmp_path) == after


def test_a_command_that_is_not_built_says_so_on_its_page() -> None:
    for name, entry in COMMANDS.items():
        if name in PURPOSES and not entry.module and name != "srun":
            assert "Not available in this release" in manpage.manpage(describe(name), package="slurmbridge")


def test_every_file_is_named_as_the_shells_look_for_it() -> None:
    assert {path.name for path in BASH.iterdir()} == {*NAMES, "slurmbridge", bash.FUNCTIONS_FILE}
    assert {path.name for path in ZSH.iterdir()} == {f"_{name}" for name in (*NAMES, "slurmbridge")} | set(
        zsh.functions()
    )


def test_the_package_installs_every_file_below_the_prefix() -> None:
    """What setup.py hands to setuptools, read as setuptools reads it."""
    root = BASH.parents[2]
    kept = subprocess.run(
        [sys.executable, "-c", _DATA_FILES], cwd=root, capture_output=True, text=True, check=True
    ).stdout.split()
    assert sorted(kept) == sorted(str(path.relative_to(root)) for path in SHARE.rglob("*") if path.is_file())


_DATA_FILES = """
import setuptools
setuptools.setup = lambda **given: print("\\n".join(name for folder, names in given["data_files"] for name in names))
exec(open("setup.py").read())
"""
