"""What supervisors, the daemon and srun say to each other survives the wire."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmbridge.wire import step, supervisor
from slurmbridge.wire.client import Decoder, frame, pack

NAMES = st.text(st.characters(exclude_characters="=\0", exclude_categories=["Cs"]), min_size=1, max_size=12)
VALUES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_an_environment_joined_and_split_is_itself(env: dict[str, str]) -> None:
    assert supervisor.split_env(supervisor.join_env(list(env.items()))) == env


def test_undecodable_bytes_of_an_environment_survive() -> None:
    env = {"A": b"\xff\xfe".decode("utf-8", "surrogateescape")}
    assert supervisor.split_env(supervisor.join_env(list(env.items()))) == env


@given(st.binary(max_size=200), st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_launch_survives(script: bytes, env: dict[str, str]) -> None:
    joined = supervisor.join_env(list(env.items()))
    header, again, first, second = supervisor.decode_launch(
        supervisor.encode_launch({"job": 1}, script, joined, joined)
    )
    assert (header, again, first, second) == ({"job": 1}, script, env, env)


@given(
    st.integers(0, 2**31),
    st.integers(0, 99),
    st.integers(0, 999),
    st.text("0123456789abcdef", min_size=1),
    st.integers(0),
)
def test_a_hello_survives(job: int, restarts: int, rank: int, token: str, sequence: int) -> None:
    assert supervisor.decode_hello(supervisor.encode_hello(job, restarts, rank, token, sequence)) == (
        job, restarts, rank, token, sequence,
    )  # fmt: skip


@pytest.mark.parametrize(
    "payload", [b"", b"abc", pack(b"9", b"1", b"0", b"0", b"t", b"0"), pack(b"1", b"x", b"0", b"0", b"t", b"0")]
)
def test_a_hello_of_another_version_or_without_sense_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError):
        supervisor.decode_hello(payload)


@given(
    st.builds(
        supervisor.Opening, job=st.integers(0), restarts=st.integers(0), rank=st.integers(0), token=st.text(),
        what=st.sampled_from(["supervisor", "client", "step"]), run=st.text(), sequence=st.integers(0),
        connection=st.text(),
    )
)  # fmt: skip
def test_an_opening_survives(opening: supervisor.Opening) -> None:
    assert supervisor.decode_opening(supervisor.encode_opening(opening)) == opening


OPENING = {"version": 1, "job": 1, "restarts": 0, "rank": 0, "token": "t", "what": "client"}


@pytest.mark.parametrize(
    "changed",
    [{"version": 2}, {"version": None}, {"job": "1"}, {"rank": -1}, {"rank": True}, {"token": 1}, {"what": "root"},
     {"run": None}, {"connection": []}],
    ids=str,
)  # fmt: skip
def test_an_opening_of_another_version_or_without_sense_is_refused(changed: dict[str, object]) -> None:
    assert supervisor.decode_opening(supervisor.encode(OPENING)).what == "client"
    with pytest.raises(ValueError):
        supervisor.decode_opening(supervisor.encode({**OPENING, **changed}))


def test_an_opening_may_say_what_is_not_known_but_must_say_who_it_is() -> None:
    assert supervisor.decode_opening(supervisor.encode({**OPENING, "colour": "red"})).job == 1
    with pytest.raises(ValueError):
        supervisor.decode_opening(supervisor.encode({key: value for key, value in OPENING.items() if key != "token"}))


@given(st.integers(-1, 10**6), st.binary(max_size=100), st.integers(0, 2**32 - 1))
def test_stream_data_survives_with_its_step(task: int, content: bytes, number: int) -> None:
    found, payload = step.unnumber(step.number(number, step.data(task, content)))
    assert (found, step.parse_data(payload)) == (number, (task, content))


@given(st.lists(st.tuples(st.sampled_from([b"o", b"x", b"i"]), st.binary(max_size=50)), max_size=8), st.integers(1, 30))
def test_frames_survive_any_cutting(frames: list[tuple[bytes, bytes]], size: int) -> None:
    data = b"".join(frame(kind, payload) for kind, payload in frames)
    decoder = Decoder(step.MAX_FRAME)
    found = [each for at in range(0, len(data), size) for each in decoder.feed(data[at : at + size])]
    assert found == frames
