"""Is a text of --gpu-bind, --mem-bind or --cpu-bind well formed?

Follows srun(1). The checks return nothing; the message of a `LangError` is the line that Slurm logs first.
"""

from __future__ import annotations

import re

from slurmbridge.errors import LangError

_GPU_WORDS = frozenset({"closest", "none"})
_GPU_LISTS = frozenset({"map_gpu", "map", "mask_gpu", "mask"})
_GPU_COUNTS = ("single:", "per_task:")

_QUIET_OR_VERBOSE = frozenset({"q", "quiet", "v", "verbose"})
_MEM_WORDS = _QUIET_OR_VERBOSE | {"no", "none", "rank", "local", "p", "prefer"}
_CPU_WORDS = _QUIET_OR_VERBOSE | {
    "no", "none", "rank", "rank_ldom", "sockets", "cores", "threads", "ldoms", "one_thread",
}  # fmt: skip
_MAP = re.compile(r"[0-9]+(\*[0-9]+)?", re.ASCII)
_MASK = re.compile(r"(0x)?[0-9a-f]+(\*[0-9]+)?", re.ASCII | re.IGNORECASE)


def check_gpu_bind(text: str) -> None:
    """`[verbose,]closest|none|single:N|per_task:N|map_gpu:LIST|mask_gpu:LIST`; `place` of the offending character."""
    body = text.lower()
    start = len("verbose,") if body.startswith("verbose,") else 0
    body = body[start:]
    head, colon, rest = body.partition(":")
    if colon and head in _GPU_LISTS:
        _check_list(rest, _MASK if head.startswith("mask") else _MAP, start + len(head) + 1, text)
        return
    words = body.split(",")
    if any(word in _GPU_WORDS or word.startswith(_GPU_COUNTS) for word in words):
        extra = next((w for w in words if w not in (*_GPU_WORDS, "verbose") and not w.startswith(_GPU_COUNTS)), None)
        if extra is None:
            return
    expected = ("closest", "none", "single:N", "per_task:N", "map_gpu:LIST", "mask_gpu:LIST")
    raise LangError(f"Invalid --gpu-bind argument: {text}", text=text, place=len(text), expected=expected)


def check_mem_bind(text: str) -> None:
    """Words and at most one map_mem or mask_mem list."""
    _check_words(text, "mem", _MEM_WORDS, {"map_mem": _MAP, "mask_mem": _MASK})


def check_cpu_bind(text: str) -> None:
    """Words and at most one map_cpu, mask_cpu, map_ldom or mask_ldom list."""
    lists = {"map_cpu": _MAP, "mask_cpu": _MASK, "map_ldom": _MAP, "mask_ldom": _MASK}
    _check_words(text, "cpu", _CPU_WORDS, lists)


def _check_list(body: str, shape: re.Pattern[str], place: int, text: str) -> None:
    for number in body.split(","):
        if number and not shape.fullmatch(number):
            match = shape.match(number)
            at = match.end() if match else (2 if number.startswith("0x") and shape is _MASK else 0)
            char = number[at : at + 1]
            message = f"Failed to validate {number}, offending character is {char}"
            raise LangError(message, text=text, place=place + at, expected=("a number",))
        place += len(number) + 1


def _check_words(text: str, kind: str, words: frozenset[str], lists: dict[str, re.Pattern[str]]) -> None:
    place = 0
    shape: re.Pattern[str] | None = None
    for word in text.split(","):
        name, colon, rest = word.lower().partition(":")
        if name in lists:
            if not rest:
                raise _complaint(f'missing list for "--{kind}-bind={name}:<list>"', word, place)
            shape, number = lists[name], rest
        elif shape is not None and not colon and word.lower() not in words:
            number = word.lower()
        elif word.lower() in words:
            place += len(word) + 1
            continue
        else:
            raise _complaint(f'unrecognized --{kind}-bind argument "{word}"', word, place)
        if not shape.fullmatch(number):
            match = shape.match(number)
            char = number[match.end() if match else 0 :][:1]
            raise _complaint(f"Failed to validate number: {number}, the offending character is {char}", word, place)
        place += len(word) + 1


def _complaint(message: str, word: str, place: int) -> LangError:
    return LangError(message, text=word, place=place, expected=("a word of srun(1)", "a list of numbers"))
