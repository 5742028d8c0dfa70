"""srun inside an allocation: asks the job's first supervisor for a step and stands between it and the terminal.

The allocation is found from the job id alone: SLURMBRIDGE_ADDR (or the default state folders) names the state folder,
`spool/JOBID/step` in it the supervisor's socket. `take_over` does the same for a step that the daemon has prepared
(srun outside an allocation). Words and exit codes follow srun(1). Standard library only; nothing here needs the daemon.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import sys
import time
from typing import Any

from slurmbridge.cli import srun_request
from slurmbridge.cli.srun_output import Mode, Sink
from slurmbridge.cli.srun_request import Usage
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import Decoder, frame, pack, unpack
from slurmbridge.wire.supervisor import decode, encode, join_env

VERSION = "slurm-wlm 26.05.5"
ROOT_SOCKET = "/run/slurmbridge/socket"
ROOT_STATES = ("/run/slurmbridge", "/var/lib/slurmbridge")
"""Where a daemon that answers on root's socket keeps its jobs: beside it, or in the default state folder."""
BUSY_FIRST_S, BUSY_AGAIN_S = 10.0, 30.0
GATHER_S = 0.1
LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")
STDIN_CHUNK, STDIN_PENDING = 1 << 16, 1 << 20
FORWARDED = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGHUP)
ENDING = (signal.SIGTERM, signal.SIGQUIT)


def main(words: list[str]) -> int:
    """words: "srun" and its arguments; the exit code."""
    env = dict(os.environ)
    try:
        return _inside(words, env)
    except Usage as usage:
        if usage.stdout:
            sys.stdout.write(usage.stdout)
            sys.stdout.flush()
        for line in usage.lines:
            _say(line)
        return usage.code


def take_over(address: bytes, request: bytes) -> int:
    """A step that the daemon has prepared: `address` as "unix:PATH", `request` the payload of wire.step's q."""
    try:
        _, text, _ = unpack(request)
        value = decode(text)
        return run_step(os.fsdecode(address), request, value)
    except Usage as usage:
        for line in usage.lines:
            _say(line)
        return usage.code


def _inside(words: list[str], env: dict[str, str]) -> int:
    command = srun_request.parse(words, env)
    options = command.options
    if "version" in options:
        raise Usage(code=0, stdout=VERSION + "\n")
    if (options.get("mpi") or "").lower() == "list":
        types = "".join(f"\t{name}\n" for name in srun_request.MPI_TYPES)
        raise Usage(code=0, stdout=f"MPI plugin types are...\n{types}")
    cwd = os.environ.get("PWD", "") if _is_here(os.environ.get("PWD", "")) else os.getcwd()
    umask = os.umask(0)
    os.umask(umask)
    request = srun_request.build(command, env, cwd, umask)
    job = _job_id(options, env)
    request["job"] = job
    request["submit_line"] = " ".join(words)
    client = {
        "label": "label" in options,
        "unbuffered": "unbuffered" in options,
        "output": options.get("output"),
        "error": options.get("error"),
        "input": options.get("input"),
        "quiet": "quiet" in options,
        "kill": _flag(options, "kill-on-bad-exit"),
        "wait": srun_request.number(options, "wait", least=0),
        "multi": "multi-prog" in options,
        "disable_status": "disable-status" in options or "quit-on-interrupt" in options,
    }
    request["client"] = client
    request["rlimits"] = _limits(options.get("propagate"))
    for stream, key in (("output", "out"), ("error", "err")):
        mode = Mode(client[stream])  # type: ignore[arg-type]
        if mode.on_nodes(bool(client["label"])):
            request[key] = mode.pattern
    if "out" in request and not client["error"]:
        request["err"] = request["out"]
    stdin = Mode(client["input"])  # type: ignore[arg-type]
    if stdin.on_nodes(False):
        request["in"] = stdin.pattern
    env_sent = srun_request.environment(command, env, request)
    payload = pack(wire.VERSION, encode(request), join_env(list(env_sent.items())))
    return run_step(_address(job, env), payload, request)


def _limits(names: str | None) -> list[tuple[str, int, int]]:
    """This process's resource limits, for the tasks (--propagate: all of them, those named, or none)."""
    wanted = {name.upper().removeprefix("RLIMIT_") for name in (names or "ALL").split(",")}
    if "NONE" in wanted:
        return []
    return [
        (name, *resource.getrlimit(getattr(resource, f"RLIMIT_{name}")))
        for name in LIMITS
        if "ALL" in wanted or name in wanted
    ]


def _flag(options: dict[str, str | None], name: str) -> bool | None:
    if name not in options:
        return None
    return options[name] not in ("0", "no")


def _is_here(path: str) -> bool:
    try:
        return path.startswith("/") and os.path.samefile(path, ".")
    except OSError:
        return False


def _job_id(options: dict[str, str | None], env: dict[str, str]) -> str:
    """--jobid, a component by --het-group, or the surrounding job."""
    group = options.get("het-group") or options.get("pack-group")
    text = options.get("jobid") or env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID") or ""
    if group is not None:
        if not group.isdigit():
            raise Usage(f"srun: error: --het-group={group}: steps over several components are not available")
        text = env.get(f"SLURM_JOB_ID_HET_GROUP_{group}", "")
        if not text:
            raise Usage(f"srun: error: Attempt to run a job step with het group value of {group}, but the job allocation"
                        " does not have it")  # fmt: skip
    if not text.isdigit():
        raise Usage(f"srun: error: Invalid job id: {text}")
    return text


def states(env: dict[str, str]) -> list[str]:
    """State folders to look in, most particular first."""
    address = env.get("SLURMBRIDGE_ADDR", "")
    if address.startswith("unix:") and address[5:] != ROOT_SOCKET:
        return [os.path.dirname(address[5:])]
    root = list(ROOT_STATES)
    if address:
        return root
    home = env.get("HOME", "")
    folder = env.get("XDG_STATE_HOME") or (os.path.join(home, ".local/state") if home else "")
    return ([os.path.join(folder, "slurmbridge")] if folder else []) + root


def _address(job: str, env: dict[str, str]) -> str:
    for state in states(env):
        path = os.path.join(state, "spool", job, "step")
        if os.path.exists(path):
            return "unix:" + path
    raise Usage(
        f"srun: error: Unable to confirm allocation for job {job}: Invalid job id specified",
        f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job}",
    )


def run_step(address: str, payload: bytes, request: dict[str, Any]) -> int:
    """Run one step over the supervisor's socket: the exit code of srun."""
    path = address.removeprefix("unix:")
    try:
        sock = _dial(path)
    except PermissionError:
        raise Usage(
            f"srun: error: Unable to confirm allocation for job {request.get('job')}: Access/permission denied",
            f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {request.get('job')}",
        ) from None
    except OSError as error:
        raise Usage(f"srun: error: Unable to create step for job {request.get('job')}: {error.strerror}") from error
    with sock:
        return Session(sock, request).run(payload)


def _dial(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if len(os.fsencode(path)) < 104:
        sock.connect(path)
        return sock
    folder = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        sock.connect(f"/proc/self/fd/{folder}/{os.path.basename(path)}")
    finally:
        os.close(folder)
    return sock


def _say(line: str) -> None:
    try:
        os.write(2, line.encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        return


class Session:
    """One step from srun's side."""

    def __init__(self, sock: socket.socket, request: dict[str, Any]) -> None:
        self._sock, self._request = sock, request
        self._client: dict[str, Any] = request.get("client") or {}
        self._decoder = Decoder(wire.MAX_FRAME)
        self._out = bytearray()
        self._id = ""
        self._nodes: dict[int, tuple[str, int]] = {}
        self._statuses: dict[int, int] = {}
        self._told: set[int] = set()
        self._timers: dict[str, float] = {}
        self._stdin: int | None = None
        self._stdin_to = wire.ALL_TASKS
        self._code: int | None = None
        self._waited = self._forced = self._terminating = self._aborting = False
        self._last_interrupt = 0.0
        self._kill_wait = 30
        quiet_lines = not self._client.get("unbuffered")
        label = bool(self._client.get("label"))
        self._sinks = {
            wire.STDOUT: Sink(1, Mode(self._client.get("output")), label=label, width=1, whole_lines=quiet_lines),
            wire.STDERR: Sink(2, Mode(self._client.get("error")), label=label, width=1, whole_lines=quiet_lines),
        }

    def run(self, payload: bytes) -> int:
        """Until the step is over."""
        signals, signals_in = os.pipe()
        for end in (signals, signals_in):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(signals_in, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGCONT, *FORWARDED, *ENDING):
            signal.signal(number, lambda number, where: None)
        self._sock.setblocking(False)
        self._send(wire.REQUEST, payload)
        self._timers["busy"] = time.monotonic() + BUSY_FIRST_S
        while self._code is None:
            self._turn(signals)
        for sink in self._sinks.values():
            sink.end_all()
        return self._code

    def _turn(self, signals: int) -> None:
        readers: list[int] = [self._sock.fileno(), signals]
        if self._stdin is not None and len(self._out) < STDIN_PENDING:
            readers.append(self._stdin)
        due = min(self._timers.values(), default=None)
        timeout = None if due is None else max(0.0, due - time.monotonic())
        ready, writable, _ = select.select(readers, [self._sock.fileno()] if self._out else [], [], timeout)
        if writable:
            self._flush()
        if signals in ready:
            for number in os.read(signals, 64):
                self._signalled(number)
        if self._stdin is not None and self._stdin in ready:
            self._read_stdin()
        if self._sock.fileno() in ready:
            self._receive()
        now = time.monotonic()
        for name in [name for name, at in self._timers.items() if at <= now]:
            del self._timers[name]
            self._due(name)

    # ---- the supervisor's side

    def _send(self, kind: bytes, payload: bytes = b"") -> None:
        self._out += frame(kind, payload)
        self._flush()

    def _flush(self) -> None:
        try:
            while self._out:
                sent = self._sock.send(memoryview(self._out)[: 1 << 18])
                del self._out[:sent]
        except BlockingIOError:
            return
        except OSError:
            self._out.clear()

    def _receive(self) -> None:
        try:
            data = self._sock.recv(1 << 18)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            if self._code is None:
                if self._statuses or self._id:
                    self._summarise()
                else:
                    job = self._request.get("job")
                    _say(f"srun: error: Unable to create step for job {job}: Access/permission denied")
                    self._code = 1
            return
        for kind, payload in self._decoder.feed(data):
            self._frame(kind, payload)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        if kind in self._sinks:
            task, content = wire.parse_data(payload)
            self._sinks[kind].write(task, content)
        elif kind == wire.CREATED:
            self._created(decode(payload))
        elif kind == wire.WAITING:
            self._waited = True
            self._reason = payload.decode()
        elif kind == wire.REFUSED:
            value = decode(payload)
            for line in value["lines"]:
                _say(str(line))
            self._code = int(value.get("exit", 1))
        elif kind == wire.DONE:
            self._done(decode(payload))
        elif kind == wire.MESSAGE:
            _say(payload.decode("utf-8", "replace"))
        elif kind == wire.ABORTED:
            self._say_aborted(int(decode(payload)["wait"]))
        elif kind == wire.FINISHED:
            self._summarise()

    _reason = ""

    def _created(self, value: dict[str, Any]) -> None:
        self._timers.pop("busy", None)
        self._id = f"{value['job']}.{value['step']}"
        self._kill_wait = int(value.get("kill_wait", 30))
        if self._client.get("kill") is None:
            self._client["kill"] = bool(value.get("kill_on_bad_exit"))
        if self._client.get("wait") is None:
            self._client["wait"] = int(value.get("wait_time") or 0)
        for note in value.get("notes", ()):
            _say(f"srun: {note}")
        if self._waited and not self._client.get("quiet"):
            _say(f"srun: Step created for StepId={self._id}")
        for index, node in enumerate(value["nodes"]):
            for task in node["tasks"]:
                self._nodes[task] = (node["name"], index)
        try:
            self._open(value)
            go: dict[str, Any] = {}
            if self._client.get("multi"):
                go["multi"] = self._programs()
        except Usage:
            self._sock.close()
            raise
        self._send(wire.GO, encode(go))

    def _open(self, value: dict[str, Any]) -> None:
        env = os.environ
        job, step = str(value["job"]), str(value["step"])
        values = {
            "j": job, "J": self._id, "s": step, "u": env.get("USER", ""), "x": env.get("SLURM_JOB_NAME", ""),
            "A": env.get("SLURM_ARRAY_JOB_ID", job), "a": env.get("SLURM_ARRAY_TASK_ID", "4294967294"), "N": "", "n": "0",
            "t": "0", "b": str(int(env.get("SLURM_ARRAY_TASK_ID", "4294967294") or 0) % 10),
        }  # fmt: skip
        width = len(str(max(self._nodes, default=0)))
        label, several = bool(self._client.get("label")), len(self._nodes) > 1
        lines = label or (several and not self._client.get("unbuffered"))
        for kind, name, fd, word in ((wire.STDOUT, "output", 1, "stdout"), (wire.STDERR, "error", 2, "stderr")):
            mode = Mode(self._client.get(name))
            if mode.kind == "task" and mode.number not in self._nodes:
                mode.kind, mode.pattern = "file", str(mode.number)
            if (
                name == "error"
                and self._client.get("error") is None
                and Mode(self._client.get("output")).kind == "file"
            ):
                self._sinks[wire.STDERR] = self._sinks[wire.STDOUT]
                continue
            sink = Sink(fd, mode, label=label, width=width, whole_lines=lines)
            try:
                sink.open(values, self._nodes, append=bool(self._request.get("append")))
            except OSError as error:
                raise Usage(f"srun: error: Could not open {word} file: {error.strerror}") from error
            self._sinks[kind] = sink
        self._open_stdin(values)

    def _open_stdin(self, values: dict[str, str]) -> None:
        mode = Mode(self._client.get("input"))
        if mode.kind == "none" or self._request.get("in"):
            self._send(wire.STDIN_END, b"%d" % wire.ALL_TASKS)
            return
        if mode.kind == "task" and mode.number in self._nodes:
            self._stdin_to = mode.number
            for task in self._nodes:
                if task != mode.number:
                    self._send(wire.STDIN_END, b"%d" % task)
            self._stdin = 0
        elif mode.kind in ("file", "task"):
            from slurmbridge.lang import filenames

            name = mode.pattern or str(mode.number)
            try:
                self._stdin = os.open(filenames.expand(name, values), os.O_RDONLY)
            except OSError as error:
                raise Usage(f"srun: error: Could not open stdin file: {error.strerror}") from error
        else:
            self._stdin = 0

    def _programs(self) -> list[list[str]]:
        name = str(self._request["argv"][0])
        try:
            with open(name, encoding="utf-8", errors="surrogateescape") as file:
                text = file.read()
        except OSError as error:
            raise Usage(f"srun: error: Could not open configuration file {name}: {error.strerror}") from error
        tasks = sorted(self._nodes)
        found = srun_request.read_programs(text, name, tasks)
        return [found[task] for task in tasks]

    # ---- the user's side

    def _read_stdin(self) -> None:
        assert self._stdin is not None
        try:
            data = os.read(self._stdin, STDIN_CHUNK)
        except OSError:
            data = b""
        if data:
            self._send(wire.STDIN, wire.data(self._stdin_to, data))
        else:
            self._send(wire.STDIN_END, b"%d" % self._stdin_to)
            self._stdin = None

    def _signalled(self, number: int) -> None:
        if not self._id and number in (signal.SIGINT, *ENDING):
            _say(f"srun: Cancelled pending job step with signal {number}")
            job = self._request.get("job")
            _say(f"srun: error: Unable to create step for job {job}: Job/step already completing or completed")
            self._code = 1
        elif number == signal.SIGCONT:
            _say("srun: got SIGCONT")
        elif number == signal.SIGINT:
            self._interrupted()
        elif number in ENDING:
            _say("srun: forcing job termination")
            self._end(signal.SIGTERM)
        elif number in FORWARDED:
            self._send(wire.SIGNAL, encode({"signal": number}))

    def _interrupted(self) -> None:
        """The first tells how things stand, a second within a second is passed on and ends the step."""
        now = time.monotonic()
        running = _ranges([task for task in self._nodes if task not in self._statuses])
        if not self._client.get("disable_status") and now - self._last_interrupt > 1.0:
            _say("srun: interrupt (one more within 1 sec to abort)")
            _say(f"srun: StepId={self._id} {_tasks_word(running)} {running}: running")
            self._last_interrupt = now
            return
        _say(f"srun: sending Ctrl-C to StepId={self._id}")
        self._send(wire.SIGNAL, encode({"signal": int(signal.SIGINT)}))
        self._end(None)

    def _end(self, number: int | None) -> None:
        """End the step, by force after KillWait."""
        self._say_aborted(self._kill_wait + 2)
        if number is not None:
            self._send(wire.SIGNAL, encode({"signal": int(number)}))
        self._timers.setdefault("kill", time.monotonic() + self._kill_wait)

    def _say_aborted(self, seconds: int) -> None:
        if not self._aborting:
            self._aborting = True
            _say(f"srun: Job step aborted: Waiting up to {seconds} seconds for job step to finish.")

    def _due(self, name: str) -> None:
        if name == "busy":
            if self._waited and not self._client.get("quiet"):
                job = self._request.get("job")
                word = "temporarily" if not self._busy_told else "still"
                _say(f"srun: Job {job} step creation {word} disabled, retrying ({self._reason})")
                self._busy_told = True
            self._timers["busy"] = time.monotonic() + BUSY_AGAIN_S
        elif name == "tell":
            self._tell()
        elif name == "wait":
            self._first_exited()
        elif name == "kill":
            self._send(wire.SIGNAL, encode({"signal": int(signal.SIGKILL)}))

    _busy_told = False

    # ---- ends

    def _done(self, value: dict[str, Any]) -> None:
        task, status = int(value["task"]), int(value["status"])
        self._statuses[task] = status
        for sink in self._sinks.values():
            sink.end(task)
        if status:
            if status & 0x7F == signal.SIGKILL and not self._terminating:
                self._forced = True
            self._timers.setdefault("tell", time.monotonic() + GATHER_S)
            if self._client.get("kill") and not self._terminating and len(self._statuses) < len(self._nodes):
                self._terminating = self._forced = True
                self._tell()
                _say(f"srun: Terminating StepId={self._id}")
                self._send(wire.SIGNAL, encode({"signal": int(signal.SIGTERM), "why": "DUE TO TASK FAILURE"}))
                self._timers.setdefault("kill", time.monotonic() + self._kill_wait)
        wait = int(self._client.get("wait") or 0)
        if wait and "wait" not in self._timers and not self._terminating:
            self._timers["wait"] = time.monotonic() + wait

    def _first_exited(self) -> None:
        left = [task for task in self._nodes if task not in self._statuses]
        if not left or self._terminating:
            return
        self._terminating = True
        self._tell()
        _say(f"srun: First task exited {self._client['wait']}s ago")
        good = [task for task, status in self._statuses.items() if status == 0]
        bad = [task for task, status in self._statuses.items() if status]
        for tasks, word in ((left, "running"), (good, "exited"), (bad, "exited abnormally")):
            if tasks:
                text = _ranges(tasks)
                _say(f"srun: StepId={self._id} {_tasks_word(text)} {text}: {word}")
        _say(f"srun: Terminating StepId={self._id}")
        self._say_aborted(self._kill_wait + 2)
        self._send(wire.SIGNAL, encode({"signal": int(signal.SIGKILL)}))

    def _tell(self) -> None:
        """Lines about tasks that ended badly, those of a node with the same end together."""
        self._timers.pop("tell", None)
        groups: dict[tuple[str, int], list[int]] = {}
        for task, status in self._statuses.items():
            if status and task not in self._told:
                self._told.add(task)
                groups.setdefault((self._nodes[task][0], status), []).append(task)
        if self._client.get("quiet"):
            return
        for (node, status), tasks in groups.items():
            text = _ranges(tasks)
            _say(f"srun: error: {node}: {_tasks_word(text)} {text}: {_end_words(status)}")

    def _summarise(self) -> None:
        self._tell()
        if self._forced and not self._client.get("quiet"):
            _say(f"srun: Force Terminated StepId={self._id}")
        codes = [128 + (status & 0x7F) if status & 0x7F else status >> 8 for status in self._statuses.values()]
        missing = len(self._nodes) - len(self._statuses)
        self._code = max([*codes, 1 if missing else 0], default=1)


def _tasks_word(text: str) -> str:
    return "task" if text.isdigit() else "tasks"


def _ranges(tasks: list[int]) -> str:
    """0-2,5"""
    words: list[str] = []
    ordered = sorted(tasks)
    index = 0
    while index < len(ordered):
        end = index
        while end + 1 < len(ordered) and ordered[end + 1] == ordered[end] + 1:
            end += 1
        words.append(str(ordered[index]) if end == index else f"{ordered[index]}-{ordered[end]}")
        index = end + 1
    return ",".join(words)


def _end_words(status: int) -> str:
    number = status & 0x7F
    if not number:
        return f"Exited with exit code {status >> 8}"
    words = signal.strsignal(number) or f"Signal {number}"
    return f"{words} (core dumped)" if status & 0x80 else words
