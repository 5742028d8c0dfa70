"""Output that no file system keeps: it goes to the daemon, whole and once, whatever becomes of the connection."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from slurmbridge.supervisor.loop import Link, Loop
from slurmbridge.supervisor.pod_output import Output
from slurmbridge.wire import supervisor as wire
from tests.supervisor.pods import TOKEN, Line, Pod, ScriptedDaemon, launch, pods, srun

pytestmark = pytest.mark.processes
MOST = 1 << 20


class Keeper:
    """What a daemon does with the pieces: files by their stream, and what was dropped behind them."""

    def __init__(self) -> None:
        self.files: dict[int, bytes] = {}
        self.names: dict[int, tuple[str, str]] = {}
        self.ends: dict[int, int] = {}

    def take(self, line: Line, payload: bytes, *, answers: bool = True) -> None:
        piece = wire.decode_output(payload)
        known = self.files.get(piece.stream, b"")
        assert piece.offset <= len(known)
        self.files[piece.stream] = known[: piece.offset] + piece.data
        self.names[piece.stream] = (piece.what, piece.path)
        if piece.lost >= 0:
            self.ends[piece.stream] = piece.lost
        if answers:
            line.say(wire.KEPT, stream=piece.stream, size=len(self.files[piece.stream]), over=piece.lost >= 0)

    def until_ended(self, line: Line) -> dict[str, Any]:
        """The report of the end; by then all ends are known."""
        while True:
            kind, payload = line.read()
            if kind == wire.OUTPUT:
                self.take(line, payload)
            elif kind == wire.REPORT and (value := wire.decode(payload))["kind"] == "ended":
                assert set(self.ends) == set(self.files)
                return value

    def of(self, path: str) -> bytes:
        return b"".join(self.files[number] for number, (_, name) in self.names.items() if name == path)


def mounts(folder: Path) -> dict[str, Any]:
    """All of the test's folder is mounted, but for one below it."""
    return {"mounts": [[str(folder), True], [f"{folder}/passing", False]], "most_output": MOST}


def test_output_below_no_shared_mount_is_sent_and_comes_before_the_end(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept, script = Keeper(), "#!/bin/sh\necho out; echo err >&2; ls /nowhere/else; test -p /dev/stdout && echo a pipe\n"
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/home/%x/out-%j", **mounts(tmp_path)))
        ended = kept.until_ended(line)
        line.say(wire.ACK, sequence=ended["sequence"])
        assert pod.end() == 0
    assert kept.names == {0: (wire.OF_STDOUT, "/home/name/out-7")}
    lines = kept.files[0].decode().splitlines()
    assert lines[:2] == ["out", "err"] and lines[-1] == "a pipe" and kept.ends == {0: 0}


def test_stderr_has_a_stream_of_its_own_or_a_file(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept, script = Keeper(), "#!/bin/sh\necho out; echo err >&2\n"
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        changes: dict[str, Any] = {"out": f"{tmp_path}/passing/out", "err": f"{tmp_path}/err-%j"}
        line.send(wire.LAUNCH, launch(tmp_path, script=script, **changes, **mounts(tmp_path)))
        kept.until_ended(line)
    assert kept.files == {0: b"out\n"} and (tmp_path / "err-7").read_text() == "err\n"
    kept = Keeper()
    (tmp_path / "8").mkdir()
    with pods(Pod(daemon, tmp_path / "8", job=8)):
        line = daemon.line()
        changes = {"out": f"{tmp_path}/shared", "err": "/elsewhere/err", "job": 8}
        line.send(wire.LAUNCH, launch(tmp_path, script=script, **changes, **mounts(tmp_path)))
        kept.until_ended(line)
    assert kept.names[0] == (wire.OF_STDERR, "/elsewhere/err") and kept.files == {0: b"err\n"}
    assert (tmp_path / "shared").read_text() == "out\n"


def test_a_daemon_that_names_no_mounts_gets_no_output(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\necho out\n"))
        line.report("ended")
    assert (tmp_path / "out-7").read_text() == "out\n"


@pytest.mark.parametrize("answered", [False, True], ids=["its answer is lost", "it is lost"])
def test_a_cut_loses_nothing_and_doubles_nothing(daemon: ScriptedDaemon, tmp_path: Path, answered: bool) -> None:
    kept = Keeper()
    script = "#!/bin/sh\necho first\nwhile [ ! -e go ]; do sleep 0.02; done\nseq 40000\n"
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/gone", **mounts(tmp_path)))
        while (frame := line.read())[0] != wire.OUTPUT:
            pass
        if not answered:
            kept.take(line, frame[1], answers=False)
        daemon.shut()
        (tmp_path / "go").touch()
        daemon.open()
        line = daemon.line()
        assert line.opening.run == TOKEN
        line.say(wire.ACK, sequence=0)
        kept.until_ended(line)
    assert kept.files[0] == b"first\n" + b"".join(b"%d\n" % number for number in range(1, 40001))


def test_a_daemon_that_has_less_than_before_gets_it_again(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept = Keeper()
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        script = "#!/bin/sh\necho one\nwhile [ ! -e go ]; do sleep 0.02; done\necho two\n"
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/gone", **mounts(tmp_path)))
        while (frame := line.read())[0] != wire.OUTPUT:
            pass
        kept.take(line, frame[1])
        (tmp_path / "go").touch()
        while (frame := line.read())[0] != wire.OUTPUT:
            pass
        assert wire.decode_output(frame[1]).offset == 4
        line.say(wire.KEPT, stream=0, size=0, over=False)  # its machine failed before the bytes were on the disk
        kept.files.clear()
        kept.until_ended(line)
    assert kept.files == {0: b"one\ntwo\n"}


def test_a_job_that_ended_waits_for_a_daemon_that_lacks_its_output(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept = Keeper()
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        script = "#!/bin/sh\nwhile [ ! -e go ]; do sleep 0.02; done\nseq 1000\nexit 3\n"
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/gone", **mounts(tmp_path)))
        line.report("started")
        daemon.shut()
        (tmp_path / "go").touch()
        assert pod.last_words()["status"] == 3 << 8
        pod.terminate()  # whoever deletes the pod then: as long as it may
        daemon.open()
        line = daemon.line()
        line.say(wire.ACK, sequence=0)
        ended = kept.until_ended(line)
        line.say(wire.ACK, sequence=ended["sequence"])
        assert pod.end() == 3
    assert kept.files[0] == b"".join(b"%d\n" % number for number in range(1, 1001))


def test_an_acknowledgement_of_what_came_before_the_end_lets_nobody_go(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept = Keeper()
    with pods(Pod(daemon, tmp_path)) as (pod,):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script="#!/bin/sh\nseq 30000\n", out="/gone", **mounts(tmp_path)))
        started = line.report("started")
        kind, payload = line.read()
        assert kind == wire.OUTPUT
        pod.last_words()  # the job is over, and only the first piece of its output was sent
        line.say(wire.ACK, sequence=started["sequence"])
        kept.take(line, payload)
        ended = kept.until_ended(line)
        line.say(wire.ACK, sequence=ended["sequence"])
        assert pod.end() == 0
    assert kept.files[0] == b"".join(b"%d\n" % number for number in range(1, 30001))


def test_a_job_that_writes_without_end_is_not_stopped_and_what_is_beyond_is_counted(
    daemon: ScriptedDaemon, tmp_path: Path
) -> None:
    kept = Keeper()
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        script = f"#!/bin/sh\nhead -c {3 * MOST} /dev/zero\n"
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/gone", **mounts(tmp_path)))
        assert kept.until_ended(line)["why"] == "exit"
    assert (len(kept.files[0]), kept.ends[0]) == (MOST + 1, 2 * MOST - 1)


def test_files_of_steps_are_kept_whoever_opens_them(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept = Keeper()
    script = "\n".join(
        [
            "#!/bin/sh",
            srun("-n2 --output=/gone/by-task-%t sh -c 'echo task $SLURM_PROCID'"),
            srun("-n2 -l --output=/gone/labelled sh -c 'echo task $SLURM_PROCID'"),
            srun(f"-n1 --output={tmp_path}/stays echo stays"),
            srun("-n1 echo of the script"),
        ]
    )
    with pods(Pod(daemon, tmp_path)):
        line = daemon.line()
        line.send(wire.LAUNCH, launch(tmp_path, script=script, out="/gone/out", **mounts(tmp_path)))
        kept.until_ended(line)
    assert kept.of("/gone/by-task-0") == b"task 0\n" and kept.of("/gone/by-task-1") == b"task 1\n"
    assert sorted(kept.of("/gone/labelled").splitlines()) == [b"0: task 0", b"1: task 1"]
    assert (tmp_path / "stays").read_text() == "stays\n" and kept.of("/gone/out") == b"of the script\n"


def test_files_of_other_ranks_come_from_them(daemon: ScriptedDaemon, tmp_path: Path) -> None:
    kept, members = Keeper(), Keeper()
    script = "#!/bin/sh\n" + srun("-N2 -n2 --output=/gone/on-%N sh -c 'seq 20000'")
    with pods(Pod(daemon, tmp_path, rank=0), Pod(daemon, tmp_path, rank=1)):
        lines = {(line := daemon.line()).opening.rank: line for _ in range(2)}
        for rank, line in lines.items():
            line.send(wire.LAUNCH, launch(tmp_path, rank, 2, script=script, out=f"{tmp_path}/out", **mounts(tmp_path)))
        while not members.ends:
            kind, payload = lines[1].read()
            assert kind == wire.OUTPUT
            members.take(lines[1], payload)
        kept.until_ended(lines[0])
    whole = b"".join(b"%d\n" % number for number in range(1, 20001))
    assert members.of("/gone/on-n1") == whole and kept.of("/gone/on-n0") == whole


def test_a_file_that_is_open_is_one_file_and_too_many_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Loop()
    output = Output(loop, {"mounts": [], "most_output": MOST}, str(tmp_path))
    monkeypatch.setattr("slurmbridge.supervisor.pod_output.MOST_FILES", 2)
    first, again = output.place("/gone"), output.place("/gone")
    assert isinstance(first, int) and isinstance(again, int)
    os.write(first, b"a")
    os.write(again, b"b")
    assert output.place("/dev/null") == "/dev/null"
    assert isinstance(output.place("/other"), int)
    with pytest.raises(OSError) as refused:
        output.place("/third")
    assert refused.value.errno == errno.EMFILE
    sent: list[bytes] = []

    class Daemon(Link):
        def __init__(self) -> None: ...
        def send(self, kind: bytes, payload: bytes = b"") -> None:
            sent.append(wire.decode_output(payload).data)

    output.connected(Daemon())
    output.finish(loop.stop)
    assert sent == [b"ab"]
