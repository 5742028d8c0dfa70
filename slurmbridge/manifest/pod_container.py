"""What do the --container-* options of a job mean for its pods?

The options and their syntax are those of pyxis (README of NVIDIA/pyxis; images as in enroot(1) import): image
`[docker://][USER@][REGISTRY#]IMAGE[:TAG]`, mounts `SRC:DST[:FLAGS][,...]` with flags joined by `+`. A pod gets folders
from its partition's volumes alone, so that a source is a folder below one of their mounts. Verdicts, not exceptions.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

import msgspec

from slurmbridge.errors import LangError
from slurmbridge.model.pods import ContainerWish, Json, Manifest, PodTemplate

IMAGE_NAME = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::\d+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
ELSEWHERE = ("dockerd://", "podman://", "oci://")
FLAGS = {
    "ro": True,
    "rw": False,
    "bind": None,
    "rbind": None,
}  # others of enroot change how the kernel propagates mounts
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the user's choice: SRC as every pod of the partition sees it, DST where it shall be seen too."""

    source: str
    target: str
    read_only: bool = False


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The options as pods need them."""

    image: str
    binds: tuple[Bind, ...] = ()
    mounts: tuple[Manifest, ...] = ()  # volumeMounts of `binds`
    work_dir: str = ""  # empty: the job's
    env_names: frozenset[str] = frozenset()  # of the submission, whatever the image says


def read_image(text: str) -> str:
    """As a kubelet wants it. LangError: no image of a registry."""
    name = text.removeprefix("docker://")
    if text.startswith(ELSEWHERE):
        raise LangError("images of a daemon on the node cannot be reached from pods", text=text)
    if name.startswith(("/", "./", "../")) or name.endswith((".sqsh", ".squashfs")):
        raise LangError("image files cannot be run as pods; name an image of a registry", text=text)
    before, hash_sign, after = name.partition("#")
    if "@" in (before if hash_sign else "") or re.match(r"[^/:@]+@(?!sha\d+:)", name):
        raise LangError("the partition's imagePullSecrets say as whom an image is pulled, not USER@", text=text)
    name = f"{before}/{after}" if hash_sign else name
    if not IMAGE_NAME.fullmatch(name):
        raise LangError("no name of an image", text=text)
    return name


def read_mounts(text: str) -> tuple[Bind, ...]:
    """LangError: not the syntax, or a flag that pods cannot have."""
    return tuple(_bind(term, text) for term in text.split(",") if term)


def _bind(term: str, text: str) -> Bind:
    source, _, rest = term.partition(":")
    target, _, flags = rest.partition(":")
    target = target or source
    for path in (source, target):
        if not path.startswith("/"):
            raise LangError(f"'{path}' is not an absolute path", text=text)
        if ".." in path.split("/"):
            raise LangError(f"'{path}' has '..' in it", text=text)
    read_only = False
    for flag in flags.split("+") if flags else ():
        if flag not in FLAGS:
            raise LangError(f"pods have no mount flag '{flag}'", text=text)
        read_only = FLAGS[flag] if FLAGS[flag] is not None else read_only  # type: ignore[assignment]
    if posixpath.normpath(target) == "/":
        raise LangError("nothing can be mounted on '/'", text=text)
    return Bind(source=posixpath.normpath(source), target=posixpath.normpath(target), read_only=read_only)


def read_env(text: str) -> frozenset[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if not NAME.fullmatch(name):
            raise LangError(f"'{name}' is no name of a variable", text=text)
    return frozenset(names)


def settle(wish: ContainerWish, template: PodTemplate, home: str) -> Settled | str:
    """Or why pods of this partition cannot be like that, in words for the user."""
    option, text = "--container-image", wish.image
    try:
        image = read_image(text) if text else template.image
        option, text = "--container-mounts", wish.mounts
        binds = read_mounts(text)
        option, text = "--container-env", wish.env
        names = read_env(text)
    except LangError as fault:
        return f"{option}={text}: {fault.message}"
    if not image:
        return "the partition has no image; name one with --container-image"
    if wish.work_dir and not wish.work_dir.startswith("/"):
        return f"--container-workdir={wish.work_dir}: not an absolute path"
    if wish.mount_home and volume_at(template.volume_mounts, home) is None:
        return f"--container-mount-home: no volume of the partition holds {home}"
    taken = {posixpath.normpath(str(mount.get("mountPath"))) for mount in template.volume_mounts}
    mounts = []
    for bind in binds:
        mount = _mount_of(bind, template.volume_mounts)
        if mount is None:
            return f"--container-mounts={wish.mounts}: no volume of the partition holds {bind.source}"
        if bind.target == bind.source and not bind.read_only:
            continue  # it is there already
        if bind.target in taken:
            return f"--container-mounts={wish.mounts}: {bind.target} is taken"
        taken.add(bind.target)
        mounts.append(mount)
    return Settled(image=image, binds=binds, mounts=tuple(mounts), work_dir=wish.work_dir, env_names=names)


def _mount_of(bind: Bind, mounts: Sequence[Manifest]) -> Manifest | None:
    found = volume_at(mounts, bind.source)
    if found is None or found.get("subPathExpr"):
        return None
    inside = posixpath.relpath(bind.source, str(found["mountPath"]))
    sub_path = posixpath.normpath(posixpath.join(str(found.get("subPath") or ""), inside))
    mount: Manifest = {"name": found["name"], "mountPath": bind.target}
    if sub_path != ".":
        mount["subPath"] = sub_path
    if bind.read_only or found.get("readOnly"):
        mount["readOnly"] = True
    return mount


def volume_at(mounts: Sequence[Mapping[str, Json]], path: str) -> Mapping[str, Json] | None:
    """The mount that holds a path: the deepest one above it."""
    path = posixpath.normpath(path)
    above = [mount for mount in mounts if _holds(str(mount.get("mountPath")), path)]
    return max(above, key=lambda mount: len(posixpath.normpath(str(mount["mountPath"]))), default=None)


def _holds(folder: str, path: str) -> bool:
    folder = posixpath.normpath(folder)
    return path == folder or path.startswith(folder.rstrip("/") + "/")
