"""Time zones by the caller's TZ, so that times are shown as the caller's own commands would show them."""

from __future__ import annotations

import datetime
import functools
import os
import pathlib
import zoneinfo

ZONEINFO = "/usr/share/zoneinfo/"


@functools.lru_cache(maxsize=64)
def zone(name: str) -> datetime.tzinfo:
    """Of TZ (`Europe/Berlin`, `:UTC`); empty, unknown or POSIX rules: this machine's zone, UTC when it has none."""
    key = name.removeprefix(":")
    if key:
        try:
            return zoneinfo.ZoneInfo(key)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            if key.upper().startswith(("UTC", "GMT")) and len(key) == 3:
                return datetime.UTC
    return _machine()


def _machine() -> datetime.tzinfo:
    target = os.path.realpath("/etc/localtime")
    if target.startswith(ZONEINFO):
        try:
            return zoneinfo.ZoneInfo(target[len(ZONEINFO) :])
        except (zoneinfo.ZoneInfoNotFoundError, ValueError):
            pass
    try:
        with pathlib.Path("/etc/localtime").open("rb") as stream:
            return zoneinfo.ZoneInfo.from_file(stream, key="localtime")
    except (OSError, ValueError):
        return datetime.UTC
