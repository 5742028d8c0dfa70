"""srun's own terminal while task 0 runs in a pseudo terminal (srun --pty): raw, its size told, and put back after.

Follows srun(1): without a terminal the option is disregarded, with a word about it. Standard library only.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import struct
import termios
import tty
from typing import Any

from slurmbridge.cli.srun_request import Usage

INCOMPATIBLE = "srun: error: --error/--input/--output are incompatible with --pty"
Size = list[int]
"""Rows and columns."""


class Terminal:
    """The terminal behind a descriptor."""

    _raw: Terminal | None = None
    """The one that is raw now: lines to it need a carriage return."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._saved: list[Any] | None = None

    def size(self) -> Size:
        """OSError: there is no terminal."""
        rows, columns, _, _ = struct.unpack("4H", fcntl.ioctl(self._fd, termios.TIOCGWINSZ, b"\0" * 8))
        return [rows, columns]

    def make_raw(self) -> None:
        """Every key goes to the task as it is typed."""
        try:
            self._saved = termios.tcgetattr(self._fd)
            tty.setraw(self._fd, termios.TCSANOW)
        except (termios.error, OSError):  # it went away meanwhile
            self._saved = None
            return
        Terminal._raw = self
        atexit.register(self.restore)

    def restore(self) -> None:
        """As it was; again changes nothing."""
        saved, self._saved = self._saved, None
        if saved is None:
            return
        Terminal._raw = None
        atexit.unregister(self.restore)
        try:
            termios.tcsetattr(self._fd, termios.TCSADRAIN, saved)
        except (termios.error, OSError):  # it went away meanwhile
            return

    @classmethod
    def line(cls, text: bytes) -> bytes:
        """Lines of ours as a raw terminal shows them."""
        return text.replace(b"\n", b"\r\n") if cls._raw is not None else text


def say(line: str) -> None:
    """A line to stderr; a closed one is nobody's loss."""
    try:
        os.write(2, Terminal.line(line.encode("utf-8", "surrogateescape") + b"\n"))
    except OSError:
        return


def asked(options: dict[str, str | None]) -> tuple[int, Size | None, tuple[str, ...]]:
    """--pty: descriptor, size of the terminal (None: disregard the option), and what to say. Usage: refused."""
    if "pty" not in options:
        return 0, None, ()
    text = options["pty"] or ""
    if text and not (text.isascii() and text.isdecimal()):
        raise Usage(f"srun: fatal: --pty={text} must be numeric file descriptor")
    if any(options.get(name) is not None for name in ("error", "input", "output")):
        raise Usage(INCOMPATIBLE)
    fd = int(text or 0)
    try:
        return fd, Terminal(fd).size(), ()
    except OSError as error:
        written = f"--pty={text}" if text else "--pty"
        return fd, None, (
            f"srun: error: ioctl(TIOCGWINSZ): {os.strerror(error.errno or 25)}",
            f"srun: error: Not using a pseudo-terminal, disregarding {written} option",
        )  # fmt: skip
    except OverflowError:
        raise Usage(f"srun: fatal: --pty={text} must be numeric file descriptor") from None
