"""Supervisors of one run in several pods: they meet, prove what they are, run steps together, and end together."""

from __future__ import annotations

import contextlib
import errno
import socket
import sys
from pathlib import Path

import pytest

from slurmbridge.spool.process import start_ticks
from slurmbridge.supervisor.pod_meeting import Run, ports
from slurmbridge.wire import step as step_wire
from slurmbridge.wire import supervisor as wire
from slurmbridge.wire.client import Decoder, frame, pack
from tests.patience import PATIENCE_S, until
from tests.supervisor.pods import CLIENT, TOKEN, Line, Pod, ScriptedDaemon, below, launch, pods, srun

pytestmark = pytest.mark.processes


def start(daemon: ScriptedDaemon, folder: Path, ranks: int, script: str, **changes: object) -> dict[int, Line]:
    """Every rank gets its launch as it dials in."""
    lines: dict[int, Line] = {}
    for _ in range(ranks):
        line = daemon.line()
        rank = line.opening.rank
        lines[rank] = line
        line.send(wire.LAUNCH, launch(folder, rank, ranks, script, **changes))
    return lines


def there(folder: Path) -> str:
    """The job's commands on rank 1: the path is the same in all pods, and is not where several stand for them here."""
    return f"env SLURMBRIDGE_ADDR=unix:{folder}/base1/socket"


def test_a_step_runs_on_all_ranks(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{srun('-N2 -n4 -l sh -c')} 'echo $SLURMD_NODENAME $OF_IMAGE' | sort\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)) as (first, second):
        line = start(daemon, tmp_path, 2, script)[0]
        ended = line.report("ended")
        assert (ended["why"], ended["status"]) == ("exit", 0) and "lost" not in ended
        assert [(step["step_id"], step["nodes"]) for step in ended["steps"]] == [(-5, ["n0"]), (0, ["n0", "n1"])]
        line.say(wire.ACK, sequence=ended["sequence"])
        assert (first.end(), second.end()) == (0, 0)
        assert (tmp_path / "out-7").read_text() == "0: n0 yes\n1: n0 yes\n2: n1 yes\n3: n1 yes\n"


def test_a_task_on_another_rank_may_start_a_step(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    inner = srun('--overlap -N2 -n2 sh -c "echo \\$SLURMD_NODENAME"')
    script = f"#!/bin/sh\n{srun('-N1 -n1 -w n1')} {there(tmp_path)} sh -c '{inner}' | sort\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)):
        ended = start(daemon, tmp_path, 2, script)[0].report("ended")
        assert (tmp_path / "out-7").read_text() == "n0\nn1\n"
        assert ended["status"] == 0


def test_commands_of_another_rank_reach_the_daemon_as_that_rank(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{srun('-N1 -n1 -w n1')} {there(tmp_path)} {sys.executable} -I -S {CLIENT} squeue\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)):
        line = start(daemon, tmp_path, 2, script)[0]
        client = daemon.line("client")
        assert client.opening.rank == 1
        client.read()
        client.send(b"O", b"seen\n")
        client.send(b"X", b"0")
        line.report("ended")
        assert (tmp_path / "out-7").read_text() == "seen\n"


def test_nothing_begins_before_all_ranks_are_there(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (first,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, 0, 2, "#!/bin/sh\n: > ran\n"))
        while not _answers(7):
            assert first.process.poll() is None
        assert not (tmp_path / "ran").exists()
        second = Pod(daemon, tmp_path, rank=1)
        with pods(second):
            daemon.line().send(wire.LAUNCH, launch(tmp_path, 1, 2))
            line.report("ended")
            assert (tmp_path / "ran").exists()


def _answers(job: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", ports(Run(job, 0, ""))[0])) == 0


def test_the_loss_of_a_rank_ends_the_run_everywhere(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = "#!/bin/sh\n: > ready\nexec sleep 600\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1), Pod(daemon, tmp_path, rank=2)) as made:
        line = start(daemon, tmp_path, 3, script)[0]
        line.report("started")
        made[1].process.kill()
        ended = line.report("ended")
        assert ended["why"] == "node_fail" and ended["message"].startswith("node n1 failed: ")
        assert ended["lost"] == [1]
        line.say(wire.ACK, sequence=ended["sequence"])
        assert made[0].end() == 143 and made[2].end() == 0


def test_the_loss_of_rank_0_ends_what_runs_on_the_others(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = f"#!/bin/sh\n{srun('-N2 -n2 sh -c')} 'echo $$ > pid-$SLURMD_NODENAME; exec sleep 600'\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)) as (first, second):
        start(daemon, tmp_path, 2, script)
        while not (tmp_path / "pid-n1").exists() or not (tmp_path / "pid-n1").read_text().strip():
            assert first.process.poll() is None
        pid = int((tmp_path / "pid-n1").read_text())
        first.process.kill()
        second.end()
        until(lambda: start_ticks(pid) is None, "it outlives its run")


def test_deletion_of_one_pod_ends_the_run(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    script = f"#!/bin/sh\ntrap 'exit 0' TERM\n: > ready\n{srun('-N2 -n2 sleep 600')}\n"
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)) as (_, second):
        line = start(daemon, tmp_path, 2, script)[0]
        line.report("step")
        second.terminate()
        ended = line.report("ended")
        assert (ended["why"], ended["message"]) == ("node_fail", "n1: its pod was deleted")


def test_a_rank_whose_mount_is_not_what_the_user_reaches_stops_the_run(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    wrong = ("--same", str(tmp_path), "/nowhere/at/all")
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1, extra=wrong)):
        ended = start(daemon, tmp_path, 2, "#!/bin/sh\nexec sleep 600\n")[0].report("ended")
        assert ended["why"] == "launch" and "n1: --container-mounts: /nowhere/at/all" in ended["message"]


def test_a_rank_that_cannot_listen_for_its_jobs_commands_stops_the_run(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    (tmp_path / "base1").mkdir()
    (tmp_path / "base1" / "socket").touch()
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)):
        ended = start(daemon, tmp_path, 2, "#!/bin/sh\nexec sleep 600\n")[0].report("ended")
        assert ended["why"] == "launch" and "n1: " in ended["message"] and "base1" in ended["message"]


def test_who_does_not_know_the_token_takes_no_rank(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    """Neither does it hold the run up, nor does rank 0 tell it the token."""
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)):
        line = daemon.line()
        lines = {line.opening.rank: line}
        line = daemon.line()
        lines[line.opening.rank] = line
        lines[0].send(wire.LAUNCH, launch(tmp_path, 0, 2, "#!/bin/sh\n"))
        while not _answers(7):
            pass
        with socket.create_connection(("127.0.0.1", ports(Run(7, 0, ""))[0])) as sock:
            sock.sendall(frame(wire.REGISTER, pack(wire.VERSION, b"1", bytes(16), b"")))
            decoder, frames = Decoder(), list[tuple[bytes, bytes]]()
            while not frames:
                frames = decoder.feed(sock.recv(4096))
            assert frames[0][0] == wire.CHALLENGE and TOKEN.encode() not in frames[0][1]
            sock.sendall(frame(wire.PROOF, pack(bytes(32))))
            assert sock.recv(4096) == b""
        lines[1].send(wire.LAUNCH, launch(tmp_path, 1, 2))
        assert lines[0].report("ended")["why"] == "exit"


def test_two_runs_on_one_network_take_different_ports(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    """As pods that share their node's network: whoever comes second takes the next candidate, and is found there."""
    taken = ports(Run(7, 0, ""))[0]
    with (
        socket.create_server(("127.0.0.1", taken)) as other,
        pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)),
    ):
        other.settimeout(PATIENCE_S)
        line = start(daemon, tmp_path, 2, "#!/bin/sh\n")[0]
        other.accept()[0].close()  # the other rank asks here first
        assert line.report("ended")["why"] == "exit"


def test_rank_0_is_found_by_its_address_where_its_name_is_not_known(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)):
        names = {"address_of_node": "no-such-node.invalid", "head": "127.0.0.1"}
        assert start(daemon, tmp_path, 2, "#!/bin/sh\n", **names)[0].report("ended")["why"] == "exit"


def test_a_step_may_come_from_outside(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, batch=False))
        line.report("started")
        line.say(wire.CONNECT, connection="abc")
        outside = daemon.line("step")
        assert outside.opening.connection == "abc"
        env = wire.join_env(
            [("PATH", "/of/the/login/node"), ("NVIDIA_VISIBLE_DEVICES", "all"), ("MINE", "1"), ("LD_X", "1")]
        )
        request = {"argv": ["/usr/bin/env"], "cwd": "/"}
        outside.send(step_wire.REQUEST, pack(step_wire.VERSION, wire.encode(request), env))
        assert outside.read()[0] == step_wire.CREATED
        outside.say(step_wire.GO)
        told = b""
        while (heard := outside.read())[0] != step_wire.FINISHED:
            if heard[0] == step_wire.STDOUT:
                told += step_wire.parse_data(heard[1])[1]
        found = dict(entry.split("=", 1) for entry in told.decode().splitlines() if "=" in entry)
        assert found["PATH"] == "/opt/slurmbridge/commands:/usr/local/bin:/usr/bin:/bin"
        assert (found["NVIDIA_VISIBLE_DEVICES"], found["MINE"], found["OF_IMAGE"]) == ("void", "1", "yes")
        assert "LD_X" not in found and found["SLURMBRIDGE_ADDR"] == f"unix:{pod.base}/socket"


class Sender:
    """sbcast, without its options."""

    def __init__(self, pod: Pod) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(PATIENCE_S)
        self._socket.connect(str(pod.base / "spool/7.0.0/step"))
        self._decoder = Decoder()
        self._frames: list[tuple[bytes, bytes]] = []

    def send(self, kind: bytes, payload: bytes) -> None:
        self._socket.sendall(frame(kind, payload))

    def answer(self) -> tuple[bytes, bytes]:
        while not self._frames:
            self._frames = self._decoder.feed(self._socket.recv(4096))
        return self._frames.pop(0)

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("force", [True, False])
def test_a_file_is_brought_to_all_ranks(daemon: ScriptedDaemon, tmp_path: Path, force: bool) -> None:
    """Pods have files of their own. Here both write the same one: the second is refused what the first has made."""
    whole = bytes(range(256)) * 10_000
    with contextlib.ExitStack() as stack, pods(Pod(daemon, tmp_path), Pod(daemon, tmp_path, rank=1)) as (first, second):
        line = start(daemon, tmp_path, 2, "#!/bin/sh\nexec sleep 600\n")[0]
        line.report("started")
        sender = stack.enter_context(contextlib.closing(Sender(first)))
        request = {"dest": str(tmp_path / "copy"), "mode": 0o640, "force": force}
        sender.send(step_wire.CAST, pack(step_wire.VERSION, wire.encode(request)))
        kind, payload = sender.answer()
        if force:
            for place in range(0, len(whole), 1 << 20):
                assert kind == step_wire.MORE
                sender.send(step_wire.STDIN, whole[place : place + (1 << 20)])
                kind, payload = sender.answer()
            sender.send(step_wire.STDIN_END, b"")
            kind, payload = sender.answer()
            assert kind == step_wire.FINISHED and wire.decode(payload)["errno"] == 0
            assert (tmp_path / "copy").read_bytes() == whole
        else:
            while kind == step_wire.MORE:  # whoever is second may say so a little later
                with contextlib.suppress(BrokenPipeError):  # it has said so
                    sender.send(step_wire.STDIN, b"x")
                kind, payload = sender.answer()
            assert (kind, wire.decode(payload)["errno"]) == (step_wire.FINISHED, errno.EEXIST)
            while len(below(first.process.pid)) > 1 or below(second.process.pid):  # who writes ends, the script goes on
                assert first.process.poll() is None and second.process.poll() is None
