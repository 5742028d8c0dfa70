"""A PostgreSQL of the tests' own: a private server in a temporary folder, reached over a socket there."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

USERS = ("postgres", "nobody")
"""Who runs it where the tests are root's: PostgreSQL refuses root."""
START_S = 60.0
ROLE = "slurmbridge"


def programs() -> Path | None:
    """The folder of initdb and postgres: Debian's are not on PATH."""
    on_path = shutil.which("initdb")
    if on_path is not None and os.access(Path(on_path).with_name("postgres"), os.X_OK):
        return Path(on_path).parent
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda name: int(name.split("/")[4]))
    return Path(found[-1]).parent if found else None


class Server:
    """Runs from `start` on. Each test gets a schema of its own, which is as good as a database and much cheaper."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder, self._bin = folder, bin_folder
        self._as = self._owner()
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None

    @staticmethod
    def _owner() -> dict[str, object]:
        if os.geteuid() != 0:
            return {}
        for name in USERS:
            with contextlib.suppress(KeyError):
                entry = pwd.getpwnam(name)
                return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
        raise LookupError(f"no user of {USERS} to run PostgreSQL as")

    def make(self, *words: str) -> None:
        if self._as:
            os.chown(self.folder, self._as["user"], self._as["group"])  # type: ignore[arg-type]
        self.folder.chmod(0o755)  # other users dial in, too
        self._run("initdb", "--pgdata=data", f"--username={ROLE}", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", *words)  # fmt: skip

    def start(self, **settings: str) -> None:
        """Returns when it takes connections. Commits are durable, as they are by default."""
        given = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "60",
            **settings,
        }
        words = [word for name, value in given.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", "data", *words], cwd=self.folder, stdout=log, stderr=log,
                start_new_session=True, **self._as,
            )  # type: ignore[call-overload]  # fmt: skip
        until = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                assert self._process.poll() is None and time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.02)

    def kill(self) -> None:
        """SIGKILL to the whole server, as when its machine loses power, but for what the kernel holds."""
        assert self._process is not None
        for pid in (self._process.pid, *children(self._process.pid)):  # those who would begin new ones first
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()

    @contextlib.contextmanager
    def hanging(self) -> Iterator[None]:
        """Its processes do nothing, and its connections stay."""
        assert self._process is not None
        pids = [self._process.pid, *children(self._process.pid)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """As its service does: sessions are ended. SIGQUIT: at once, for a folder that goes away anyhow."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(how)
            self._process.wait()

    def url(self, database: str) -> str:
        return f"postgresql://{ROLE}@/{database}?host={self.folder}"

    def records(self) -> str:
        """URL of a new, empty place for records."""
        name = f"test{next(self._numbers)}"
        self.ask("postgres", f"CREATE SCHEMA {name}")
        return f"{self.url('postgres')}&options=-csearch_path%3D{name}"

    def ask(self, database: str, statement: str) -> list[tuple[object, ...]]:
        """One statement by a session of its own; `database`: a name or a URL."""
        url = database if "://" in database else self.url(database)
        with psycopg.connect(url, autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description is not None else []

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [self._bin / program, *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            env={"LC_ALL": "C"},
            **self._as,
        )  # type: ignore[call-overload]
        assert done.returncode == 0, done.stderr


def children(pid: int) -> list[int]:
    """The processes that a process has: each of PostgreSQL's is the leader of its own group."""
    with contextlib.suppress(OSError):
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Server]:
    """A server that goes away with its folder. Skips where there is none to start."""
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    folder = Path(tempfile.mkdtemp(prefix="sbpg-"))  # short: paths of sockets have an end
    server = Server(folder, found)
    try:
        server.make()
        server.start(**settings)
        yield server
    finally:
        server.stop(signal.SIGQUIT)
        shutil.rmtree(folder)
