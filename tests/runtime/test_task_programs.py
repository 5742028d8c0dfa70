"""Programs around tasks: TaskProlog and TaskEpilog of the site, --task-prolog and --task-epilog, as real processes."""

from __future__ import annotations

import pathlib
import re

import pytest

from tests.runtime.contract import ended
from tests.runtime.local_bench import NODES, SRUN, LocalBench, use

pytestmark = pytest.mark.processes

PROLOG = """#!/bin/sh
echo "export FOO=bar baz"
echo "unset GONE"
echo "print hello $SLURM_PROCID $SLURM_SCRIPT_CONTEXT"
echo "other words mean nothing"
echo "nobody reads this" >&2
echo $SLURM_TASK_PID >> pids
exit ${RC:-0}
"""
EPILOG = """#!/bin/sh
echo "$SLURM_SCRIPT_CONTEXT $SLURM_PROCID" >> {folder}/after
echo unseen
exit ${{RC:-0}}
"""


def _program(folder: pathlib.Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def _plain(text: str) -> list[str]:
    """Without the times of slurmstepd's lines."""
    return re.sub(r"^\[[^]]*\] ", "", text, flags=re.MULTILINE).splitlines()


def test_a_prolog_changes_the_environment_of_its_task_and_prints(state: pathlib.Path, tmp_path: pathlib.Path) -> None:
    prolog = _program(tmp_path, "prolog", PROLOG)

    async def rule(bench: LocalBench) -> None:
        task = "sh -c 'echo $FOO,$GONE,$SLURM_PROCID; grep -qx $$ pids && echo same'"
        script = f"#!/bin/bash\n{SRUN}export GONE=1\nsrun -n2 --task-prolog={prolog} {task} | sort\n"
        key = bench.launch(1, script, nodes=NODES, env={"SLURM_NNODES": "2"})
        assert (await bench.finish(key)).splitlines() == [
            "bar baz,,0", "bar baz,,1", "hello 0 prolog_task", "hello 1 prolog_task", "same", "same",
        ]  # fmt: skip

    use(state, rule)


def test_a_task_ends_with_the_status_of_a_prolog_that_fails(state: pathlib.Path, tmp_path: pathlib.Path) -> None:
    prolog = _program(tmp_path, "prolog", PROLOG)

    async def rule(bench: LocalBench) -> None:
        script = (
            f"#!/bin/bash\n{SRUN}exec 2>&1\n"
            f"RC=4 srun -n1 --task-prolog={prolog} echo ran; echo rc=$?\n"
            "srun -n1 --task-prolog=/nowhere/x echo ran; echo rc=$?\n"
            "srun -n1 --task-prolog=x echo ran; echo rc=$?\n"
        )
        key = bench.launch(1, script)
        assert _plain(await bench.finish(key)) == [
            "error: --task-prolog failed status=4",
            "srun: error: n1: task 0: Exited with exit code 4",
            "rc=4",
            "error: run_command: user task_prolog can not be executed (/nowhere/x) No such file or directory",
            "error: user task_prolog did not exit normally. reason: Run command failed - configuration error",
            "error: --task-prolog failed status=1",
            "srun: error: n1: task 0: Exited with exit code 1",
            "rc=1",
            "error: run_command: user task_prolog is not a fully qualified pathname (x)",
            "error: user task_prolog did not exit normally. reason: Run command failed - configuration error",
            "error: --task-prolog failed status=1",
            "srun: error: n1: task 0: Exited with exit code 1",
            "rc=1",
        ]

    use(state, rule)


def test_an_epilog_follows_its_task_and_only_tells_that_it_failed(state: pathlib.Path, tmp_path: pathlib.Path) -> None:
    tmp_path.chmod(0o777)
    epilog = _program(tmp_path, "epilog", EPILOG.format(folder=tmp_path))

    async def rule(bench: LocalBench) -> None:
        script = (
            f"#!/bin/bash\n{SRUN}exec 2>&1\n"
            f"srun -n1 --task-epilog={epilog} sh -c 'exit 7'; echo rc=$?\n"
            f"RC=3 srun -n1 --task-epilog={epilog} true; echo rc=$?\n"
            "srun -n1 --task-epilog=/nowhere/x true; echo rc=$?\n"
        )
        key = bench.launch(1, script)
        lines = _plain(await bench.finish(key))
        assert sorted(lines[:2]) == ["rc=7", "srun: error: n1: task 0: Exited with exit code 7"]
        assert lines[2:] == [
            "error: TaskEpilog failed status=3",
            "rc=0",
            "error: execve(/nowhere/x): No such file or directory",
            "error: TaskEpilog failed status=127",
            "rc=0",
        ]
        assert (tmp_path / "after").read_text() == "epilog_task 0\n" * 2

    use(state, rule)


def test_the_programs_of_the_site_are_around_batch_scripts_and_tasks(
    state: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    tmp_path.chmod(0o777)
    prolog = _program(tmp_path, "prolog", '#!/bin/sh\necho "export LEVEL=$((${LEVEL:-0} + 1))"\n')
    epilog = _program(tmp_path, "epilog", EPILOG.format(folder=tmp_path))

    async def rule(bench: LocalBench) -> None:
        script = f"#!/bin/bash\n{SRUN}echo batch $LEVEL\nsrun -n1 sh -c 'echo task $LEVEL'\nexit 5\n"
        key = bench.launch(1, script, task_prolog=prolog, task_epilog=epilog)
        assert (await bench.finish(key)).splitlines() == ["batch 1", "task 2"]
        assert ended(bench, key)[0].status >> 8 == 5
        assert len((tmp_path / "after").read_text().splitlines()) == 2

    use(state, rule)
