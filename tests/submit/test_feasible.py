"""What could never run is refused when it is submitted; answers are those of Slurm 26.05."""

from __future__ import annotations

import pytest

from slurmbridge.errors import SlurmErrno
from tests.submit.submit_player import play
from tests.submit.submit_site import SubmitSite

NEVER = f"sbatch: error: Batch job submission failed: {SlurmErrno.REQUESTED_NODE_CONFIG_UNAVAILABLE.text}\n"
CPUS = "sbatch: error: CPU count per node can not be satisfied\n"


def said(*words: str) -> str:
    return play(["sbatch", *words, "--wrap", "true"], SubmitSite()).stderr


@pytest.mark.parametrize(
    ("words", "before"),
    [
        ("-c9", CPUS),
        ("-c9 -n2", CPUS),
        ("--ntasks-per-node=9", CPUS),
        ("--ntasks-per-node=2 -c5", CPUS),
        ("--mincpus=9", CPUS),
        ("-a 0-1 -c9", CPUS),
        ("-d singleton -c9", CPUS),
        ("-b now+1hour -c9", CPUS),
        ("--mem=99999999", "sbatch: error: Memory specification can not be satisfied\n"),
        ("--tmp=999999", "sbatch: error: Temporary disk specification can not be satisfied\n"),
        ("--threads-per-core=4", "sbatch: error: Socket, core and/or thread specification can not be satisfied\n"),
        ("--cores-per-socket=9", "sbatch: error: Socket, core and/or thread specification can not be satisfied\n"),
        ("-n9 -N1", ""),
        ("-N2 -n17", ""),
        ("-N1-2 -n17", ""),
        ("--exclude=n[1-3] -n9", ""),
        ("-p gpu --gpus-per-node=9", ""),
        ("-p gpu --gpus=9", ""),
        ("-p gpu -N1 --gpus=5", ""),
        ("--gpus=1", ""),
    ],
)
def test_no_node_or_not_enough_of_them(words: str, before: str) -> None:
    assert said(*words.split()) == before + NEVER


@pytest.mark.parametrize(
    "words",
    [
        "-N5", "-n33", "-N4 -n33", "--exclusive -n33", "-p gpu -n65",  # a whole partition has less: it may grow
        "-w n1 -n9", "-p gpu,debug -c9",  # others help
        "-H -c9", "-H -n9 -N1",  # not looked at
        "-n32", "-N2 -n16", "-c8 -n2", "-p gpu --gpus-per-node=4", "-p gpu --gpus=8",
        "-p gpu --gpus-per-task=3 -n3",
    ],
)  # fmt: skip
def test_what_fits_or_may_come_to_fit_is_taken(words: str) -> None:
    assert said(*words.split()) == ""


def test_louder_and_silent_at_once_is_refused() -> None:
    assert said("-v", "-Q") == "sbatch: error: don't specify both --verbose (-v) and --quiet (-Q)\n"
