"""How are the container options of a job shown? Slurm shows nothing of pyxis' options: names and order are ours."""

from __future__ import annotations

from collections.abc import Mapping

from slurmbridge.fields.structured import Value
from slurmbridge.model.request import JobRequest


def container(request: JobRequest) -> str:
    """What Slurm's own column has: the bundle, or the image of pyxis' option."""
    return request.container or request.container_image or ""


def _yes(value: bool | None) -> str | None:
    return None if value is None else "yes" if value else "no"


def wishes(request: JobRequest) -> tuple[tuple[str, str], ...]:
    """(what, text as typed) of those that were given."""
    found = (
        ("Image", request.container_image),
        ("Mounts", request.container_mounts),
        ("WorkDir", request.container_workdir),
        ("MountHome", _yes(request.container_mount_home)),
        ("Writable", _yes(request.container_writable)),
        ("Env", request.container_env),
    )
    return tuple((name, text) for name, text in found if text is not None)


def structured(request: JobRequest) -> Mapping[str, Value]:
    """The same as a field of ours for --json and --yaml, where any was given."""
    found = wishes(request)
    return {"container_options": {name.lower(): text for name, text in found}} if found else {}
