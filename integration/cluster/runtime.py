"""The container runtime: containerd and runc of a newer Debian than the machine's, in a folder of their own.

Mounting an OCI image as a volume needs containerd 2.1. runc needs that Debian's C library and gets it beside it, by an
absolute path; a static busybox comes along for images, and the process that holds namespaces open is compiled here.
"""

import shutil
import tempfile
from pathlib import Path

from .places import PROGRAM, ClusterError
from .processes import run

NEWER, STABLE = "forky", "trixie"
FROM_NEWER = ("containerd", "runc", "libc6", "libseccomp2")
FROM_STABLE = ("busybox-static",)
RUNC_LIBRARIES = ("ld-linux-x86-64.so.2", "libc.so.6", "libseccomp.so.2")


def build(into: Path) -> None:
    """Fill a folder that is named after where it will be, with a suffix from ".part-" on."""
    for name in ("bin", "lib"):
        (into / name).mkdir()
    with tempfile.TemporaryDirectory() as work:
        unpacked = _unpack_debian(Path(work))
        for name in ("containerd", "containerd-shim-runc-v2", "ctr", "runc", "busybox"):
            shutil.copy2(_only(unpacked, name), into / "bin" / name)
        for name in RUNC_LIBRARIES:
            shutil.copy(_only(unpacked, name).resolve(), into / "lib" / name)
    final = into.parent / into.name.rpartition(".part-")[0]  # where the folder will be: the paths are written into runc
    loader = final / "lib" / RUNC_LIBRARIES[0]
    run(["patchelf", "--set-interpreter", loader, "--force-rpath", "--set-rpath", final / "lib", into / "bin/runc"])
    run(["gcc", "-O2", "-static", "-s", "-o", into / "bin/pause", PROGRAM / "pause/pause.c"])


def _unpack_debian(work: Path) -> Path:
    """Fetch packages of newer Debian suites with apt's own means, and unpack them without installing."""
    sites = run(["apt-get", "indextargets", "--format", "$(SITE)", "Origin: Debian", "Created-By: Packages"]).split()
    if not sites:
        raise ClusterError("apt knows no Debian mirror: run 'apt-get update', and see /etc/apt/sources.list.d")
    keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"
    for name in ("lists/partial", "archives/partial", "debs", "root"):
        (work / name).mkdir(parents=True)
    lines = [f"deb [signed-by={keyring}] {sites[0]} {suite} main\n" for suite in (NEWER, STABLE)]
    (work / "sources.list").write_text("".join(lines))
    options = {
        "Dir::Etc::SourceList": work / "sources.list", "Dir::Etc::SourceParts": "/dev/null",
        "Dir::State::Lists": work / "lists", "Dir::Cache": work, "APT::Sandbox::User": "root", "Acquire::Languages": "none",
    }  # fmt: skip
    apt = ["apt-get", "-qq", *(f"-o{key}={value}" for key, value in options.items())]
    run([*apt, "update"], within=300)
    wanted = [f"{name}/{NEWER}" for name in FROM_NEWER] + [f"{name}/{STABLE}" for name in FROM_STABLE]
    run(["env", "-C", work / "debs", *apt, "download", *wanted], within=300)
    for package in sorted((work / "debs").glob("*.deb")):
        run(["dpkg-deb", "--extract", package, work / "root"])
    return work / "root"


def _only(folder: Path, name: str) -> Path:
    """The file of that name below a folder, wherever the package put it."""
    found = [
        path
        for path in sorted(folder.rglob(name))
        if path.is_file() and "doc" not in path.parts and "share" not in path.parts
    ]
    if not found:
        raise ClusterError(f"the unpacked packages hold no {name}")
    return found[0]
