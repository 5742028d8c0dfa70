"""The processes of a job on one node: how they are kept together, listed, signalled and ended for good.

As root every job-node has a PID namespace whose first process ends when its supervisor does: its end is one kill for
all. It also has IPC, UTS and mount namespaces and shared memory of its own: message passing does not take another
virtual node for its own, nor meets what another run left; the host name is the node's, `/etc/hosts` names every node,
`/proc` shows the job's processes alone. Mounts are private to these namespaces. Otherwise the supervisor is a subreaper and what descends from it is the job; a process that outlives a
killed supervisor is then found by its environment (`spool.process.leftovers`), unless it has cleared that: a gap that
only root's way closes.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
from collections.abc import Callable

from slurmbridge.spool.process import stat_fields
from slurmbridge.supervisor import kernel


class Process:
    """One line of the process table. Times in clock ticks, memory in KiB."""

    __slots__ = ("parent", "pid", "rss_kib", "session", "state", "ticks_system", "ticks_user", "vsize_kib")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid, self.state = pid, fields[0]
        self.parent, self.session = int(fields[1]), int(fields[3])
        self.ticks_user, self.ticks_system = int(fields[11]), int(fields[12])
        self.vsize_kib, self.rss_kib = int(fields[20]) // 1024, int(fields[21]) * _PAGE_KIB


_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


class Space:
    """Make it once, before anything else, and `settle` before the first child. `notes` says what could not be had.

    The namespaces' first process is forked at once: a page that the supervisor has written to before a fork is copied
    once more when it writes to it after.
    """

    def __init__(self, *, namespaces: bool) -> None:
        self.notes: list[str] = []
        self.proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.init_pid = 0  # 0 again once it was reaped
        self.was_namespace = False
        self._inner = False  # whether /proc lists the job's processes alone
        self._ready = -1
        if namespaces:
            self._enter()
        else:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)

    @property
    def descriptors(self) -> list[int]:
        """What must stay open until it is settled."""
        return [fd for fd in (self.proc, self._ready) if fd >= 0]

    @property
    def is_namespace(self) -> bool:
        return self.init_pid != 0

    def _enter(self) -> None:
        try:
            kernel.unshare(kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWPID)
        except OSError as error:
            self.notes.append(f"no namespaces: {error}")
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
            return
        try:
            kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
        except OSError as error:
            self.notes.append(f"private mounts: {error}")
        self._ready, ready_in = os.pipe2(os.O_CLOEXEC)
        self.init_pid = os.fork()
        if self.init_pid == 0:
            _be_init(self._ready, ready_in)
        self.was_namespace = True
        os.close(ready_in)

    def settle(self, node: str, hosts: str) -> None:
        """The node's name and the hosts file, in namespaces; returns when their first process is ready."""
        if not self.was_namespace:
            return
        if hosts:
            try:
                kernel.mount(hosts, "/etc/hosts", None, kernel.MS_BIND)
            except OSError as error:
                self.notes.append(f"hosts file: {error}")
        try:  # shared memory, as IPC: of this node and this run alone, gone with it
            kernel.mount("shm", "/dev/shm", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
        except OSError as error:
            self.notes.append(f"shared memory: {error}")
        _sethostname(node, self.notes)
        self._inner = os.read(self._ready, 1) == b"1"
        os.close(self._ready)
        if not self._inner:
            self.notes.append("no /proc of its own")

    def processes(self) -> list[Process]:
        """All living processes of the job on this node (zombies left out). Pids are of the supervisor's table only
        without a namespace; with one they are the namespace's."""
        if self._inner:
            names = [name for name in os.listdir("/proc") if name[0] in "123456789"]
            found = []
            for name in names:
                fields = stat_fields(name)
                if fields is not None and fields[0] != b"Z" and name != "1":
                    found.append(Process(int(name), fields))
            return found
        return descendants(os.getpid(), self.proc, skip=self.init_pid)

    def high_water_kib(self, pid: int) -> int:
        """VmHWM of a process as `processes` names it."""
        try:
            return _status_number(f"/proc/{pid}/status", b"\nVmHWM:")
        except OSError:
            return 0

    def inner_pid(self, pid: int) -> int:
        """How the job's own table names a child of the supervisor."""
        if not self._inner:
            return pid
        try:
            return _status_number(f"{pid}/status", b"\nNSpid:", self.proc)
        except OSError:
            return 0

    def signal_all(self, number: int, children: list[int]) -> None:
        """To every process; `children`: those of the supervisor (never missed, even when the table is not readable)."""
        for pid in children:
            _kill(pid, number)
        if self.is_namespace:
            self._as_inside(lambda: _kill(-1, number))
            return
        for process in self.processes():
            if process.pid not in children:
                _kill(process.pid, number)

    def signal_tree(self, number: int, roots: list[int]) -> None:
        """To the processes below `roots` (children of the supervisor) or of their sessions."""
        if not self._inner:
            table = self.processes()
            for process in members(table, set(roots)):
                _kill(process.pid, number)
            return
        inner = {self.inner_pid(pid) for pid in roots} - {0}
        pids = [process.pid for process in members(self.processes(), inner)]
        if pids:
            self._as_inside(lambda: _kill_all(pids, number))

    def end_sessions(self, sessions: set[int]) -> None:
        """SIGKILL to the living processes of these sessions."""
        pids = [process.pid for process in self.processes() if process.session in sessions]
        if not pids:
            return
        if self._inner:
            self._as_inside(lambda: _kill_all(pids, signal.SIGKILL))
        else:
            for pid in pids:
                _kill(pid, signal.SIGKILL)

    def _as_inside(self, call: Callable[[], object]) -> None:
        """By a process in the namespace, whose pids are meant; its kill(-1) spares the first process and itself."""
        pid = os.fork()
        if pid == 0:
            try:
                call()
            finally:
                os._exit(0)
        try:
            os.waitpid(pid, 0)
        except ChildProcessError:
            return

    def end(self, children: list[int]) -> None:
        """SIGKILL to everything; with a namespace nothing survives, else call again until `processes` is empty."""
        if self.is_namespace:
            _kill(self.init_pid, signal.SIGKILL)
        for pid in children:
            _kill(pid, signal.SIGKILL)
        if not self.is_namespace:
            for process in self.processes():
                _kill(process.pid, signal.SIGKILL)


def members(table: list[Process], roots: set[int]) -> list[Process]:
    """Processes that descend from the roots or share a session with one that does."""
    inside = set(roots)
    sessions = set(roots)
    for process in table:
        if process.pid in inside:
            sessions.add(process.session)
    grew = True
    while grew:
        grew = False
        for process in table:
            if process.pid not in inside and (process.parent in inside or process.session in sessions):
                inside.add(process.pid)
                grew = True
    return [process for process in table if process.pid in inside]


def descendants(root: int, proc: int, *, skip: int = 0) -> list[Process]:
    """All living processes below `root`, from a scan of the whole table."""
    table: dict[int, Process] = {}
    for name in os.listdir(proc):
        if name[0] in "123456789":
            fields = stat_fields(name, proc)
            if fields is not None:
                table[int(name)] = Process(int(name), fields)
    below: dict[int, list[Process]] = {}
    for process in table.values():
        below.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    queue = [root]
    while queue:
        for process in below.get(queue.pop(), ()):
            if process.pid != skip and process.state != b"Z":
                found.append(process)
            queue.append(process.pid)
    return found


def _status_number(path: str, name: bytes, folder: int | None = None) -> int:
    """The last number of a line of /proc/PID/status without its unit, 0 when it has no such line."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        data = os.read(fd, 8192)
    finally:
        os.close(fd)
    at = data.find(name)
    if at < 0:
        return 0
    return int(data[at + len(name) : data.index(b"\n", at + 1)].removesuffix(b" kB").split()[-1])


def _kill_all(pids: list[int], number: int) -> None:
    for pid in pids:
        _kill(pid, number)


def _kill(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return
    except OSError as error:
        if error.errno != errno.EINVAL:  # --signal takes numbers that are no signals
            raise


def _sethostname(node: str, notes: list[str]) -> None:
    try:
        socket.sethostname(node)
    except OSError as error:
        notes.append(f"host name: {error}")


def _be_init(other_end: int, ready: int) -> None:
    """First process of a PID namespace: reaps orphans, dies with its supervisor. Never returns."""
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        kernel.set_name("sb-init")
        mounted = b"1"
        try:
            kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
        except OSError:
            mounted = b"0"
        os.close(other_end)
        os.write(ready, mounted)  # fails when the supervisor is gone already: then this ends, too
        # nothing of the supervisor's is held open here: its links must end when it does
        os.closerange(0, 4096)
        while True:
            signal.sigwait({signal.SIGCHLD})
            try:
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            except ChildProcessError:
                continue
    finally:
        os._exit(1)
