"""A folder with what packages of this machine's Debian hold: what an image of that Debian would be, without a registry.

dpkg knows which files a package has and which packages it needs; what packages write when they are installed (accounts,
links of the C library, byte code) is made anew. Manuals and translations are left out, as in Debian's own slim images.
"""

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster.places import ClusterError
from cluster.processes import run

STATUS = Path("/var/lib/dpkg/status")
LEFT_OUT = re.compile(r"/usr/share/(doc|man|locale|info|lintian|bash-completion|zsh)/|/usr/share/perl5/|.*/python3[^/]*/(test|idlelib|turtledemo|config-[^/]*)/")  # fmt: skip
BASE = ("passwd",)
"""Not essential, and yet in every image: it brings useradd."""
MERGED = ("bin", "lib", "lib64", "sbin")
WRITTEN = (
    "/etc/pam.d/common-account",
    "/etc/pam.d/common-auth",
    "/etc/pam.d/common-password",
    "/etc/pam.d/common-session",
)
"""By pam-auth-update, the same on every machine that nobody changed."""
FROM_PATTERN = {
    "/usr/share/base-passwd/passwd.master": "/etc/passwd", "/usr/share/base-passwd/group.master": "/etc/group",
    "/usr/share/libc-bin/nsswitch.conf": "/etc/nsswitch.conf", "/usr/share/base-files/profile": "/etc/profile",
}  # fmt: skip
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

Fields = Mapping[str, str]


def installed() -> dict[str, Fields]:
    """Packages of this machine by name, with the fields that dpkg keeps of each."""
    if not STATUS.exists():
        raise ClusterError("images for tests are made from Debian packages, and this machine has none")
    found: dict[str, Fields] = {}
    for paragraph in STATUS.read_text(errors="replace").split("\n\n"):
        lines = (line.partition(": ") for line in paragraph.splitlines() if not line.startswith(" "))
        fields = {name: value for name, _, value in lines}
        if fields.get("Status", "").endswith(" installed"):
            found[fields["Package"]] = fields
    return found


def with_needed(names: Iterable[str], packages: Mapping[str, Fields]) -> list[str]:
    """What every Debian has, these packages, and all that they depend on, sorted."""
    provided = {
        _name(word): name for name, fields in packages.items() for word in fields.get("Provides", "").split(",") if word
    }
    found: set[str] = set()
    ahead = [*names, *BASE, *(name for name, fields in packages.items() if fields.get("Essential") == "yes")]
    while ahead:
        name = ahead.pop()
        name = name if name in packages else provided.get(name, "")
        if not name or name in found:
            continue
        found.add(name)
        fields = packages[name]
        for needed in f"{fields.get('Pre-Depends', '')},{fields.get('Depends', '')}".split(","):
            choices = [_name(word) for word in needed.split("|")]
            ahead += [choice for choice in choices if choice in packages or choice in provided][:1]
    return sorted(found)


def _name(word: str) -> str:
    return re.split(r"[ (:]", word.strip(), maxsplit=1)[0]


def write(root: Path, names: Iterable[str]) -> None:
    """Fill an empty folder; its programs can be run by chroot then."""
    for name in ("dev", "home", "proc", "root", "run", "sys", "tmp", "usr/local/bin", "var/lib", "var/tmp", "etc"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    bring(root, names)
    for path in WRITTEN:
        copy(Path(path), root)
    for source, target in FROM_PATTERN.items():
        shutil.copyfile(source, root / target[1:])
    command(root, "ldconfig && pwconv && grpconv")


def bring(root: Path, names: Iterable[str]) -> None:
    """The files of packages, and no more. Some name themselves below /bin, which is a link in every layer or in none."""
    for name in MERGED:
        (root / "usr" / name).mkdir(parents=True, exist_ok=True)
        if not (root / name).is_symlink():
            (root / name).symlink_to(f"usr/{name}")
    for path in sorted(set(run(["dpkg", "--listfiles", *names]).splitlines())):
        if path.startswith("/") and not LEFT_OUT.match(path):
            copy(Path(path), root)


def copy(path: Path, root: Path) -> None:
    """A file or link with its rights; of a module of Python the byte code too, so that it is good for the copy."""
    target = root / str(path)[1:]
    if path.is_symlink() and not path.parent.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.is_symlink() and not target.exists():
            target.symlink_to(path.readlink())
    elif path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
        target.chmod(path.stat().st_mode & 0o7777)
    elif path.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
        if path.suffix == ".py":
            for code in path.parent.glob(f"__pycache__/{path.stem}.cpython-*.pyc"):
                copy_code(code, root / str(code)[1:])


def copy_code(path: Path, target: Path) -> None:
    """Images keep no times: byte code is of a source that was changed at 0 (PEP 552: flags and time after the magic)."""
    data = path.read_bytes()
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data[:4] + bytes(8) + data[12:] if data[4:8] == bytes(4) else data)


def command(root: Path, text: str) -> None:
    """Run by the folder's own shell, as a RUN of a Dockerfile is."""
    words = ["chroot", str(root), "/bin/sh", "-c", text]
    done = subprocess.run(words, env={"PATH": PATH}, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ClusterError(f"{text}: exit code {done.returncode}\n{done.stderr}")
