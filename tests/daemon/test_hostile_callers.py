"""What somebody may send to the daemon's socket: broken, half, endless or foolish. It costs him his connection, at most."""

from __future__ import annotations

import asyncio
import pathlib
import random

import pytest

from slurmbridge.daemon import crowd
from slurmbridge.wire import client as wire
from tests.daemon.post import Post, hello, soon, with_post
from tests.patience import comes

HUGE = b"9" * 5000
BROKEN = {
    "nothing": b"",
    "half a length": b"\0\0",
    "half a frame": hello("squeue")[:-7],
    "an empty frame": b"\0\0\0\0",
    "an endless frame": b"\xff\xff\xff\xffH",
    "noise": bytes(random.Random(1).randbytes(4096)),
    "an unknown kind": wire.frame(b"?", b""),
    "an answer first": wire.frame(b"F", wire.pack(b"0", b"", b"")),
    "a signal first": wire.frame(b"S", b"2"),
    "an empty hello": wire.frame(b"H", b""),
    "parts that end behind it": wire.frame(b"H", b"\0\0\0\xff"),
    "another version": hello("squeue", version=b"99"),
    "no arguments": hello(argc=b"0"),
    "too many arguments": hello("squeue", argc=b"999999999999"),
    "a negative count": hello("squeue", argc=b"-1"),
    "a huge count": hello("squeue", argc=HUGE),
    "words for numbers": hello("squeue", umask=b"rwx", columns=b"wide", sid=b"me"),
    "a command that is none": hello("/bin/sh"),
    "a hand-over": wire.frame(b"V", wire.pack(b"1", b"1", b"0", b"0", b"\xff\xfe", b"0")),
    "limits that are none": hello("sbatch", "--wrap", "true", rlimits=b"NOFILE:1"),
    "a limit with an own name": hello("sbatch", "--wrap", "true", rlimits=b"../x:1:1"),
    "NUL in a word": hello("sbatch", "--wrap", "a\0b"),
    "NUL in the folder": hello("sbatch", "--wrap", "true", cwd=b"/tmp\0/x"),
    "an answer that is none": hello("sbatch", "job.sh") + wire.frame(b"F", b"\0\0\0\xff"),
    "an answer with an own errno": hello("sbatch", "job.sh") + wire.frame(b"F", wire.pack(b"x", b"", b"")),
    "two answers": hello("sbatch", "job.sh") + 2 * wire.frame(b"F", wire.pack(b"0", b"", b"#!/bin/sh\n")),
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_broken_ends_its_own_connection_alone(data: bytes, tmp_path: pathlib.Path) -> None:
    async def rule(there: Post) -> None:
        bystander = await there.dial()
        await there.say(data)
        bystander[1].write(hello("sbatch", "-V"))
        answer = wire.frame(b"O", b"slurm-wlm 26.05.5\n") + wire.frame(b"X", b"0")
        assert await bystander[0].readexactly(len(answer)) == answer
        bystander[1].close()

    with_post(rule, tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": HUGE[:4000]}, {"columns": b"-5"}, {"sid": HUGE[:4000]}, {"sid": b"-3"}, {"umask": b"7" * 4000},
        {"rlimits": b"NOFILE:" + HUGE[:4000] + b":-" + HUGE[:4000]}, {"host": b"\xff\xfe\n"}, {"cwd": b"\xff" * 5000},
        {"nonce": b""}, {"nonce": b"x" * 100_000}, {"tty": b"\xff"},
    ],
    ids=lambda changes: next(iter(changes)),
)  # fmt: skip
def test_numbers_and_names_beyond_all_sense_are_cut_to_size(changes: dict[str, bytes], tmp_path: pathlib.Path) -> None:
    async def rule(there: Post) -> None:
        answer = await there.say(hello("sbatch", "--wrap", "true", **changes))
        assert b"Submitted batch job 1\n" in answer
        await there.made.advance(5)
        assert there.made.states(1) == ["COMPLETED"]
        assert b"wrap" in await there.say(hello("squeue", "-t", "all", **changes))

    with_post(rule, tmp_path)


def test_random_frames_end_nothing(tmp_path: pathlib.Path) -> None:
    async def rule(there: Post) -> None:
        chance = random.Random(7)
        for _ in range(300):
            data = bytearray(hello("sbatch", "--wrap", "true") + wire.frame(b"F", wire.pack(b"0", b"", b"x")))
            for _ in range(chance.randrange(1, 6)):
                data[chance.randrange(len(data))] = chance.randrange(256)
            await there.say(bytes(data))

    with_post(rule, tmp_path)


def test_commands_ahead_of_their_turn_are_answered_in_order(tmp_path: pathlib.Path) -> None:
    async def rule(there: Post) -> None:
        reader, writer = await there.dial()
        writer.write(b"".join(hello("sbatch", "--parsable", "--wrap", "true", nonce=b"%016d" % n) for n in range(50)))
        seen: list[bytes] = []
        decoder = wire.Decoder()
        while len(seen) < 50:
            seen += [load for kind, load in decoder.feed(await reader.read(65536)) if kind == b"O"]
        assert seen == [b"%d\n" % (number + 1) for number in range(50)]
        writer.close()

    with_post(rule, tmp_path)


def test_a_user_holds_so_many_bytes_and_no_more(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MAX_BYTES", 3 << 20)
    monkeypatch.setattr("slurmbridge.daemon.peer.struct.unpack", lambda form, data: (1, 1001, 1001))

    async def rule(there: Post) -> None:
        half = (7 << 20).to_bytes(4, "big") + b"H" + bytes(1 << 20)
        ends = [await there.dial() for _ in range(6)]
        for _, writer in ends:
            writer.write(half)
        cut = [reader for reader, _ in ends if not await _stays(reader)]
        assert 3 <= len(cut) <= 5
        for _, writer in ends:
            writer.close()
        await asyncio.sleep(0.05)

    with_post(rule, tmp_path)


def test_callers_who_do_not_read_are_cut_when_they_hold_too_much_together(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(crowd, "MAX_BYTES", 1 << 18)
    monkeypatch.setattr("slurmbridge.daemon.peer.struct.unpack", lambda form, data: (1, 1001, 1001))

    async def rule(there: Post) -> None:
        for _ in range(30):
            await there.made.submit("--hold")
        ends = [await there.dial() for _ in range(10)]
        for _, writer in ends:
            writer.write(40 * hello("scontrol", "show", "job"))
        await comes(lambda: "event=connection.cut uid=1001" in caplog.text)
        assert await there.is_alive()
        for _, writer in ends:
            writer.transport.abort()
        await asyncio.sleep(0.05)

    with_post(rule, tmp_path)


def test_the_overflow_user_and_one_with_too_many_connections_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crowd, "MAX_CONNECTIONS", 10)  # whatever number of files this machine allows
    people = crowd.Crowd(0)
    assert not people.may_come(crowd.OVERFLOW_UID)
    for _ in range(crowd.MAX_CONNECTIONS):
        people.came(1001)
    assert not people.may_come(1001)
    assert people.may_come(0)
    people.went(1001, 0)
    assert people.may_come(1001)
    assert [crowd.Crowd(1001).may_come(uid) for uid in (0, 1001, 1002)] == [True, True, False]


async def _stays(reader: asyncio.StreamReader) -> bool:
    """Whether a connection is still open when nothing happens any more."""
    try:
        return await soon(reader) != b""
    except ConnectionError:
        return False
