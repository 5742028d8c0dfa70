"""What a supervisor is told of its run: the launch frame (`wire.supervisor`), wherever the run is.

What follows from the launch alone is said here, once for every runtime; a runtime adds what is of its own place: tokens,
addresses, folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurmbridge.model.run import Launch
from slurmbridge.wire import supervisor as wire

PLAIN = {
    "uid": "uid", "gid": "gid", "user": "user", "group": "group", "home": "home", "shell": "shell",
    "login_env": "login_env", "work_dir": "work_dir", "umask": "umask", "in": "std_in", "out": "std_out",
    "err": "std_err", "append": "append", "time_limit": "time_limit_s", "kill_wait": "kill_wait_s",
    "over_time": "over_time_s", "kill_on_bad_exit": "kill_on_bad_exit", "wait_time": "wait_time_s",
    "mpi_default": "mpi_default", "max_tasks": "max_tasks_per_node", "max_steps": "max_steps",
}  # fmt: skip
"""Word of the header -> field of the launch."""
PROGRAMS = ("task_prolog", "task_epilog")
"""Those of the site around each task: said only where it has some."""

Ranks = Sequence[Mapping[str, object]]


def ranks_of(launch: Launch) -> list[dict[str, object]]:
    """All nodes of the run, in rank order."""
    return [
        {
            "node": node.node,
            "cpus": node.cpus,
            "tasks": node.tasks,
            "devices": [list(each) for each in node.devices],
            "topology": list(node.topology),
            "memory": node.memory_mib,
        }
        for node in launch.nodes
    ]


def header(launch: Launch, rank: int, ranks: Ranks, own: Mapping[str, object]) -> dict[str, object]:
    """The header for one rank. `own`: what the runtime adds."""
    node = launch.nodes[rank]
    return {
        **{word: getattr(launch, field) for word, field in PLAIN.items()},
        **{name: path for name in PROGRAMS if (path := getattr(launch, name))},
        "job": launch.key.job_id,
        "restarts": launch.key.restarts,
        "rank": rank,
        "node": node.node,
        "cpus": node.cpus,
        "ranks": ranks,
        "groups": list(launch.groups),
        "batch": launch.script is not None,
        "args": list(launch.script_args),
        "pattern_values": dict(launch.pattern_values),
        "rlimits": [list(each) for each in launch.rlimits],
        "signal": list(launch.signal) if launch.signal else None,
        **own,
    }


def payload(launch: Launch, rank: int, ranks: Ranks, own: Mapping[str, object]) -> bytes:
    """Payload of L for one rank; script and environment are for rank 0 alone."""
    first = rank == 0
    env = wire.join_env(launch.env) if first else b""
    script = (launch.script or b"") if first else b""
    return wire.encode_launch(header(launch, rank, ranks, own), script, env, wire.join_env(launch.base_env))
