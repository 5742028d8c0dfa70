"""Where are the records of a state folder? What `--database` may say, the note that remembers it, and opening them.

    sqlite                          STATE/state.db
    postgresql://USER@HOST/NAME     a server, as libpq reads such a URL; without a password, which everybody would see
    /PATH/OF/A/FILE                 whose first line is such a URL, password and all: for its owner's eyes

Without a word it is what the note in STATE/database says, else SQLite. The note has the identity of the records, too: a
state folder never goes on with those of others, as slurmctld refuses another cluster's (its file `clustername`).
"""

from __future__ import annotations

import contextlib
import importlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

import msgspec

from slurmbridge.errors import ConfigError, StoreError
from slurmbridge.store.backup import Copy
from slurmbridge.store.dialect import Strange
from slurmbridge.store.relational import RelationalStore
from slurmbridge.store.sqlite import SqliteStore
from slurmbridge.store.usage import DEFAULT_HALF_LIFE

DATABASE = "state.db"
NOTE = "database"
SQLITE = "sqlite"
SCHEMES = ("postgresql", "postgres")
SECRETS = frozenset({"password", "sslpassword"})
"""Parameters of a URL."""
_LONGEST = 64 * 1024


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What a state folder remembers of records that are not in it."""

    word: str  # as `--database` had it
    identity: str


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where records are."""

    state: str
    word: str  # SQLITE, a URL without a password, or a file that has one
    note: Note | None = None

    @property
    def is_sqlite(self) -> bool:
        return self.word == SQLITE

    @property
    def path(self) -> Path:
        """Of SQLite's file, whether it is there or not."""
        return Path(self.state, DATABASE)

    def url(self) -> str:
        """With the password, as it is now. ConfigError: it cannot be read."""
        return _of_file(self.word) if self.word.startswith("/") else self.word


def find(state: str, word: str | None) -> Place:
    """`word`: what `--database` says, None: nothing. ConfigError: it says nothing of sense, or a secret aloud."""
    note = _read_note(state)
    chosen = word or (note.word if note is not None else SQLITE)
    if chosen != SQLITE and not chosen.startswith("/"):
        try:
            parts = urlsplit(chosen)
        except ValueError as fault:
            raise ConfigError(f"--database: {fault}") from fault
        if parts.scheme not in SCHEMES:
            raise ConfigError("--database is `sqlite`, postgresql://USER@HOST/NAME, or a file with such a URL")
        if parts.password is not None or not SECRETS.isdisjoint(parse_qs(parts.query)):
            raise ConfigError(
                "--database has a password, which everybody could see: put the URL into a file that only the daemon can read,"
                " and name that file"
            )
    return Place(state=state, word=chosen, note=note)


def open_store(
    place: Place, *, decay_half_life: float = DEFAULT_HALF_LIFE, lost: Callable[[str], None] = lambda reason: None
) -> RelationalStore:
    """The store there; for a server the state folder's note is written, and records of its own are taken along to one that
    has none. The caller has the state folder's lock. `lost`: as `PostgresqlStore` has it.

    StoreError: why it cannot be had, or that these are not the state folder's records.
    """
    if place.is_sqlite:
        if place.note is not None:
            raise StoreError(
                f"the records of the state folder {place.state} are in {place.note.word}: name it with --database, or bring"
                " them here with `slurmbridge backup FILE` and `slurmbridge restore --database sqlite FILE`"
            )
        return SqliteStore(place.path, decay_half_life=decay_half_life)
    if place.note is None and place.path.exists():
        place = _driven("slurmbridge.store.moving").take_along(place)
    driven = _driven("slurmbridge.store.postgresql")
    identity = place.note.identity if place.note is not None else ""
    try:
        store = driven.PostgresqlStore(place.url, decay_half_life=decay_half_life, lost=lost, identity=identity)
    except Strange as fault:
        raise StoreError(
            f"{fault}: the state folder {place.state} remembers {place.note.word if place.note else ''}; name that, or, to"
            f" go on with what is here, remove {Path(place.state, NOTE)}"
        ) from fault
    try:
        remember(place, store.identity)
    except OSError as fault:
        store.close()
        raise StoreError(f"{fault.filename}: {fault.strerror}") from fault
    opened: RelationalStore = store
    return opened


class Portable(Protocol):
    """`store.portable`, which needs a driver."""

    def save(self, url: str, target: Path) -> Copy: ...
    def restore(
        self, copy: Path, url: str, work: Path, kept: Path, *, at_least: int = 0, only_new: bool = False
    ) -> tuple[Copy, str]: ...
    def next_job_id(self, url: str) -> int: ...
    def examine(self, url: str) -> tuple[str, str]: ...


def portable() -> Portable:
    """StoreError: the driver is missing."""
    found: Portable = _driven("slurmbridge.store.portable")
    return found


def _driven(module: str) -> Any:
    """A module that needs a driver, which few have."""
    try:
        return importlib.import_module(module)
    except ImportError as fault:
        raise StoreError(
            f"records in PostgreSQL need the extra packages: pip install 'slurmbridge[postgresql]' ({fault})"
        ) from fault


def remember(place: Place, identity: str) -> None:
    """From now on these are the records of the state folder; it holds no secret."""
    note = Note(word=place.word, identity=identity)
    if note == place.note:
        return
    path = Path(place.state, NOTE)
    fresh = path.with_name(NOTE + ".new")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as stream:
        stream.write(f"{note.word}\n{note.identity}\n")
        stream.flush()
        os.fsync(stream.fileno())
    os.replace(fresh, path)


def forget(state: str) -> None:
    """They are in the state folder again."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(state, NOTE))


def _read_note(state: str) -> Note | None:
    path = Path(state, NOTE)
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise ConfigError(f"{path}: {fault.strerror}") from fault
    if len(lines) != 2:
        raise ConfigError(f"{path}: it does not say where the records are; name them with --database and remove it")
    return Note(word=lines[0], identity=lines[1])


def _of_file(name: str) -> str:
    """The first line. A secret that everybody can read is none."""
    try:
        with open(name, encoding="utf-8") as stream:
            if os.fstat(stream.fileno()).st_mode & stat.S_IROTH:
                raise ConfigError(f"{name}: everybody may read it, and with it the password: chmod o-r {name}")
            lines = stream.read(_LONGEST).strip().splitlines()
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{name}: {getattr(fault, 'strerror', None) or fault}") from fault
    if not lines or urlsplit(lines[0]).scheme not in SCHEMES:
        raise ConfigError(f"{name}: its first line is no URL of a database, postgresql://USER:PASSWORD@HOST/NAME")
    return lines[0]
