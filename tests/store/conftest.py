"""A server of PostgreSQL for the tests of a module, and a database of it for each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.store.postgresql import Server, running


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with running() as server:
        yield server


@pytest.fixture
def url(server: Server) -> str:
    return server.records()
