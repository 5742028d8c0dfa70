"""What the examination reads of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from slurmbridge.cli.doctor import filesystem

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
