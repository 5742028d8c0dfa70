"""Where records are: what may be named, what is remembered, and that no password is seen."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from slurmbridge.errors import ConfigError, StoreError
from slurmbridge.store import place
from slurmbridge.store.place import Note, find, open_store, remember

URL = "postgresql://alice@db/records"


def test_without_a_word_records_are_in_the_state_folder(tmp_path: Path) -> None:
    found = find(str(tmp_path), None)
    assert found.is_sqlite and found.path == tmp_path / "state.db"
    open_store(found).close()
    assert (tmp_path / "state.db").exists() and not (tmp_path / "database").exists()


def test_what_was_named_once_is_remembered_and_another_word_goes_before(tmp_path: Path) -> None:
    remember(find(str(tmp_path), URL), "abc")
    found = find(str(tmp_path), None)
    assert (found.word, found.url(), found.note) == (URL, URL, Note(word=URL, identity="abc"))
    assert (tmp_path / "database").stat().st_mode & 0o777 == 0o600
    assert find(str(tmp_path), "postgresql://db2/records").word == "postgresql://db2/records"


def test_a_folder_whose_records_are_elsewhere_never_begins_with_none(tmp_path: Path) -> None:
    remember(find(str(tmp_path), URL), "abc")
    with pytest.raises(StoreError, match=f"are in {URL}: name it with --database"):
        open_store(find(str(tmp_path), "sqlite"))
    assert not (tmp_path / "state.db").exists()


@pytest.mark.parametrize("word", ["mysql://db/slurm", "records", "accounting_storage/pgsql"], ids=str)
def test_what_names_no_database_is_refused(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--database is `sqlite`, postgresql://USER@HOST/NAME, or a file"):
        find(str(tmp_path), word)


@pytest.mark.parametrize(
    "word",
    [
        "postgresql://a:open-sesame@db/x", "postgres://db/x?user=a&password=open-sesame",
        "postgresql://db/x?sslpassword=open-sesame", "mysql://a:open-sesame@db/x", "postgresql://a:open-sesame@[db/x",
    ],
)  # fmt: skip
def test_a_password_on_the_command_line_is_refused_and_not_repeated(word: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"put the URL into a file|--database is `sqlite`|Invalid IPv6") as found:
        find(str(tmp_path), word)
    assert "sesame" not in str(found.value)


def test_a_file_may_have_the_password_and_is_read_anew_each_time(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("postgresql://a:one@db/x\n")
    secret.chmod(0o600)
    found = find(str(tmp_path), str(secret))
    assert found.word == str(secret) and found.url() == "postgresql://a:one@db/x"
    secret.write_text("postgresql://a:two@db/x")
    assert found.url() == "postgresql://a:two@db/x"
    remember(found, "abc")
    assert "one" not in (tmp_path / "database").read_text() and "two" not in (tmp_path / "database").read_text()


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("postgresql://a:b@db/x", 0o604, "chmod o-r"),
        ("", 0o600, "its first line is no URL"),
        ("host=db", 0o600, "no URL"),
    ],
    ids=["open to all", "empty", "no URL"],
)
def test_a_file_that_will_not_do_is_refused(content: str, mode: int, why: str, tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text(content)
    secret.chmod(mode)
    with pytest.raises(ConfigError, match=why):
        find(str(tmp_path), str(secret)).url()
    with pytest.raises(ConfigError, match="No such file"):
        find(str(tmp_path), str(tmp_path / "missing")).url()


def test_a_missing_driver_is_named_with_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("slurmbridge.store.postgresql", "slurmbridge.store.portable", "slurmbridge.store.postgresql_server"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)  # as Python has what it may not import
    for ask in (lambda: open_store(find(str(tmp_path), URL)), place.portable):
        with pytest.raises(StoreError, match=r"pip install 'slurmbridge\[postgresql\]'"):
            ask()
