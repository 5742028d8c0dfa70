"""What a cluster is made from, built once into the cache: Debian packages, the program, the container runtime.

Nothing of the system changes but the Debian packages that are installed; all else goes into the cache, each part in a
folder that is named by what it was made from and that appears when it is complete.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import images, runtime
from .places import PROGRAM, ClusterError, Places
from .processes import run

# What tells that a package is there (a file), and the package.
NEEDED = {
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "/usr/sbin/iptables": "iptables",
    "/usr/sbin/conntrack": "conntrack",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "openssl": "openssl",
    "patchelf": "patchelf",
    "gcc": "gcc",
    "/usr/include/stdio.h": "libc6-dev",
}
KEEP_UNUSED = 14 * 24 * 3600.0  # seconds after which what an older text built is removed from the cache


def prepare(places: Places, say: Callable[[str], None] = print) -> None:
    """Bring what is missing; nothing is done where all is there."""
    places.cache.mkdir(parents=True, exist_ok=True)
    with (places.cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # whoever comes second finds it done
        for left in places.cache.glob("*.part-*"):  # of a build that was killed
            shutil.rmtree(left)
        _install(say)
        for what, folder, build in (
            ("container runtime", places.runtime, runtime.build),
            ("images", places.images, lambda into: images.build(into, places.runtime)),
            ("program", places.program.parent, _build_program),
        ):
            if folder.is_dir():
                os.utime(folder)  # the time of its last use
                continue
            say(f"building {what}")
            began = time.monotonic()
            with _appearing(folder) as part:
                build(part)
            say(f"built {what} in {time.monotonic() - began:.0f} s")
            _forget_unused(folder)


def once(folder: Path, build: Callable[[Path], None], say: Callable[[str], None] = print) -> Path:
    """That folder, built if nobody has yet; beside it are others of its kind alone, named KIND-HASH."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.parent.glob("*.part-*"):
            shutil.rmtree(left)
        if folder.is_dir():
            os.utime(folder)
            return folder
        began = time.monotonic()
        with _appearing(folder) as part:
            build(part)
        say(f"built {folder.name.rpartition('-')[0]} in {time.monotonic() - began:.0f} s")
        _forget_unused(folder)
    return folder


@contextmanager
def _appearing(folder: Path) -> Iterator[Path]:
    """A folder that gets its name once it is complete."""
    part = Path(tempfile.mkdtemp(prefix=folder.name + ".part-", dir=folder.parent))
    try:
        yield part
        part.chmod(0o755)
        part.rename(folder)
    finally:
        if part.exists():
            shutil.rmtree(part)


def _forget_unused(folder: Path) -> None:
    kind = folder.name.rpartition("-")[0]
    for other in folder.parent.glob(f"{kind}-*"):
        if other != folder and time.time() - other.stat().st_mtime > KEEP_UNUSED:
            shutil.rmtree(other)


def _install(say: Callable[[str], None]) -> None:
    search = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    missing = [
        package
        for file, package in NEEDED.items()
        if shutil.which(file, path=search) is None and not Path(file).exists()
    ]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise ClusterError(f"Debian packages are missing: {' '.join(missing)}")
    say(f"installing {' '.join(missing)}")
    run(["apt-get", "-qq", "update"], within=300)
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", "install", "-y", "--no-install-recommends"]
    run([*quiet, *missing], within=600)


def _build_program(into: Path) -> None:
    """Compile the whole of Kubernetes: minutes when the Go build cache is empty, seconds after."""
    words = (PROGRAM / "go.mod").read_text().split()
    version = words[words.index("k8s.io/kubernetes") + 1]
    stamp = "k8s.io/component-base/version"
    flags = [
        "-s",
        "-w",
        f"-X {stamp}.gitVersion={version}",
        f"-X {stamp}.gitMajor=1",
        f"-X {stamp}.gitMinor={version.split('.')[1]}",
    ]
    compile_go(PROGRAM, ".", into / "cluster", flags)
    (into / "kubectl").symlink_to("cluster")


def compile_go(module: Path, package: str, into: Path, flags: Sequence[str] = ("-s", "-w")) -> None:
    """A program of a Go module; `flags` are the linker's. No C, no git state, no paths: the same text always gives the same
    file, and all modules and checkouts share the build cache."""
    if shutil.which("go") is None:
        raise ClusterError("Go is needed to build Kubernetes and Helm (1.26 or later, on the PATH)")
    environment = {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOTOOLCHAIN": "local"}
    done = subprocess.run(
        ["nice", "-n", "15", "go", "build", "-trimpath", "-ldflags", " ".join(flags), "-o", into, package],
        cwd=module, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise ClusterError(f"building {into.name} failed:\n{done.stderr[-3000:]}")
