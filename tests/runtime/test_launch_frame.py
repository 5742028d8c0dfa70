"""A launch says the same to supervisors of every runtime."""

from __future__ import annotations

from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.runtime import launch_frame
from slurmbridge.wire import supervisor as wire
from tests.runtime.contract import launch_of

LAUNCH = launch_of(RunKey(7, 2), b"true\n")


def test_programs_around_tasks_are_told_only_where_there_are_some() -> None:
    ranks = launch_frame.ranks_of(LAUNCH)
    assert not set(launch_frame.PROGRAMS) & set(launch_frame.header(LAUNCH, 0, ranks, {}))
    told = launch_frame.header(replace(LAUNCH, task_prolog="/p", task_epilog="/e"), 0, ranks, {})
    assert (told["task_prolog"], told["task_epilog"]) == ("/p", "/e")


def test_what_a_runtime_adds_comes_along_and_the_script_is_for_rank_0() -> None:
    header, script, _, _ = wire.decode_launch(
        launch_frame.payload(LAUNCH, 0, launch_frame.ranks_of(LAUNCH), {"token": "t"})
    )
    assert (header["token"], header["job"], header["restarts"], script) == ("t", 7, 2, b"true\n")
