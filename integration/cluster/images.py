"""Container images made without a registry: a folder becomes an OCI image archive (OCI image-spec 1.1, image layout).

`ctr images import` takes the archive. Layers are not compressed, so one costs the least to make and to unpack, and its
digest is also its diff id. The same folder always gives the same digests.
"""

import functools
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .places import REGISTRY
from .processes import run

PAUSE = f"{REGISTRY}/pause:1"
BUSYBOX = f"{REGISTRY}/busybox:1"
PATHS = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

PASSWD = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUP = "root:x:0:\nnogroup:x:65534:\n"


def build(into: Path, runtime: Path) -> None:
    """The two images that every cluster has: the pods' sandbox and a busybox with a shell."""
    with tempfile.TemporaryDirectory() as work:
        root = Path(work) / "pause"
        root.mkdir()
        shutil.copy2(runtime / "bin/pause", root / "pause")
        archive(root, into / "pause.tar", PAUSE, entrypoint=("/pause",), user="65534:65534")
        root = Path(work) / "busybox"
        for name in ("bin", "etc", "home", "proc", "root", "sys", "tmp", "var"):
            (root / name).mkdir(parents=True)
        (root / "tmp").chmod(0o1777)
        shutil.copy2(runtime / "bin/busybox", root / "bin/busybox")
        for applet in run([root / "bin/busybox", "--list"]).split():
            if applet != "busybox":
                (root / "bin" / applet).symlink_to("busybox")
        (root / "etc/passwd").write_text(PASSWD)
        (root / "etc/group").write_text(GROUP)
        archive(root, into / "busybox.tar", BUSYBOX, command=("sh",))


def archive(
    root: Path, into: Path, name: str, *, below: Sequence[Path] = (), command: tuple[str, ...] = (),
    entrypoint: tuple[str, ...] = (), environment: tuple[str, ...] = (PATHS,), user: str = "", folder: str = "/",
) -> None:  # fmt: skip
    """Write a folder's content as image NAME:TAG, on top of layers `below`; owners and modes are kept, times are not."""
    with tempfile.TemporaryDirectory(dir=into.parent) as work:
        own = Path(work) / "layer.tar"
        layer(root, own)
        layers = [*map(_kept, below), _Layer.of(own)]
        settings = {"Env": list(environment), "WorkingDir": folder, "User": user}
        settings |= {"Cmd": list(command)} if command else {}
        settings |= {"Entrypoint": list(entrypoint)} if entrypoint else {}
        blobs: dict[str, bytes] = {}
        unpacked = {"type": "layers", "diff_ids": [f"sha256:{each.digest}" for each in layers]}
        config = _blob(
            blobs, "application/vnd.oci.image.config.v1+json",
            {"architecture": "amd64", "os": "linux", "config": settings, "rootfs": unpacked},
        )  # fmt: skip
        content = [
            {
                "mediaType": "application/vnd.oci.image.layer.v1.tar",
                "digest": f"sha256:{each.digest}",
                "size": each.size,
            }
            for each in layers
        ]
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifest = _blob(blobs, kind, {"schemaVersion": 2, "mediaType": kind, "config": config, "layers": content})
        manifest["annotations"] = {"io.containerd.image.name": name}
        index = {"schemaVersion": 2, "manifests": [manifest]}
        with tarfile.open(into, "w") as tar:
            for path, data in (
                ("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'),
                ("index.json", json.dumps(index).encode()),
            ):
                _add(tar, path, len(data), io.BytesIO(data))
            for key, data in blobs.items():
                _add(tar, f"blobs/sha256/{key}", len(data), io.BytesIO(data))
            for each in layers:
                with each.path.open("rb") as data_of:
                    _add(tar, f"blobs/sha256/{each.digest}", each.size, data_of)


def layer(root: Path, into: Path) -> None:
    """Write a folder's content as one layer."""
    with tarfile.open(into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(root.iterdir()):
            tar.add(entry, arcname=entry.name, filter=_timeless)


@dataclass(frozen=True)
class _Layer:
    path: Path
    size: int
    digest: str

    @classmethod
    def of(cls, path: Path) -> "_Layer":
        with path.open("rb") as data:
            return cls(path, path.stat().st_size, hashlib.file_digest(data, "sha256").hexdigest())


@functools.cache
def _kept(path: Path) -> _Layer:
    """Of a layer that several images have."""
    return _Layer.of(path)


def _timeless(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _blob(blobs: dict[str, bytes], kind: str, value: object) -> dict[str, object]:
    data = json.dumps(value, sort_keys=True).encode()
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(data)}


def _add(tar: tarfile.TarFile, path: str, size: int, data: object) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = size, 0o644
    tar.addfile(entry, data)  # type: ignore[arg-type]
