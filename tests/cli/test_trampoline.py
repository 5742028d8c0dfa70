"""The wheel's scripts find their interpreter and client from wherever they are called, and pass everything on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from slurmbridge.commands import table
from tests.cli.fake_daemon import FakeDaemon, Peer
from tests.patience import PATIENCE_S


def echo(peer: Peer) -> None:
    peer.send(b"O", b"ok\n")
    peer.send(b"X", b"0")


def call(argv: list[str], folder: Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[bytes]:
    given = {"PATH": "/usr/bin:/bin", "SLURMBRIDGE_ADDR": f"unix:{folder}/socket", **(env or {})}
    return subprocess.run(
        argv, env=given, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_S
    )


def test_every_command_of_the_table_is_installed(commands: Path) -> None:
    assert {name for name in table.COMMANDS if not os.access(commands / name, os.X_OK)} == set()


def test_it_runs_by_its_path(commands: Path, folder: Path) -> None:
    with FakeDaemon(folder / "socket", echo) as daemon:
        assert call([str(commands / "squeue"), "a b", "*", ""], folder).stdout == b"ok\n"
    assert daemon.hellos[0][10:14] == [b"squeue", b"a b", b"*", b""]


def test_it_runs_along_the_path(commands: Path, folder: Path) -> None:
    with FakeDaemon(folder / "socket", echo):
        assert call(["sh", "-c", "squeue"], folder, {"PATH": f"{commands}:/usr/bin:/bin"}).stdout == b"ok\n"


@pytest.mark.parametrize("name", ["squeue", "other-name"])
def test_it_runs_through_a_link(commands: Path, folder: Path, name: str) -> None:
    (folder / "real").symlink_to(commands / "squeue")
    (folder / name).symlink_to("real")
    with FakeDaemon(folder / "socket", echo) as daemon:
        assert call([f"./{name}"], folder).stdout == b"ok\n"
    assert daemon.hellos[0][10] == b"squeue"


def test_the_environment_arrives_as_it_was(commands: Path, folder: Path) -> None:
    given = {
        "BASH_FUNC_module%%": "() {  echo loaded\n}",
        "odd.name": "1",
        "BASH_ENV": "/nowhere/file",
        "self": "mine",
        "lib": "mine",
        "SHLVL": "3",
        "LANG": "C",
        "PWD": str(folder),
    }
    with FakeDaemon(folder / "socket", echo) as daemon:
        assert call([str(commands / "sbatch")], folder, given).stdout == b"ok\n"
    sent = dict(entry.decode().split("=", 1) for entry in daemon.hellos[0][11:])
    expected = {**given, "PATH": "/usr/bin:/bin", "SLURMBRIDGE_ADDR": f"unix:{folder}/socket"}
    assert {name: sent.get(name) for name in expected} == expected
    assert set(sent) - set(expected) <= {"_", "OLDPWD"}
