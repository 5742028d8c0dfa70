"""A folder is removed only when nothing that lives elsewhere can be lost with it."""

import subprocess
import sys
from pathlib import Path

import pytest

from .mounts import MARK, make_marked, remove_marked
from .places import ClusterError

REMOVE_BELOW_A_MOUNT = """
import subprocess, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from cluster.mounts import remove_marked
from cluster.places import ClusterError
folder, home = Path(sys.argv[2]), Path(sys.argv[3])
subprocess.run(["mount", "--bind", home, folder / "deep/inside"], check=True)
try:
    remove_marked(folder)
except ClusterError as error:
    print(error)
"""


def test_a_folder_that_was_made_for_it_is_removed_with_its_links_but_not_what_they_point_to(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis").write_text("years of work")
    folder = tmp_path / "run"
    make_marked(folder)
    (folder / "deep/inside").mkdir(parents=True)
    (folder / "deep/link").symlink_to(home)
    (folder / "link").symlink_to(home)
    remove_marked(folder)
    assert not folder.exists()
    assert (home / "thesis").read_text() == "years of work"


def test_a_folder_without_the_mark_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ClusterError, match="not made by this program"):
        remove_marked(tmp_path)
    with pytest.raises(ClusterError, match="not made by this program"):
        make_marked(tmp_path)
    assert (tmp_path / "file").exists()


def test_a_link_to_a_folder_is_not_taken_for_the_folder(tmp_path: Path) -> None:
    make_marked(tmp_path / "run")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(ClusterError):
        remove_marked(tmp_path / "link")
    assert (tmp_path / "run" / MARK).exists()


@pytest.mark.root
def test_a_folder_that_something_is_mounted_below_is_not_removed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis").write_text("years of work")
    folder = tmp_path / "run"
    make_marked(folder)
    (folder / "deep/inside").mkdir(parents=True)
    apart = ["unshare", "--mount", "--propagation=private", sys.executable, "-c", REMOVE_BELOW_A_MOUNT]
    words = [*apart, str(Path(__file__).parents[1]), str(folder), str(home)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert f"mounted below it: {folder}/deep/inside" in said
    assert (home / "thesis").read_text() == "years of work"
    assert (folder / "deep").exists()
