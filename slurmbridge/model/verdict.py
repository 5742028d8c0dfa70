"""Values that say no: what validation and the controller answer instead of raising."""

from __future__ import annotations

import msgspec

from slurmbridge.errors import SlurmErrno


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """The controller says no. `before`: lines printed first, each as `COMMAND: error: LINE`."""

    errno: SlurmErrno
    before: tuple[str, ...] = ()
    detail: str = ""


class UsageError(msgspec.Struct, frozen=True, kw_only=True):
    """The command itself says no: complete lines for stderr (no trailing newline), in order, and its exit code."""

    lines: tuple[str, ...]
    exit_code: int = 255
    stdout: str = ""
