"""Readers of the options of pyxis: --container-image and its family. Texts: `lang.containers`.

Whether jobs have containers at all, and what those of a partition can have, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.errors import LangError
from slurmbridge.lang import containers
from slurmbridge.submit.option import Option
from slurmbridge.submit.value import Bad, Clock, Reader, Values, error

_NO = ("container-readonly", "no-container-mount-home")


def _checked(parse: Callable[[str], object]) -> Reader:
    def read(option: Option, text: str | None, clock: Clock) -> Values | Bad:
        try:
            parse(text or "")
        except LangError as fault:
            return error(f"--{option.long}={text or ''}: {fault.message}", 1)
        return ((option.field, text or ""),)

    return read


def read_choice(option: Option, text: str | None, clock: Clock) -> Values | Bad:
    """Two flags that say yes and no: the last one holds."""
    return ((option.field, option.long not in _NO),)


READERS: dict[str, Reader] = {
    "container_choice": read_choice,
    "container_env": _checked(containers.read_env),
    "container_image": _checked(containers.read_image),
    "container_mounts": _checked(containers.read_mounts),
    "container_workdir": _checked(containers.read_work_dir),
}
