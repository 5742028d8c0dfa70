"""srun in a job: tasks, their output, signals and ends, as real processes."""

from __future__ import annotations

import asyncio
import os
import pathlib
import resource
import signal
import sys

import pytest

from slurmbridge.runtime.protocol import LaunchNode, StepChanged
from tests.patience import PATIENCE_S
from tests.runtime.contract import ended
from tests.runtime.local_bench import NODES, SRUN, LocalBench, use

pytestmark = pytest.mark.processes


def test_srun_runs_tasks_on_all_nodes_with_their_ranks(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "srun -l -n4 bash -c 'echo $SLURM_PROCID $SLURM_LOCALID $SLURM_NODEID $SLURMD_NODENAME' | sort\n"
            "echo input | srun -n2 cat\n"
            "srun -n2 bash -c 'exit $SLURM_PROCID'; echo rc=$?\n"
            "srun -n1 -N1 bash -c 'kill -SEGV $$'; echo rc=$?\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=NODES, env={"SLURM_NNODES": "2"})
        assert (await bench.finish(key)).splitlines() == [
            "0: 0 0 0 n1", "1: 1 1 0 n1", "2: 2 0 1 n2", "3: 3 1 1 n2", "input", "input",
            "srun: error: n2: task 1: Exited with exit code 1", "rc=1",
            "srun: error: n1: task 0: Segmentation fault", "rc=139",
        ]  # fmt: skip
        steps = ended(bench, key)[0].steps
        assert [(step.step_id, step.exit_code) for step in steps[1:]] == [(0, 0), (1, 0), (2, 256), (3, 11)]
        changes = [report.step.step_id for report in bench.reports if isinstance(report, StepChanged)]
        assert changes == [0, 0, 1, 1, 2, 2, 3, 3]

    use(state, rule)


def test_tasks_are_told_where_their_node_is_in_the_topology(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        nodes = (
            LaunchNode(rank=0, node="n1", cpus=2, topology=("top.a.n1", "switch.switch.node")),
            LaunchNode(rank=1, node="n2", cpus=2),
        )
        say = "bash -c 'echo $SLURM_TOPOLOGY_ADDR $SLURM_TOPOLOGY_ADDR_PATTERN'"
        key = bench.launch(
            1, f"#!/bin/bash\n{SRUN}srun -N2 -n2 -l {say} | sort\n", nodes=nodes, env={"SLURM_NNODES": "2"}
        )
        assert (await bench.finish(key)).splitlines() == ["0: top.a.n1 switch.switch.node", "1: n2 node"]

    use(state, rule)


def test_exact_steps_share_the_job_and_plain_ones_wait(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        soon = "import srun_client, srun_session; srun_session.BUSY_FIRST_S = srun_session.BUSY_AGAIN_S = 0.1;"
        script = "#!/bin/bash\n" + SRUN.replace("import srun_client;", soon) + (
            "together='touch up.$SLURM_STEP_ID; until [ $(ls up.* | wc -l) = 4 ]; do sleep 0.02; done; echo $SLURMD_NODENAME'\n"
            "for i in 1 2 3 4; do srun --exact -N1 -n1 sh -c \"$together\" & done; wait\n"
            "srun -n4 sh -c 'touch running; until grep -qs retrying said; do sleep 0.02; done' &\n"
            "until [ -e running ]; do sleep 0.02; done; srun -n4 echo late 2>said; wait; cat said\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=NODES, env={"SLURM_NNODES": "2"})
        lines = (await bench.finish(key)).splitlines()
        assert sorted(lines[:4]) == ["n1", "n1", "n2", "n2"]
        assert lines[4:8] == 4 * ["late"]
        said, busy = lines[8:], "disabled, retrying (Requested nodes are busy)"
        assert said[0] == f"srun: Job 1 step creation temporarily {busy}"
        assert set(said[1:-1]) <= {f"srun: Job 1 step creation still {busy}"}
        assert said[-1] == "srun: Step created for StepId=1.5"

    use(state, rule)


def test_a_step_ends_with_its_srun(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "srun sh -c 'touch running; exec sleep 300' & until [ -e running ]; do sleep 0.02; done\n"
            "kill -9 $(cat /proc/$!/task/$!/children); wait; until [ -e go ]; do sleep 0.02; done\n"
        )  # fmt: skip
        key = bench.launch(1, script)
        await bench.pass_time(5, lambda: sum(isinstance(each, StepChanged) for each in bench.reports) == 2)
        (bench.out / "go").touch()
        await bench.finish(key)
        assert [step.state.name for step in ended(bench, key)[0].steps[1:]] == ["CANCELLED"]

    use(state, rule)


def _dial_step(state: pathlib.Path, data: bytes) -> bytes:
    """What the step socket of job 1 answers to these bytes."""
    import socket

    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(PATIENCE_S)
        folder = os.open(state / "spool/1.0.0", os.O_RDONLY)
        try:
            sock.connect(f"/proc/self/fd/{folder}/step")
        finally:
            os.close(folder)
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        answer = b""
        while part := sock.recv(65536):
            answer += part
        return answer


@pytest.mark.parametrize(
    "request_",
    [
        b"[1]", b'"x"', b"{}", b'{"argv":5}', b'{"ntasks":1e400}', b'{"ntasks":-3,"argv":["x"]}', b"[" * 100_000,
        b'{"argv":["true"],"nodes":"many"}', b'{"argv":["true"],"cpus_per_task":{}}', b'{"argv":["true"],"relative":9}',
        b'{"argv":["true"],"ntasks":1000000000000,"overcommit":true}', b'{"argv":["true"],"nodelist":[[]]}',
    ],
)  # fmt: skip
def test_a_malformed_step_request_ends_nothing_but_itself(state: pathlib.Path, request_: bytes) -> None:
    async def rule(bench: LocalBench) -> None:
        from slurmbridge.wire import step as wire
        from slurmbridge.wire.client import frame, pack

        key = bench.launch(1, "#!/bin/bash\n" + SRUN + "until [ -e go ]; do sleep 0.05; done; srun echo fine\n")
        await bench.pass_time(5, lambda: bool(bench.reports))
        hello = frame(wire.REQUEST, pack(wire.VERSION, request_, b"")) + frame(wire.GO, b"")
        for data in (hello, hello[:-9], frame(b"?", b"x"), b"\xff" * 9):
            await asyncio.get_running_loop().run_in_executor(None, _dial_step, state, data)
        (bench.out / "go").touch()
        assert await bench.finish(key) == "fine\n"

    use(state, rule)


def test_a_job_may_have_any_number_of_steps_one_after_the_other(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        from slurmbridge.supervisor.steps import MAX_CONNECTIONS

        key = bench.launch(1, "#!/bin/bash\n" + SRUN + "until [ -e go ]; do sleep 0.05; done; srun echo fine\n")
        await bench.pass_time(5, lambda: bool(bench.reports))

        def many() -> None:
            from slurmbridge.wire import step as wire
            from slurmbridge.wire.client import frame, pack

            refused = frame(wire.REQUEST, pack(b"no such version", b"{}", b""))
            for _ in range(MAX_CONNECTIONS + 50):
                _dial_step(state, refused)

        await asyncio.get_running_loop().run_in_executor(None, many)
        (bench.out / "go").touch()
        assert await bench.finish(key) == "fine\n"

    use(state, rule)


def test_a_node_takes_more_tasks_than_a_process_may_have_files_by_default(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        nodes = (LaunchNode(rank=0, node="n1", cpus=400),)
        key = bench.launch(1, "#!/bin/bash\n" + SRUN + "ulimit -Sn; srun -n400 echo x | wc -l\n", nodes=nodes)
        own = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert (await bench.finish(key)).split() == [str(own), "400"]

    use(state, rule)


PMI_CLIENT = r"""
import os, socket
s = socket.socket(fileno=int(os.environ["PMI_FD"]))
rank, size = int(os.environ["PMI_RANK"]), int(os.environ["PMI_SIZE"])
def ask(line):
    s.sendall(line.encode() + b"\n")
    data = b""
    while not data.endswith(b"\n"):
        data += s.recv(4096)
    return data.decode().strip()
assert ask("cmd=init pmi_version=1 pmi_subversion=1").endswith("rc=0")
name = ask("cmd=get_my_kvsname").split("kvsname=")[1]
for turn in range(3):
    ask(f"cmd=put kvsname={name} key=k{turn}.{rank} value=" + f"{rank}x" * 300)
    assert ask("cmd=barrier_in").startswith("cmd=barrier_out")
    for other in range(size):
        assert ask(f"cmd=get kvsname={name} key=k{turn}.{other}").endswith("value=" + f"{other}x" * 300)
assert ask(f"cmd=get kvsname={name} key=none") == "cmd=get_result rc=1"
mapping = ask(f"cmd=get kvsname={name} key=PMI_process_mapping").split("value=")[1]
assert ask("cmd=finalize").startswith("cmd=finalize_ack")
print(rank, size, name, mapping)
"""


def test_mpi_programs_find_each_other_over_pmi(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        program = bench.out / "pmi.py"
        program.write_text(PMI_CLIENT)
        key = bench.launch(
            1, "#!/bin/bash\n" + SRUN + f"srun --mpi=pmi2 -n4 {sys.executable} {program} | sort\n", nodes=NODES
        )
        assert (await bench.finish(key)).splitlines() == [
            f"{rank} 4 1.0 (vector,(0,2,2))" for rank in range(4)
        ]  # fmt: skip

    use(state, rule)


def test_tasks_get_their_own_devices(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        devices = ((0, 1000, 0), (3, 1000, 0))
        nodes = (LaunchNode(rank=0, node="n1", cpus=2, devices=devices),)
        script = "#!/bin/bash\n" + SRUN + (
            "srun -l -n2 --gpus-per-task=1 bash -c 'echo $CUDA_VISIBLE_DEVICES $SLURM_GPUS_ON_NODE' | sort\n"
            "srun -n1 bash -c 'echo $CUDA_VISIBLE_DEVICES $SLURM_STEP_GPUS'\n"
            "until_there() { until [ -e $1 ]; do sleep 0.02; done; }; export -f until_there\n"
            "srun --exact -n1 --gres=gpu:1 bash -c 'touch held; until_there go; echo $CUDA_VISIBLE_DEVICES' &\n"
            "until_there held; srun --exact -n1 --gres=gpu:1 bash -c 'echo $CUDA_VISIBLE_DEVICES'; touch go; wait\n"
            "srun -n1 --gres=gpu:3 true\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=nodes)
        assert (await bench.finish(key)).splitlines() == [
            "0: 0 2", "1: 3 2", "0,3 0,3", "3", "0",
            "srun: error: Unable to create step for job 1: Invalid generic resource (gres) specification",
        ]  # fmt: skip

    use(state, rule)


def test_output_can_go_to_files_by_task_or_nowhere(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "srun -n2 -o deep/%j.%s.%t bash -c 'echo $SLURM_PROCID'; cat deep/1.0.0 deep/1.0.1\n"
            "srun -n2 -l -o %t.label echo x; cat 0.label 1.label\n"
            "srun -n2 -o all.txt echo y; cat all.txt; srun -n2 -o none echo z; srun -n2 -o 1 bash -c 'echo t$SLURM_PROCID'\n"
            "srun -n2 -e err.txt bash -c 'echo o; echo e >&2' ; cat err.txt; srun -o /nonexist/x true; srun -i /nonexist/x true\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=(LaunchNode(rank=0, node="n1", cpus=2),))
        assert (await bench.finish(key)).splitlines() == [
            "0", "1", "0: x", "1: x", "y", "y", "t1", "o", "o", "e", "e",
            "srun: error: Could not open stdout file: No such file or directory",
            "srun: error: Could not open stdin file: No such file or directory",
        ]  # fmt: skip

    use(state, rule)


def test_a_file_of_programs_gives_each_task_its_own(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        (bench.out / "mp.conf").write_text("# comment\n0 echo first\n1-2 echo 'task:%t' off:%o\n* echo rest\n")
        (bench.out / "gap.conf").write_text("0 echo first\n")
        script = (
            "#!/bin/bash\n"
            + SRUN
            + "srun -O -n4 -l --multi-prog mp.conf | sort; srun -O -n2 --multi-prog gap.conf; echo $?\n"
        )
        key = bench.launch(1, script)
        assert (await bench.finish(key)).splitlines() == [
            "0: first", "1: task:1 off:0", "2: task:2 off:1", "3: rest",
            "srun: error: Configuration file gap.conf invalid, no record for task id 1", "1",
        ]  # fmt: skip

    use(state, rule)


def test_a_bad_exit_ends_the_step_when_asked(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + "srun -K -n3 bash -c '[ $SLURM_PROCID = 1 ] && exit 5; sleep 600'\n"
        key = bench.launch(1, script, nodes=NODES)
        lines = (await bench.finish(key)).splitlines()
        assert lines[0] == "srun: error: n1: task 1: Exited with exit code 5"
        assert lines[1] == "srun: Terminating StepId=1.0"
        assert "*** STEP 1.0 ON n1 CANCELLED AT " in lines[2] and lines[2].endswith(" DUE TO TASK FAILURE ***")
        assert sorted(lines[3:5]) == ["srun: error: n1: task 0: Terminated", "srun: error: n2: task 2: Terminated"]
        assert lines[5:] == ["srun: Force Terminated StepId=1.0"]

    use(state, rule)


def test_a_step_has_a_time_limit_of_its_own(state: pathlib.Path) -> None:
    # a minute is the least that srun can ask for: the request is sent as it would be with less
    async def rule(bench: LocalBench) -> None:
        short = SRUN.replace(
            "sys.exit(", 'srun_client.srun_request._seconds = lambda text: 1; sys.exit('
        )  # fmt: skip
        key = bench.launch(1, "#!/bin/bash\n" + short + "srun -t 1 sleep 600; echo rc=$?\n")
        lines = (await bench.finish(key)).splitlines()
        assert "error: *** STEP 1.0 ON n1 CANCELLED AT " in lines[0] and lines[0].endswith(" DUE TO TIME LIMIT ***")
        assert lines[1:] == [
            "srun: error: n1: task 0: Terminated",
            "srun: Force Terminated StepId=1.0",
            "rc=143",
        ]

    use(state, rule)


def test_a_job_that_ends_takes_its_running_steps_along_with_slurms_words(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/bash\n" + SRUN + "srun sh -c ': >begun; exec sleep 600'; echo rc=$?\n")
        await bench.makes("begun")
        bench.runtime.kill(key, "cancelled")
        text = await bench.finish(key)
        assert "srun: Job step aborted: Waiting up to 3 seconds for job step to finish.\n" in text
        assert "*** STEP 1.0 ON n1 CANCELLED AT " in text
        assert "*** JOB 1 ON n1 CANCELLED AT " in text
        assert [(step.step_id, step.state.name) for step in ended(bench, key)[0].steps] == [
            (-5, "CANCELLED"), (0, "CANCELLED"),
        ]  # fmt: skip

    use(state, rule)


def test_a_signal_reaches_steps_and_not_the_batch_shell(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(
            1,
            "#!/bin/bash\n"
            + SRUN
            + "trap 'echo shell' USR1\n"
            + "srun bash -c 'trap \"echo step; exit 3\" USR1; : >begun; while :; do sleep 0.05; done'; echo rc=$?\n",
        )
        await bench.makes("begun")
        bench.runtime.signal(key, int(signal.SIGUSR1), "")
        lines = (await bench.finish(key)).splitlines()
        assert "step" in lines and "shell" not in lines
        assert lines[-2:] == ["srun: error: n1: task 0: Exited with exit code 3", "rc=3"]

    use(state, rule)


def test_a_component_of_a_heterogeneous_job_gets_its_own_tasks(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        second = bench.launch(2, None, nodes=NODES)
        await bench.pass_time(5, lambda: len(bench.reports) == 1)
        env = {
            "SLURM_NTASKS": "1", "SLURM_NNODES": "1", "SLURM_JOB_ID_HET_GROUP_1": "2", "SLURM_NTASKS_HET_GROUP_1": "3",
            "SLURM_JOB_NUM_NODES_HET_GROUP_1": "2",
        }  # fmt: skip
        script = (
            "#!/bin/bash\n" + SRUN + "srun hostname; srun --het-group=1 -l bash -c 'echo $SLURMD_NODENAME' | sort\n"
        )
        key = bench.launch(1, script, env=env)
        assert (await bench.finish(key)).splitlines()[1:] == ["0: n1", "1: n1", "2: n2"]
        bench.runtime.kill(second, "exit")
        await bench.pass_time(5, lambda: bool(ended(bench, second)))
        assert (ended(bench, second)[0].why, ended(bench, second)[0].status) == ("exit", 0)

    use(state, rule)
