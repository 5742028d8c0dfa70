"""What a Slurm command does on the user's side: send what was typed, then print what the daemon says.

It decides nothing about the command: argv, environment and working directory go to the daemon, which asks for the files
it needs (`A`) or standard input (`I`). A file is sent only when its name was typed or stands in a script already sent.
Frames: `slurmbridge.wire.client`. Every millisecond counts here: built-in modules only, no `socket`, `os`, `json`, `re`.

Run as `python -I -S client.cpython-3NN.pyc COMMAND ARGUMENT...` by the commands' trampoline. Without a daemon the full
interpreter takes over (`slurmbridge.cli.local`).
"""

import _signal
import _socket
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from slurmbridge.wire import client as frames

HERE = __file__
MESSAGE_TIMEOUT = 10.0  # seconds; Slurm's default of the slurm.conf key
SYSTEM_SOCKET = b"/run/slurmbridge/socket"
LONGEST_NAME = 107  # bytes in sun_path
EBADF, EAGAIN, EISDIR, EINVAL, EFBIG, EPIPE, ECONNREFUSED = 9, 11, 21, 22, 27, 32, 111
READ_ONLY = ("squeue", "sinfo", "sacct", "sshare", "sprio", "sreport", "sstat", "sdiag", "seff", "sbatch")
READ_ONLY_VERBS = {"scontrol": ("show", "ping", "version"), "sacctmgr": ("show", "list", "version", "ping")}
LIMITS = {  # of /proc/self/limits: its title -> the name in --propagate
    b"Max cpu time": b"CPU",
    b"Max file size": b"FSIZE",
    b"Max data size": b"DATA",
    b"Max stack size": b"STACK",
    b"Max core file size": b"CORE",
    b"Max resident set": b"RSS",
    b"Max processes": b"NPROC",
    b"Max open files": b"NOFILE",
    b"Max locked memory": b"MEMLOCK",
    b"Max address space": b"AS",
}


class Cut(Exception):
    """The connection ended before the exit code came."""


def load_frames() -> None:
    """Binds `frames`: from its cached bytecode, which saves the path search, else by an ordinary import."""
    global frames
    head, _, name = HERE.rpartition("/")
    if name.endswith(".pyc"):
        root = head.rsplit("/", 3)[0]  # .../slurmbridge from .../slurmbridge/cli/thin/__pycache__
        try:
            code = read_file(f"{root}/wire/__pycache__/{name}".encode(sys.getfilesystemencoding(), "surrogateescape"))
        except OSError:
            code = b""
        if code:
            import marshal

            frames = type(sys)("slurmbridge.wire.client")
            exec(marshal.loads(code[16:]), frames.__dict__)
            return
    import_path()
    from slurmbridge.wire import client as found

    frames = found


def import_path() -> None:
    """Makes `slurmbridge` importable in an interpreter without `site`."""
    head = HERE.rpartition("/")[0]
    root = head.rsplit("/", 4 if head.endswith("__pycache__") else 3)[0]
    if root not in sys.path:
        sys.path.insert(0, root)


def read_file(path: bytes) -> bytes:
    fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC)
    try:
        parts = []
        while part := posix.read(fd, 1 << 20):
            parts.append(part)
        return b"".join(parts)
    finally:
        posix.close(fd)


# ---- what the process knows -----------------------------------------------------------------------------------------


def environment(command: bytes) -> list[bytes]:
    """NAME=VALUE as the caller exported them.

    From /proc: the interpreter's own table has LC_CTYPE added in the C locale. `_` and SHLVL=0 are the trampoline's.
    """
    try:
        found = read_file(b"/proc/self/environ").split(b"\0")
    except OSError:
        found = [name + b"=" + value for name, value in posix.environ.items()]
    entries = []
    for entry in found:
        if entry.startswith(b"_="):
            entry = b"_=" + command
        if b"=" in entry and entry != b"SHLVL=0":
            entries.append(entry)
    return entries


def value_of(entries: list[bytes], name: bytes) -> bytes:
    """The first value, as getenv gives it; empty when unset."""
    name += b"="
    for entry in entries:
        if entry.startswith(name):
            return entry[len(name) :]
    return b""


def rlimits() -> bytes:
    """NAME:SOFT:HARD,... of this process; -1 is unlimited."""
    try:
        lines = read_file(b"/proc/self/limits").split(b"\n")
    except OSError:
        return b""
    found = []
    for line in lines:
        name = LIMITS.get(line[:26].rstrip())
        if name:
            soft, hard = line[26:].split()[:2]
            found.append(b":".join((name, soft, hard)).replace(b"unlimited", b"-1"))
    return b",".join(found)


def columns(entries: list[bytes]) -> bytes:
    """Width of the terminal: COLUMNS, else what stdout says, else 80."""
    given = value_of(entries, b"COLUMNS")
    if given.isdigit() and given != b"0":
        return given
    try:
        return b"%d" % (posix.get_terminal_size(1)[0] or 80)
    except OSError:
        return b"80"


def hello(argv: list[bytes], entries: list[bytes], nonce: bytes) -> bytes:
    mask = posix.umask(0o077)
    posix.umask(mask)
    try:
        cwd = posix.getcwdb()
    except OSError:
        cwd = b""
    terminals = (b"i" if posix.isatty(0) else b"") + (b"o" if posix.isatty(1) else b"")
    host = posix.uname().nodename.encode(errors="surrogateescape")
    limits = rlimits() if argv[0] in (b"sbatch", b"srun", b"salloc") else b""
    sid = b"%d" % posix.getsid(0)
    return frames.frame(
        b"H",
        frames.pack(
            frames.VERSION, nonce, b"%o" % mask, columns(entries), sid, terminals, host, cwd, limits,
            b"%d" % len(argv), *argv, *entries,
        ),
    )  # fmt: skip


# ---- finding the daemon ---------------------------------------------------------------------------------------------


def addresses(entries: list[bytes]) -> list[bytes]:
    """Socket paths in the order in which they are tried; an address that is no path stands for itself."""
    given = value_of(entries, b"SLURMBRIDGE_ADDR")
    if given:
        return [given[5:] if given.startswith(b"unix:") else given]
    paths = [SYSTEM_SOCKET]
    if posix.geteuid():
        home = value_of(entries, b"HOME")
        state = value_of(entries, b"XDG_STATE_HOME") or (home + b"/.local/state" if home else b"")
        if state:
            paths.insert(0, state + b"/slurmbridge/socket")
    return paths


def dial(path: bytes) -> _socket.socket:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_CLOEXEC)
    folder = -1
    try:
        name = path
        if len(path) > LONGEST_NAME:
            head, _, tail = path.rpartition(b"/")
            folder = posix.open(head, posix.O_PATH | posix.O_DIRECTORY | posix.O_CLOEXEC)
            name = b"/proc/self/fd/%d/%s" % (folder, tail)
        connection.connect(name)
    except OSError:
        connection.close()
        raise
    finally:
        if folder >= 0:
            posix.close(folder)
    return connection


def connect(command: str, entries: list[bytes]) -> tuple[_socket.socket | None, bool]:
    """(connection, whether a socket was there but nobody behind it)."""
    dead = b""
    for path in addresses(entries):
        if b"://" in path:
            complain(command, "error: SLURMBRIDGE_ADDR: only unix:PATH is understood by this version")
            posix._exit(1)
        try:
            connection = dial(path)
        except OSError as fault:
            if fault.errno == ECONNREFUSED or fault.errno == EAGAIN:
                dead = dead or path
            elif path != SYSTEM_SOCKET and fault.errno == 13:
                complain(command, f"error: {path.decode(errors='replace')}: Permission denied")
            continue
        if dead:
            complain(command, f"note: no daemon behind {dead.decode(errors='replace')}, passed over")
        return connection, False
    return None, bool(dead)


def complain(command: str, text: str) -> None:
    write_all(2, f"{command}: {text}\n".encode(errors="surrogateescape"))


# ---- bytes in and out -----------------------------------------------------------------------------------------------


def wait_until(fd: int, writable: bool) -> None:
    """For descriptors that somebody else set non-blocking."""
    import select

    poll = select.poll()
    poll.register(fd, select.POLLOUT if writable else select.POLLIN)
    poll.poll()


def write_all(fd: int, data: bytes) -> None:
    """All of data; a closed or failing descriptor swallows the rest, as it does for Slurm's commands."""
    while data:
        try:
            data = data[posix.write(fd, data) :]
        except BlockingIOError:
            wait_until(fd, True)
        except OSError:
            return


def read_up_to(fd: int, limit: int, line: bool) -> tuple[int, bytes]:
    """(errno, content): EFBIG when there is more than `limit`; of a line only the line."""
    parts, size = [], 0
    while size <= limit:
        try:
            part = posix.read(fd, 1 if line else min(1 << 20, limit + 1 - size))
        except BlockingIOError:
            wait_until(fd, False)
            continue
        except OSError as fault:
            return fault.errno or EINVAL, b""
        if not part:
            break
        parts.append(part)
        size += len(part)
        if line and part == b"\n":
            break
    return (EFBIG, b"") if size > limit else (0, b"".join(parts))


class Session:
    """One command: its connection, what was printed, what was sent."""

    def __init__(self, argv: list[bytes], entries: list[bytes]) -> None:
        self.argv, self.entries = argv, entries
        self.command = argv[0].decode(errors="surrogateescape")
        self.nonce = posix.urandom(16)
        self.printed = [0, 0, 0]  # bytes by descriptor
        self.skip = [0, 0, 0]  # of a repeated answer: what was printed already
        self.answers: dict[bytes, bytes] = {}  # to A and I, for a repetition: standard input can be read once
        self.seen: list[bytes] = []  # contents that were sent
        self.connection: _socket.socket | None = None
        self.sending = False
        self.signals: list[int] = []

    def run(self, connection: _socket.socket) -> int:
        """Until the exit code; Cut when the daemon goes away before it."""
        self.connection, self.skip = connection, list(self.printed)
        decoder = frames.Decoder()
        self.send(hello(self.argv, self.entries, self.nonce))
        while True:
            try:
                data = connection.recv(1 << 18)
            except OSError as fault:
                raise Cut from fault
            if not data:
                raise Cut
            for kind, payload in decoder.feed(data):
                if kind == b"O":
                    self.print(1, payload)
                elif kind == b"E":
                    self.print(2, payload)
                elif kind == b"X":
                    return int(payload)
                elif kind == b"A" or kind == b"I":
                    self.answer(kind, payload)
                elif kind == b"T":
                    address, request = frames.unpack(payload)
                    return self.take_over(address, request)
                elif kind == b"L":
                    run_locally("final", self.argv)

    def print(self, fd: int, data: bytes) -> None:
        if self.skip[fd]:
            cut = min(self.skip[fd], len(data))
            self.skip[fd] -= cut
            data = data[cut:]
        self.printed[fd] += len(data)
        write_all(fd, data)

    def send(self, data: bytes) -> None:
        """Whole frames; a signal that comes meanwhile follows them."""
        if self.connection is None:
            return
        self.sending, left = True, memoryview(data)
        try:
            while left:
                left = left[self.connection.send(left, _socket.MSG_NOSIGNAL) :]
        except OSError as fault:
            if fault.errno != EPIPE:  # a refusal may lie in the buffer although the daemon stopped reading
                raise Cut from fault
        finally:
            self.sending = False
        while self.signals:
            self.send(frames.frame(b"S", b"%d" % self.signals.pop(0)))

    def caught(self, number: int, _frame: object) -> None:
        if self.sending:
            self.signals.append(number)
        else:
            self.send(frames.frame(b"S", b"%d" % number))

    def answer(self, kind: bytes, payload: bytes) -> None:
        key = kind + payload
        if key not in self.answers:
            parts = frames.unpack(payload)
            if kind == b"I":
                errno, data = read_up_to(0, int(parts[0]), parts[1] == b"l")
                path = b""
            else:
                errno, path, data = self.find(parts[0], int(parts[1]), parts[2] == b"p")
            self.seen.append(data)
            self.answers[key] = frames.frame(b"F", frames.pack(b"%d" % errno, path, data))
        self.send(self.answers[key])

    def find(self, name: bytes, limit: int, search_path: bool) -> tuple[int, bytes, bytes]:
        """(errno, absolute path, content) of a file that the user named."""
        if not any(word.endswith(name) for word in self.argv[1:]) and not any(name in text for text in self.seen):
            return 13, b"", b""
        try:
            cwd = posix.getcwdb()
        except OSError:
            cwd = b""
        places = [name if name.startswith(b"/") else cwd + b"/" + name]
        if search_path and not name.startswith((b"/", b"./", b"../")):
            places += [folder + b"/" + name for folder in value_of(self.entries, b"PATH").split(b":") if folder]
        errno = 2
        for path in places:
            try:
                fd = posix.open(path, posix.O_RDONLY | posix.O_CLOEXEC | posix.O_NOCTTY)
            except OSError as fault:
                errno = errno if errno != 2 else fault.errno or EINVAL
                continue
            try:
                if posix.fstat(fd).st_mode & 0o170000 == 0o040000:
                    errno = EISDIR
                    continue
                problem, data = read_up_to(fd, limit, False)
            finally:
                posix.close(fd)
            return problem, path, data
        return errno, b"", b""

    def take_over(self, address: bytes, request: bytes) -> int:
        """srun outside a job, sattach: the terminal now belongs to the step."""
        import_path()
        from slurmbridge.cli import srun_client

        return srun_client.take_over(address, request)

    def may_repeat(self) -> bool:
        """Whether the command can be sent again after a cut: the same nonce makes sbatch safe, the others only read."""
        if self.command == "sbatch":
            return True
        if any(self.printed):
            return False
        verbs = READ_ONLY_VERBS.get(self.command)
        if verbs is None:
            return self.command in READ_ONLY
        for word in self.argv[1:]:
            if not word.startswith(b"-"):
                return any(verb.startswith(word.decode(errors="replace").lower()) for verb in verbs)
        return False


# ---- the course of a command ----------------------------------------------------------------------------------------


def run_locally(mode: str, argv: list[bytes]) -> None:
    """Replace this process by the full interpreter. mode: "first" (a daemon may come back) or "final"."""
    import_path()
    code = b"import sys; sys.path.insert(0, sys.argv.pop(1)); from slurmbridge.cli.local import main; sys.exit(main())"
    root, coding = sys.path[0].encode(errors="surrogateescape"), sys.getfilesystemencoding()
    python = sys.executable.encode(coding, "surrogateescape")
    client = HERE.encode(coding, "surrogateescape")
    posix.execv(python, [python, b"-I", b"-c", code, root, mode.encode(), client, *argv])


def reconnect(command: str, entries: list[bytes]) -> _socket.socket | None:
    """A connection within MessageTimeout; None when nobody came back."""
    end, pause = time.monotonic() + MESSAGE_TIMEOUT, 0.02
    while time.monotonic() < end:
        connection = connect(command, entries)[0]
        if connection is not None:
            return connection
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)
    return None


def main(words: list[str]) -> int:
    """words: the command's name and its arguments; `--retry` before them waits for a daemon that is starting."""
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    retry = words[0] == "--retry"
    argv = [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in words[retry:]]
    command = words[retry]
    script = sys.argv[0].encode(errors="surrogateescape")
    entries = environment(script.rsplit(b"/lib/", 1)[0] + b"/bin/" + argv[0])
    if command == "srun" and (value_of(entries, b"SLURM_JOB_ID") or value_of(entries, b"SLURM_JOBID")):
        import_path()
        from slurmbridge.cli import srun_client

        return srun_client.main(words[retry:])
    load_frames()
    session = Session(argv, entries)
    connection, dead = connect(command, entries)
    if connection is None and retry:
        connection = reconnect(command, entries)
    if connection is None:
        run_locally("first" if dead and not retry else "final", argv)
    if command in ("srun", "salloc"):
        for number in (1, 2, 3, 10, 12, 14, 15):  # HUP INT QUIT USR1 USR2 ALRM TERM
            _signal.signal(number, session.caught)
    while connection is not None:
        try:
            return session.run(connection)
        except Cut:
            connection.close()
            connection = reconnect(command, entries) if session.may_repeat() else None
    complain(command, "error: the connection to the controller was cut; what it did before is not known")
    return 1


if __name__ == "__main__":
    code = main(sys.argv[1:])
    posix._exit(code & 255)
