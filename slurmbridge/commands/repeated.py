"""A batch job that is asked for again in the same words: the requests that came of them, without reading them again.

What a command line, its variables and a script's directives say depends on nothing else, unless an option is reckoned
from the clock, names a file or a user, or had something to say. Bounded, and the same answer either way.
"""

from __future__ import annotations

import datetime
from collections.abc import Generator, Mapping, Sequence
from typing import Any

from slurmbridge.commands.effects import Effect
from slurmbridge.lang.directives import Script
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import JobRequest
from slurmbridge.submit.merge import Draft
from slurmbridge.submit.options import ENVIRONMENT

MOST = 512
LONGEST = 64  # words of a command line

_VARIABLES = frozenset(name for name, _ in ENVIRONMENT["sbatch"]) | {"SLURM_EXIT_ERROR", "SBATCH_IGNORE_PBS"}
_LOUD = "SBATCH_DEBUG"
_OF_THE_MOMENT = frozenset({"begin", "moment"})  # kinds of options
_FROM_ELSEWHERE = frozenset({"uid", "gid", "+burst-buffer-file", "+nodelist-file", "+exclude-file"})

Key = tuple[object, ...]


class Words:
    """Requests by what was said."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[ClusterConfig, tuple[JobRequest, ...]]] = {}

    def find(self, key: Key | None, config: ClusterConfig) -> tuple[JobRequest, ...] | None:
        found = self._known.get(key) if key is not None else None
        return found[1] if found is not None and found[0] is config else None

    def keep(self, key: Key | None, config: ClusterConfig, requests: Sequence[JobRequest]) -> None:
        if key is not None:
            if len(self._known) >= MOST:
                self._known.clear()
            self._known[key] = (config, tuple(requests))


class Told:
    """Whether steps had anything to say or to ask."""

    def __init__(self) -> None:
        self.anything = False

    def of(self, steps: Generator[Effect, Any, Any]) -> Generator[Effect, Any, Any]:
        """These steps, listened to."""
        answer: Any = None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as stop:
                return stop.value
            self.anything = True
            answer = yield effect


def key_of(
    argv: tuple[str, ...],
    env: Mapping[str, str],
    script: Script | None,
    label: str,
    job_name: str,
    tz: datetime.tzinfo,
    is_admin: bool,
) -> Key | None:
    """All that decides; None: too much to remember, or the command tells what it does."""
    if len(argv) > LONGEST or _LOUD in env:
        return None
    said = () if _VARIABLES.isdisjoint(env) else tuple((name, env[name]) for name in sorted(_VARIABLES & env.keys()))
    directives = (script.directives, script.components) if script is not None else ()
    return (argv, said, directives, label, job_name, str(tz), is_admin)


def stands_alone(drafts: Sequence[Draft]) -> bool:
    """No option of these is reckoned from the clock or got its value from elsewhere."""
    return all(
        _FROM_ELSEWHERE.isdisjoint(draft.values)
        and not any(typed.option.kind in _OF_THE_MOMENT for typed in draft.typed.values())
        for draft in drafts
    )
