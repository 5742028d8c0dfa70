"""A step's tasks on one node: their processes, pipes, files and end.

Commands come from rank 0 (frames n, i, e, s of `wire.step`), answers go back through `emit(step, kind, payload)`.
A part is: step, tasks [{"id", "argv", "env" (its own variables), "mpi": fd}], cwd, umask, out, err, in (node-side
patterns or ""), append, rlimits, pty ([rows, columns] or []), job. Pipes are read no faster than the link to srun takes what was read.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from typing import Any

from slurmbridge.lang import filenames
from slurmbridge.supervisor import hooks, spawn, terminal
from slurmbridge.supervisor.loop import IN, OUT
from slurmbridge.supervisor.node import NodeRun
from slurmbridge.supervisor.pmi_server import PmiServer
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import unpack
from slurmbridge.wire.pmi import Space
from slurmbridge.wire.supervisor import OF_STEP, decode, encode, split_env

CHUNK = 1 << 16
STDIN_LIMIT = 1 << 22
"""Bytes of standard input that wait for a step's tasks here before srun is asked to stop sending; it goes on at half."""
STDIN_MOST = 1 << 26
"""What a caller who does not stop may send; the rest is lost to him."""


class Task:
    """One process with its pipes."""

    def __init__(self, number: int) -> None:
        self.number, self.pid = number, 0
        self.stdin: int | None = None
        self.stdin_data = bytearray()
        self.stdin_ended = False
        self.on_fed: Callable[[], None] = lambda: None
        self.outputs: dict[int, bytes] = {}  # open descriptor -> kind
        self.status: int | None = None
        self.stderr: int | None = None
        self.inner = 0  # as the job's own process table names it
        self.master: int | None = None  # of its terminal


class Part:
    """A step's tasks here."""

    def __init__(self, step: int, spec: dict[str, Any], env: dict[str, str]) -> None:
        self.step, self.spec, self.env = step, spec, env
        self.tasks: dict[int, Task] = {}
        self.pmi: PmiServer | None = None
        self.is_full = False

    def waiting(self) -> int:
        """Bytes of standard input that no task has taken yet."""
        return sum(len(task.stdin_data) for task in self.tasks.values())


class Tasks:
    """All steps' parts on this node."""

    def __init__(
        self,
        node: NodeRun,
        header: dict[str, Any],
        base_env: dict[str, str],
        emit: Callable[[int, bytes, bytes], None],
    ) -> None:
        self._node, self._header, self._base_env, self._emit = node, header, base_env, emit
        self._parts: dict[int, Part] = {}
        self.is_blocked: Callable[[], bool] = lambda: False
        self._paused: list[tuple[Part, Task, int]] = []

    def command(self, step: int, kind: bytes, payload: bytes) -> None:
        """One frame from rank 0."""
        if kind == wire.PART:
            spec, env = unpack(payload)
            self._start(Part(step, decode(spec), split_env(env)))
            return
        part = self._parts.get(step)
        if part is None:
            return
        if kind == wire.STDIN:
            number, content = wire.parse_data(payload)
            for task in self._chosen(part, number):
                if task.stdin is not None and part.waiting() < STDIN_MOST:
                    task.stdin_data += content
                    self._feed(task)
            self._tell_room(part)
        elif kind == wire.STDIN_END:
            for task in self._chosen(part, int(payload)):
                task.stdin_ended = True
                self._feed(task)
        elif kind == wire.SIZE:
            for task in part.tasks.values():
                if task.master in task.outputs:
                    terminal.resize(task.master, decode(payload)["size"])
        elif kind == wire.SIGNAL:
            self._node.signal_group(step, int(decode(payload)["signal"]))
        elif kind == wire.BARRIER and part.pmi is not None:
            part.pmi.release(decode(payload)["values"])
        elif kind == wire.MESSAGE:
            self._say(part, payload)

    def resume(self) -> None:
        """The link to srun has room again."""
        paused, self._paused = self._paused, []
        for part, task, fd in paused:
            if fd in task.outputs:
                self._watch_output(part, task, fd)

    def _tell_room(self, part: Part) -> None:
        waiting = part.waiting()
        if waiting > STDIN_LIMIT and not part.is_full:
            part.is_full = True
            self._emit(part.step, wire.ROOM, b"0")
        elif part.is_full and waiting <= STDIN_LIMIT // 2:
            part.is_full = False
            self._emit(part.step, wire.ROOM, b"1")

    def _chosen(self, part: Part, number: int) -> list[Task]:
        return [task for each, task in part.tasks.items() if number in (each, wire.ALL_TASKS)]

    def _say(self, part: Part, line: bytes) -> None:
        """A line of slurmstepd's in the step's stderr: through srun, or into the first task's own file."""
        for task in part.tasks.values():
            if task.stderr is not None:
                self._node.write(task.stderr, line)
                return
        first = min(part.tasks, default=0)
        self._emit(part.step, wire.STDERR, wire.data(first, line))

    def _start(self, part: Part) -> None:
        self._parts[part.step] = part
        for spec in part.spec["tasks"]:
            task = Task(int(spec["id"]))
            task.on_fed = lambda: self._tell_room(part)
            part.tasks[task.number] = task
        if part.spec.get("mpi") == "pmi2":
            part.pmi = self._pmi(part)
        for spec in part.spec["tasks"]:
            task = part.tasks[int(spec["id"])]
            try:
                self._spawn(part, task, spec)
            except OSError as error:
                self._emit(part.step, wire.STDERR, wire.data(task.number, spawn.log_line(f"fork: {error.strerror}")))
                self._ended(part, task, 1 << 8)

    def _pmi(self, part: Part) -> PmiServer:
        name = f"{self._header['job']}.{part.step}"
        space = Space(name, int(part.spec["size"]), sorted(part.tasks), str(part.spec["mapping"]))
        return PmiServer(
            self._node.loop,
            space,
            lambda puts: self._emit(part.step, wire.BARRIER, encode({"values": puts})),
            lambda code: self._emit(part.step, wire.ABORT, encode({"code": code})),
        )

    def _spawn(self, part: Part, task: Task, spec: dict[str, Any]) -> None:
        names = self._names(part, task)
        ours: list[int] = []
        theirs: list[int | str] = []
        if part.spec.get("pty") and task.number == 0:
            who = self._node.identity
            ours, slaves = terminal.open_ends(who.uid, change=who.change, size=part.spec["pty"])
            task.master, theirs, names = ours[1], list(slaves), []
        for index, name in enumerate(names):
            if name:
                theirs.append(self._node.place(name, OF_STEP) if index else name)
                ours.append(-1)
                continue
            read_end, write_end = os.pipe2(os.O_CLOEXEC)
            theirs.append(read_end if index == 0 else write_end)
            ours.append(write_end if index == 0 else read_end)
        pmi = part.pmi.connect(task.number) if part.pmi is not None else None
        status, status_in = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            task.pid = self._node.spawn(
                part.step,
                task.number,
                lambda: self._child(part, spec, theirs, status_in, pmi),
                lambda code: self._exited(part, task, spec, code),
            )
        finally:
            status_in.close()
            if pmi is not None:
                pmi.close()
            for end in theirs:
                if isinstance(end, int):
                    os.close(end)
        task.inner = self._node.space.inner_pid(task.pid)
        self._watch_status(status, task)
        if ours[0] >= 0:
            os.set_blocking(ours[0], False)
            task.stdin = ours[0]
            self._feed(task)
        for fd, kind in ((ours[1], wire.STDOUT), (ours[2], wire.STDERR)):
            if fd >= 0:
                os.set_blocking(fd, False)
                task.outputs[fd] = kind
                self._watch_output(part, task, fd)

    def _names(self, part: Part, task: Task) -> list[str]:
        values = dict(self._header["pattern_values"])
        step, job = str(part.step), str(self._header["job"])
        values.update({
            "N": self._node.node, "n": str(part.spec["node_index"]), "t": str(task.number), "s": step,
            "J": f"{job}.{step}",
        })  # fmt: skip
        if part.spec.get("pty"):
            return [os.devnull] * 3  # of the others: task 0 alone has the terminal
        found = []
        for name in ("in", "out", "err"):
            pattern = str(part.spec.get(name) or "")
            if pattern and not pattern.startswith("/"):
                pattern = os.path.join(str(part.spec["cwd"]), pattern)
            found.append(filenames.expand(pattern, values) if pattern else "")
        return found

    def _watch_status(self, status: socket.socket, task: Task) -> None:
        """Takes the task's own stderr, when it writes to a file of its own."""
        status.setblocking(False)

        def told(events: int) -> None:
            try:
                _, descriptors, _, _ = socket.recv_fds(status, 16, 1)
            except BlockingIOError:
                return
            self._node.loop.forget(status.fileno())
            status.close()
            for fd in descriptors:
                os.set_inheritable(fd, False)
                task.stderr = fd

        self._node.loop.watch(status.fileno(), IN, told)

    def _watch_output(self, part: Part, task: Task, fd: int) -> None:
        def ready(events: int) -> None:
            if self.is_blocked():
                self._node.loop.forget(fd)
                self._paused.append((part, task, fd))
                return
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if data:
                self._emit(part.step, task.outputs[fd], wire.data(task.number, data))
                return
            self._close_output(task, fd)

        self._node.loop.watch(fd, IN, ready)

    def _close_output(self, task: Task, fd: int) -> None:
        if task.outputs.pop(fd, None) is not None:
            self._node.loop.forget(fd)
            os.close(fd)

    def _feed(self, task: Task) -> None:
        fd = task.stdin
        if fd is None:
            return
        try:
            while task.stdin_data:
                written = os.write(fd, memoryview(task.stdin_data)[:CHUNK])
                del task.stdin_data[:written]
        except BlockingIOError:
            self._node.loop.watch(fd, OUT, lambda events: self._feed(task))
            task.on_fed()
            return
        except OSError:
            task.stdin_ended = True
            task.stdin_data.clear()
        task.on_fed()
        self._node.loop.forget(fd)
        if task.stdin_ended:
            if task.master is not None:
                spawn.write_all(fd, terminal.END_OF_INPUT)
            os.close(fd)
            task.stdin = None

    def _exited(self, part: Part, task: Task, spec: dict[str, Any], status: int) -> None:
        """The task's own process is gone; programs that follow it come first."""
        epilogs = part.spec.get("epilogs")
        if not epilogs:
            self._ended(part, task, status)
            return

        def say(text: str) -> None:
            if task.stderr is not None:
                self._node.write(task.stderr, spawn.log_line(text))
            else:
                self._emit(part.step, wire.STDERR, wire.data(task.number, spawn.log_line(text)))

        for fd in list(task.outputs):
            self._drain(part, task, fd)
        env = {**part.env, **spec["env"]}
        cwd = str(part.spec["cwd"])
        hooks.after(self._node, part.step, task.number, epilogs, env, cwd, say, lambda: self._ended(part, task, status))

    def _ended(self, part: Part, task: Task, status: int) -> None:
        task.status = status
        if part.pmi is not None:
            part.pmi.gone(task.number)
        # what the task left in its pipes is read before its end is told; what its children write later is not awaited
        for fd in list(task.outputs):
            self._drain(part, task, fd)
        for end in (task.stdin, task.stderr):
            if end is not None:
                self._node.loop.forget(end)
                os.close(end)
        task.stdin = task.stderr = None
        task.stdin_data.clear()
        self._tell_room(part)
        value = {"task": task.number, "node": self._node.node, "status": status}
        self._emit(part.step, wire.DONE, encode(value))
        if all(each.status is not None for each in part.tasks.values()):
            self._finish(part)

    def _drain(self, part: Part, task: Task, fd: int) -> None:
        while True:
            try:
                data = os.read(fd, CHUNK)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self._close_output(task, fd)
                return
            self._emit(part.step, task.outputs[fd], wire.data(task.number, data))

    def _finish(self, part: Part) -> None:
        """All tasks have ended: what they left running in their sessions ends with them."""
        del self._parts[part.step]
        self._node.end_sessions({task.inner for task in part.tasks.values()} - {0})
        for task in part.tasks.values():
            for fd in list(task.outputs):
                self._drain(part, task, fd)
                self._close_output(task, fd)
        self._emit(part.step, wire.PART_ENDED, encode({"usage": self._node.usage(part.step)}))

    def _child(
        self,
        part: Part,
        spec: dict[str, Any],
        ends: list[int | str],
        status: socket.socket,
        pmi: socket.socket | None,
    ) -> None:
        node, step = self._node, part.spec
        lines: list[bytes] = []
        node.identity.become()
        spawn.set_limits(step["rlimits"], lines)
        os.umask(int(step["umask"]))
        cwd = spawn.enter_directory(str(step["cwd"]), lines, first=spec is step["tasks"][0])
        append = bool(step.get("append"))
        stdin, stdout, stderr = ends
        failed = ""
        try:
            fd_in = os.open(stdin, os.O_RDONLY | os.O_CLOEXEC) if isinstance(stdin, str) else stdin
            fd_out = spawn.open_output(stdout, append=append) if isinstance(stdout, str) else stdout
            if isinstance(stderr, str):
                same = isinstance(stdout, str) and stderr == stdout
                fd_err = fd_out if same else spawn.open_output(stderr, append=append)
            else:
                fd_err = stderr
        except OSError as error:
            failed = f"Could not open file {error.filename}: {os.strerror(error.errno or 5)}"
            null = os.open(os.devnull, os.O_RDWR)
            fd_in = fd_out = null
            fd_err = stderr if isinstance(stderr, int) else null
        spawn.take_fds(fd_in, fd_out, fd_err)
        if step.get("pty") and int(spec["id"]) == 0:
            terminal.take(0)
        if failed:
            spawn.write_all(2, spawn.log_line(failed))
            os._exit(1)
        if isinstance(stderr, str):
            socket.send_fds(status, [b"R"], [2])
        spawn.write_all(2, b"".join(lines))
        env = dict(part.env)
        env.update(spec["env"])
        env["PWD"] = cwd
        env["SLURM_TASK_PID"] = str(os.getpid())
        if pmi is not None:
            os.set_inheritable(pmi.fileno(), True)
            env["PMI_FD"] = str(pmi.fileno())
        argv = [str(word) for word in spec["argv"]]
        failed_status = hooks.before(step["prologs"], env) if step.get("prologs") else 0
        if failed_status:
            os._exit(failed_status)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        os._exit(spawn.execute(spawn.find_program(argv[0], env, cwd), argv, env) & 0xFF)
