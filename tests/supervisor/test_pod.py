"""A supervisor in a pod: one process, one daemon that a test plays."""

from __future__ import annotations

import contextlib
import os
import queue
import random
import socket
import sys
from pathlib import Path

import pytest

from slurmbridge.wire import supervisor as wire
from tests.patience import PATIENCE_S
from tests.supervisor.pods import TOKEN, Line, Pod, ScriptedDaemon, launch, pods, srun

pytestmark = pytest.mark.processes


def test_a_job_runs_and_ends_when_its_record_is_acknowledged(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        assert line.opening == wire.Opening(7, 0, 0, "projected")
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\necho out; echo err >&2; env; exit 3\n"))
        line.report("started")
        ended = line.report("ended")
        assert (ended["why"], ended["status"]) == ("exit", 3 << 8)
        assert pod.last_words() == ended
        assert pod.process.poll() is None
        line.say(wire.ACK, sequence=ended["sequence"])
        assert pod.end() == 3
        written = (tmp_path / "out-7").read_text().splitlines()
        assert written[:2] == ["out", "err"]
        env = dict(entry.split("=", 1) for entry in written[2:] if "=" in entry)
        assert (env["OF_IMAGE"], env["OF_JOB"]) == ("yes", "yes")
        assert env["PATH"] == "/opt/slurmbridge/commands:/usr/local/bin:/usr/bin:/bin"
        assert env["SLURMBRIDGE_ADDR"] == f"unix:{pod.base}/socket"
        assert TOKEN not in str(env)


def test_reports_are_said_again_until_they_are_acknowledged(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.05; done\n"))
        started = line.report("started")
        daemon.shut()
        (tmp_path / "go").touch()
        pod.last_words()  # the job ends while nobody is there
        pod.token.write_text("renewed\n")
        daemon.open()
        line = daemon.line()
        assert line.opening == wire.Opening(7, 0, 0, "renewed", run=TOKEN, sequence=2)
        line.say(wire.ACK, sequence=0)
        assert [line.report("started"), line.report("ended")["sequence"]] == [started, 2]
        line.say(wire.ACK, sequence=2)
        assert pod.end() == 0


def test_a_daemon_that_closes_before_it_says_anything_is_dialled_again(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)):
        for _ in range(3):
            line = daemon.line()
            assert line.opening.run == ""
            line.close()
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\n"))
        line.report("ended")


def test_a_launch_that_breaks_off_is_asked_for_again(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        line._socket.sendall((1000).to_bytes(4, "big") + wire.LAUNCH + b"half")
        line.close()
        line = daemon.line()
        assert line.opening.run == ""
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\n"))
        line.report("ended")


def test_who_is_not_wanted_ends(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        daemon.line().send(wire.UNWANTED)
        assert pod.end() == 0


def test_who_is_not_wanted_any_more_ends_with_its_job(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\nexec sleep 600\n"))
        line.report("started")
        daemon.shut()
        daemon.open()
        daemon.line().send(wire.UNWANTED)
        pod.end()
        assert not pod.words.exists()


def test_another_certificate_is_told_nothing(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path, pin="0" * 64)) as (pod,):
        assert pod.process.stderr is not None
        assert "certificate is another one" in pod.process.stderr.readline()
        assert not daemon._lines


def test_deletion_of_the_pod_ends_the_job_as_one_whose_node_failed(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = "#!/bin/sh\ntrap 'echo told; exit 0' TERM\n: > ready\nwhile :; do sleep 0.05; done\n"
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script))
        line.report("started")
        while not (tmp_path / "ready").exists():
            assert pod.process.poll() is None
        pod.terminate()
        ended = line.report("ended")
        assert (ended["why"], ended["message"]) == ("node_fail", "node n0: its pod was deleted")
        line.say(wire.ACK, sequence=ended["sequence"])
        assert pod.end() == 143
        assert "told" in (tmp_path / "out-7").read_text()


def test_deletion_of_a_pod_without_a_launch_ends_it_at_once(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        daemon.line()
        pod.terminate()
        assert pod.end() == 143


def test_a_time_limit_ends_the_job_while_the_daemon_is_away(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\nexec sleep 600\n", time_limit=1))
        line.report("started")
        daemon.shut()
        assert pod.last_words()["why"] == "timeout"
        assert "DUE TO TIME LIMIT" in (tmp_path / "out-7").read_text()


@pytest.mark.parametrize(
    ("made", "words"),
    [("", "Success"), ("other", "is not"), ("nothing", "No such file"), ("closed", "Permission denied")],
)
def test_nothing_begins_where_a_mount_is_not_what_the_user_reaches(
    daemon: ScriptedDaemon, tmp_path: Path, made: str, words: str
) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    if made == "closed":
        if os.getuid() == 0:
            pytest.skip("nothing is closed to root")
        source = Path("/proc/1/root/tmp")
    if made == "other":
        target.mkdir()
    elif made != "nothing":
        target.symlink_to(source)
    with pods(Pod(daemon, tmp_path, extra=("--same", str(source), str(target)))) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\n: > ran\n"))
        ended = line.report("ended")
        assert (tmp_path / "ran").exists() == (not made)
        if made:
            assert ended["why"] == "launch" and words in ended["message"]
            line.say(wire.ACK, sequence=ended["sequence"])
            assert pod.end() == 1


def test_commands_of_the_job_reach_the_daemon(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    program = Path(wire.__file__).parents[1] / "cli" / "thin" / "client.py"
    script = f"#!/bin/sh\n{sys.executable} -I -S {program} squeue -a; echo $?\n"
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script))
        client = daemon.line("client")
        assert client.opening._replace(what="") == line.opening._replace(what="")
        kind, payload = client.read()
        assert kind == b"H" and b"squeue" in payload and b"-a" in payload
        client.send(b"O", b"JOBID\n" * 100_000)
        client.send(b"X", b"5")
        line.report("ended")
        assert (tmp_path / "out-7").read_text() == "JOBID\n" * 100_000 + "5\n"


def test_a_command_is_tried_again_whatever_became_of_those_before(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, batch=False))
        line.report("started")
        for _ in range(8):
            with _command(pod) as sock:
                answered = daemon.line("client")
                answered.send(b"O", b"said")
                answered.close()
                while sock.recv(4096):
                    pass
        daemon.turns_away = 3
        with _command(pod):
            assert daemon.line("client").opening.what == "client"


def _command(pod: Pod) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(PATIENCE_S)
    sock.connect(str(pod.base / "socket"))
    return sock


@pytest.mark.parametrize(
    "words",
    [["--job", "x"], ["--pin", "12"], ["--same", "/a"], ["--colour", "red"], ["--daemon"], ["--daemon", "nowhere"]],
    ids=" ".join,
)
def test_wrong_arguments_are_told(daemon: ScriptedDaemon, tmp_path: Path, words: list[str]) -> None:
    with pods(Pod(daemon, tmp_path, extra=tuple(words))) as (pod,):
        assert pod.end() == 64
        assert pod.process.stderr is not None and pod.process.stderr.readline().startswith("slurmbridge: ")


@pytest.mark.parametrize("command", ["squeue", "sbatch --wrap=true"])
def test_a_command_without_a_daemon_says_so_in_slurms_words(
    daemon: ScriptedDaemon, tmp_path: Path, command: str
) -> None:
    program = Path(wire.__file__).parents[1] / "cli" / "thin" / "client.py"
    script = f"#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.05; done\n{sys.executable} -I -S {program} {command}; echo $?\n"
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script))
        line.report("started")
        daemon.shut()
        (tmp_path / "go").touch()
        assert pod.last_words()["status"] == 0
        assert (tmp_path / "out-7").read_text().endswith("Unable to contact slurm controller (connect failure)\n1\n")


def test_output_that_cannot_be_opened_is_told(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\n: > ran\n", out=f"{tmp_path}/taken"))
        ended = line.report("ended")
        assert (ended["status"], ended["message"]) == (53, f"could not open {tmp_path}/taken: Is a directory")
        assert not (tmp_path / "ran").exists()
        line.say(wire.ACK, sequence=ended["sequence"])
        pod.end()
        assert pod.process.stderr is not None and "Is a directory" in pod.process.stderr.read()


@pytest.mark.parametrize("seed", range(3))
def test_no_report_is_lost_or_changed_however_often_the_connection_is_cut(
    daemon: ScriptedDaemon, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    steps = "".join(f"{srun(f'-n1 echo {number}')}\n" for number in range(6))
    seen: dict[int, dict[str, object]] = {}
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=f"#!/bin/sh\n{steps}"))
        while pod.process.poll() is None:
            try:
                for _ in range(chance.randrange(1, 4)):
                    report = wire.decode(line.read()[1])
                    number = int(report["sequence"])
                    assert seen.setdefault(number, report) == report
                    whole = max(each for each in seen if all(before in seen for before in range(1, each + 1)))
                    if chance.random() < 0.5 or report["kind"] == "ended":
                        line.say(wire.ACK, sequence=whole)
            except EOFError:
                break  # it has ended
            line.close()
            again = _next(daemon, pod)
            if again is None:
                break
            line = again
            assert line.opening.run == TOKEN
            line.say(wire.ACK, sequence=0)
        assert pod.end() == 0
    assert sorted(seen) == list(range(1, 15))
    assert [seen[number]["kind"] for number in (1, 14)] == ["started", "ended"]
    assert (tmp_path / "out-7").read_text() == "0\n1\n2\n3\n4\n5\n"


def _next(daemon: ScriptedDaemon, pod: Pod) -> Line | None:
    """The supervisor once more, or nothing when it has ended."""
    while pod.process.poll() is None:
        with contextlib.suppress(queue.Empty):
            return daemon.line(within=0.1)
    return None
