"""What a Slurm command does on the user's side: send what was typed, then print what the daemon says.

It decides nothing about the command: argv, environment and working directory go to the daemon, which asks for files
(`A`), standard input (`I`) or to write a file (`W`): `files` says which. Frames: `slurmbridge.wire.client`.
Every millisecond counts here: built-in modules only, no `socket`, `os`, `json`, `re`.

Run as `python -I -S client.cpython-3NN.pyc COMMAND ARGUMENT...` by the trampoline; without a daemon by `cli.local`.
"""

import _signal  # type: ignore[import-not-found]
import _socket
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from slurmbridge.wire import client as frames

HERE = __file__
SYSTEM_SOCKET = b"/run/slurmbridge/socket"
LONGEST_NAME = 107  # bytes in sun_path
INTERACTIVE = ("srun", "salloc")
MESSAGE_TIMEOUT = 10.0  # seconds of silence after which the daemon is looked after; Slurm's default
EAGAIN, EACCES, EPIPE, ECONNREFUSED = 11, 13, 32, 111
LIMITS = {  # of /proc/self/limits: its title -> the name in --propagate
    b"Max cpu time": b"CPU", b"Max file size": b"FSIZE", b"Max data size": b"DATA", b"Max stack size": b"STACK",
    b"Max core file size": b"CORE", b"Max resident set": b"RSS", b"Max processes": b"NPROC", b"Max open files": b"NOFILE",
    b"Max locked memory": b"MEMLOCK", b"Max address space": b"AS",
}  # fmt: skip


class Cut(Exception):
    """The connection ended before the exit code came."""


def load(package: str, name: str) -> "ModuleType":
    """A module of ours: from its cached bytecode, which saves the path search, else by an ordinary import."""
    head, _, own = HERE.rpartition("/")
    if own.endswith(".pyc"):
        root = head.rsplit("/", 3)[0]  # .../slurmbridge from .../slurmbridge/cli/thin/__pycache__
        path = f"{root}/{package}/__pycache__/{name}{own[own.index('.') :]}"
        try:
            code = read_file(path.encode(sys.getfilesystemencoding(), "surrogateescape"))
        except OSError:
            code = b""
        if code:
            import marshal

            module = type(sys)(name)
            exec(marshal.loads(code[16:]), module.__dict__)
            return module
    import_path()
    full = f"slurmbridge.{package.replace('/', '.')}.{name}"
    __import__(full)
    return sys.modules[full]


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


def addresses(entries: list[bytes]) -> list[bytes]:
    """Socket paths in the order in which they are tried; https://HOST:PORT stands for itself."""
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
        try:
            if b"://" in path:
                import_path()
                connection = load("cli/thin", "secure").dial(command, path, entries)
            else:
                connection = dial(path)
        except OSError as fault:
            if fault.errno == ECONNREFUSED or fault.errno == EAGAIN:
                dead = dead or path
            elif path != SYSTEM_SOCKET and fault.errno == EACCES:
                complain(command, f"error: {path.decode(errors='replace')}: Permission denied")
            continue
        if dead:
            complain(command, f"note: no daemon behind {dead.decode(errors='replace')}, passed over")
        return connection, False
    return None, bool(dead)


def complain(command: str, text: str) -> None:
    write_all(2, f"{command}: {text}\n".encode(errors="surrogateescape"))


# ---- bytes in and out -----------------------------------------------------------------------------------------------


def write_all(fd: int, data: bytes) -> None:
    """All of data; a closed or failing descriptor swallows the rest, as it does for Slurm's commands."""
    while data:
        try:
            data = data[posix.write(fd, data) :]
        except BlockingIOError:
            load("cli/thin", "absent").wait_until_writable(fd)
        except OSError:
            return


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
        self.lines: list[bytes] = []  # words from a prompt
        self.asked = 0  # questions on this connection: each line is another answer
        self.connection: _socket.socket | None = None
        self.handed: _socket.socket | None = None  # the connection over which an allocation came last
        self.decoder: frames.Decoder
        self.sending = False
        self.signals: list[int] = []
        self.code = 1  # when the daemon does not come back to say it

    def run(self, connection: _socket.socket) -> int:
        """Until the exit code; Cut when the daemon goes away before it."""
        self.begin(connection)
        while True:
            for kind, payload in self.receive():
                if kind == b"O":
                    self.print(1, payload)
                elif kind == b"E":
                    self.print(2, payload)
                elif kind == b"X":
                    return int(payload) if self.handed in (None, self.connection) else self.code
                elif kind in b"AIW":
                    self.answer(kind, payload)
                elif kind == b"J":
                    import_path()
                    from slurmbridge.cli import allocated

                    if (code := allocated.answer(self, payload)) is not None:
                        return code
                elif kind == b"L":
                    import_path()
                    load("cli/thin", "absent").run_locally("final", HERE, self.argv)

    def begin(self, connection: _socket.socket) -> None:
        """Say hello. A daemon that knows an srun or salloc by its nonce does not repeat what it said."""
        self.connection, self.decoder, self.asked = connection, frames.Decoder(), 0
        self.skip = [0, 0, 0] if self.command in INTERACTIVE else list(self.printed)
        connection.settimeout(MESSAGE_TIMEOUT)
        first = hello(self.argv, self.entries, self.nonce)
        if len(first) > frames.MAX_FRAME:
            raise ValueError("arguments and environment are too long")
        self.send(first)

    def receive(self) -> list[tuple[bytes, bytes]]:
        """The frames of one read."""
        assert self.connection is not None
        try:
            data = self.connection.recv(1 << 18)
        except TimeoutError:
            load("cli/thin", "absent").look_after(self, connect, hello, HERE)
            return []
        except OSError as fault:
            raise Cut from fault
        if not data:
            raise Cut
        return self.decoder.feed(data)

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
        self.asked += 1
        key = kind + b"%d " % (self.asked if kind == b"I" else 0) + payload
        if key not in self.answers:
            files, folders = load("cli/thin", "files"), value_of(self.entries, b"PATH").split(b":")
            parts = frames.unpack(payload)
            errno, path, data = files.answer(kind, parts, self.argv[1:], self.seen, self.lines, folders)
            self.seen.append(data)
            self.answers[key] = frames.frame(b"F", frames.pack(b"%d" % errno, path, data))
        self.send(self.answers[key])


# ---- the course of a command ----------------------------------------------------------------------------------------


def in_allocation(words: list[str], entries: list[bytes]) -> bool:
    """Whether an srun is a step of a job: then it needs the job's supervisor, not the daemon."""
    job = value_of(entries, b"SLURM_JOB_ID") or value_of(entries, b"SLURM_JOBID")
    return bool(job) or any(word.startswith("--jobid") for word in words)


def hold_standard_files() -> None:
    """One that is closed would be the next thing opened here: the connection itself."""
    for fd in (0, 1, 2):
        try:
            posix.fstat(fd)
        except OSError:
            posix.set_inheritable(posix.open(b"/dev/null", posix.O_RDWR), True)


def main(words: list[str]) -> int:
    """words: the command's name and its arguments; `--retry` before them waits for a daemon that is starting."""
    global frames
    retry = words[0] == "--retry"
    hold_standard_files()
    argv = [word.encode(sys.getfilesystemencoding(), "surrogateescape") for word in words[retry:]]
    command = words[retry]
    script = sys.argv[0].encode(errors="surrogateescape")
    entries = environment(script.rsplit(b"/lib/", 1)[0] + b"/bin/" + argv[0])
    if command == "srun" and in_allocation(words[retry:], entries):
        import_path()
        from slurmbridge.cli import srun_client

        return int(srun_client.main(words[retry:]))
    _signal.signal(_signal.SIGPIPE, _signal.SIG_DFL)
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
    frames, session = load("wire", "client"), Session(argv, entries)
    connection, dead = connect(command, entries)
    if connection is None:
        absent = load("cli/thin", "absent")
        connection = absent.wait_for(lambda: connect(command, entries)[0], absent.MESSAGE_TIMEOUT) if retry else None
        if connection is None:
            import_path()
            absent.run_locally("first" if dead and not retry else "final", HERE, argv)
    if command in INTERACTIVE:
        for number in (1, 2, 3, 10, 12, 14, 15):  # HUP INT QUIT USR1 USR2 ALRM TERM
            _signal.signal(number, session.caught)
    end = 0.0
    while connection is not None:
        began = time.monotonic()
        try:
            return session.run(connection)
        except ValueError as fault:
            complain(command, f"error: {fault}")
            return 1
        except Cut:
            connection.close()
            absent = load("cli/thin", "absent")
            end = absent.patience(began, end)
            again = absent.may_repeat(argv, any(session.printed))
            connection = absent.return_of(lambda: connect(command, entries)[0], end) if again else None
    complain(command, "error: the connection to the controller was cut; what it did before is not known")
    return session.code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    posix._exit(code & 255)
