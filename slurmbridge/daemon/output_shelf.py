"""Output of jobs on the daemon's disk: a folder per job, a file per stream, and beside it what the stream is.

    FOLDER/JOB/RESTARTS.RANK.STREAM        the bytes
    FOLDER/JOB/RESTARTS.RANK.STREAM.json   what it is (`output_note`)

What comes at an offset is written there, so that the same piece may come twice. Nothing is synchronised to the disk while a
run goes on, as its supervisor has all of it still and sends again what is not here; the end of a stream is, before it is
told. Blocks: for a thread of its own.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from slurmbridge.daemon import output_note
from slurmbridge.daemon.output_note import ENDING, Note
from slurmbridge.daemon.output_yield import kept_jobs, to_go
from slurmbridge.model.kept import KeptFile
from slurmbridge.model.run import RunKey
from slurmbridge.wire.supervisor import Output

log = logging.getLogger(__name__)

MOST_STREAMS = 4096
"""Files of one job."""
SPARE_BYTES, SPARE_PART = 1 << 30, 20
"""So much, or a part of the file system where that is less, stays free for the daemon's own records."""
LOOK_S = 1.0
MADE_BYTES, MADE_EVERY_S = 1 << 30, 5.0
"""Where there is none: so much is made of what others no longer need as much (`output_yield`), not more often than that."""
REMEMBERED = 4096
"""Jobs whose files are known without a look at the disk."""


class Room:
    """Whether the disk has room for what jobs write."""

    def __init__(self, folder: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder, self._clock = folder, clock
        self._looked, self._free = float("-inf"), True

    def is_there(self) -> bool:
        if self._clock() - self._looked >= LOOK_S:
            found = os.statvfs(self._folder)
            self._looked = self._clock()
            spare = min(SPARE_BYTES, found.f_blocks * found.f_frsize // SPARE_PART)
            self._free = found.f_bavail * found.f_frsize > spare
        return self._free

    def look_again(self) -> bool:
        """Something was taken away."""
        self._looked = float("-inf")
        return self.is_there()


class Writer(msgspec.Struct, frozen=True):
    """The run that writes."""

    epoch: str = ""  # tells it from one of the same number in another life of the database; empty: no run of now
    appends: bool = False  # to what earlier runs of its job wrote
    uid: int = -1  # its job's owner; -1: not known


class _Stream:
    def __init__(self, what: str, path: str, epoch: str, uid: int) -> None:
        self.what, self.path, self.epoch, self.uid = what, path, epoch, uid
        self.size = 0  # bytes that came, kept or not
        self.stored = 0  # bytes of them in the file
        self.full = self.over = False


class _Job:
    def __init__(self) -> None:
        self.streams: dict[str, _Stream] = {}
        self.total = 0  # bytes of all files


class Shelf:
    """`most`: bytes of one job. The folder is made when it is needed."""

    def __init__(self, folder: str, most: int, room: Room | None = None) -> None:
        self._folder, self._most, self._room = folder, most, room or Room(os.path.dirname(folder))
        self._jobs: OrderedDict[int, _Job] = OrderedDict()
        self._failed: set[int] = set()  # jobs of which the log has told
        self._made_at = float("-inf")

    def _begin(self, key: RunKey, job: _Job, writer: Writer) -> None:
        """The first of a run: what earlier runs wrote goes, as their files would be cut, unless it appends. What a run of
        this or a later number wrote is of another life of the database."""
        for name in list(job.streams):
            if int(name.partition(".")[0]) >= key.restarts or not writer.appends:
                self._drop(key.job_id, job, name)

    def take(self, key: RunKey, rank: int, piece: Output, writer: Writer = Writer()) -> tuple[int, bool]:
        """Keep a piece: (how far the stream is now, whether all of it is on the disk). What cannot be kept counts as come:
        a job is not held up for it."""
        try:
            return self._take(key, rank, piece, writer)
        except OSError as fault:
            known = self._jobs[key.job_id].streams if key.job_id in self._jobs else {}
            if (stream := known.get(f"{key.restarts}.{rank}.{piece.stream}")) is not None:
                stream.full = True
            if key.job_id not in self._failed:
                self._failed.add(key.job_id)
                log.error("event=output.failed job=%d reason=%r", key.job_id, str(fault))
            return piece.offset + len(piece.data), piece.lost >= 0

    def _take(self, key: RunKey, rank: int, piece: Output, writer: Writer) -> tuple[int, bool]:
        job = self._job(key.job_id)
        name = f"{key.restarts}.{rank}.{piece.stream}"
        if writer.epoch and not any(
            name.startswith(f"{key.restarts}.") and writer.epoch == stream.epoch for name, stream in job.streams.items()
        ):
            self._begin(key, job, writer)
        stream = job.streams.get(name)
        if stream is None:
            if len(job.streams) >= MOST_STREAMS:
                return piece.offset + len(piece.data), piece.lost >= 0
            stream = job.streams[name] = _Stream(piece.what, piece.path, writer.epoch, writer.uid)
        if stream.full:
            stream.size = max(stream.size, piece.offset)
        if piece.offset > stream.size:
            return stream.size, False
        end = piece.offset + len(piece.data)
        is_end = piece.lost >= 0 and end >= stream.size
        fresh = piece.data[stream.size - piece.offset :] if end > stream.size else b""
        stream.size = max(stream.size, end)  # whatever becomes of it
        if fresh:
            self._write(key.job_id, job, name, stream, fresh)
        if is_end and not stream.over:
            self._end(key.job_id, job, name, stream, piece.lost)
        return stream.size, is_end

    def _write(self, job_id: int, job: _Job, name: str, stream: _Stream, data: bytes) -> None:
        if stream.full:
            return
        room = self._most - job.total if self._room.is_there() or self._make_room(job_id) else 0
        if not stream.stored:
            for folder in (self._folder, self._of(job_id)):
                os.makedirs(folder, 0o700, exist_ok=True)
            self._note(job_id, name, stream)
        self._put(job_id, job, name, stream, data[: max(room, 0)])
        if len(data) > room:
            is_job = job.total >= self._most
            self._fill(job_id, job, name, stream, BEYOND.format(self._most >> 20) if is_job else NO_ROOM)

    def _make_room(self, writing: int) -> bool:
        now = time.monotonic()
        if now - self._made_at < MADE_EVERY_S:
            return False
        self._made_at = now
        going = [each for each in to_go(kept_jobs(self._folder), MADE_BYTES) if each.job_id != writing]
        if not going:
            return False
        self.forget(each.job_id for each in going)
        size = sum(each.size for each in going)
        log.warning("event=output.gave_way uid=%d jobs=%d bytes=%d", going[0].uid, len(going), size)
        return self._room.look_again()

    def _fill(self, job_id: int, job: _Job, name: str, stream: _Stream, words: str) -> None:
        """From here on nothing more is kept, and the file says so."""
        stream.full = True
        line = f"slurmbridge: {words}\n".encode()
        self._note(job_id, name, stream)  # first: another daemon must not take the line for a part of it
        self._put(job_id, job, name, stream, line if self._ends_a_line(job_id, name, stream) else b"\n" + line)

    def _ends_a_line(self, job_id: int, name: str, stream: _Stream) -> bool:
        return not stream.stored or self.read(job_id, name, stream.stored - 1, 1) == b"\n"

    def _put(self, job_id: int, job: _Job, name: str, stream: _Stream, data: bytes) -> None:
        fd = os.open(self._of(job_id, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while data:
                written = os.pwrite(fd, data, stream.stored)
                stream.stored += written
                job.total += written
                data = data[written:]
        finally:
            os.close(fd)

    def _end(self, job_id: int, job: _Job, name: str, stream: _Stream, lost: int) -> None:
        if lost and not stream.full and stream.stored:
            self._fill(job_id, job, name, stream, LOST.format(lost))
        stream.over = True
        if not stream.stored:
            return  # nothing was ever written to it
        self._note(job_id, name, stream, sync=True)
        for path in (self._of(job_id, name), self._of(job_id), self._folder):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def _note(self, job_id: int, name: str, stream: _Stream, *, sync: bool = False) -> None:
        note = Note(stream.what, stream.path, stream.epoch, stream.full, stream.over, stream.uid)
        output_note.write(self._of(job_id, name), note, sync=sync)

    # ---- what is there

    def files(self, job_id: int) -> tuple[KeptFile, ...]:
        """By run, rank and stream."""
        if not os.path.isdir(self._of(job_id)):
            return ()
        found = []
        for name, stream in self._job(job_id).streams.items():
            if stream.stored:
                restarts, rank, number = map(int, name.split("."))
                found.append(
                    KeptFile(
                        restarts=restarts, rank=rank, stream=number, what=stream.what, path=stream.path,
                        size=stream.stored, is_over=stream.over, uid=stream.uid,
                    )
                )  # fmt: skip
        return tuple(sorted(found, key=lambda each: (each.restarts, each.rank, each.stream)))

    def read(self, job_id: int, name: str, offset: int, size: int) -> bytes:
        """Empty beyond the end, and of what is not there."""
        try:
            fd = os.open(self._of(job_id, name), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(fd, size, offset)
        finally:
            os.close(fd)

    def forget_runs(self, runs: Iterable[tuple[int, int]]) -> None:
        """Of (job, restarts)."""
        for job_id, restarts in runs:
            if not os.path.isdir(self._of(job_id)):
                continue
            job = self._job(job_id)
            for name in [name for name in job.streams if name.startswith(f"{restarts}.")]:
                self._drop(job_id, job, name)
            if not job.streams:
                self.forget([job_id])

    def forget(self, job_ids: Iterable[int]) -> None:
        for job_id in job_ids:
            self._jobs.pop(job_id, None)
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self._of(job_id))

    def older_than(self, before: float) -> tuple[int, ...]:
        """Jobs nothing of which was written since."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return ()
        return tuple(int(name) for name in names if name.isdecimal() and self._last_written(int(name)) < before)

    def _last_written(self, job_id: int) -> float:
        folder = self._of(job_id)
        return max((os.stat(each.path).st_mtime for each in os.scandir(folder)), default=os.stat(folder).st_mtime)

    # ---- places

    def _of(self, job_id: int, name: str = "") -> str:
        return os.path.join(self._folder, str(job_id), name) if name else os.path.join(self._folder, str(job_id))

    def _drop(self, job_id: int, job: _Job, name: str) -> None:
        job.total -= job.streams.pop(name).stored
        for path in (self._of(job_id, name), self._of(job_id, name + ENDING)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _job(self, job_id: int) -> _Job:
        job = self._jobs.get(job_id)
        if job is None:
            job = self._jobs[job_id] = self._found(job_id)
            if len(self._jobs) > REMEMBERED:
                self._jobs.popitem(last=False)
        else:
            self._jobs.move_to_end(job_id)
        return job

    def _found(self, job_id: int) -> _Job:
        """As an earlier daemon left it."""
        job = _Job()
        try:
            names = os.listdir(self._of(job_id))
        except FileNotFoundError:
            return job
        for name in names:
            if not name.replace(".", "").isdecimal():
                continue
            note = output_note.read(self._of(job_id, name)) or Note()
            stream = _Stream(note.what, note.path, note.epoch, note.uid)
            stream.full, stream.over = note.full, note.over
            stream.stored = os.stat(self._of(job_id, name)).st_size
            stream.size = 0 if stream.full else stream.stored  # what comes at last says how far a full one is
            job.streams[name] = stream
            job.total += stream.stored
        return job


BEYOND = "output of this job beyond {} MiB is not kept"
NO_ROOM = "output from here on is not kept: the disk of the controller is nearly full"
LOST = "{} more bytes of output could not be kept where the job ran"
