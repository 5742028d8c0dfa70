"""srun inside an allocation: asks the job's first supervisor for a step and stands between it and the terminal.

The allocation is found from the job id alone (`srun_reach`). `in_new_allocation` does the same for the allocation that the
same srun was given by the daemon. Words and exit codes follow srun(1). Standard library only.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from typing import Any, NamedTuple

from slurmbridge.cli import srun_components, srun_reach, srun_request, srun_terminal
from slurmbridge.cli.srun_output import Mode
from slurmbridge.cli.srun_request import Usage
from slurmbridge.cli.srun_run import Together, run
from slurmbridge.cli.srun_session import Session
from slurmbridge.cli.srun_terminal import say
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import pack
from slurmbridge.wire.supervisor import encode, join_env

VERSION = "slurm-wlm 26.05.5"
START_S = 10.0
"""How long a new allocation's socket is waited for: it is made while the supervisors meet."""
OF_ALLOCATION = (
    "nodelist", "exclude", "relative", "limit", "memory", "memory_per_cpu", "gpus", "gpus_per_node", "immediate",
)  # fmt: skip
"""What shaped the allocation is not asked again of its step: it has all of it."""
SHOWN_OF_GROUP = (
    "SLURM_JOB_ACCOUNT", "SLURM_JOB_CPUS_PER_NODE", "SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_JOB_NUM_NODES",
    "SLURM_JOB_PARTITION", "SLURM_JOB_QOS",
)  # fmt: skip
OF_GROUP = (
    "SLURM_JOB_NAME", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS", "SLURM_NPROCS", "SLURM_CPUS_PER_TASK", "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_GPU", "SLURM_TRES_PER_TASK",
)  # fmt: skip
"""Variables of a component; the tasks of an srun of its own are told the first, by the old name of the suffix."""
LIMITS = ("CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS")


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
            say(line)
        return usage.code


def in_new_allocation(words: list[str], facts: dict[str, Any]) -> tuple[int, int]:
    """The step that srun's own allocation was asked for: (exit code, wait status for the job).

    `facts`: "components", for each "job", "address" of its first supervisor, and "ntasks", "nodes", "name" as the
    controller settled them.
    """
    env = dict(os.environ)
    parts: list[dict[str, Any]] = facts["components"]
    os.environ.setdefault("SLURM_JOB_NAME", str(parts[0]["name"]))
    try:
        wishes: list[Wish] = []
        before: srun_request.Command | None = None
        for part, line in zip(parts, srun_components.components(words), strict=True):
            command = srun_request.parse(line, env, is_new=True)
            before = command = srun_components.inherited(command, before) if before else command
            request = _request(command, words, env, str(part["job"]))
            for name in OF_ALLOCATION:
                request.pop(name, None)
            request.update(ntasks=part["ntasks"], nodes=part["nodes"], name=part["name"])
            request["exact"] = "exact" in command.options
            request["launch_address"] = _own_address()
            request["hidden"] = _hidden(command.options, len(parts))
            wishes.append(Wish(command, request, env, str(part["address"])))
        sessions, code = _run(wishes, wait_s=START_S)
        return code, max((session.status for session in sessions), key=_weight)
    except Usage as usage:
        for text in usage.lines:
            say(text)
        return usage.code, usage.code << 8


class Wish(NamedTuple):
    """One component of a step: its command, request, environment, and its supervisor's address."""

    command: srun_request.Command
    request: dict[str, Any]
    env: dict[str, str]
    address: str


def _weight(status: int) -> int:
    return 128 + (status & 0x7F) if status & 0x7F else status >> 8


def _run(wishes: list[Wish], *, wait_s: float = 0.0) -> tuple[list[Session], int]:
    """Run them as one: the sessions and the exit code."""
    if len(wishes) == 1:
        sessions = [_session(wishes[0], wait_s)]
    else:
        gate = Together(str(wishes[0].request["job"]))
        offset = 0
        for wish in wishes:
            gate.sessions.append(_session(wish, wait_s, offset, gate))
            offset += _tasks(wish.request)
        sessions = gate.sessions
    return sessions, run(sessions, [_payload(wish.command, wish.env, wish.request) for wish in wishes])


def _tasks(request: dict[str, Any]) -> int:
    """Tasks of a component, which the next one counts on from: told to its supervisor, so that both agree."""
    nodes = int(request.get("nodes") or 1)
    count = int(request.get("ntasks") or nodes * int(request.get("per_node") or 1))
    request["ntasks"] = count
    return count


def _own_address() -> str:
    """Of this machine, as its own name says."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _hidden(options: dict[str, str | None], components: int) -> list[str]:
    """Variables that the tasks of such a step lack, though the job decides them: those of batch jobs and of defaults."""
    names = ["SLURM_JOB_EXCLUSIVE", "SLURM_JOB_OVERSUBSCRIBE"]
    has_memory = any(name in options for name in ("mem", "mem-per-cpu", "mem-per-gpu"))
    if not has_memory:
        names += ["SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_GPU"]
    if not has_memory and "distribution" not in options and components == 1:
        names.append("SLURM_DISTRIBUTION")
    for group in range(components if components > 1 else 0):
        names += [f"{name}_HET_GROUP_{group}" for name in OF_GROUP + SHOWN_OF_GROUP]
        names += [f"{name}_PACK_GROUP_{group}" for name in OF_GROUP]
    return names


def _inside(words: list[str], env: dict[str, str]) -> int:
    lines = srun_components.components(words)
    first = srun_request.parse(lines[0], env)
    if "version" in first.options:
        raise Usage(code=0, stdout=VERSION + "\n")
    if first.verbose and "quiet" in first.options:
        raise Usage("srun: error: don't specify both --verbose (-v) and --quiet (-Q)")
    if (first.options.get("mpi") or "").lower() == "list":
        types = "".join(f"\t{name}\n" for name in srun_request.MPI_TYPES)
        raise Usage(code=0, stdout=f"MPI plugin types are...\n{types}")
    wishes: list[Wish] = []
    before: srun_request.Command | None = None
    for index, line in enumerate(lines):
        command = srun_request.parse(line, env)
        before = command = srun_components.inherited(command, before) if before else command
        text = command.options.get("het-group")
        if text is None and (len(lines) > 1 or env.get("SLURM_HET_SIZE", "1") != "1"):
            text = str(index)
        for group in srun_components.groups(text) if text is not None else [None]:
            wishes.append(_wish(line, command, words, env, group))
    if len(wishes) > 1 and any(wish.request["pty"] for wish in wishes):
        raise Usage("srun: error: --pty: only one component")
    if len(wishes) > 1 and any(wish.request["mpi"] != "none" for wish in wishes):
        raise Usage("srun: error: --mpi: only none works over several components")
    for wish in wishes if len(wishes) > 1 else ():
        if "cpus-per-task" not in wish.command.typed:
            wish.request["hidden"] = ["SLURM_TRES_PER_TASK"]
    return _run(wishes)[1]


def _wish(
    line: list[str], command: srun_request.Command, words: list[str], env: dict[str, str], group: str | None
) -> Wish:
    """One component: its counts are those of its own job."""
    if group is not None:
        env = srun_components.of_component(env, group)
        command = srun_components.inherited(srun_request.parse(line, env), command)
    job = _job_id(command.options, env, group)
    request = _request(command, words, env, job)
    return Wish(command, request, env, srun_reach.find(job, env))


def _request(command: srun_request.Command, words: list[str], env: dict[str, str], job: str) -> dict[str, Any]:
    """The whole request: what is asked of the supervisor, and what srun keeps for itself ("client")."""
    options = command.options
    cwd = os.environ.get("PWD", "") if _is_here(os.environ.get("PWD", "")) else os.getcwd()
    umask = os.umask(0)
    os.umask(umask)
    request = srun_request.build(command, env, cwd, umask)
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
    client["terminal"], request["pty"], complaints = srun_terminal.asked(options)
    for line in complaints:
        say(line)
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
    return request


def _payload(command: srun_request.Command, env: dict[str, str], request: dict[str, Any]) -> bytes:
    sent = srun_request.environment(command, env, request)
    return pack(wire.VERSION, encode(request), join_env(list(sent.items())))


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


def _job_id(options: dict[str, str | None], env: dict[str, str], group: str | None) -> str:
    """--jobid, a component by its number, or the surrounding job."""
    text = options.get("jobid") or env.get("SLURM_JOB_ID") or env.get("SLURM_JOBID") or ""
    if group is not None:
        text = env.get(f"SLURM_JOB_ID_HET_GROUP_{group}", "")
        if not text:
            raise Usage(f"srun: error: Attempt to run a job step with het group value of {group}, but the job allocation"
                        " does not have it")  # fmt: skip
    if not text.isdecimal() or not int(text):
        raise Usage(f"srun: fatal: Bad job/step specified: {text}: JobID can not be zero")
    return text


def _session(wish: Wish, wait_s: float, offset: int = 0, gate: Together | None = None) -> Session:
    """One step over the supervisor's socket. `wait_s`: how long that may take to be there."""
    request, job = wish.request, wish.request.get("job")
    end = time.monotonic() + wait_s
    while True:
        try:
            sock = srun_reach.reach(wish.address, "srun", wish.env)
            return Session(sock, request, address=wish.address, offset=offset, gate=gate)
        except PermissionError:
            raise Usage(*unconfirmed(job, "Access/permission denied")) from None
        except OSError as error:
            if not wait_s and wish.address.startswith(srun_reach.THROUGH):  # neither a supervisor here nor a daemon
                raise Usage(*unconfirmed(job, "Invalid job id specified")) from error
            if time.monotonic() >= end:
                text = f"srun: error: Unable to create step for job {job}: {error.strerror}"
                raise Usage(text) from error
        time.sleep(0.05)


def unconfirmed(job: object, why: str) -> tuple[str, str]:
    """What srun says of a job that it cannot find or may not enter."""
    return (
        f"srun: error: Unable to confirm allocation for job {job}: {why}",
        f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {job}",
    )
