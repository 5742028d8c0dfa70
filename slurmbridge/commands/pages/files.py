"""Every file that an installation gets for its shells and for man, by its path below the prefix."""

from __future__ import annotations

from collections.abc import Iterable

from slurmbridge.commands.pages import bash, manpage, zsh
from slurmbridge.commands.pages.described import PURPOSES, Described, describe

MAN, BASH, ZSH = "share/man/man1", "share/bash-completion/completions", "share/zsh/site-functions"


def files(package: str, more: Iterable[Described] = ()) -> dict[str, str]:
    """Path -> text. `package`: name and version for the man pages' foot; `more`: commands that are not Slurm's."""
    found = {f"{BASH}/{bash.FUNCTIONS_FILE}": bash.functions()}
    found.update((f"{ZSH}/{name}", text) for name, text in zsh.functions().items())
    for command in (*map(describe, PURPOSES), *more):
        found[f"{MAN}/{command.name}.1"] = manpage.manpage(command, package=package)
        found[f"{BASH}/{command.name}"] = bash.completion(command)
        found[f"{ZSH}/_{command.name}"] = zsh.completion(command)
    return found
