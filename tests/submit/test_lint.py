"""What `slurmbridge lint` says of a script."""

from __future__ import annotations

import pytest

from slurmbridge.submit.lint import lint_script


def findings(*lines: str) -> tuple[list[str], int]:
    text, code = lint_script("job.sh", ("#!/bin/bash\n" + "".join(f"{line}\n" for line in lines) + "true\n").encode())
    return text.splitlines(), code


def test_each_directive_has_its_place_and_end() -> None:
    lines, code = findings("#SBATCH -n2 --hint=nomultithread", "#BRIDGE --gpu-memory=40G")
    assert lines[0] == "job.sh:2:9: --ntasks=2: honoured"
    assert lines[1].startswith("job.sh:2:13: --hint=nomultithread: recorded: CPUs are counted")
    assert lines[2] == "job.sh:3:9: --gpu-memory=40G: honoured"
    assert code == 0


@pytest.mark.parametrize(
    ("directive", "told"),
    [
        ("#SBATCH --container=/x", "refused: running outside the container"),
        ("#SBATCH --mem=abc", "refused: Invalid --mem specification"),
        ("#SBATCH --foo", "refused: unrecognized option '--foo'"),
        ("#SBATCH -n2 word", "refused: Invalid directive found in batch script: word"),
        ('#SBATCH -J "a', 'refused: Unmatched `"`'),
        ("#PBS -P project", "refused: invalid option -- 'P'"),
    ],
)
def test_what_sbatch_would_refuse_makes_the_exit_code_one(directive: str, told: str) -> None:
    lines, code = findings(directive)
    assert told in lines[-1]
    assert code == 1


def test_our_own_options_each_have_an_end() -> None:
    lines, code = findings("#BRIDGE --preemptible --preemptible=no --gpu-fraction=0.5")
    ends = [line.split(": ")[2] for line in lines[:3]]
    assert (ends, code) == (["honoured", "honoured", "honoured"], 0)


@pytest.mark.parametrize(
    "words",
    ["image=ubuntu", "mounts=/a:/b", "workdir=/a", "mount-home", "writable", "readonly", "env=A"],
)  # fmt: skip
def test_options_of_containers_are_honoured_where_jobs_are_pods(words: str) -> None:
    lines, code = findings(f"#BRIDGE --container-{words}")
    assert "honoured: where jobs run as pods; on virtual nodes it is refused: running outside the image" in lines[-1]
    assert code == 0


@pytest.mark.parametrize("words", ["name=x", "save=/x", "remap-root", "entrypoint", "entrypoint-log", "image=me@x"])
def test_what_no_pod_can_do_of_them_is_refused(words: str) -> None:
    lines, code = findings(f"#BRIDGE --container-{words}")
    assert ": refused: " in lines[-1]
    assert code == 1


def test_foreign_directives_are_told_in_sbatchs_words() -> None:
    lines, code = findings("#PBS -l nodes=2:ppn=3,pmem=1gb -N name", "#BSUB -W 1:30")
    assert lines == [
        "job.sh:2:1: #PBS --nodes=2: honoured",
        "job.sh:2:1: #PBS --ntasks=6: honoured",
        "job.sh:2:1: #PBS --job-name=name: honoured",
        "job.sh:2:1: #PBS -l pmem=1gb: recorded: sbatch has no counterpart and leaves it out",
        "job.sh:3:1: #BSUB --time=1:30: honoured",
    ]
    assert code == 0


def test_a_script_that_is_none_is_refused() -> None:
    assert lint_script("x", b"hello\n")[1] == 1
