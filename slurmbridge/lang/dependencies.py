"""What must happen before a job starts: `afterok:12:13_4,singleton`.

Follows sbatch(1) --dependency. Whether the named jobs exist, and which are arrays, the controller decides.
"""

from __future__ import annotations

import functools

from lark import Transformer
from lark.lexer import Token

from slurmbridge.errors import LangError
from slurmbridge.lang.grammars import Language, number
from slurmbridge.model.request import Dependency, DependencyTerm

_Parent = tuple[int, int | None, int]
_MOST_MINUTES = (1 << 32) // 60


class _Terms(Transformer[Token, Dependency]):
    def all_of(self, terms: list[tuple[DependencyTerm, ...]]) -> Dependency:
        return Dependency(terms=_unique(terms))

    def any_of(self, terms: list[tuple[DependencyTerm, ...]]) -> Dependency:
        return Dependency(terms=_unique(terms), any_of=True)

    def singleton(self, _: list[Token]) -> tuple[DependencyTerm, ...]:
        return (DependencyTerm(kind="singleton"),)

    def bare(self, parts: list[Token]) -> tuple[DependencyTerm, ...]:
        return (DependencyTerm(kind="afterany", job_id=_job_id(parts[0])),)

    def after(self, parts: list[Token | _Parent]) -> tuple[DependencyTerm, ...]:
        """The delay of one parent is that of those behind it too, until another is given."""
        kind, delay = str(parts[0]).lower(), 0
        terms: list[DependencyTerm] = []
        for parent in parts[1:]:
            if isinstance(parent, tuple):
                delay = parent[2] or delay
                terms.append(DependencyTerm(kind=kind, job_id=parent[0], array_task=parent[1], minutes=delay))
        return tuple(terms)

    def parent(self, parts: list[Token | tuple[str, int | None]]) -> _Parent:
        marks = dict(part for part in parts[1:] if isinstance(part, tuple))
        return _job_id(str(parts[0])), marks.get("task"), marks.get("delay") or 0

    def task(self, parts: list[Token]) -> tuple[str, int | None]:
        return "task", number(parts[0], (1 << 32) - 3) if parts else None

    def delay(self, parts: list[Token]) -> tuple[str, int | None]:
        minutes = number(parts[0], _MOST_MINUTES)
        if minutes == 0:
            raise LangError("dependency delay is zero", place=parts[0].start_pos or 0, expected=("1 or more minutes",))
        return "delay", minutes


def _job_id(text: str) -> int:
    job_id = number(text, 1 << 32)
    if not 0 < job_id < 1 << 32:
        raise LangError("dependency names no job", expected=("a job id",))
    return job_id


def _unique(groups: list[tuple[DependencyTerm, ...]]) -> tuple[DependencyTerm, ...]:
    return tuple(dict.fromkeys(term for group in groups for term in group))


_LANGUAGE = Language("dependencies", _Terms(), "dependency")


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> Dependency:
    """All terms; none of an empty text. Repeated terms count once."""
    return _LANGUAGE.parse(text) if text else Dependency(terms=())


def render_term(term: DependencyTerm, *, is_array: bool = False) -> str:
    """`afterok:12_4+5`, `singleton`. `is_array`: the parent is a whole array, shown as `12_*`."""
    if term.kind == "singleton":
        return term.kind
    task = f"_{term.array_task}" if term.array_task is not None else ("_*" if is_array else "")
    delay = f"+{term.minutes}" if term.minutes else ""
    return f"{term.kind}:{term.job_id}{task}{delay}"


def render(dependency: Dependency) -> str:
    """The whole text, one parent per term."""
    return ("?" if dependency.any_of else ",").join(render_term(term) for term in dependency.terms)
