"""Processes on virtual nodes: the contract, and what only real processes can show."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from slurmbridge.runtime.local import LocalRuntime
from slurmbridge.runtime.protocol import Ended, LaunchNode, Lost, Report, RunKey, StepChanged
from slurmbridge.spool import claim
from slurmbridge.wire.client import Decoder
from tests.runtime.contract import CONFIG, Contract, ended, launch_of

pytestmark = pytest.mark.processes
IS_ROOT = os.getuid() == 0
RULES = [name for name, rule in inspect.getmembers(Contract, inspect.isfunction) if name.startswith("test_")]
NODES = (LaunchNode(rank=0, node="n1", cpus=2), LaunchNode(rank=1, node="n2", cpus=2))
SRUN = f"""srun() {{ {sys.executable} -I -S -c 'import sys; sys.path.insert(0, "{pathlib.Path(__file__).parents[2]}")
from slurmbridge.cli import srun_client; sys.exit(srun_client.main(["srun"] + sys.argv[1:]))' "$@"; }}
"""


FOREVER = f"sleep 321.{os.getpid()}"
"""A program that ends only when it is made to, and that no other run of these tests has."""


def runs_forever() -> bool:
    """Whether a FOREVER is still there."""
    words = FOREVER.replace(" ", "\0").encode() + b"\0"
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if entry.read_bytes() == words:
                return True
    return False


class LocalBench:
    """A daemon in small: acknowledges everything, and hands supervisors that dial in to the runtime."""

    def __init__(self, state: pathlib.Path, *, spaces: bool = True) -> None:
        self.state, self.out = state, state.parent / "out"
        self.out.mkdir(exist_ok=True)
        self.runtime = LocalRuntime(state, spaces=spaces)
        self.reports: list[Report] = []
        self.acknowledges = True

    async def start(self) -> None:
        self.address = self.state / "socket"
        await self.runtime.start(self.listen, CONFIG, daemon_addr=f"unix:{self.address}")
        self.address.unlink(missing_ok=True)
        self.server = await asyncio.start_unix_server(self._dialled, self.address)

    def listen(self, report: Report) -> None:
        self.reports.append(report)
        if self.acknowledges:
            self.runtime.acknowledge(report.key, report.sequence)

    async def _dialled(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        decoder, frames = Decoder(), []
        while not frames:
            frames = decoder.feed(await reader.read(65536))
        import socket

        own = socket.socket(fileno=os.dup(writer.get_extra_info("socket").fileno()))
        writer.transport.abort()
        self.runtime.take_over(own, frames[0][1], os.getuid())

    def launch(self, job_id: int, script: bytes | str | None, **changes: Any) -> RunKey:
        key = RunKey(job_id, 0)
        env = {
            "PATH": os.environ["PATH"], "SLURM_JOB_ID": str(job_id), "SLURMBRIDGE_ADDR": f"unix:{self.state / 'socket'}",
            **dict(changes.pop("env", {})),
        }  # fmt: skip
        data = script.encode() if isinstance(script, str) else script
        values = {
            "uid": os.getuid(), "gid": os.getgid(), "env": tuple(env.items()), "work_dir": str(self.out),
            "std_out": str(self.out / f"{job_id}.txt"), "pattern_values": (("j", str(job_id)),), **changes,
        }  # fmt: skip
        self.runtime.launch(launch_of(key, data, **values))
        return key

    async def pass_time(self, seconds: float, until: Callable[[], bool]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            await asyncio.sleep(0.01)

    async def finish(self, key: RunKey, seconds: float = 15) -> str:
        await self.pass_time(seconds, lambda: bool(ended(self, key)))
        assert ended(self, key), self.reports
        return (self.out / f"{key.job_id}.txt").read_text()

    async def close(self) -> None:
        self.server.close()
        self.acknowledges = True
        for report in self.reports:
            self.runtime.acknowledge(report.key, report.sequence)
        await asyncio.wait_for(self.runtime.stop(end_jobs=True), 20)


Use = Callable[[LocalBench], Awaitable[None]]


def use(state: pathlib.Path, rule: Use, *, spaces: bool = True) -> None:
    async def run() -> None:
        bench = LocalBench(state, spaces=spaces)
        await bench.start()
        try:
            await rule(bench)
        finally:
            await bench.close()

    asyncio.run(run())


@pytest.fixture
def state(tmp_path: pathlib.Path) -> Iterator[pathlib.Path]:
    folder = tmp_path / "state"
    folder.mkdir()
    yield folder
    time.sleep(0.05)
    left = [name for name in os.listdir(folder / "spool") if not name.startswith(".")]
    assert left == [], "every run's folder is gone when it was acknowledged"


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
@pytest.mark.parametrize("rule", RULES)
def test_contract(rule: str, spaces: bool, state: pathlib.Path) -> None:
    use(state, lambda bench: getattr(Contract(), rule)(bench), spaces=spaces)


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_nothing_that_a_job_started_outlives_it(state: pathlib.Path, spaces: bool) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, f"#!/bin/bash\nsetsid setsid {FOREVER} & {FOREVER} & disown -a; sleep 0.2; exit 0\n")
        await bench.finish(key)
        await asyncio.sleep(0.1)
        assert not runs_forever()

    use(state, rule, spaces=spaces)


def test_output_goes_to_the_files_that_patterns_name_and_folders_are_made(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(
            7, "#!/bin/sh\necho out; echo err >&2\n",
            std_out=str(bench.out / "deep/%j-%N-%n-%t-%s.out"), std_err=str(bench.out / "%j.err"),
        )  # fmt: skip
        await bench.pass_time(5, lambda: bool(ended(bench, key)))
        assert (bench.out / "deep/7-n1-0-0-batch.out").read_text() == "out\n"
        assert (bench.out / "7.err").read_text() == "err\n"

    use(state, rule)


def test_append_keeps_and_truncate_drops_what_was_there(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        for job, append in ((1, True), (2, False)):
            (bench.out / f"{job}.txt").write_text("old\n")
            key = bench.launch(job, "#!/bin/sh\necho new\n", append=append)
            assert await bench.finish(key) == ("old\nnew\n" if append else "new\n")

    use(state, rule)


def test_a_missing_interpreter_and_folder_are_told_in_slurms_words(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/no/such\n", work_dir="/nonexistent")
        lines = [line.split("] ", 1)[1] for line in (await bench.finish(key)).splitlines()]
        moved = "error: couldn't chdir to `/nonexistent': No such file or directory: going to /tmp instead"
        assert lines == [moved, moved, "error: execve(): bad interpreter(/no/such): No such file or directory"]
        assert ended(bench, key)[0].status == 2 << 8

    use(state, rule)


def test_output_that_cannot_be_opened_ends_the_batch_step_with_53(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/sh\n", std_out="/proc/nonexistent/x")
        await bench.pass_time(5, lambda: bool(ended(bench, key)))
        assert ended(bench, key)[0].status == 53

    use(state, rule)


def test_the_script_gets_umask_limits_arguments_and_its_own_copy(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(
            1, "#!/bin/bash\numask; ulimit -Sn; echo $0 $1; pwd\n", umask=0o027, script_args=("a b",),
            rlimits=(("NOFILE", 321, -1),),
        )  # fmt: skip
        lines = (await bench.finish(key)).splitlines()
        assert lines[:2] == ["0027", "321"]
        assert lines[2] == f"{state}/spool/1.0.0/{claim.SCRIPT} a b"
        assert lines[3] == str(bench.out)

    use(state, rule)


def test_why_a_job_was_ended_is_in_its_stderr(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(12, "#!/bin/sh\nsleep 60\n")
        await bench.pass_time(0.3, lambda: False)
        bench.runtime.notify(key, "hello there")
        bench.runtime.kill(key, "requeue")
        first, second = (await bench.finish(key)).splitlines()
        assert first.endswith("] error: hello there")
        assert "] error: *** JOB 12 ON n1 CANCELLED AT " in second
        assert second.endswith(" DUE TO JOB REQUEUE ***")

    use(state, rule)


def test_a_trap_runs_when_the_job_is_cancelled(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/bash\ntrap 'echo trapped; exit 4' TERM\nsleep 60\n")
        await bench.pass_time(0.3, lambda: False)
        bench.runtime.kill(key, "cancelled")
        assert "trapped" in await bench.finish(key)

    use(state, rule)


def test_the_warning_signal_goes_to_the_batch_shell_when_asked(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(
            1, "#!/bin/bash\ntrap 'echo warned; exit 0' USR1\nwhile :; do sleep 0.05; done\n",
            time_limit_s=3, signal=(int(signal.SIGUSR1), 2, True),
        )  # fmt: skip
        assert await bench.finish(key) == "warned\n"

    use(state, rule)


def test_cpu_time_and_memory_are_measured(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        program = (
            "import time; x = bytearray(80 << 20); t = time.process_time()\nwhile time.process_time() - t < 0.6: pass"
        )
        key = bench.launch(1, f"#!/bin/sh\n{sys.executable} -I -S -c '{program}'\n")
        await bench.finish(key)
        (step,) = ended(bench, key)[0].steps
        assert step.usage is not None
        assert 0.55e6 < step.usage.user_us + step.usage.system_us < 1.2e6
        assert 80 << 10 < step.usage.max_rss_kib < 140 << 10

    use(state, rule)


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_a_node_has_its_name_as_host_name_and_all_nodes_resolve(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/sh\nhostname; getent ahostsv4 n2 | head -1; set -- /proc/[0-9]*; echo $#\n")
        name, address, processes = (await bench.finish(key)).splitlines()
        assert name == "n1"
        assert address.split()[0] == "127.64.0.2"
        assert int(processes) <= 6

    use(state, rule)


def open_to_all(bench: LocalBench) -> None:
    """Other users must reach the state folder, as they do at a site."""
    for folder in bench.out.parents:
        if folder.stat().st_mode & 0o001 == 0:
            os.chmod(folder, 0o711)
    os.chmod(bench.state, 0o711)
    os.chmod(bench.out, 0o777)


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_a_job_runs_as_its_user_and_touches_files_with_that_users_rights_alone(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        open_to_all(bench)
        key = bench.launch(
            1, "#!/bin/sh\nid -u; id -g; id -G; cat slurm_script\n", uid=1234, gid=2345, groups=(2345, 77)
        )
        assert (await bench.finish(key)).splitlines()[:3] == ["1234", "2345", "2345 77"]
        key = bench.launch(2, "#!/bin/sh\n", uid=1234, gid=2345, std_out="/etc/slurmbridge-test")
        await bench.pass_time(5, lambda: bool(ended(bench, key)))
        assert ended(bench, key)[0].status == 53
        assert not os.path.exists("/etc/slurmbridge-test")

    use(state, rule)


@pytest.mark.skipif(not IS_ROOT, reason="needs root")
def test_nobody_else_reaches_a_running_jobs_files_or_socket(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        open_to_all(bench)
        key = bench.launch(1, "#!/bin/sh\nsleep 30\n", uid=1234, gid=1234)
        await bench.pass_time(0.3, lambda: False)
        folder = state / "spool/1.0.0"
        modes = {path.name: oct(path.lstat().st_mode & 0o777) for path in folder.iterdir()}
        assert modes[claim.RECORD] == "0o600"
        assert modes[claim.SCRIPT] == "0o700"
        assert modes[claim.STEP_SOCKET] == "0o600"
        assert (folder / claim.STEP_SOCKET).lstat().st_uid == 1234
        bench.runtime.kill(key, "cancelled")
        await bench.pass_time(5, lambda: bool(ended(bench, key)))

    use(state, rule)


def test_jobs_and_tasks_inherit_no_descriptor_of_the_supervisor(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + "/bin/sh -c 'ls /proc/$$/fd; true'\n"
        words = (await bench.finish(bench.launch(1, script))).split()
        assert words == ["0", "1", "2"]
        script = "#!/bin/bash\n" + SRUN + "srun /bin/sh -c 'ls /proc/$$/fd; true'\n"
        words = (await bench.finish(bench.launch(2, script))).split()
        assert words == ["0", "1", "2"]

    use(state, rule)


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


def test_exact_steps_share_the_job_and_plain_ones_wait(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "for i in 1 2 3 4; do srun --exact -N1 -n1 sh -c 'sleep 0.5; echo $SLURMD_NODENAME' & done; wait\n"
            "srun -n4 sh -c 'touch running; until [ -e waiting ]; do sleep 0.02; done; sleep 1' &\n"
            "until [ -e running ]; do sleep 0.02; done; touch waiting; srun -n4 echo late; wait\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=NODES, env={"SLURM_NNODES": "2"})
        lines = (await bench.finish(key)).splitlines()
        assert sorted(lines[:4]) == ["n1", "n1", "n2", "n2"]
        assert lines[4:] == ["srun: Step created for StepId=1.5", "late", "late", "late", "late"]

    use(state, rule)


def test_a_step_ends_with_its_srun(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "srun sh -c 'touch running; exec sleep 300' & until [ -e running ]; do sleep 0.02; done\n"
            "kill -9 $(cat /proc/$!/task/$!/children); wait; sleep 0.5\n"
        )  # fmt: skip
        key = bench.launch(1, script)
        await bench.finish(key)
        assert [step.state.name for step in ended(bench, key)[0].steps[1:]] == ["CANCELLED"]

    use(state, rule)


DAEMON = """
import asyncio, os, sys
sys.path.insert(0, {root!r})
from tests.runtime.test_local import LocalBench
import pathlib

async def main():
    bench = LocalBench(pathlib.Path({state!r}), spaces={spaces!r})
    bench.acknowledges = False
    await bench.start()
    await bench.runtime.adopt([])
    bench.launch(1, {script!r})
    await bench.pass_time(10, lambda: len(bench.reports) >= {reports})
    os.kill(os.getpid(), 9)

asyncio.run(main())
"""


def die_after(state: pathlib.Path, script: str, *, reports: int, spaces: bool = True) -> None:
    """A daemon launches job 1, hears so many reports and is killed."""
    root = str(pathlib.Path(__file__).parents[2])
    code = DAEMON.format(root=root, state=str(state), script=script, reports=reports, spaces=spaces)
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=20)
    assert done.returncode == -9


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_a_run_outlives_the_daemon_and_is_found_again(state: pathlib.Path, spaces: bool) -> None:
    die_after(state, "#!/bin/sh\nsleep 1\nexit 5\n", reports=1, spaces=spaces)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.finish(key)
        assert [type(report).__name__ for report in bench.reports] == ["Started", "Ended"]
        assert ended(bench, key)[0].status == 5 << 8

    use(state, rule, spaces=spaces)


def test_an_end_while_the_daemon_was_away_is_told_when_it_is_back(state: pathlib.Path) -> None:
    die_after(state, "#!/bin/sh\nexit 6\n", reports=1)
    time.sleep(0.5)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.finish(key)
        assert ended(bench, key)[0].status == 6 << 8

    use(state, rule)


def supervisor_of(state: pathlib.Path, folder: str = "1.0.0") -> int:
    record = claim.read_json(str(state / "spool" / folder / claim.RECORD))
    assert record is not None
    return int(record["pid"])


def test_an_end_is_read_from_its_record_when_the_supervisor_died_too(state: pathlib.Path) -> None:
    die_after(state, "#!/bin/sh\nexit 6\n", reports=2)
    time.sleep(0.2)
    os.kill(supervisor_of(state), signal.SIGKILL)

    async def rule(bench: LocalBench) -> None:
        key = RunKey(1, 0)
        await bench.runtime.adopt([key])
        await bench.finish(key)
        assert ended(bench, key)[0].status == 6 << 8

    use(state, rule)


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_a_killed_supervisor_takes_its_job_along_and_the_run_is_lost(state: pathlib.Path, spaces: bool) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, f"#!/bin/sh\n{FOREVER} &\n{FOREVER}\n")
        await bench.pass_time(5, lambda: bool(bench.reports) and runs_forever())
        os.kill(supervisor_of(state), signal.SIGKILL)
        await bench.pass_time(5, lambda: any(isinstance(report, Lost) for report in bench.reports))
        assert any(isinstance(report, Lost) for report in bench.reports)
        assert not runs_forever()
        assert not ended(bench, key)

    use(state, rule, spaces=spaces)


def test_a_killed_rank_fails_the_whole_run(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/sh\nsleep 60\n", nodes=NODES)
        await bench.pass_time(3, lambda: bool(bench.reports))
        os.kill(supervisor_of(state, "1.0.1"), signal.SIGKILL)
        await bench.finish(key)
        assert ended(bench, key)[0].why == "node_fail"
        await bench.pass_time(2, lambda: not (state / "spool/1.0.1").exists())

    use(state, rule)


def test_a_run_that_nobody_expects_is_ended(state: pathlib.Path) -> None:
    die_after(state, f"#!/bin/sh\n{FOREVER}\n", reports=1)

    async def rule(bench: LocalBench) -> None:
        await bench.runtime.adopt([])
        await bench.pass_time(6, lambda: not (state / "spool/1.0.0").exists())
        assert not runs_forever()
        assert bench.reports == []

    use(state, rule)


def test_a_launch_of_a_dead_daemon_claims_nothing(state: pathlib.Path) -> None:
    (state / "spool").mkdir()
    spool = str(state / "spool")
    old = claim.new_epoch(spool)
    claim.new_epoch(spool)
    assert claim.claim(spool, (1, 0, 0), old, {"pid": 1}) is None


def test_a_killed_fork_server_is_started_anew(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        os.kill(bench.runtime._server.pid, signal.SIGKILL)
        await asyncio.sleep(0.1)
        assert await bench.finish(bench.launch(1, "#!/bin/sh\necho alive\n")) == "alive\n"

    use(state, rule)


def test_runs_whose_launch_died_with_the_fork_server_run_once_and_can_be_killed(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        os.kill(bench.runtime._server.pid, signal.SIGSTOP)
        keys = [bench.launch(number, "#!/bin/sh\necho once\n") for number in range(1, 6)]
        last = bench.launch(6, "#!/bin/sh\nsleep 60\n")
        os.kill(bench.runtime._server.pid, signal.SIGKILL)
        lost = lambda: [each.key for each in bench.reports if isinstance(each, Lost)]  # noqa: E731
        await bench.pass_time(10, lambda: len(lost()) == 6)
        for key in lost():
            bench.launch(key.job_id, "#!/bin/sh\nsleep 60\n" if key == last else "#!/bin/sh\necho once\n")
        assert [await bench.finish(key) for key in keys] == ["once\n"] * 5
        await asyncio.sleep(0.2)
        assert not ended(bench, last), "an acknowledged start takes nothing away"
        bench.runtime.kill(last, "cancelled")
        await bench.pass_time(10, lambda: bool(ended(bench, last)))
        assert ended(bench, last)[0].why == "cancelled"

    use(state, rule)


def test_killing_a_run_that_nobody_has_proves_that_it_is_gone(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        bench.runtime.kill(RunKey(9, 0), "cancelled")
        await bench.pass_time(5, lambda: bool(bench.reports))
        assert [type(report) for report in bench.reports] == [Lost]

    use(state, rule)


def test_what_killed_processes_left_in_the_spool_is_removed_at_the_next_start(state: pathlib.Path) -> None:
    spool = state / "spool"
    spool.mkdir()
    for name in (".claim-12", ".gone-12"):
        (spool / name).mkdir()
        (spool / name / "record").write_text("{}")
    (spool / ".pointer-12").symlink_to("12.0.0")

    async def rule(bench: LocalBench) -> None:
        assert sorted(os.listdir(spool)) == sorted([".epoch", ".lock", *([".hosts"] if IS_ROOT else [])])

    use(state, rule)


def _dial_step(state: pathlib.Path, data: bytes) -> bytes:
    """What the step socket of job 1 answers to these bytes."""
    import socket

    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(5)
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
        assert (await bench.finish(key, 60)).split() == [str(own), "400"]

    use(state, rule)


@pytest.mark.skipif(not IS_ROOT, reason="root")
def test_a_user_gets_no_limit_above_the_daemons_own_by_asking() -> None:
    async def rule(bench: LocalBench) -> None:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        bench.out.chmod(0o777)
        script = "#!/bin/bash\nulimit -Hn\n"
        key = bench.launch(1, script, uid=61234, gid=61234, rlimits=(("NOFILE", hard + 5, hard + 5),))
        first, second = (await bench.finish(key)).splitlines()
        assert f"error: Can't propagate RLIMIT_NOFILE of {hard + 5} from submit host: " in first
        assert second == str(hard)

    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        state = pathlib.Path(folder, "state")
        state.mkdir(mode=0o711)
        use(state, rule)


def test_a_run_is_claimed_once(state: pathlib.Path) -> None:
    (state / "spool").mkdir()
    spool = str(state / "spool")
    epoch = claim.new_epoch(spool)
    first = claim.claim(spool, (1, 0, 0), epoch, {"pid": 1})
    assert first is not None
    assert claim.claim(spool, (1, 0, 0), epoch, {"pid": 2}) is None
    assert claim.read_json(os.path.join(first, claim.RECORD)) == {"pid": 1}
    claim.release(first)


def test_starting_a_job_costs_little(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        before = os.times()
        keys = [bench.launch(number, "#!/bin/sh\n:\n") for number in range(1, 41)]
        await bench.pass_time(30, lambda: all(ended(bench, key) for key in keys))
        used = sum(
            report.usage.user_us + report.usage.system_us for report in bench.reports if isinstance(report, Ended)
        )
        after = os.times()
        own = (after.user + after.system) - (before.user + before.system)
        assert (own + used / 1e6) / len(keys) < 0.05

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
            "srun --exact -n1 --gres=gpu:1 bash -c 'sleep 0.5; echo $CUDA_VISIBLE_DEVICES' & sleep 0.2\n"
            "srun --exact -n1 --gres=gpu:1 bash -c 'echo $CUDA_VISIBLE_DEVICES'; wait\n"
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
        script = "#!/bin/bash\n" + SRUN + "srun -K -n3 bash -c '[ $SLURM_PROCID = 1 ] && exit 5; sleep 60'\n"
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
        key = bench.launch(1, "#!/bin/bash\n" + short + "srun -t 1 sleep 60; echo rc=$?\n")
        lines = (await bench.finish(key)).splitlines()
        assert lines[0].startswith("srun: Job step aborted: Waiting up to 3 seconds")
        assert lines[1].endswith(" DUE TO TIME LIMIT ***")
        assert lines[2:] == ["srun: error: n1: task 0: Terminated", "rc=143"]

    use(state, rule)


def test_a_job_that_ends_takes_its_running_steps_along_with_slurms_words(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/bash\n" + SRUN + "srun sleep 60; echo rc=$?\n")
        await bench.pass_time(5, lambda: any(isinstance(report, StepChanged) for report in bench.reports))
        await asyncio.sleep(0.2)
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
            + "trap 'echo shell' USR1; srun bash -c 'trap \"echo step; exit 3\" USR1; while :; do sleep 0.05; done'; echo rc=$?\n",
        )
        await bench.pass_time(5, lambda: any(isinstance(report, StepChanged) for report in bench.reports))
        await asyncio.sleep(0.4)
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


def test_srun_finds_the_job_by_its_id_alone_and_refuses_others(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        script = "#!/bin/bash\n" + SRUN + (
            "export -f srun; env -i BASH_FUNC_srun%%=\"$(declare -f srun | sed 1d | sed '1s/^/() /')\" PATH=$PATH SLURM_JOB_ID=1 "
            "SLURMBRIDGE_ADDR=$SLURMBRIDGE_ADDR bash -c 'srun -l echo $SLURM_JOB_ID'\n"
            "srun --jobid=77 true; echo $?\n"
        )  # fmt: skip
        key = bench.launch(1, script, nodes=NODES)
        assert (await bench.finish(key)).splitlines() == [
            "0: 1", "1: 1",
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
        ("--task-prolog=/bin/true true", "srun: error: --task-prolog: programs around tasks are not available"),
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
