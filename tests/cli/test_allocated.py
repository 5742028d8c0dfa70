"""salloc's client when its daemon goes and comes again: what it says, and not before somebody can hear it."""

from __future__ import annotations

import json
import os
import select
import signal
from pathlib import Path

import pytest

from slurmbridge.wire import client as frames
from tests.cli.conftest import Run
from tests.cli.fake_daemon import FakeDaemon, Peer
from tests.patience import PATIENCE_S, until

pytestmark = pytest.mark.processes


def hand_over(peer: Peer, script: str, kill: int = 0) -> None:
    facts = {"job": 1, "argv": ["sh", "-c", script], "chdir": None, "kill": kill}
    peer.send(b"J", b"command", json.dumps(facts).encode(), b"PATH=/usr/bin:/bin")


def says_nothing(peer: Peer) -> bool:
    return not peer.waiting and not select.select([peer.connection], [], [], 0.2)[0]


@pytest.mark.parametrize("is_done", [True, False], ids=["done-before", "runs-on"])
def test_what_came_of_an_allocation_is_told_when_it_is_handed_over_anew(run: Run, folder: Path, is_done: bool) -> None:
    script = "touch begun; while [ -e begun -a ! -e go ]; do sleep 0.02; done; touch ended; exit 6"

    def first(peer: Peer) -> None:
        hand_over(peer, script)
        until((folder / "begun").exists)

    def second(peer: Peer) -> None:
        peer.send(b"A", b"given", b"4096", b"")  # the command line is read again
        kind, payload = peer.receive()
        assert kind == b"F" and frames.unpack(payload)[2] == b"words"
        if is_done:
            (folder / "go").touch()
            until((folder / "ended").exists)
            assert says_nothing(peer)
        hand_over(peer, script)
        (folder / "go").touch()
        kind, payload = peer.receive()
        assert (kind, frames.unpack(payload)) == (b"D", [b"6", b"%d" % (6 << 8)])
        peer.send(b"X", b"6")

    (folder / "given").write_text("words")
    with FakeDaemon(folder / "socket", first, second):
        assert run("salloc", "-D", "given", timeout=PATIENCE_S).returncode == 6


@pytest.mark.parametrize(("kill", "code"), [(0, 7), (int(signal.SIGTERM), 1)], ids=["goes-on", "is-killed"])
def test_an_allocation_that_ended_meanwhile_is_told_of_and_its_command_ends_as_asked(
    run: Run, folder: Path, kill: int, code: int
) -> None:
    def first(peer: Peer) -> None:
        hand_over(peer, "touch begun; while [ -e begun -a ! -e go ]; do sleep 0.02; done; exit 7", kill)
        until((folder / "begun").exists)

    def second(peer: Peer) -> None:
        peer.send(b"E", b"salloc: it is gone\n")
        peer.send(b"X", b"1")
        if not kill:
            (folder / "go").touch()

    with FakeDaemon(folder / "socket", first, second):
        answer = run("salloc")
    assert (answer.returncode, answer.stderr) == (code, b"salloc: it is gone\n")


def test_a_signal_that_comes_while_nobody_listens_is_told_later(run: Run, folder: Path) -> None:
    script = "echo $PPID >pid; mv pid begun; while [ -e begun -a ! -e go ]; do sleep 0.02; done"

    def first(peer: Peer) -> None:
        hand_over(peer, script)
        until((folder / "begun").exists)

    def second(peer: Peer) -> None:
        os.kill(int((folder / "begun").read_text()), signal.SIGTERM)
        assert says_nothing(peer)
        hand_over(peer, script)
        assert peer.receive() == (b"S", b"15")
        (folder / "go").touch()
        assert peer.receive()[0] == b"D"
        peer.send(b"X", b"0")

    with FakeDaemon(folder / "socket", first, second):
        assert run("salloc").returncode == 0
