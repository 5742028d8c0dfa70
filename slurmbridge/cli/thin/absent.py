"""What the thin client does in the rare cases: no daemon, a daemon that restarts, a descriptor that would block.

Loaded only then, so that no command pays for it. Standard library only.
"""

import posix
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

MESSAGE_TIMEOUT = 10.0  # seconds; Slurm's default of the slurm.conf key
LONGEST_PAUSE = 160.0  # between two looks at a daemon that is long at work
PAUSE = 0.02  # seconds before the first new attempt
READ_ONLY = ("squeue", "sinfo", "sacct", "sshare", "sprio", "sreport", "sstat", "sdiag", "seff")
READ_ONLY_VERBS = {"scontrol": ("show", "ping", "version"), "sacctmgr": ("show", "list", "version", "ping")}
CODE = b"import sys; sys.path.insert(0, sys.argv.pop(1)); from slurmbridge.cli.alone import main; sys.exit(main())"
T = TypeVar("T")


def may_repeat(argv: list[bytes], printed: bool) -> bool:
    """Whether a command can be sent again after a cut: the nonce makes submissions safe, the others must only read."""
    command = argv[0].decode(errors="replace")
    if command in ("sbatch", "srun", "salloc"):
        return True
    if printed:
        return False
    verbs = READ_ONLY_VERBS.get(command)
    if verbs is None:
        return command in READ_ONLY
    for word in argv[1:]:
        if not word.startswith(b"-"):
            return any(verb.startswith(word.decode(errors="replace").lower()) for verb in verbs)
    return False


def wait_for(attempt: Callable[[], T | None], seconds: float) -> T | None:
    """The first thing that `attempt` gives within that time."""
    end, pause = time.monotonic() + seconds, PAUSE
    while True:
        found = attempt()
        if found is not None or time.monotonic() >= end:
            return found
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def patience(began: float, end: float) -> float:
    """Until when to try again after a cut at a connection that began then: counted from the first cut, or one after calm."""
    now = time.monotonic()
    return now + MESSAGE_TIMEOUT if not end or now - began > MESSAGE_TIMEOUT / 2 else end


def return_of(attempt: Callable[[], T | None], end: float) -> T | None:
    """A daemon that comes back before `end`."""
    left = end - time.monotonic()
    if left <= 0:
        return None
    time.sleep(PAUSE)
    return wait_for(attempt, left)


def look_after(session: Any, connect: Callable[..., Any], hello: Callable[..., bytes], client: str) -> None:
    """Nothing came for a while. A daemon that answers somebody else is at work on it (`--wait`): wait on, with longer and
    longer pauses. One that answers nobody hangs, and the command ends in Slurm's words for it."""
    other, _ = connect(session.command, session.entries)
    if other is not None:  # none: the next read finds the end
        other.settimeout(MESSAGE_TIMEOUT)
        try:
            other.sendall(hello([b"sbatch", b"-V"], [], bytes(16)))
            other.recv(1)
        except TimeoutError:
            run_locally("silent", client, session.argv)
        except OSError:
            pass  # it goes down: the next read finds the end
        other.close()
    session.connection.settimeout(min(2 * session.connection.gettimeout(), LONGEST_PAUSE))


def run_locally(mode: str, client: str, argv: list[bytes]) -> NoReturn:
    """Replace this process by the full interpreter. mode: "first" (a daemon may come back), "final" or "silent"."""
    coding = sys.getfilesystemencoding()
    root, python, own = (text.encode(coding, "surrogateescape") for text in (sys.path[0], sys.executable, client))
    posix.execv(python, [python, b"-I", b"-c", CODE, root, mode.encode(), own, *argv])


def wait_until_writable(fd: int) -> None:
    """For a descriptor that somebody else set non-blocking."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    poll.poll()
