"""The variables of a step's tasks (tables.md section 9, columns "srun step"), and a node's part of a step.

Order: the job's own SLURM_* (for a caller whose environment was cut), then what srun sent, then what is the step's,
then what is the task's. Devices are pinned last: nothing overrides them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from slurmbridge.lang import hostlist
from slurmbridge.supervisor import hooks
from slurmbridge.wire import pmi
from slurmbridge.wire.supervisor import join_env

if TYPE_CHECKING:
    from slurmbridge.supervisor.step_state import RunningStep

DEVICE_VARIABLES = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


ADDRESS = "SLURMBRIDGE_ADDR"
PRESERVED = ("SLURM_NNODES", "SLURM_NTASKS", "SLURM_NPROCS")
"""What --preserve-env leaves as srun's environment has it."""


def tasks_per_node(counts: list[int]) -> str:
    """Slurm's folding: 2,1(x2)."""
    words: list[str] = []
    index = 0
    while index < len(counts):
        end = index
        while end < len(counts) and counts[end] == counts[index]:
            end += 1
        repeat = end - index
        words.append(f"{counts[index]}(x{repeat})" if repeat > 1 else str(counts[index]))
        index = end
    return ",".join(words)


def part_of(
    header: dict[str, Any],
    base_env: dict[str, str],
    step: RunningStep,
    index: int,
    end_time: int,
) -> tuple[dict[str, object], bytes]:
    """What one node of the step is told: (part, environment common to its tasks)."""
    plan, request = step.plan, step.request
    assert plan is not None
    ranks = header["ranks"]
    rank, ids, cpus = plan.ranks[index], plan.tasks[index], plan.cpus[index]
    node = ranks[rank]
    address, pattern = node.get("topology") or ("", "")
    whole: dict[str, Any] = request.get("het") or {}
    offset = int(whole.get("offset", 0))
    env = {**base_env, **step.env}
    env.pop(ADDRESS, None)  # of where srun was typed, which may be another machine
    if ADDRESS in base_env:
        env[ADDRESS] = base_env[ADDRESS]
    own_values = _step_values(header, step, whole)
    if request.get("preserve_env"):
        own_values = {
            name: value for name, value in own_values.items() if name not in PRESERVED or name not in step.env
        }
    env.update(own_values)
    env.update(
        {
            "SLURMD_NODENAME": node["node"],
            "SLURM_TOPOLOGY_ADDR": address or node["node"],
            "SLURM_TOPOLOGY_ADDR_PATTERN": pattern or "node",
            "SLURM_NODEID": str(index + whole.get("node_offset", 0)),
            "SLURM_CPUS_ON_NODE": str(cpus or node["cpus"]),
            "SLURM_GTIDS": ",".join(str(number + offset) for number in ids),
            "SLURM_LAUNCH_NODE_IPADDR": _launch_address(header, request),
        }
    )
    for name in request.get("hidden", ()):
        env.pop(name, None)
    if end_time:
        env["SLURM_JOB_END_TIME"] = str(end_time)
    devices = step.devices.get(rank, ())
    per_task = int(request.get("gpus_per_task") or 0)
    if node["devices"]:
        env.update(device_env(devices, node["devices"]))
        if devices:
            env["SLURM_STEP_GPUS"] = ",".join(str(device) for device in devices)
    tasks = []
    total = sum(len(each) for each in plan.tasks)
    multi = request.get("multi")
    for local, number in enumerate(ids):
        own = {"SLURM_PROCID": str(number + offset), "SLURM_LOCALID": str(local)}
        if request.get("pty") and number == 0:
            own["SLURM_PTY_PORT"] = "0"
        if per_task and devices:
            mine = devices[local * per_task : (local + 1) * per_task]
            own.update(visible(mine))
            own["SLURM_STEP_GPUS"] = own["CUDA_VISIBLE_DEVICES"]
            own["SLURMD_TRES_BIND"] = f"gres/gpu:per_task:{per_task}"
        elif (narrowed := bound(str(request.get("gpu_bind") or ""), devices, local)) is not None:
            own.update(visible(narrowed))
        if request.get("mpi") == "pmi2":
            own.update(PMI_RANK=str(number), PMI_SIZE=str(total), PMI_JOBID=f"{header['job']}.{step.step}")
        tasks.append({"id": number, "argv": multi[number] if multi else request["argv"], "env": own})
    part: dict[str, object] = {
        "tasks": tasks,
        "node_index": index,
        "cwd": request["cwd"],
        "umask": request.get("umask", 0o022),
        "out": request.get("out") or "",
        "err": request.get("err") or "",
        "in": request.get("in") or "",
        "append": bool(request.get("append")),
        "rlimits": request.get("rlimits") or [],
        "pty": request.get("pty") or [],
        "mpi": request.get("mpi") or "none",
        "size": total,
        "mapping": pmi.mapping([list(each) for each in plan.tasks]) if request.get("mpi") == "pmi2" else "",
    }
    part.update(hooks.around(header, request))
    return part, join_env(list(env.items()))


def _launch_address(header: dict[str, Any], request: dict[str, Any]) -> str:
    """Where srun was typed: it says so itself when that is outside of the job, else on its first node."""
    return str(request.get("launch_address") or header.get("address_of_node") or "127.0.0.1")


def bound(binding: str, devices: tuple[int, ...], local: int) -> tuple[int, ...] | None:
    """Devices of the node's task of that number under srun --gpu-bind; None: all of the step's."""
    kind, _, text = binding.lower().removeprefix("verbose,").removeprefix("quiet,").partition(":")
    words = [word.partition("*")[0] for word in text.split(",")]
    if not devices or not text:
        return None
    if kind == "single":
        return (devices[local // max(1, int(text)) % len(devices)],)
    if kind == "per_task":
        return devices[local * int(text) : (local + 1) * int(text)] or devices[-int(text) :]
    word = words[local % len(words)]
    if kind == "map_gpu":
        return tuple(device for index, device in enumerate(devices) if index == int(word, 0)) or None
    if kind == "mask_gpu":
        mask = int(word, 16)
        return tuple(device for index, device in enumerate(devices) if mask >> index & 1) or None
    return None


def visible(devices: tuple[int, ...]) -> dict[str, str]:
    """The variables by which programs find their devices."""
    text = ",".join(str(device) for device in devices)
    return {name: text for name in DEVICE_VARIABLES if name != "ZE_AFFINITY_MASK"}


def device_env(devices: tuple[int, ...], of_node: list[list[int]]) -> dict[str, str]:
    """Device variables of a node's part; fractions are told, and told to be not enforced."""
    env = visible(devices)
    env["SLURM_GPUS_ON_NODE"] = str(len(devices))
    chosen = [entry for entry in of_node if entry[0] in devices]
    if chosen and chosen[0][1] < 1000 and chosen[0][2] == 0:
        env["SLURMBRIDGE_GPU_FRACTION"] = f"{chosen[0][1] / 1000:g}"
    if chosen and chosen[0][2]:
        env["SLURMBRIDGE_GPU_MEMORY"] = f"{chosen[0][2]}M"
    return env


def _step_values(header: dict[str, Any], step: RunningStep, whole: dict[str, Any]) -> dict[str, str]:
    plan, request = step.plan, step.request
    assert plan is not None
    names = [header["ranks"][rank]["node"] for rank in plan.ranks]
    counts = [len(ids) for ids in plan.tasks]
    if whole:
        names, counts = whole["nodes"], whole["tasks"]
    folded, total, nodes = tasks_per_node(counts), str(sum(counts)), hostlist.compress_sorted(names)
    values = {
        "SLURM_STEPID": str(step.step),
        "SLURM_STEP_ID": str(step.step),
        "SLURM_STEP_NODELIST": nodes,
        "SLURM_STEP_NUM_NODES": str(len(names)),
        "SLURM_STEP_NUM_TASKS": total,
        "SLURM_STEP_TASKS_PER_NODE": folded,
        "SLURM_STEP_LAUNCHER_PORT": "0",
        "SLURM_SRUN_COMM_HOST": _launch_address(header, request),
        "SLURM_SRUN_COMM_PORT": "0",
        "SLURM_NTASKS": total,
        "SLURM_NPROCS": total,
        "SLURM_NNODES": str(len(names)),
        "SLURM_TASKS_PER_NODE": folded,
        "SLURM_DISTRIBUTION": plan.distribution,
        "SLURM_JOB_GROUP": str(header.get("group") or ""),
        "SLURMD_DEBUG": str(request.get("log", 2)),
        "SLURM_PRIO_PROCESS": "0",
        "SLURM_OOM_KILL_STEP": "0",
        "SLURM_UMASK": f"{int(request.get('umask', 0o022)):04o}",
        "SRUN_DEBUG": "3",
    }
    if whole:
        values.update(
            {
                "SLURM_JOB_ID": whole["leader"],
                "SLURM_JOBID": whole["leader"],
                "SLURM_JOB_NODELIST": nodes,
                "SLURM_NODELIST": nodes,
                "SLURM_JOB_NUM_NODES": str(len(names)),
                "SLURM_JOB_CPUS_PER_NODE": tasks_per_node(whole["cpus"]),
            }
        )
    if request.get("external"):
        values.update(
            {
                "SLURM_CPU_BIND": "quiet,none",
                "SLURM_CPU_BIND_LIST": "",
                "SLURM_CPU_BIND_TYPE": "none",
                "SLURM_CPU_BIND_VERBOSE": "quiet",
            }
        )
    return values
