"""Many commands over one connection, for tests and measuring."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurmbridge.cli.connection import Answer, Connection
from slurmbridge.errors import ProtocolError
from slurmbridge.wire import client as frames
from tests.cli.fake_daemon import FakeDaemon, Peer


def test_commands_follow_one_another_on_a_connection(folder: Path) -> None:
    def talk(peer: Peer) -> None:
        for code in (b"0", b"3"):
            peer.send(b"O", b"out")
            peer.send(b"E", b"err")
            peer.send(b"X", code)
            peer.receive()

    with FakeDaemon(folder / "socket", talk), Connection(str(folder / "socket")) as connection:
        answers = [connection.run(["squeue"]) for _ in range(2)]
    assert answers == [Answer(code=code, out=b"out", err=b"err") for code in (0, 3)]


def test_only_given_files_are_sent(folder: Path) -> None:
    def talk(peer: Peer) -> None:
        for name in (b"job.sh", b"other"):
            peer.send(b"A", name, b"4096", b"p")
            peer.send(b"O", b"|".join(frames.unpack(peer.receive()[1])) + b"\n")
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", talk) as daemon, Connection(str(folder / "socket")) as connection:
        answer = connection.run(["sbatch", "job.sh"], cwd="/w", files={"job.sh": b"#!"})
    assert answer.text == "0|/w/job.sh|#!\n2||\n"
    assert [list(each) for each in daemon.given] == [[b"job.sh", b"/w/job.sh", b"#!"]]


def test_a_cut_is_an_error(folder: Path) -> None:
    with (
        FakeDaemon(folder / "socket", lambda peer: None),
        Connection(str(folder / "socket")) as connection,
        pytest.raises(ProtocolError),
    ):
        connection.run(["squeue"])


def test_nobody_there_is_an_os_error(folder: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Connection(str(folder / "socket"))
