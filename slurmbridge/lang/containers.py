"""The texts of --container-image, --container-mounts, --container-workdir and --container-env.

The syntax is that of pyxis (README of NVIDIA/pyxis; images as in enroot(1) import): image
`[docker://][USER@][REGISTRY#]IMAGE[:TAG]`, mounts `SRC:DST[:FLAGS][,...]` with flags joined by `+`. What pods cannot have
whatever their partition is refused here.
"""

from __future__ import annotations

import posixpath
import re

import msgspec

from slurmbridge.errors import LangError

IMAGE_NAME = re.compile(
    r"[a-z0-9]+(?:[._-]+[a-z0-9]+)*(?::\d+)?(?:/[a-z0-9]+(?:[._-]+[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?"
)
ELSEWHERE = ("dockerd://", "podman://", "oci://")
WRITING = {"ro": True, "rw": False}
FLAGS = {*WRITING, "bind", "rbind"}  # others of enroot change how the kernel propagates mounts
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """A folder of the user's choice: SRC as every pod of the partition sees it, DST where it shall be seen too."""

    source: str
    target: str
    read_only: bool = False


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
        read_only = WRITING.get(flag, read_only)
    if posixpath.normpath(target) == "/":
        raise LangError("nothing can be mounted on '/'", text=text)
    return Bind(source=posixpath.normpath(source), target=posixpath.normpath(target), read_only=read_only)


def read_work_dir(text: str) -> str:
    if not text.startswith("/"):
        raise LangError("not an absolute path", text=text)
    return text


def read_env(text: str) -> frozenset[str]:
    """Names of variables of the submission that go before those of the image."""
    names = [name for name in text.split(",") if name]
    for name in names:
        if not NAME.fullmatch(name):
            raise LangError(f"'{name}' is no name of a variable", text=text)
    return frozenset(names)
