"""`slurmbridge logs`: the output of a job, from its file or from what the controller keeps of it.

The controller says which of both it is (`commands.logs`). A file is read here, with the rights of who asks; it may be of a
file system that this machine does not have, which is then said.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, BinaryIO

from slurmbridge.cli.connection import Connection
from slurmbridge.errors import ProtocolError

LOOK_S = 0.5
"""Between two looks at a file that grows."""
ASK_S = 2.0
"""Between two questions whether its job still runs."""
PATIENCE_S = 60.0
"""Who follows a job waits so long for a daemon that has gone."""
ANSWER_S = 30.0
CHUNK = 1 << 18


def main(socket: str, words: Sequence[str], *, follows: bool) -> int:
    """`words`: job and options as `commands.logs` has them, but for `--follow`."""
    found = _where(socket, words)
    if isinstance(found, int):
        return found
    if any(each["kept"] or not each["path"] for each in found):
        return _pass_on(socket, ["slurmbridge", "logs", *words, *(["--follow"] if follows else [])], follows=follows)
    if len(found) > 1 and follows:
        return _complain(f"{words[-1]} is several jobs: name one of them to follow it")
    for place, each in enumerate(found):
        if len(found) > 1:
            _write(f"{chr(10) if place else ''}==> {each['job']} <==\n".encode())
        code = _follow(socket, each, words) if follows else _show(each)
        if code and len(found) == 1:
            return code
    return 0


def _where(socket: str, words: Sequence[str], *, within: float = 0.0) -> list[dict[str, Any]] | int:
    """Or an exit code, when that was said."""
    end = time.monotonic() + within
    while True:
        try:
            with Connection(socket, timeout=ANSWER_S) as connection:
                answer = connection.run(["slurmbridge", "where", *words])
            break
        except (OSError, ProtocolError):
            if time.monotonic() >= end:
                return _complain(f"no daemon answers at {socket}")
            time.sleep(LOOK_S)
    if answer.code:
        sys.stderr.buffer.write(answer.err)
        return answer.code
    return [json.loads(line) for line in answer.out.splitlines()]


def _pass_on(socket: str, argv: Sequence[str], *, follows: bool) -> int:
    """What the daemon prints, as it comes. One that comes back tells all from the beginning: what was shown is left out."""
    shown = 0
    end = 0.0

    def ask() -> int:
        told = 0

        def said(kind: bytes, text: bytes) -> None:
            nonlocal shown, told, end
            if kind != b"O":
                sys.stderr.buffer.write(text)
                sys.stderr.buffer.flush()
                return
            fresh = text[max(shown - told, 0) :]
            told += len(text)
            if fresh:
                _write(fresh)
                shown, end = told, 0.0

        with Connection(socket, timeout=None if follows else ANSWER_S) as connection:
            return connection.run(argv, said=said).code

    while True:
        try:
            return ask()
        except (OSError, ProtocolError):
            end = end or time.monotonic() + (PATIENCE_S if follows else 0.0)
            if time.monotonic() >= end:
                return _complain(f"no daemon answers at {socket}")
            time.sleep(LOOK_S)


def _show(place: dict[str, Any]) -> int:
    if not place["begun"]:
        return _complain(f"{place['job']} has not begun; its output will be in {place['path']}")
    try:
        with open(place["path"], "rb") as file:
            _pass(file)
    except OSError as error:
        return _complain(_missing(place, error))
    return 0


def _missing(place: dict[str, Any], error: OSError) -> str:
    return (
        f"{place['job']}: {place['path']}: {error.strerror}; it may be of a file system that this machine does not have"
    )


def _follow(socket: str, place: dict[str, Any], words: Sequence[str]) -> int:
    """Until the job is over. A file that is cut, as by a run that begins again, is shown from its beginning."""
    file: BinaryIO | None = None
    asked = time.monotonic()
    try:
        while True:
            is_last = bool(place["over"])
            try:
                file = file or _opened(place)
            except OSError as error:
                return _complain(_missing(place, error))
            if file is not None:
                if os.fstat(file.fileno()).st_size < file.tell():
                    file.seek(0)
                _pass(file)
            if is_last:
                break
            time.sleep(LOOK_S)
            if time.monotonic() - asked >= ASK_S:
                found = _where(socket, words, within=PATIENCE_S)
                if isinstance(found, int):
                    return found
                place, asked = found[0], time.monotonic()
        return _show(place) if file is None else 0
    finally:
        if file is not None:
            file.close()


def _opened(place: dict[str, Any]) -> BinaryIO | None:
    """None: it is not there yet. OSError: it is, or never will be, and cannot be read."""
    if not place["begun"]:
        return None
    try:
        return open(place["path"], "rb")
    except FileNotFoundError:
        return None


def _pass(file: BinaryIO) -> None:
    while data := file.read(CHUNK):
        _write(data)


def _write(data: bytes) -> None:
    try:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:  # who read has enough: neither file nor daemon is to blame, it ends as other commands do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGPIPE)


def _complain(text: str) -> int:
    print(f"slurmbridge: error: {text}", file=sys.stderr)
    return 1
