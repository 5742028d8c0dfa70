"""What a supervisor in a pod is told of its run: the header of its launch frame (`wire.supervisor`).

The same words as on virtual nodes, less what is of this machine: no spool, no hosts file, no socket of the daemon.
"""

from __future__ import annotations

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


def launch_payload(launch: Launch, rank: int, token: str, hosts: tuple[str, ...]) -> bytes:
    """Payload of L for one rank; script and environment are for rank 0 alone."""
    first = rank == 0
    header = _header(launch, rank, token, hosts)
    env = wire.join_env(launch.env) if first else b""
    return wire.encode_launch(header, (launch.script or b"") if first else b"", env, wire.join_env(launch.base_env))


def _header(launch: Launch, rank: int, token: str, hosts: tuple[str, ...]) -> dict[str, object]:
    node = launch.nodes[rank]
    return {
        **{word: getattr(launch, field) for word, field in PLAIN.items()},
        "job": launch.key.job_id,
        "restarts": launch.key.restarts,
        "rank": rank,
        "node": node.node,
        "cpus": node.cpus,
        "ranks": [
            {
                "node": each.node,
                "host": host,
                "cpus": each.cpus,
                "tasks": each.tasks,
                "devices": [list(device) for device in each.devices],
                "topology": list(each.topology),
                "memory": each.memory_mib,
            }
            for each, host in zip(launch.nodes, hosts, strict=True)
        ],
        "token": token,
        "epoch": launch.epoch,
        "address_of_node": hosts[0],
        "groups": list(launch.groups),
        "batch": launch.script is not None,
        "args": list(launch.script_args),
        "pattern_values": dict(launch.pattern_values),
        "rlimits": [list(each) for each in launch.rlimits],
        "signal": list(launch.signal) if launch.signal else None,
    }
