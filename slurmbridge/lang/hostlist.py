"""Which host names does `n[1-3,5],m1` mean, and how is a list of names folded?

Follows Slurm's hostlists (scontrol(1): show hostnames, hostlist, hostlistsorted): only the number at the end of a name
folds, order and duplicates stay, a leading zero fixes the width. Standard library only, because the supervisor and
the thin client use it. Knows no cluster: node sets and the `{...}` functions of the controller are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator

from slurmbridge.errors import LangError

MAX_RANGE = 65536
"""Hosts of one range list, as in Slurm."""
MAX_HOSTS = 1 << 20
"""Hosts of one whole expression."""
_MAX_DIGITS = 19

_Run = tuple[str, int, int, int]
"""Prefix, first, last, width; first = -1 for a name without a number."""

_RANGE = re.compile(r"(\s*\+?[0-9]+)(?:-(\s*\+?[0-9]+)?)?", re.ASCII)
_TAIL = re.compile(r"[0-9]{1,19}\Z", re.ASCII)


def expand(text: str) -> list[str]:
    """All names in the order written, duplicates kept.

    `LangError.message` is the line Slurm logs first (`_parse_single_range: ...`) where it logs one, else
    `Invalid hostlist: TEXT`.
    """
    names: list[str] = []
    room = MAX_HOSTS
    for place, token in _tokens(text):
        found = _expand_token(token, place, text, room)
        room -= len(found)
        names.extend(found)
    return names


def count(text: str) -> int:
    """Number of names that `expand` gives."""
    return len(expand(text))


def compress(names: Iterable[str]) -> str:
    """Fold neighbours only: `n3,n1,n2` is `n[3,1-2]`."""
    return _render(_runs(names))


def compress_sorted(names: Iterable[str]) -> str:
    """Sort as Slurm does (prefix by natural order, then number), then fold: `n3,n1,n2` is `n[1-3]`."""
    runs = sorted(_runs(names), key=functools.cmp_to_key(_compare))
    merged: list[_Run] = []
    group: list[_Run] = []
    for run in runs:
        if group and not _same_series(group[-1], run):
            merged.extend(_merge(group))
            group = []
        group.append(run)
    merged.extend(_merge(group))
    return _render(merged)


def _tokens(text: str) -> Iterator[tuple[int, str]]:
    """Parts between commas and blanks outside brackets, with their offsets."""
    depth = 0
    start = 0
    for place, char in enumerate(text):
        if char == "[":
            depth += 1
        elif char == "]":
            depth = max(depth - 1, 0)
        elif depth == 0 and char in ", \t\n":
            if place > start:
                yield start, text[start:place]
            start = place + 1
    if len(text) > start:
        yield start, text[start:]


def _expand_token(token: str, place: int, text: str, room: int) -> list[str]:
    if "{" in token:
        message = f"hostlist_create_client: controller failed to expand hostlist function {token}"
        raise LangError(message, text=text, place=place + token.index("{"), expected=("a host name",))
    opening = token.rfind("[")
    if opening < 0:
        _check_room(1, room, place, text)
        return [token]
    parts, suffix = _split(token, place, text)
    total = 1
    for part in parts:
        total *= sum(last - first + 1 for first, last, _ in part[1])
        _check_room(total, room, place, text)
    # Slurm varies the last bracket fastest, then the first, the second, ... and slowest the last but one.
    order = list(range(len(parts) - 2, -1, -1))
    numbers = [_numbers(part[1]) for part in parts]
    heads: list[dict[int, str]] = [{}]
    for index in order:
        heads = [{**head, index: number} for head in heads for number in numbers[index]]
    names: list[str] = []
    for head in heads:
        prefix = "".join(parts[i][0] + head[i] for i in range(len(parts) - 1)) + parts[-1][0]
        names.extend(prefix + number + suffix for number in numbers[-1])
    return names


def _split(token: str, place: int, text: str) -> tuple[list[tuple[str, list[tuple[int, int, int]]]], str]:
    """`a[1-2]b[3]c` as [("a", ranges), ("b", ranges)] and "c". Inner brackets win: `n[[1]]` has prefix `n[`."""
    parts: list[tuple[str, list[tuple[int, int, int]]]] = []
    at = 0
    while True:
        closing = token.find("]", at)
        opening = token.rfind("[", at, closing if closing >= 0 else len(token))
        if opening < 0:
            if closing >= 0 and token.find("[", closing) >= 0:
                at_next = token.find("[", closing)
                if token.find("]", at_next) >= 0:
                    opening = token.rfind("[", at_next, token.find("]", at_next))
                    closing = token.find("]", at_next)
                else:
                    raise _invalid(text, place + at_next)
            else:
                break
        elif closing < 0:
            raise _invalid(text, place + opening)
        parts.append((token[at:opening], _ranges(token[opening + 1 : closing], place + opening + 1, text)))
        at = closing + 1
    if not parts:
        raise _invalid(text, place)
    return parts, token[at:]


def _ranges(body: str, place: int, text: str) -> list[tuple[int, int, int]]:
    found = []
    total = 0
    for item in body.split(","):
        match = _RANGE.fullmatch(item)
        first = int(match[1]) if match and len(match[1]) <= _MAX_DIGITS else -1
        last = first
        if match and match[2]:
            last = int(match[2]) if len(match[2]) <= _MAX_DIGITS else -1
        if match is None or first < 0 or last < first:
            message = f"_parse_single_range: Invalid range: `{item}'"
            raise LangError(message, text=text, place=place, expected=("N", "N-M with N <= M"))
        if last - first >= MAX_RANGE:
            if last - first == MAX_RANGE:
                raise _invalid(text, place)
            raise LangError(f"_parse_single_range: Too many hosts in range `{item}'", text=text, place=place)
        total += last - first + 1
        if total > MAX_HOSTS:
            raise _invalid(text, place)
        found.append((first, last, len(match[1])))
        place += len(item) + 1
    return found


def _numbers(ranges: list[tuple[int, int, int]]) -> list[str]:
    return [f"{number:0{width}d}" for first, last, width in ranges for number in range(first, last + 1)]


def _check_room(wanted: int, room: int, place: int, text: str) -> None:
    if wanted > room:
        raise LangError(f"Invalid hostlist: more than {MAX_HOSTS} hosts", text=text, place=place)


def _invalid(text: str, place: int) -> LangError:
    return LangError(f"Invalid hostlist: {text}", text=text, place=place, expected=("]",))


def _runs(names: Iterable[str]) -> list[_Run]:
    runs: list[_Run] = []
    for name in names:
        match = _TAIL.search(name)
        if match is None or len(name) - match.start() > _MAX_DIGITS:
            runs.append((name, -1, -1, 0))
            continue
        prefix, digits = name[: match.start()], match[0]
        number = int(digits)
        if runs:
            before, first, last, width = runs[-1]
            if first >= 0 and before == prefix and last + 1 == number and f"{number:0{width}d}" == digits:
                runs[-1] = (prefix, first, number, width)
                continue
        runs.append((prefix, number, number, len(digits)))
    return runs


def _render(runs: list[_Run]) -> str:
    parts: list[str] = []
    at = 0
    while at < len(runs):
        prefix, first, _, _ = runs[at]
        end = at + 1
        if first < 0:
            parts.append(prefix)
        else:
            while end < len(runs) and runs[end][0] == prefix and runs[end][1] >= 0:
                end += 1
            texts = [_range_text(run) for run in runs[at:end]]
            single = len(texts) == 1 and runs[at][1] == runs[at][2]
            parts.append(prefix + (texts[0] if single else f"[{','.join(texts)}]"))
        at = end
    return ",".join(parts)


def _range_text(run: _Run) -> str:
    _, first, last, width = run
    head = f"{first:0{width}d}"
    return head if first == last else f"{head}-{last:0{width}d}"


def _width_fits(number: int, width: int, other: int) -> bool:
    return len(f"{number:0{width}d}") == len(f"{number:0{other}d}")


def _same_width(one: _Run, two: _Run) -> bool:
    """Whether both ranges can be written with one width."""
    return one[3] == two[3] or _width_fits(one[1], one[3], two[3]) or _width_fits(two[1], two[3], one[3])


def _same_series(one: _Run, two: _Run) -> bool:
    return one[0] == two[0] and one[1] >= 0 and two[1] >= 0 and _same_width(one, two)


def _natural(text: str) -> list[tuple[int, int, str]]:
    pieces = re.split(r"([0-9]{1,18})", text)
    return [(0, int(piece), "") if index % 2 else (1, 0, piece) for index, piece in enumerate(pieces) if piece]


def _compare(one: _Run, two: _Run) -> int:
    if one[0] != two[0]:
        return -1 if (_natural(one[0]), one[0]) < (_natural(two[0]), two[0]) else 1
    if (one[1] < 0) != (two[1] < 0):
        return -1 if one[1] < 0 else 1
    if _same_width(one, two):
        return (one[1] > two[1]) - (one[1] < two[1])
    return one[3] - two[3]


def _merge(group: list[_Run]) -> list[_Run]:
    """Numbers of one series in order, a repeated number opening a new range: [1-3],[2-5] is 1-2,2-3,3-5."""
    if len(group) < 2:
        return group
    prefix, width = group[0][0], group[0][3]
    numbers = sorted(number for _, first, last, _ in group for number in range(first, last + 1))
    merged: list[_Run] = []
    for number in numbers:
        if merged and merged[-1][2] + 1 == number:
            merged[-1] = (prefix, merged[-1][1], number, width)
        else:
            merged.append((prefix, number, number, width))
    return merged
