"""Starting and ending the processes of a cluster: who is it, is it still there, and where is its log.

A process is known by its pid and its start time, so that a pid that was given to another program since is never taken
for it. Records are files below `run`: a later call, by another program, finds what an earlier one started.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .places import ClusterError


@dataclass(frozen=True)
class Process:
    pid: int
    began: str  # clock ticks since the machine started, as /proc prints them

    @classmethod
    def find(cls, pid: int) -> "Process | None":
        fields = _stat(pid)
        return None if fields is None or fields[0] in "ZX" else cls(pid, fields[19])

    def alive(self) -> bool:
        return Process.find(self.pid) == self

    def children(self) -> "list[Process]":
        found = []
        for name in os.listdir("/proc"):
            fields = _stat(int(name)) if name.isdigit() else None
            if fields is not None and fields[1] == str(self.pid) and fields[0] not in "ZX":
                found.append(Process(int(name), fields[19]))
        return found

    def send(self, number: signal.Signals) -> None:
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                pass  # it ended between the two calls


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command's name: state, parent, ..."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()


@dataclass(frozen=True)
class Keeper:
    """Processes by name, with their records and logs in one folder."""

    folder: Path

    def log(self, name: str) -> Path:
        return self.folder / "log" / f"{name}.log"

    def _record(self, name: str) -> Path:
        return self.folder / "pid" / name

    def names(self) -> list[str]:
        records = self.folder / "pid"
        return sorted(entry.name for entry in records.iterdir()) if records.is_dir() else []

    def find(self, name: str) -> Process | None:
        """The process started under a name, if it lives."""
        try:
            pid, began = self._record(name).read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        process = Process(int(pid), began)
        return process if process.alive() else None

    def start(self, name: str, command: Sequence[str | Path], environment: dict[str, str] | None = None) -> Process:
        """Start a process in a session of its own; one that lives already is left as it is."""
        running = self.find(name)
        if running is not None:
            return running
        for place in (self.log(name), self._record(name)):
            place.parent.mkdir(parents=True, exist_ok=True)
        with self.log(name).open("ab") as log:
            child = subprocess.Popen(
                list(map(str, command)), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **(environment or {})},
            )  # fmt: skip
        child.returncode = 0  # it outlives this program on purpose: no warning when the object goes
        process = Process.find(child.pid)
        if process is None:
            raise ClusterError(f"{name} ended at once:\n{self.tail(name)}")
        written = self._record(name).with_suffix(".new")
        written.write_text(f"{process.pid} {process.began}\n")
        written.replace(self._record(name))
        return process

    def inner(self, name: str) -> Process | None:
        """What a wrapper (nsenter, unshare) started under a name runs: its only child."""
        outer = self.find(name)
        children = outer.children() if outer else []
        return children[0] if children else None

    def stop(self, name: str, *, wrapped: bool = False, hard: bool = False, within: float = 15.0) -> None:
        """End a process: asked first (unless `hard`), killed after `within` seconds. `wrapped`: signals go to its child."""
        outer = self.find(name)
        if outer is not None:
            target = (self.inner(name) or outer) if wrapped else outer
            if not hard:
                target.send(signal.SIGTERM)
                wait_until(lambda: not outer.alive(), within)
            if hard or outer.alive():
                target.send(signal.SIGKILL)
                if target != outer and not wait_until(lambda: not outer.alive(), 2.0):
                    outer.send(signal.SIGKILL)
            if not wait_until(lambda: not outer.alive(), 10.0):
                raise ClusterError(f"{name} (pid {outer.pid}) does not end")
        self._record(name).unlink(missing_ok=True)

    def tail(self, name: str, lines: int = 15) -> str:
        try:
            return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-lines:])
        except FileNotFoundError:
            return ""


PATIENCE_S = 240.0
"""For what must come: it only ends what hangs, and is far beyond the pace of a machine that does much else."""


def wait_until(condition: Callable[[], object], within: float = PATIENCE_S, every: float = 0.05) -> bool:
    """True as soon as the condition holds, False when the time is over."""
    end = time.monotonic() + within
    while True:
        if condition():
            return True
        if time.monotonic() >= end:
            return False
        time.sleep(every)


Words = Sequence[str | Path]


def run(command: Words, *, text: str | None = None, within: float = 120.0) -> str:
    """Run a command and give its output; an error tells the command and what it said."""
    words = list(map(str, command))
    try:
        done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=within, check=False)
    except FileNotFoundError as error:
        raise ClusterError(f"{words[0]} is not on this machine") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(words)}: no end after {within:.0f} s") from error
    if done.returncode != 0:
        raise ClusterError(
            f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr.strip() or done.stdout.strip()}"
        )
    return done.stdout
