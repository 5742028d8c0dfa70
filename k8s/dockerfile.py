"""What does the last stage of a Dockerfile say of its image? The instructions that k8s/ uses, and no more.

Follows Docker's "Dockerfile reference". Stages before the last one only make what the last one copies.
"""

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

INSTALL = re.compile(r"apt-get install (?:--\S+ )*(?P<names>.+)")
IDLE = ("apt-get update", "rm -rf /var/lib/apt/lists/*")
"""Of a RUN: what only has to do with fetching packages."""


class NotRead(Exception):
    """An instruction that is not known here."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    base: str
    packages: tuple[str, ...] = ()  # of the distribution
    commands: tuple[str, ...] = ()  # of its RUNs, without those that install packages
    copied: tuple[str, ...] = ()  # paths that an earlier stage made
    environment: tuple[str, ...] = ()  # NAME=VALUE
    user: str = ""
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()


def last_stage(path: Path) -> Stage:
    """NotRead."""
    stage, arguments = Stage(base=""), dict[str, str]()
    for word, rest in _instructions(path.read_text()):
        match word:
            case "ARG":
                name, _, arguments[name] = rest.partition("=")
            case "FROM":
                stage = Stage(base=re.sub(r"\$\{(\w+)\}", lambda name: arguments[name[1]], rest.split(" ")[0]))
            case "RUN":
                packages, commands = _of_run(" ".join(rest.split()))
                stage = replace(stage, packages=stage.packages + packages, commands=stage.commands + commands)
            case "COPY" if rest.startswith("--from="):
                _, source, target = rest.split(" ")
                if source != target:
                    raise NotRead(f"{word} {rest}")
                stage = replace(stage, copied=(*stage.copied, source))
            case "ENV":
                stage = replace(stage, environment=(*stage.environment, *shlex.split(rest)))
            case "USER":
                stage = replace(stage, user=rest)
            case "CMD":
                stage = replace(stage, command=tuple(json.loads(rest)))
            case "ENTRYPOINT":
                stage = replace(stage, entrypoint=tuple(json.loads(rest)))
            case "COPY" | "WORKDIR":
                continue  # of an earlier stage: the last ones of k8s/ copy nothing of the sources
            case _:
                raise NotRead(f"{word} {rest}")
    return stage


def _instructions(text: str) -> Iterator[tuple[str, str]]:
    lines = "\n".join(line for line in text.splitlines() if line.strip() and not line.startswith("#"))
    for line in lines.replace("\\\n", " ").splitlines():
        word, _, rest = line.partition(" ")
        yield word, rest.strip()


def _of_run(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    packages: list[str] = []
    commands: list[str] = []
    for command in text.split(" && "):
        installed = INSTALL.fullmatch(command)
        if installed:
            packages += installed["names"].split()
        elif command not in IDLE:
            commands.append(command)
    return tuple(packages), tuple(commands)
