"""What the examination reads of the machine."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slurmbridge.cli.doctor import filesystem, planner

ROW = b"%d 1 0:%d / %s rw,relatime shared:1 - %s source rw\n"


@pytest.mark.parametrize(
    ("folder", "kind"),
    [("plain/state", "xfs"), ("a blank/state", "nfs4"), ("b\\slash", "ceph"), ("stra\xdfe/state", "tmpfs"), ("other", "ext4")],
)  # fmt: skip
def test_the_file_system_of_a_folder_is_that_of_the_innermost_mount(tmp_path: Path, folder: str, kind: str) -> None:
    here = str(tmp_path).encode()
    table = tmp_path / "mountinfo"
    rows = [
        (b"/", b"ext4"), (here + b"/plain", b"xfs"), (here + b"/a\\040blank", b"nfs4"), (here + b"/b\\134slash", b"ceph"),
        (here + "/stra\xdfe".encode(), b"tmpfs"), (b"/mnt/\xff", b"vfat"),
    ]  # fmt: skip
    table.write_bytes(b"".join(ROW % (at, at, point, name) for at, (point, name) in enumerate(rows)))
    assert filesystem(str(tmp_path / folder), str(table)) == kind


def test_the_planner_starts_with_the_python_that_runs_us() -> None:
    assert planner(sys.executable) == ""


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo Traceback >&2; echo 'Original error was: libx.so: no such file' >&2; echo >&2; exit 1", "Original error was: libx.so: no such file"),
        ("exit 3", "exit status 3"),
    ],
    ids=["words", "none"],
)  # fmt: skip
def test_a_planner_that_does_not_start_is_told_with_its_last_words(tmp_path: Path, script: str, words: str) -> None:
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert planner(str(program)) == words


def test_a_python_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert planner(str(tmp_path / "none")) == f"{tmp_path}/none: No such file or directory"
