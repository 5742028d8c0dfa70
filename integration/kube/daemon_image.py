"""The images of k8s/daemon and k8s/login, as this checkout makes them, without a registry.

The last stages of the Dockerfiles say what is in them: Debian's packages come from this machine, /opt/venv from the
environment that runs the tests (`integration/prefix.sh` filled it from requirements.lock), the other commands are run in the
new root. Layers that do not change with the product are kept beside the cluster's program.
"""

import hashlib
import importlib.metadata
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from cluster.images import archive, layer
from cluster.packages import once
from cluster.places import REGISTRY, ClusterError, Places
from packaging.requirements import Requirement

from k8s.dockerfile import Stage, last_stage

from . import debian

DAEMON = f"{REGISTRY}/slurmbridge:1"
LOGIN = f"{REGISTRY}/slurmbridge-login:1"
K8S = Path(__file__).resolve().parents[2] / "k8s"
VENV = "opt/venv"
PRODUCT = "slurmbridge"
NOT_LOADED = ("kubernetes/aio/", "numpy/_core/tests/", "numpy/lib/tests/", "numpy/ma/tests/", "numpy/random/tests/")
"""Of packages: what would be a third of the image."""


def daemon(into: Path) -> Path:
    """An archive of the daemon's image. ClusterError."""
    stage = last_stage(K8S / "daemon/Dockerfile")
    return _archive(into / "daemon.tar", DAEMON, stage, [_system(stage), _packages()])


def login(into: Path) -> Path:
    """The same with what people like to have, as far as this machine has it."""
    base, stage = last_stage(K8S / "daemon/Dockerfile"), last_stage(K8S / "login/Dockerfile")
    below = [_system(base), _packages(), _comforts(base, stage)]
    return _archive(into / "login.tar", LOGIN, replace(stage, environment=base.environment), below)


def _archive(path: Path, name: str, stage: Stage, below: list[Path]) -> Path:
    with tempfile.TemporaryDirectory() as work:
        root = Path(work)
        _copy_distributions(root, [importlib.metadata.distribution(PRODUCT)])
        archive(
            root, path, name, below=below, command=stage.command, entrypoint=stage.entrypoint, user=stage.user,
            environment=stage.environment,
        )  # fmt: skip
    return path


def _system(stage: Stage) -> Path:
    """The layer of the distribution, with the Dockerfile's own commands run in it."""
    packages = debian.installed()
    names = debian.with_needed(stage.packages, packages)

    def write(root: Path) -> None:
        debian.write(root, names)
        for command in stage.commands:
            debian.command(root, command)

    return _kept("debian", [stage.commands, *_versions(names, packages)], write)


def _comforts(base: Stage, stage: Stage) -> Path:
    """The layer of packages that another image has besides."""
    packages = debian.installed()
    names = sorted({*debian.with_needed(stage.packages, packages)} - {*debian.with_needed(base.packages, packages)})
    return _kept("comforts", _versions(names, packages), lambda root: debian.bring(root, names))


def _versions(names: Iterable[str], packages: Mapping[str, debian.Fields]) -> list[object]:
    return [[(name, packages[name]["Version"]) for name in names], _text(debian.__file__)]


def _packages() -> Path:
    """The layer of what the product needs."""
    if Path(sys.prefix) == Path(sys.base_prefix) or not Path(os.path.realpath(sys.executable)).is_relative_to(
        "/usr/bin"
    ):
        raise ClusterError("the daemon's image is made from an environment of Debian's own Python (see integration/prefix.sh)")  # fmt: skip
    found = closure(PRODUCT, "kubernetes")
    made_of = [[(each.name, each.version) for each in found], NOT_LOADED, _text(__file__)]

    def write(root: Path) -> None:
        folder = root / VENV
        (folder / "bin").mkdir(parents=True)
        (folder / "lib64").symlink_to("lib")
        shutil.copyfile(Path(sys.prefix) / "pyvenv.cfg", folder / "pyvenv.cfg")
        for name in ("python", "python3"):
            (folder / "bin" / name).symlink_to("/usr/bin/python3")
        _copy_distributions(root, found)

    return _kept("packages", made_of, write)


def closure(name: str, *extras: str) -> list[importlib.metadata.Distribution]:
    """What an installed package needs with these extras, itself left out, sorted by name."""
    found: dict[str, importlib.metadata.Distribution] = {}
    ahead = [(name, frozenset(extras))]
    while ahead:
        about, wanted = ahead.pop()
        for line in importlib.metadata.distribution(about).requires or ():
            needed = Requirement(line)
            if needed.marker is None or any(needed.marker.evaluate({"extra": extra}) for extra in (*wanted, "")):
                if needed.name.lower() not in found:
                    found[needed.name.lower()] = importlib.metadata.distribution(needed.name)
                    ahead.append((needed.name, frozenset(needed.extras)))
    return [found[each] for each in sorted(found)]


def _copy_distributions(root: Path, found: Iterable[importlib.metadata.Distribution]) -> None:
    """To the places of the virtual environment; programs start with its Python."""
    first = f"#!{sys.prefix}/bin/".encode()
    for distribution in found:
        for file in distribution.files or ():
            source = Path(os.path.normpath(file.locate()))
            target = root / VENV / source.relative_to(sys.prefix)
            if not source.exists() or any(part in f"{file}" for part in NOT_LOADED):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix == ".pyc":
                debian.copy_code(source, target)
            else:
                shutil.copy(source, target)
            if source.parent.name == "bin" and (text := source.read_bytes()).startswith(first):
                target.write_bytes(text.replace(first, f"#!/{VENV}/bin/".encode(), 1))


def _kept(kind: str, made_of: object, write: Callable[[Path], None]) -> Path:
    """A layer by what it is made of."""

    def build(into: Path) -> None:
        with tempfile.TemporaryDirectory() as work:
            write(Path(work))
            layer(Path(work), into / "layer.tar")

    key = hashlib.sha256(json.dumps(made_of).encode()).hexdigest()[:16]
    return once(Places.here().more / f"{kind}-{key}", build) / "layer.tar"


def _text(path: str | None) -> str:
    assert path is not None
    return Path(path).read_text()
