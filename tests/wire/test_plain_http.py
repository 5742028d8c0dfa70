"""One GET a connection: what is asked, what is refused, and how it is answered."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.wire.plain_http import LONGEST_HEAD, REASONS, Asked, answer, read, read_place


@pytest.mark.parametrize(
    ("head", "asked"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Asked(path="/metrics")),
        (b"GET /metrics?a=b HTTP/1.0\r\n\r\n", Asked(path="/metrics")),
        (b"GET /metrics HTTP/1.1\r\nHost: x\r\n", None),
        (b"", None),
        (b"POST /metrics HTTP/1.1\r\n\r\n", Asked(refusal=405)),
        (b"HEAD / HTTP/1.1\r\n\r\n", Asked(refusal=405)),
        (b"GET http://x/ HTTP/1.1\r\n\r\n", Asked(refusal=400)),
        (b"GET /\r\n\r\n", Asked(refusal=400)),
        (b"GET / HTTP/2\r\n\r\n", Asked(refusal=505)),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", Asked(refusal=400)),
        (b"GET / HTTP/1.1\r\n" + b"x" * LONGEST_HEAD, Asked(refusal=431)),
    ],
)
def test_a_head_is_read_once_it_is_whole(head: bytes, asked: Asked | None) -> None:
    assert read(head) == asked


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(head: bytes) -> None:
    found = read(head)
    assert found is None or found.path.startswith("/") or found.refusal in REASONS


@pytest.mark.parametrize("status", REASONS)
def test_an_answer_says_how_long_it_is_and_that_it_is_the_last(status: int) -> None:
    head, _, body = answer(status, b"text").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status) and b"Connection: close" in head and body == b"text"
    assert b"Content-Length: 4" in head and (b"Allow: GET" in head) == (status == 405)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("127.0.0.1:9817", ("127.0.0.1", 9817)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:9817", ("::1", 9817)),
        ("::1:9817", None),
        (":9817", None),
        ("9817", None),
        ("host:", None),
        ("host:65536", None),
        ("host:x", None),
        ("", None),
    ],
)
def test_a_place_is_a_host_and_a_port(text: str, place: tuple[str, int] | None) -> None:
    assert read_place(text) == place
