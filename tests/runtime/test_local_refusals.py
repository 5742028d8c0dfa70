"""What srun in a job does not do, and what it says then, as real processes."""

from __future__ import annotations

import pathlib

import pytest

from slurmbridge.runtime.protocol import LaunchNode
from tests.runtime.local_bench import NODES, SRUN, LocalBench, use

pytestmark = pytest.mark.processes


def test_srun_finds_the_job_by_its_id_alone_and_refuses_others(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "export -f srun; env -i BASH_FUNC_srun%%=\"$(declare -f srun | sed 1d | sed '1s/^/() /')\" PATH=$PATH SLURM_JOB_ID=1 "
            "SLURMBRIDGE_ADDR=$SLURMBRIDGE_ADDR bash -c 'srun -l echo $SLURM_JOB_ID'\n"
            "srun --jobid=77 true; echo $?\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=NODES)
        lines = (await bench.finish(key)).splitlines()
        assert sorted(lines[:2]) == ["0: 1", "1: 1"]  # the tasks are on two nodes and no order is promised
        assert lines[2:] == [
            "srun: error: Unable to confirm allocation for job 77: Invalid job id specified",
            "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 77", "1",
        ]  # fmt: skip

    use(state, rule)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--bad x", "srun: unrecognized option '--bad'"),
        ("-Z x", "srun: error: --no-allocate: "),
        ("--mpi=bad x", "srun: error: MPI: Cannot create context for mpi/bad"),
        ("-n x y", 'srun: error: Invalid numeric value "x" for --ntasks.'),
        ("", "srun: fatal: No command given to execute."),
        ("-n3 true", "srun: error: Unable to create step for job 1: More processors requested than permitted"),
        ("--mem=9G true", "srun: error: Unable to create step for job 1: Memory required by task is not available"),
        ("-m arbitrary true", "srun: error: --distribution=arbitrary: "),
    ],
)
def test_what_srun_cannot_do_is_refused(state: pathlib.Path, words: str, line: str) -> None:
    async def rule(bench: LocalBench) -> None:
        nodes = (LaunchNode(rank=0, node="n1", cpus=2, memory_mib=100),)
        key = bench.launch(1, "#!/bin/bash\n" + SRUN + f"srun {words}; echo rc=$?\n", nodes=nodes)
        lines = (await bench.finish(key)).splitlines()
        assert lines[0].startswith(line)
        assert lines[-1] != "rc=0"

    use(state, rule)


def test_a_job_has_no_more_steps_than_it_may(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + "for i in 1 2 3; do srun echo $i; done\n"
        key = bench.launch(1, script, max_steps=2)
        assert (await bench.finish(key)).splitlines() == [
            "1",
            "2",
            "srun: error: Unable to create step for job 1: Step limit reached for this job",
        ]

    use(state, rule)
