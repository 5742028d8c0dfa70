"""What is kept of jobs' output: whole and once, within its bounds, and as an earlier daemon left it."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmbridge.daemon import output_shelf
from slurmbridge.daemon.output_shelf import Room, Shelf, Writer
from slurmbridge.daemon.output_yield import KeptJob, kept_jobs, to_go
from slurmbridge.daemon.outputs import Outputs
from slurmbridge.model.kept import KeptPart
from slurmbridge.model.run import RunKey
from slurmbridge.wire.supervisor import OF_STDERR, OF_STDOUT, Output
from tests.patience import PATIENCE_S

MOST = 1000
FIRST = RunKey(7, 0)


class Plenty(Room):
    def __init__(self, *, there: bool = True) -> None:
        self.there = there

    def is_there(self) -> bool:
        return self.there

    def look_again(self) -> bool:
        return self.there


class Small(Plenty):
    """A file system of so many bytes."""

    def __init__(self, folder: Path, size: int) -> None:
        super().__init__()
        self.folder, self.size = folder, size

    def is_there(self) -> bool:
        return sum(each.size for each in kept_jobs(str(self.folder / "output"))) < self.size

    def look_again(self) -> bool:
        return self.is_there()


def shelf(folder: Path, most: int = MOST, *, there: bool = True) -> Shelf:
    return Shelf(str(folder / "output"), most, Plenty(there=there))


def piece(data: bytes, offset: int = 0, *, stream: int = 0, lost: int = -1, what: str = OF_STDOUT) -> Output:
    return Output(stream, offset, lost, what, f"/gone/{what}", data)


def text(kept: Shelf, name: str = "0.0.0", job: int = 7) -> bytes:
    return kept.read(job, name, 0, 1 << 20)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.randoms(use_true_random=False))
def test_cuts_and_new_daemons_change_nothing_of_what_is_kept(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, chance: random.Random
) -> None:
    """A supervisor that follows the answers, some of which are lost, and daemons of which some forget all but the disk."""
    folder = tmp_path_factory.mktemp("shelf")
    kept, sent, over = shelf(folder), 0, False
    while not over:
        data = whole[sent : sent + chance.randint(1, 60)]
        lost = 0 if sent + len(data) >= len(whole) else -1
        size, ended = kept.take(FIRST, 0, piece(data, sent, lost=lost))
        if chance.random() < 0.3:
            kept = shelf(folder)
        if chance.random() < 0.7:  # else the answer is lost
            sent, over = size, ended
    assert text(kept) == whole


def test_a_piece_beyond_what_is_there_is_asked_for_again(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    assert kept.take(FIRST, 0, piece(b"abc")) == (3, False)
    assert kept.take(FIRST, 0, piece(b"z", 10)) == (3, False)
    assert kept.take(FIRST, 0, piece(b"bcdef", 1, lost=0)) == (6, True)
    assert text(kept) == b"abcdef"


def test_what_is_beyond_the_bound_of_a_job_is_dropped_and_its_file_says_so(tmp_path: Path) -> None:
    kept = shelf(tmp_path, most=2 << 20)
    half = b"x" * (1 << 20)
    assert kept.take(FIRST, 0, piece(half))[0] == 1 << 20
    assert kept.take(FIRST, 1, piece(half, what=OF_STDERR))[0] == 1 << 20
    kept = shelf(tmp_path, most=2 << 20)
    assert kept.take(FIRST, 1, piece(b"more", 1 << 20)) == ((1 << 20) + 4, False)
    line = b"\nslurmbridge: output of this job beyond 2 MiB is not kept\n"
    assert kept.read(7, "0.1.0", 1 << 20, 1000) == line
    kept = shelf(tmp_path, most=2 << 20)  # the line is no part of what came
    assert kept.take(FIRST, 1, piece(b"and more", (1 << 20) + 4, lost=5)) == ((1 << 20) + 12, True)
    assert kept.read(7, "0.1.0", 1 << 20, 1000) == line and len(text(kept)) == 1 << 20


def test_a_disk_without_room_keeps_nothing_more_and_holds_no_job_up(tmp_path: Path) -> None:
    room = Plenty()
    kept = Shelf(str(tmp_path / "output"), MOST, room)
    kept.take(FIRST, 0, piece(b"a line\n"))
    room.there = False
    assert kept.take(FIRST, 0, piece(b"lost\n", 7, lost=0)) == (12, True)
    assert text(kept).splitlines() == [
        b"a line", b"slurmbridge: output from here on is not kept: the disk of the controller is nearly full",
    ]  # fmt: skip


def test_the_room_that_is_left_is_the_file_systems(tmp_path: Path) -> None:
    now = [0.0]
    assert Room(str(tmp_path), lambda: now[0]).is_there()
    assert not Room("/proc", lambda: now[0]).is_there()  # it has none


def test_the_oldest_of_who_has_most_gives_way_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(output_shelf, "MADE_BYTES", 1000)
    kept = Shelf(str(tmp_path / "output"), MOST, Small(tmp_path, 5000))
    greedy, modest = Writer(epoch="1", uid=1001), Writer(epoch="1", uid=1002)
    kept.take(RunKey(1, 0), 0, piece(b"hers", lost=0), modest)
    for job in range(2, 9):
        kept.take(RunKey(job, 0), 0, piece(b"x" * 600, lost=0), greedy)
        os.utime(tmp_path / "output" / str(job) / "0.0.0", (job, job))
        os.utime(tmp_path / "output" / str(job) / "0.0.0.json", (job, job))
    kept.take(RunKey(9, 0), 0, piece(b"y" * 600), greedy)
    assert not kept._room.is_there()
    kept.take(RunKey(10, 0), 0, piece(b"hers, later", lost=0), modest)
    assert text(kept, job=10) == b"hers, later" and text(kept, job=1) == b"hers"
    assert [job for job in range(2, 10) if not kept.files(job)] == [2, 3], "as much as was wanted, the oldest first"
    assert "event=output.gave_way uid=1001 jobs=2" in caplog.text
    kept.take(RunKey(11, 0), 0, piece(b"z" * 1000), greedy)
    kept.take(RunKey(12, 0), 0, piece(b"z" * 1000), greedy)
    assert b"nearly full" in text(kept, job=12) and kept.files(4), "not again so soon"


def test_nobody_is_brought_below_who_has_second_most_and_none_that_writes_gives_way() -> None:
    def job(number: int, uid: int, size: int, *, over: bool = True) -> KeptJob:
        return KeptJob(job_id=number, uid=uid, size=size, last=number, is_over=over)

    found = [job(1, 1, 40), job(5, 1, 40), job(3, 1, 40), job(2, 2, 50), job(4, 2, 20)]
    assert [each.job_id for each in to_go(found, 10)] == [1]
    assert [each.job_id for each in to_go(found, 1000)] == [1]
    assert [each.job_id for each in to_go([*found, job(6, 1, 40)], 1000)] == [1, 3]
    assert to_go([job(1, 1, 40, over=False), job(2, 2, 10)], 10) == []
    assert [each.job_id for each in to_go([job(2, 1, 40), job(1, 1, 10)], 1000)] == [1, 2]
    assert to_go([], 10) == []


def test_a_disk_that_fails_is_told_in_the_log_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "output").touch()
    kept = shelf(tmp_path)
    assert kept.take(FIRST, 0, piece(b"a")) == (1, False)
    assert kept.take(FIRST, 0, piece(b"b", 1, lost=0)) == (2, True)
    assert caplog.text.count("event=output.failed job=7") == 1


def test_what_could_not_be_kept_where_the_job_ran_is_said_at_the_end(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.take(FIRST, 0, piece(b"a\n", lost=30))
    assert text(kept) == b"a\nslurmbridge: 30 more bytes of output could not be kept where the job ran\n"


@pytest.mark.parametrize(("appends", "left"), [(False, ["1.0.0"]), (True, ["0.0.0", "1.0.0"])])
def test_a_run_that_begins_again_cuts_the_files_unless_it_appends(
    tmp_path: Path, appends: bool, left: list[str]
) -> None:
    kept, again = shelf(tmp_path), Writer(epoch="2", appends=appends)
    kept.take(FIRST, 0, piece(b"first", lost=0), Writer(epoch="1", appends=appends))
    kept = shelf(tmp_path)
    kept.take(RunKey(7, 1), 0, piece(b"second", lost=0), again)
    kept.take(RunKey(7, 1), 0, piece(b"second", lost=0), again)
    assert [each.name for each in kept.files(7)] == left
    assert sorted(name for name in os.listdir(tmp_path / "output" / "7") if name.count(".") == 2) == left


def test_a_job_of_the_same_number_in_another_life_of_the_database_begins_anew(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.take(FIRST, 0, piece(b"of another life", lost=0), Writer(epoch="1"))
    kept.take(RunKey(7, 1), 0, piece(b"and its next run", lost=0), Writer(epoch="2"))
    kept = shelf(tmp_path)
    assert kept.take(FIRST, 0, piece(b"new"), Writer(epoch="3")) == (3, False)
    assert (text(kept), len(kept.files(7))) == (b"new", 1)


def test_a_late_word_of_a_run_that_is_over_takes_nothing_from_the_next(tmp_path: Path) -> None:
    kept, second = shelf(tmp_path), RunKey(7, 1)
    kept.take(second, 0, piece(b"second"), Writer(epoch="2"))
    kept.take(FIRST, 0, piece(b"late", lost=0))
    kept.take(second, 0, piece(b" run", 6, lost=0), Writer(epoch="2"))
    assert text(kept, "1.0.0") == b"second run"


def test_folders_are_their_daemons_alone_and_go_when_nobody_needs_them(tmp_path: Path) -> None:
    kept = shelf(tmp_path)
    kept.take(FIRST, 0, piece(b"a", lost=0))
    kept.take(RunKey(8, 0), 0, piece(b"b", lost=0))
    for name in (".", "7"):
        assert (tmp_path / "output" / name).stat().st_mode & 0o777 == 0o700
    assert kept.older_than(0.0) == () and set(kept.older_than(float("inf"))) == {7, 8}
    kept.forget_runs([(7, 1)])
    assert os.listdir(tmp_path / "output" / "7")
    kept.forget_runs([(7, 0), (9, 0)])
    assert os.listdir(tmp_path / "output") == ["8"] and kept.files(7) == () and kept.files(9) == ()


def test_who_waits_for_more_is_woken_by_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        outputs = Outputs(shelf(tmp_path), lambda key: Writer())
        answers: list[tuple[int, bool]] = []
        waiting = asyncio.create_task(outputs.read(7, "0.0.0", 0, 100, 60.0))
        await asyncio.sleep(0.05)
        outputs.take(FIRST, 0, piece(b"abc"), lambda *answer: answers.append(answer))
        found = await asyncio.wait_for(waiting, PATIENCE_S)
        assert (found.data, answers) == (b"abc", [(3, False)])
        assert await outputs.read(7, "0.0.0", 3, 100, 0.01) == KeptPart(files=found.files)
        assert await outputs.forget_before(float("inf"), lambda job_id: job_id == 7) == 0
        assert await outputs.forget_before(float("inf"), lambda job_id: False) == 1
        outputs.close()

    asyncio.run(scenario())
