"""The pseudo terminal of a step's task 0 (srun --pty), on the node's side."""

from __future__ import annotations

import fcntl
import grp
import os
import struct
import termios

END_OF_INPUT = b"\x04"
"""What a terminal's user types at the end of input."""
MODE = 0o620


def open_pair(uid: int, *, change: bool, size: list[int]) -> tuple[int, int]:
    """(master, slave), the slave the user's own where the supervisor may give it away. OSError: none to be had."""
    master, slave = os.openpty()
    try:
        if change:
            os.fchown(slave, uid, _group())
            os.fchmod(slave, MODE)
        resize(master, size)
    except OSError:
        os.close(master)
        os.close(slave)
        raise
    return master, slave


def open_ends(uid: int, *, change: bool, size: list[int]) -> tuple[list[int], list[int]]:
    """Ours (to write to, to read from, nothing for errors) and the task's three."""
    master, slave = open_pair(uid, change=change, size=size)
    os.set_blocking(master, False)
    return [os.dup(master), master, -1], [slave, os.dup(slave), os.dup(slave)]


def _group() -> int:
    """Of terminals, so that write(1) and wall(1) reach them; -1 leaves it."""
    try:
        return grp.getgrnam("tty").gr_gid
    except KeyError:
        return -1


def resize(master: int, size: list[int]) -> None:
    """Rows and columns; the programs in the foreground hear of it."""
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("4H", size[0], size[1], 0, 0))


def take(slave: int) -> None:
    """In the task, the leader of a session: the slave becomes its controlling terminal."""
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
