"""srun inside an allocation: asks the job's first supervisor for a step and stands between it and the terminal.

The allocation is found from the job id alone: SLURMBRIDGE_ADDR (or the default state folders) names the state folder,
`spool/JOBID/step` in it the supervisor's socket. `in_new_allocation` does the same for the allocation that the same srun
was given by the daemon. Words and exit codes follow srun(1). Standard library only; nothing here needs the daemon.
"""

from __future__ import annotations

import os
import resource
import socket
import sys
import time
from typing import Any

from slurmbridge.cli import srun_request
from slurmbridge.cli.srun_output import Mode
from slurmbridge.cli.srun_request import Usage
from slurmbridge.cli.srun_run import run
from slurmbridge.cli.srun_session import Session, say
from slurmbridge.wire import step as wire
from slurmbridge.wire.client import pack
from slurmbridge.wire.supervisor import encode, join_env

VERSION = "slurm-wlm 26.05.5"
ROOT_SOCKET = "/run/slurmbridge/socket"
ROOT_STATES = ("/run/slurmbridge", "/var/lib/slurmbridge")
"""Where a daemon that answers on root's socket keeps its jobs: beside it, or in the default state folder."""
START_S = 10.0
"""How long a new allocation's socket is waited for: it is made while the supervisors meet."""
OF_ALLOCATION = (
    "nodelist", "exclude", "relative", "limit", "memory", "memory_per_cpu", "gpus", "gpus_per_node", "immediate",
)  # fmt: skip
"""What shaped the allocation is not asked again of its step: it has all of it."""
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

    `facts`: "job", "address" of its first supervisor, "ntasks", "nodes", "name" as the controller settled them.
    """
    env = dict(os.environ)
    try:
        command = srun_request.parse(words, env, is_new=True)
        os.environ.setdefault("SLURM_JOB_NAME", str(facts["name"]))
        request = _request(command, words, env, str(facts["job"]))
        for name in OF_ALLOCATION:
            request.pop(name, None)
        request.update(ntasks=facts["ntasks"], nodes=facts["nodes"], name=facts["name"])
        request["exact"] = "exact" in command.options
        request["launch_address"] = _own_address()
        request["hidden"] = _hidden(command.options)
        session = _session(str(facts["address"]), request, wait_s=START_S)
        return run([session], [_payload(command, env, request)]), session.status
    except Usage as usage:
        for line in usage.lines:
            say(line)
        return usage.code, usage.code << 8


def _own_address() -> str:
    """Of this machine, as its own name says."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


def _hidden(options: dict[str, str | None]) -> list[str]:
    """Variables that the tasks of such a step lack, though the job decides them: those of batch jobs and of defaults."""
    names = ["SLURM_JOB_EXCLUSIVE", "SLURM_JOB_OVERSUBSCRIBE"]
    has_memory = any(name in options for name in ("mem", "mem-per-cpu", "mem-per-gpu"))
    if not has_memory:
        names += ["SLURM_MEM_PER_CPU", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_GPU"]
    if not has_memory and "distribution" not in options:
        names.append("SLURM_DISTRIBUTION")
    return names


def _inside(words: list[str], env: dict[str, str]) -> int:
    command = srun_request.parse(words, env)
    group = command.options.get("het-group")
    if group is not None and group.isdigit():
        env = srun_request.of_component(env, group)
        command = srun_request.parse(words, env)
    options = command.options
    if "version" in options:
        raise Usage(code=0, stdout=VERSION + "\n")
    if (options.get("mpi") or "").lower() == "list":
        types = "".join(f"\t{name}\n" for name in srun_request.MPI_TYPES)
        raise Usage(code=0, stdout=f"MPI plugin types are...\n{types}")
    job = _job_id(options, env)
    request = _request(command, words, env, job)
    return run([_session(_address(job, env), request)], [_payload(command, env, request)])


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


def _session(address: str, request: dict[str, Any], *, wait_s: float = 0.0) -> Session:
    """One step over the supervisor's socket. `wait_s`: how long that may take to be there."""
    path = address.removeprefix("unix:")
    end = time.monotonic() + wait_s
    while True:
        try:
            return Session(dial(path), request)
        except PermissionError:
            raise Usage(
                f"srun: error: Unable to confirm allocation for job {request.get('job')}: Access/permission denied",
                f"srun: Check SLURM_JOB_ID environment variable. Expired or invalid job {request.get('job')}",
            ) from None
        except OSError as error:
            if time.monotonic() >= end:
                text = f"srun: error: Unable to create step for job {request.get('job')}: {error.strerror}"
                raise Usage(text) from error
        time.sleep(0.05)


def dial(path: str) -> socket.socket:
    """A connection to a supervisor's socket, however long its path is."""
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
