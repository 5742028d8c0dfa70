"""How `--helpformat` of squeue and sinfo lays its letters out."""

from __future__ import annotations


def help_letters(letters: str) -> str:
    """`%a    %F ...`, eight a line, each four columns wide and four apart."""
    rows = [letters[at : at + 8] for at in range(0, len(letters), 8)]
    return "".join("".join(f"%{letter}    " for letter in row) + "\n" for row in rows)
