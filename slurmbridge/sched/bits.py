"""Sets of CPUs as bits of a number: which are set, and the lowest of them. By stretches without a gap, as they mostly are."""

from __future__ import annotations

from collections.abc import Sequence


def mask_of(cpus: Sequence[int]) -> int:
    """The bits with these numbers."""
    if not cpus:
        return 0
    first, count, mask = cpus[0], len(cpus), 0
    if tuple(range(first, first + count)) == cpus:
        return ((1 << count) - 1) << first
    for number in cpus:
        mask |= 1 << number
    return mask


def lowest_bits(mask: int, count: int) -> int:
    """The `count` lowest set bits of a mask (fewer when it has fewer)."""
    taken = 0
    while count > 0 and mask:
        first = (mask & -mask).bit_length() - 1
        rest = mask >> first
        run = (~rest & (rest + 1)).bit_length() - 1  # set bits without a gap
        if run > count:
            run = count
        stretch = ((1 << run) - 1) << first
        taken |= stretch
        mask &= ~stretch
        count -= run
    return taken


def numbers(mask: int) -> tuple[int, ...]:
    """The set bits of a mask, lowest first."""
    found: list[int] = []
    first = 0
    while mask:
        gap = (mask & -mask).bit_length() - 1
        mask >>= gap
        run = (~mask & (mask + 1)).bit_length() - 1  # set bits without a gap
        first += gap
        found += range(first, first + run)
        mask >>= run
        first += run
    return tuple(found)
