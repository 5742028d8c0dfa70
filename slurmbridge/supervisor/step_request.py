"""What an srun asked for, checked before anything is done with it: whoever may dial the step socket may send anything.

Fields and their meaning: `wire.step`. A field that is not known is dropped; one of a wrong kind refuses the request.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

MOST = 1 << 40
"""Above any count that means something (memory is counted in MiB)."""
LONGEST_LIMIT = 10 * 365 * 86400


def _text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


def _words(value: object) -> bool:
    return isinstance(value, list) and all(_text(word) for word in value)


def _argv(value: object) -> bool:
    return _words(value) and bool(value)


def _count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST


def _positive(value: object) -> bool:
    return _count(value) and value != 0


def _mask(value: object) -> bool:
    return type(value) is int and 0 <= value <= 0o7777


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _seconds(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value) and 0 <= value <= LONGEST_LIMIT  # type: ignore[arg-type,operator]


def _size(value: object) -> bool:
    """[rows, columns]"""
    return isinstance(value, list) and len(value) == 2 and all(type(n) is int and 0 <= n < 1 << 16 for n in value)


def _limits(value: object) -> bool:
    """[[name, soft, hard], ...]"""
    return isinstance(value, list) and all(
        isinstance(each, list) and len(each) == 3 and _text(each[0]) and all(type(number) is int for number in each[1:])
        for each in value
    )


def _any(value: object) -> bool:
    return True


_KINDS: dict[str, Callable[[object], bool]] = {
    "argv": _argv,
    "cwd": _text,
    "umask": _mask,
    "name": _text,
    "submit_line": _text,
    "nodes": _positive,
    "nodes_from": _text,
    "ntasks": _positive,
    "cpus_per_task": _count,
    "per_node": _count,
    "nodelist": _words,
    "exclude": _words,
    "relative": _count,
    "distribution": _text,
    "plane": _count,
    "exact": _flag,
    "overlap": _flag,
    "external": _flag,
    "overcommit": _flag,
    "immediate": _flag,
    "mpi": _text,
    "gpus": _count,
    "gpus_per_node": _count,
    "gpus_per_task": _count,
    "gpu_bind": _text,
    "memory": _count,
    "memory_per_cpu": _count,
    "limit": _seconds,
    "hidden": _words,
    "launch_address": _text,
    "out": _text,
    "err": _text,
    "in": _text,
    "append": _flag,
    "preserve_env": _flag,
    "pty": _size,
    "rlimits": _limits,
    "task_prolog": _text,
    "task_epilog": _text,
    "log": _count,
    "client": _any,  # srun's own: never looked at here
}


def checked(request: dict[str, Any]) -> dict[str, Any]:
    """The request with known fields alone; ValueError names what is wrong."""
    found = {name: value for name, value in request.items() if name in _KINDS and value is not None}
    for name, value in found.items():
        if not _KINDS[name](value):
            raise ValueError(f"{name} is wrong")
    for name in ("argv", "cwd"):
        if name not in found:
            raise ValueError(f"{name} is missing")
    return found


def checked_programs(value: object, tasks: int) -> list[list[str]]:
    """argv of each task, as --multi-prog gives them."""
    if not isinstance(value, list) or len(value) != tasks or not all(_argv(each) for each in value):
        raise ValueError("multi is wrong")
    return value


def checked_whole(value: object) -> dict[str, Any]:
    """The larger step that this one is a component of (`wire.step`, het)."""
    if not isinstance(value, dict):
        raise ValueError("het is wrong")
    nodes = value.get("nodes")
    if not isinstance(nodes, list) or not _words(nodes):
        raise ValueError("het is wrong")
    for name in ("tasks", "cpus"):
        counts = value.get(name)
        if not isinstance(counts, list) or len(counts) != len(nodes) or not all(map(_count, counts)):
            raise ValueError("het is wrong")
    if not all(_count(value.get(name)) for name in ("offset", "node_offset")) or not _text(value.get("leader")):
        raise ValueError("het is wrong")
    return value


def checked_signal(value: object) -> int:
    """The number of a signal."""
    if type(value) is not int or not 0 <= value <= 64:
        raise ValueError("signal is wrong")
    return value


def checked_size(value: object) -> list[int]:
    """Rows and columns of a terminal."""
    if not isinstance(value, list) or not _size(value):
        raise ValueError("size is wrong")
    return value
