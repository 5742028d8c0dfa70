"""The client sends what was typed, hands out only named files, prints what it is told, survives a cut."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from slurmbridge.cli.thin import absent
from slurmbridge.wire import client as frames
from tests.cli.conftest import Run
from tests.cli.fake_daemon import FakeDaemon, Peer, Talk


def say(out: bytes = b"", err: bytes = b"", code: bytes = b"0"):  # type: ignore[no-untyped-def]
    def talk(peer: Peer) -> None:
        if out:
            peer.send(b"O", out)
        if err:
            peer.send(b"E", err)
        peer.send(b"X", code)

    return talk


def ask(name: bytes, limit: bytes = b"4096", how: bytes = b""):  # type: ignore[no-untyped-def]
    """Ask for a file and print `errno path content`."""

    def talk(peer: Peer) -> None:
        peer.send(b"A", name, limit, how)
        kind, payload = peer.receive()
        assert kind == b"F"
        peer.send(b"O", b" ".join(frames.unpack(payload)))
        peer.send(b"X", b"0")

    return talk


def test_output_errors_and_exit_code_pass_through(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", say(b"out\n", b"err\n", b"7")):
        answer = run("squeue")
    assert (answer.returncode, answer.stdout, answer.stderr) == (7, b"out\n", b"err\n")


def test_everything_the_caller_knows_is_sent(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", say()) as daemon:
        run("sbatch", "--wrap", "a b", env={"BASH_FUNC_module%%": "() { :\n}", "EMPTY": ""})
    version, nonce, umask, width, sid, tty, host, cwd, limits, count, *rest = daemon.hellos[0]
    assert (version, len(nonce), width, tty, cwd) == (frames.VERSION, 16, b"80", b"", os.fsencode(folder))
    assert int(umask, 8) == 0o022 or int(umask, 8) >= 0
    assert int(sid) == os.getsid(0)
    assert host == os.uname().nodename.encode()
    assert b"NOFILE:" in limits and b"CPU:-1:-1" in limits
    assert rest[: int(count)] == [b"sbatch", b"--wrap", b"a b"]
    environment = rest[int(count) :]
    assert b"BASH_FUNC_module%%=() { :\n}" in environment
    assert b"EMPTY=" in environment
    assert not any(entry.startswith(b"LC_CTYPE=") for entry in environment)


def test_a_file_that_was_typed_is_sent_with_its_full_path(run: Run, folder: Path) -> None:
    (folder / "job.sh").write_bytes(b"#!/bin/sh\n")
    with FakeDaemon(folder / "socket", ask(b"job.sh")):
        answer = run("sbatch", "job.sh")
    assert answer.stdout == b"0 %s/job.sh #!/bin/sh\n" % os.fsencode(folder)


@pytest.mark.parametrize("typed", ["--nodefile=hosts", "-Fhosts"])
def test_a_file_named_by_an_option_is_sent(run: Run, folder: Path, typed: str) -> None:
    (folder / "hosts").write_bytes(b"n1\n")
    with FakeDaemon(folder / "socket", ask(b"hosts")):
        assert run("sbatch", typed).stdout.endswith(b"hosts n1\n")


def test_a_file_named_in_a_script_is_sent_after_the_script(run: Run, folder: Path) -> None:
    (folder / "job.sh").write_bytes(b"#!/bin/sh\n#SBATCH --nodefile=hosts\n")
    (folder / "hosts").write_bytes(b"n1\n")

    def talk(peer: Peer) -> None:
        peer.send(b"A", b"job.sh", b"4096", b"p")
        peer.receive()
        ask(b"hosts")(peer)

    with FakeDaemon(folder / "socket", talk):
        assert run("sbatch", "job.sh").stdout.endswith(b"hosts n1\n")


def test_a_file_that_nobody_named_is_refused(run: Run, folder: Path) -> None:
    (folder / "secret").write_bytes(b"key")
    with FakeDaemon(folder / "socket", ask(os.fsencode(folder / "secret"))):
        assert run("sbatch", "job.sh").stdout.split() == [b"%d" % errno.EACCES]


def test_a_script_is_looked_for_along_the_path(run: Run, folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "job.sh").write_bytes(b"#!")
    with FakeDaemon(folder / "socket", ask(b"job.sh", how=b"p")):
        answer = run("sbatch", "job.sh", env={"PATH": f"/nowhere:{folder}/bin"})
    assert answer.stdout == b"0 %s/bin/job.sh #!" % os.fsencode(folder)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        pytest.param(lambda path: None, errno.ENOENT, id="missing"),
        pytest.param(lambda path: path.mkdir(), errno.EISDIR, id="folder"),
        pytest.param(lambda path: path.write_bytes(b"x" * 4097), errno.EFBIG, id="too-large"),
    ],
)
def test_what_cannot_be_sent_is_an_errno(run: Run, folder: Path, make, problem: int) -> None:  # type: ignore[no-untyped-def]
    make(folder / "job.sh")
    with FakeDaemon(folder / "socket", ask(b"job.sh")):
        assert run("sbatch", "job.sh").stdout.split()[0] == b"%d" % problem


def test_standard_input_is_sent_when_asked_for(run: Run, folder: Path) -> None:
    def talk(peer: Peer) -> None:
        peer.send(b"I", b"4096", b"")
        peer.send(b"O", frames.unpack(peer.receive()[1])[2])
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", talk):
        assert run("sbatch", input=b"#!/bin/sh\nhostname\n").stdout == b"#!/bin/sh\nhostname\n"


def test_one_line_of_standard_input_leaves_the_rest(run: Run, folder: Path) -> None:
    def talk(peer: Peer) -> None:
        peer.send(b"I", b"4096", b"l")
        peer.send(b"O", frames.unpack(peer.receive()[1])[2])
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", talk):
        assert run("sacctmgr", input=b"y\nmore\n").stdout == b"y\n"


def test_each_question_for_a_line_gets_the_next_line(run: Run, folder: Path) -> None:
    def talk(peer: Peer) -> None:
        for _ in range(3):
            peer.send(b"I", b"4096", b"l")
            peer.send(b"O", frames.unpack(peer.receive()[1])[2])
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", talk):
        assert run("scontrol", input=b"first\nsecond\n").stdout == b"first\nsecond\n"


def write(name: bytes, data: bytes, mode: bytes = b"666") -> Talk:
    """Asks the client to write a file; prints the errno it answers."""

    def talk(peer: Peer) -> None:
        peer.send(b"W", name, mode, data)
        peer.send(b"O", frames.unpack(peer.receive()[1])[0])
        peer.send(b"X", b"0")

    return talk


@pytest.mark.parametrize(
    ("words", "name"),
    [
        pytest.param(("dump", "oracle", "file=out.cfg"), b"out.cfg", id="behind-an-equals-sign"),
        pytest.param(("write", "batch_script", "12", "out.sh"), b"out.sh", id="a-word"),
        pytest.param(("write", "batch_script", "12"), b"slurm-12.sh", id="made-of-the-job"),
        pytest.param(("dump", "oracle"), b"./oracle.cfg", id="made-of-the-cluster"),
    ],
)
def test_a_file_that_was_named_is_written_with_the_callers_rights(
    run: Run, folder: Path, words: tuple[str, ...], name: bytes
) -> None:
    with FakeDaemon(folder / "socket", write(name, b"new")):
        (folder / os.fsdecode(name)).write_bytes(b"older and longer")
        assert run("scontrol", *words).stdout == b"0"
    assert (folder / os.fsdecode(name)).read_bytes() == b"new"


@pytest.mark.parametrize("name", [b".bashrc", b"racle.cfg", b"../oracle.cfg", b"oracle.cfg"])
def test_no_other_file_is_written(run: Run, folder: Path, name: bytes) -> None:
    with FakeDaemon(folder / "socket", write(name, b"new")):
        assert run("sacctmgr", "dump", "oracle").stdout == b"%d" % errno.EACCES
    assert not (folder / os.fsdecode(name)).exists()


def test_a_file_that_cannot_be_written_is_an_errno(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", write(b"nowhere/out", b"new")):
        assert run("sacctmgr", "dump", "oracle", "file=nowhere/out").stdout == b"%d" % errno.ENOENT


def cut_after(out: bytes = b""):  # type: ignore[no-untyped-def]
    def talk(peer: Peer) -> None:
        if out:
            peer.send(b"O", out)

    return talk


def test_a_cut_submission_is_sent_again_with_the_same_nonce(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", cut_after(), say(b"Submitted batch job 1\n")) as daemon:
        answer = run("sbatch", "--wrap", "x")
    assert (answer.returncode, answer.stdout) == (0, b"Submitted batch job 1\n")
    assert daemon.hellos[0][1] == daemon.hellos[1][1]


def test_what_was_printed_before_a_cut_is_not_printed_again(run: Run, folder: Path) -> None:
    line = b"Submitted batch job 1\n"
    with FakeDaemon(folder / "socket", cut_after(line), say(line, code=b"3")):
        answer = run("sbatch", "--wait", "--wrap", "x")
    assert (answer.returncode, answer.stdout) == (3, line)


def test_standard_input_read_before_a_cut_is_sent_again(run: Run, folder: Path) -> None:
    def first(peer: Peer) -> None:
        peer.send(b"I", b"4096", b"")
        peer.receive()

    def second(peer: Peer) -> None:
        first(peer)
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", first, second):
        assert run("sbatch", input=b"#!/bin/sh\n").returncode == 0


@pytest.mark.slow
def test_a_daemon_that_cuts_every_time_is_given_up(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", cut_after()) as daemon:
        answer = run("sbatch", "--wrap", "x")
    assert answer.returncode == 1
    assert b"cut" in answer.stderr
    assert len(daemon.hellos) > 3


def test_a_cut_change_is_not_repeated(run: Run, folder: Path) -> None:
    with FakeDaemon(folder / "socket", cut_after(), say()) as daemon:
        answer = run("scontrol", "requeue", "5")
    assert answer.returncode == 1
    assert b"cut" in answer.stderr
    assert len(daemon.hellos) == 1


def test_a_closed_output_ends_the_command_quietly(run: Run, folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with FakeDaemon(folder / "socket", say(b"x" * 100_000)), open(writer, "wb") as closed:
        command = [*run("x", env={"SLURMBRIDGE_ADDR": "unix:/nowhere"}).args[:-1], "squeue"]
        process = subprocess.run(
            command, env={"SLURMBRIDGE_ADDR": f"unix:{folder}/socket"}, stdout=closed, stderr=subprocess.PIPE
        )
    assert (process.returncode, process.stderr) == (-13, b"")


def test_a_socket_with_a_long_name_is_reached(run: Run, folder: Path) -> None:
    deep = folder / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    with FakeDaemon(folder / "socket", say(b"ok\n")):
        os.link(folder / "socket", deep / "socket")
        assert run("squeue", env={"SLURMBRIDGE_ADDR": f"unix:{deep}/socket"}).stdout == b"ok\n"


@pytest.mark.parametrize(
    "address", ["http://localhost:1", "https://localhost", "https://h:1/path", "https://a b:x", "ftp://h:1"]
)
def test_an_address_that_is_not_understood_is_refused(run: Run, address: str) -> None:
    answer = run("squeue", env={"SLURMBRIDGE_ADDR": address})
    assert answer.returncode == 1
    assert b"SLURMBRIDGE_ADDR" in answer.stderr and b"https://HOST:PORT" in answer.stderr


def test_who_has_no_token_is_told_how_to_get_one(run: Run, folder: Path) -> None:
    answer = run(
        "squeue", env={"SLURMBRIDGE_ADDR": "https://localhost:1", "SLURMBRIDGE_TOKEN_FILE": str(folder / "none")}
    )
    assert answer.returncode == 1
    assert b"No such file" in answer.stderr and b"slurmbridge token" in answer.stderr


def test_a_broken_frame_ends_with_an_error(run: Run, folder: Path) -> None:
    def talk(peer: Peer) -> None:
        peer.connection.sendall(b"\xff\xff\xff\xff\xff")

    with FakeDaemon(folder / "socket", talk):
        answer = run("squeue")
    assert answer.returncode == 1
    assert answer.stderr.startswith(b"squeue: error: ")


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_file_is_not_taken_for_the_connection(run: Run, folder: Path, closed: int) -> None:
    def talk(peer: Peer) -> None:
        peer.send(b"O", b"out")
        peer.send(b"E", b"err")
        peer.send(b"I", b"4096", b"")
        errno_, _, content = frames.unpack(peer.receive()[1])
        peer.send(b"E", content)
        peer.send(b"X", errno_)

    with FakeDaemon(folder / "socket", talk):
        answer = run("sbatch", input=b"typed", closed=closed)
    assert answer.returncode == 0
    assert answer.stdout == (b"" if closed == 1 else b"out")
    assert answer.stderr == {0: b"err", 1: b"errtyped", 2: b""}[closed]


@pytest.mark.parametrize("answers", [True, False], ids=["at work", "hangs"])
def test_a_daemon_that_is_silent_is_left_only_when_it_answers_nobody(
    folder: Path, monkeypatch: pytest.MonkeyPatch, answers: bool
) -> None:
    monkeypatch.setattr(absent, "MESSAGE_TIMEOUT", 60 if answers else 0.1)
    monkeypatch.setattr(absent, "run_locally", lambda mode, client, argv: sys.exit(f"{mode} {argv}"))
    with ExitStack() as ends:

        def dial(*_: object) -> tuple[socket.socket, bool]:
            end = ends.enter_context(socket.socket(socket.AF_UNIX))
            end.connect(str(folder / "socket"))
            return end, False

        listener = ends.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(folder / "socket"))
        listener.listen()
        session = SimpleNamespace(command="squeue", entries=[], argv=[b"squeue"], connection=dial()[0])
        session.connection.settimeout(10)
        ends.enter_context(listener.accept()[0])
        if answers:

            def serve() -> None:
                ends.enter_context(listener.accept()[0]).sendall(b"x")

            server = threading.Thread(target=serve)
            server.start()
            absent.look_after(session, dial, lambda *_: b"hello", "client")
            server.join()
            assert session.connection.gettimeout() == 20
        else:
            with pytest.raises(SystemExit, match="silent"):
                absent.look_after(session, dial, lambda *_: b"hello", "client")
