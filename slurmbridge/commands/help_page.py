"""How a --help text is laid out: options left, what they do right, as Slurm's own pages are."""

from __future__ import annotations

from collections.abc import Sequence


def help_page(title: str, width: int, rows: Sequence[tuple[str, str]]) -> str:
    """`rows`: (option, what it does); an option without text is a heading, two empty strings a blank line."""
    lines = [title]
    for option, meaning in rows:
        if meaning:
            lines.append(f"  {option}".ljust(width - 1) + f" {meaning}")
        else:
            lines.append(option)
    return "\n".join(lines) + "\n"
