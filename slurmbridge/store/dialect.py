"""What differs between the databases that a store can be in: how it is written to, and what its errors mean.

Statements are written once, with `?` for their values: SQLite and PostgreSQL read the same INSERT ... ON CONFLICT. What
readers ask goes through SQLAlchemy, which knows both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from slurmbridge.errors import StoreError


class Fenced(StoreError):
    """Another daemon has the records, or had them meanwhile: what this one has in memory counts no more."""


class Strange(StoreError):
    """The records are not those that were expected."""


class Rows(Protocol):
    """What a statement gave."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...


class Session(Protocol):
    """The connection that writes. Errors are the driver's."""

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Rows: ...
    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> object: ...
    def begin(self) -> str:
        """Begin a transaction; its ticket, by which `knows` finds it later. Empty: a commit that fails has not happened."""

    def commit(self) -> None: ...
    def undo(self) -> None:
        """Roll back what was begun. A connection that is gone has done so: no error."""

    def knows(self, ticket: str) -> bool:
        """Whether the transaction of that ticket, the last one that was begun, was committed."""

    def look(self) -> None:
        """That it is still there."""

    def close(self) -> None: ...
    @property
    def is_broken(self) -> bool:
        """Whether it was cut off, so that nobody told how a commit ended."""


class Database(Protocol):
    """Where the records are."""

    @property
    def name(self) -> str:
        """For people, without secrets."""

    @property
    def look_every_s(self) -> float | None:
        """How often a session that has nothing to do is looked after; None: never."""

    def connect(self) -> Session:
        """A session to write with; the driver's error, or Fenced."""

    def describe(self, error: BaseException) -> str:
        """One sentence for a person: which database, and what is wrong."""

    def is_of_the_place(self, error: BaseException) -> bool:
        """Not the fault of what was to be written: full, failing, locked, gone."""

    def is_conflict(self, error: BaseException) -> bool:
        """A key is there already."""
