"""What do the --container-* options of a job mean for its pods?

Syntax and words are `lang.containers`'. A pod gets folders from its partition's volumes alone, so that a source is a folder
below one of their mounts. Verdicts, not exceptions: `settle` is asked when a job is submitted and again when it starts.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from slurmbridge.errors import LangError
from slurmbridge.lang.containers import Bind, read_env, read_image, read_mounts, read_work_dir
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.pods import ContainerWish, Json, Manifest, PodTemplate
from slurmbridge.model.request import JobRequest

READ_ONLY = "readOnlyRootFilesystem"


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """The options as pods need them."""

    image: str
    binds: tuple[Bind, ...] = ()
    mounts: tuple[Manifest, ...] = ()  # volumeMounts of `binds`
    work_dir: str = ""  # empty: the job's
    env_names: frozenset[str] = frozenset()  # of the submission, whatever the image says
    read_only: bool | None = None  # its root; None: as the partition has it


def wish_of(request: JobRequest) -> ContainerWish:
    """What a job's options say, as typed."""
    return ContainerWish(
        image=request.container_image or "",
        mounts=request.container_mounts or "",
        work_dir=request.container_workdir or "",
        mount_home=request.container_mount_home,
        writable=request.container_writable,
        env=request.container_env or "",
    )


def why_not(request: JobRequest, partitions: Iterable[str], home: str, capabilities: Capabilities) -> str | None:
    """Why a job cannot have the container it asks for in one of the partitions it may start in; None: it can."""
    wish = wish_of(request)
    if not capabilities.containers:
        return None if wish.is_plain else "jobs run without containers here"
    for partition in partitions:
        found = settle(wish, capabilities.template(partition), home)
        if isinstance(found, str):
            return f"{found} (partition {partition})"
    return None


def settle(wish: ContainerWish, template: PodTemplate, home: str) -> Settled | str:
    """Or why pods of this partition cannot be like that, in words for the user."""
    option, text = "--container-image", wish.image
    try:
        image = read_image(text) if text else template.image
        option, text = "--container-mounts", wish.mounts
        binds = read_mounts(text)
        option, text = "--container-env", wish.env
        names = read_env(text)
        option, text = "--container-workdir", wish.work_dir
        work_dir = read_work_dir(text) if text else ""
    except LangError as fault:
        return f"{option}={text}: {fault.message}"
    if not image:
        return "the partition has no image; name one with --container-image"
    holds_home = volume_at(template.volume_mounts, home) is not None
    if wish.mount_home and not holds_home:
        return f"--container-mount-home: no volume of the partition holds {home}"
    if wish.mount_home is False and holds_home:
        return f"--no-container-mount-home: the partition's volumes hold {home}"
    if wish.writable and template.security_context.get(READ_ONLY):
        return "--container-writable: the partition's containers have a root without write access"
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
    return Settled(
        image=image, binds=binds, mounts=tuple(mounts), work_dir=work_dir, env_names=names,
        read_only=None if wish.writable is None else not wish.writable,
    )  # fmt: skip


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
