"""Processes on virtual nodes: the contract, and what only real processes can show."""

from __future__ import annotations

import inspect
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

import pytest

from slurmbridge.runtime.protocol import Ended
from slurmbridge.spool import claim
from tests.patience import comes
from tests.runtime.contract import Contract, ended
from tests.runtime.local_bench import FOREVER, HAS_SPACES, IS_ROOT, SRUN, LocalBench, runs_forever, use

pytestmark = pytest.mark.processes
RULES = [name for name, rule in inspect.getmembers(Contract, inspect.isfunction) if name.startswith("test_")]


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
@pytest.mark.parametrize("rule", RULES)
def test_contract(rule: str, spaces: bool, state: pathlib.Path) -> None:
    use(state, lambda bench: getattr(Contract(), rule)(bench), spaces=spaces)


@pytest.mark.parametrize("spaces", [True, False], ids=["namespaces", "subreaper"])
def test_nothing_that_a_job_started_outlives_it(state: pathlib.Path, spaces: bool) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, f"#!/bin/bash\nsetsid setsid {FOREVER} & {FOREVER} & disown -a; sleep 0.2; exit 0\n")
        await bench.finish(key)
        await comes(lambda: not runs_forever())

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
        key = bench.launch(12, "#!/bin/sh\n: >begun\nsleep 600\n")
        await bench.makes("begun")
        bench.runtime.notify(key, "hello there")
        bench.runtime.kill(key, "requeue")
        first, second = (await bench.finish(key)).splitlines()
        assert first.endswith("] error: hello there")
        assert "] error: *** JOB 12 ON n1 CANCELLED AT " in second
        assert second.endswith(" DUE TO JOB REQUEUE ***")

    use(state, rule)


def test_a_trap_runs_when_the_job_is_cancelled(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/bash\ntrap 'echo trapped; exit 4' TERM\n: >begun\nsleep 600\n")
        await bench.makes("begun")
        bench.runtime.kill(key, "cancelled")
        assert "trapped" in await bench.finish(key)

    use(state, rule)


def test_the_warning_signal_goes_to_the_batch_shell_when_asked(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(
            1, "#!/bin/bash\ntrap 'echo warned; exit 0' USR1\n: >begun\nwhile :; do sleep 0.05; done\n",
            time_limit_s=600, signal=(int(signal.SIGUSR1), 118, True),
        )  # fmt: skip
        await bench.makes("begun")
        bench.runtime.set_time_limit(key, 120)
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


@pytest.mark.skipif(not HAS_SPACES, reason="needs root and namespaces")
def test_a_node_has_its_name_as_host_name_and_all_nodes_resolve(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        key = bench.launch(1, "#!/bin/sh\nhostname; getent ahostsv4 n2 | head -1; set -- /proc/[0-9]*; echo $#\n")
        name, address, processes = (await bench.finish(key)).splitlines()
        assert name == "n1"
        assert address.split()[0] == "127.64.0.2"
        assert int(processes) <= 6

    use(state, rule)


@pytest.mark.skipif(not HAS_SPACES, reason="needs root and namespaces")
def test_shared_memory_is_of_one_run_on_one_node_and_goes_with_it(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        left = f"left-{os.getpid()}"
        script = f"#!/bin/sh\nls /dev/shm | wc -l; echo left > /dev/shm/{left}; stat -c %a /dev/shm\n"
        for number in (1, 2):
            assert (await bench.finish(bench.launch(number, script))).split() == ["0", "1777"]
        assert not pathlib.Path("/dev/shm", left).exists()

    use(state, rule)


def open_to_all(bench: LocalBench) -> None:
    """Other users must reach the state folder, as they do at a site."""
    for folder in bench.out.parents:
        status = folder.stat()
        if status.st_mode & 0o001 == 0 and status.st_uid == os.getuid() and "pytest" in str(folder):
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
        key = bench.launch(1, "#!/bin/sh\n: >begun\nsleep 600\n", uid=1234, gid=1234)
        await bench.makes("begun")
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


def test_starting_a_job_costs_little(state: pathlib.Path) -> None:
    async def rule(bench: LocalBench) -> None:
        before = os.times()
        keys = [bench.launch(number, "#!/bin/sh\n:\n") for number in range(1, 41)]
        await bench.pass_time(1, lambda: all(ended(bench, key) for key in keys))
        used = sum(
            report.usage.user_us + report.usage.system_us for report in bench.reports if isinstance(report, Ended)
        )
        after = os.times()
        own = (after.user + after.system) - (before.user + before.system)
        assert (own + used / 1e6) / len(keys) < 4 * cost_of_an_interpreter()

    use(state, rule)


def cost_of_an_interpreter() -> float:
    """CPU seconds of one that does nothing, here and now."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for _ in range(20):
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / 20
