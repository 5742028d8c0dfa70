"""A file may come before the command that asks for it: then it is not asked for. Over a real socket."""

from __future__ import annotations

import pathlib

from slurmbridge.wire import client as wire
from tests.daemon.post import Post, hello, with_post

SCRIPT = b"#!/bin/sh\n#SBATCH --comment=given\ntrue\n"


def given(name: bytes, content: bytes = SCRIPT) -> bytes:
    return wire.frame(b"G", wire.pack(name, b"/tmp/" + name, content))


def kinds(answer: bytes) -> list[bytes]:
    return [kind for kind, _ in wire.Decoder().feed(answer)]


def test_a_script_that_came_along_is_not_asked_for(tmp_path: pathlib.Path) -> None:
    async def rule(post: Post) -> None:
        answer = await post.say(given(b"job.sh") + hello("sbatch", "job.sh"))
        assert kinds(answer) == [b"O", b"X"]
        job = list(post.made.controller.memory.jobs())[-1]
        assert (job.spec.comment, job.spec.command) == ("given", "/tmp/job.sh")

    with_post(rule, tmp_path)


def test_other_files_are_asked_for(tmp_path: pathlib.Path) -> None:
    async def rule(post: Post) -> None:
        assert kinds(await post.say(given(b"other.sh") + hello("sbatch", "job.sh"))) == [b"A"]
        assert kinds(await post.say(wire.frame(b"G", b"\0\0\0\xff") + hello("sbatch", "job.sh"))) == [b"A"]

    with_post(rule, tmp_path)


def test_a_file_counts_for_the_next_command_alone(tmp_path: pathlib.Path) -> None:
    async def rule(post: Post) -> None:
        answer = await post.say(given(b"job.sh") + hello("squeue", "-h") + hello("sbatch", "job.sh"))
        assert b"A" in kinds(answer) or kinds(answer)[-1] == b"X"
        assert len(list(post.made.controller.memory.jobs())) == 0

    with_post(rule, tmp_path)


def test_no_more_files_are_taken_than_a_command_may_need(tmp_path: pathlib.Path) -> None:
    async def rule(post: Post) -> None:
        answer = await post.say(given(b"job.sh") * 1000 + hello("sbatch", "job.sh"))
        assert kinds(answer) == [b"E", b"X"]

    with_post(rule, tmp_path)
