"""How many GPUs does a job need, per what, and do its GPU options agree with its tasks and nodes?

Follows gres validation at submission (sbatch(1) --gpus, --gpus-per-*, --gres, --ntasks-per-gpu). Shares of a device
(portion or memory) are ours: a fraction is asked for per device, shard and mps are turned into a portion here.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from slurmbridge.errors import SlurmErrno
from slurmbridge.model.cluster import DEFAULT_DEVICE_MIB, ClusterConfig, is_mig_profile
from slurmbridge.model.job import GpuNeed, GpuScope
from slurmbridge.model.request import GresRequest, GresTerm, JobRequest, LicenseTerm, MemoryPer
from slurmbridge.model.tres import Tres
from slurmbridge.model.verdict import Refused

SHARING = ("shard", "mps")


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Devices of one scope: (type, milli) pairs, the last of a repeated type, and their number."""

    by_type: tuple[tuple[str, int], ...] = ()

    @property
    def milli(self) -> int:
        return sum(milli for _, milli in self.by_type) if self.by_type else 0

    @property
    def devices(self) -> int:
        return sum(-(-milli // 1000) for _, milli in self.by_type) if self.by_type else 0


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the GPU options say, before tasks and nodes are counted."""

    job: Counts = Counts()
    node: Counts = Counts()
    socket: Counts = Counts()
    task: Counts = Counts()
    sharing: Counts = Counts()  # portions of one device on each node, from shard and mps
    cpus_per_task: int | None = None  # of --tres-per-task
    licences: tuple[LicenseTerm, ...] = ()  # of --tres-per-task

    @property
    def any(self) -> bool:
        return any(counts.milli for counts in (self.job, self.node, self.socket, self.task, self.sharing))


NO_WISH = Wish()


def bad_gres(*before: str) -> Refused:
    return Refused(errno=SlurmErrno.INVALID_GRES, before=before)


def read_wish(request: JobRequest, config: ClusterConfig) -> Wish | Refused:
    """Names checked against GresTypes, types against each other."""
    parts = (
        ("node", request.gres),
        ("node", request.gpus_per_node),
        ("job", request.gpus),
        ("socket", request.gpus_per_socket),
        ("task", request.gpus_per_task),
        ("task", request.tres_per_task),
    )
    if all(part is None for _, part in parts):
        return NO_WISH
    known = set(config.gres_types) or {"gpu", *SHARING} if not config.conf_file else set(config.gres_types)
    sharing: dict[str, int] = {}
    scopes: dict[str, dict[str, int]] = {"job": {}, "node": {}, "socket": {}, "task": {}}
    licences: list[LicenseTerm] = []
    cpus: int | None = None
    for scope, part in parts:
        for term in _terms(part):
            if part is request.tres_per_task and term.name == "cpu":
                cpus = term.milli // 1000 if cpus is None else cpus
            elif part is request.tres_per_task and term.name.startswith("license/"):
                licences.append(LicenseTerm(name=term.name.removeprefix("license/"), count=term.milli // 1000))
            elif part is request.tres_per_task and term.name not in known and not term.text.startswith("gres"):
                if term.name.lower() != "cpu":
                    return Refused(errno=SlurmErrno.INVALID_TRES)
            elif term.name not in known:
                return bad_gres()
            elif term.name in SHARING:
                sharing[term.type] = _portion(term, config)
            elif term.name == "gpu":
                scopes[scope][term.type] = term.milli
            else:
                return bad_gres(f"{term.name} is known but cannot be allocated here")
    types = {kind for scope in scopes.values() for kind in scope}
    if "" in types and len(types) > 1 and not _is_loose(scopes):
        return Refused(errno=SlurmErrno.INVALID_GRES_MIX)
    return Wish(
        job=_counts(scopes["job"]),
        node=_counts(scopes["node"]),
        socket=_counts(scopes["socket"]),
        task=_counts(scopes["task"]),
        sharing=_counts(sharing),
        cpus_per_task=cpus,
        licences=tuple(licences),
    )


def _terms(part: GresRequest | None) -> Iterable[GresTerm]:
    return part.terms if part is not None else ()


def _counts(by_type: dict[str, int]) -> Counts:
    return Counts(by_type=tuple((kind, milli) for kind, milli in by_type.items() if milli))


def _is_loose(scopes: dict[str, dict[str, int]]) -> bool:
    """Typed devices per job with untyped ones per task: Slurm then misses a task count first."""
    return bool(scopes["task"].get("")) and not scopes["node"] and "" not in scopes["job"]


def _portion(term: GresTerm, config: ClusterConfig) -> int:
    """Thousandths of one device: mps counts percent, shards divide the devices of a node that has them."""
    count = term.milli // 1000
    if term.name == "mps":
        return min(count * 10, 1000)
    for node in config.nodes:
        parts = [part.split(":") for part in node.gres.split(",")]
        shards = sum(int(part[-1]) for part in parts if part[0] == "shard" and part[-1].isdecimal())
        if shards and node.devices:
            return max(min(count * 1000 * len(node.devices) // shards, 1000), 1)
    return max(min(count * 250, 1000), 1)


class Tally(msgspec.Struct, kw_only=True):
    """Tasks and nodes while they are settled."""

    ntasks: int | None
    nodes_min: int
    nodes_max: int | None
    nodes_given: bool
    ntasks_per_node: int | None
    ntasks_per_socket: int | None
    is_derived: bool = False  # tasks per node follow from GPUs: shown, not counted
    extra_tasks: int | None = None  # NumTasks where CPUs were counted before


def settle(request: JobRequest, wish: Wish, tally: Tally) -> Refused | None:
    """Let GPU counts decide tasks and nodes; refuse what does not fit together. Wording: slurmctld's."""
    per_cpu, memory = request.cpus_per_gpu, request.memory
    if per_cpu and not wish.any:
        return bad_gres(f"Requested cpus_per_tres=gres/gpu:{per_cpu} but did not request any GPU.")
    if memory is not None and memory.per is MemoryPer.GPU and not wish.any:
        return bad_gres(f"Requested mem_per_tres=gres/gpu:{memory.mib} but did not request any GPU.")
    for step in (_by_socket, _by_node, _by_task, _by_gpu):
        refused = step(request, wish, tally)
        if refused is not None:
            return refused
    return None


def _is_fixed(tally: Tally) -> bool:
    return tally.nodes_given and tally.nodes_min == tally.nodes_max


def _by_socket(request: JobRequest, wish: Wish, tally: Tally) -> Refused | None:
    if not wish.socket.milli:
        return None
    if not request.sockets_per_node:
        return bad_gres("--gpus-per-socket option requires --sockets-per-node specification")
    if wish.node.milli and wish.node.devices != wish.socket.devices * request.sockets_per_node:
        return bad_gres(
            "Failed to validate job spec. Based on --gres=gpu/--gpus-per-node and --gpus-per-socket required number of "
            "sockets differ from --sockets-per-node."
        )
    return None


def _by_node(request: JobRequest, wish: Wish, tally: Tally) -> Refused | None:
    job, node = wish.job.devices, wish.node.devices
    if job and tally.nodes_min > job:
        return bad_gres("Failed to validate job spec, --gpus < -N")
    if job and tally.nodes_max is not None:
        tally.nodes_max = min(tally.nodes_max, job)  # a node without a device has no part in it
    if not job or not node:
        return None
    if job < node:
        return bad_gres("Failed to ensure --gpus >= --gres=gpu/--gpus-per-node >= --gpus-per-socket")
    if job % node:
        return bad_gres("Failed to validate job spec, --gpus is not multiple of --gres=gpu/--gpus-per-node")
    nodes = job // node
    if tally.nodes_given and not tally.nodes_min <= nodes <= (tally.nodes_max or nodes):
        return bad_gres(
            f"Failed to validate job spec. Based on --gpu and --gres=gpu/--gpus-per-node required nodes ({nodes}) "
            f"doesn't fall between min_nodes ({tally.nodes_min}) and max_nodes ({tally.nodes_max}) boundaries."
        )
    if tally.nodes_min != nodes:
        tally.nodes_min = nodes
        tally.extra_tasks = nodes if tally.ntasks is None else None
    tally.nodes_max = nodes
    return None


def _by_task(request: JobRequest, wish: Wish, tally: Tally) -> Refused | None:
    job, node, socket, task = (part.devices for part in (wish.job, wish.node, wish.socket, wish.task))
    if not task:
        return None
    same_types = [kind for kind, _ in wish.job.by_type] == [kind for kind, _ in wish.task.by_type]
    is_counted = _is_fixed(tally) and (request.cpus_per_task is None or tally.ntasks_per_node is not None)
    if tally.ntasks is None and not (job and same_types) and not is_counted:
        return bad_gres(
            "Failed to validate job spec. --gpus-per-task or --tres-per-task used without either --gpus or -n/--ntasks "
            "is not allowed."
        )
    if job:
        if job % task:
            return bad_gres("Failed to validate job spec, --gpus not multiple of --gpus-per-task")
        if tally.ntasks is not None and tally.ntasks != job // task:
            return bad_gres(
                "Failed to validate job spec. Based on --gpus and --gpus-per-task number of requested tasks differ from "
                "-n/--ntasks."
            )
        tally.ntasks = job // task
    if node:
        if node % task:
            return bad_gres("Failed to validate job spec, --gres=gpu/--gpus-per-node not multiple of --gpus-per-task.")
        if tally.ntasks_per_node is None:
            tally.ntasks_per_node = node // task
            tally.is_derived = True
    if socket and tally.ntasks_per_socket is None:
        tally.ntasks_per_socket = socket // task
    return None


def _by_gpu(request: JobRequest, wish: Wish, tally: Tally) -> Refused | None:
    per_gpu = request.ntasks_per_gpu
    if not per_gpu:
        return None
    if wish.job.milli:
        tally.ntasks = wish.job.devices * per_gpu
    elif wish.node.milli:
        tally.ntasks = wish.node.devices * per_gpu * tally.nodes_min
    elif tally.ntasks is not None:
        if tally.ntasks % per_gpu:
            return bad_gres("Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu.")
    elif _is_fixed(tally):
        tally.ntasks = tally.nodes_min * per_gpu
    else:
        return bad_gres(
            "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification or a node/ntask "
            "specification"
        )
    return None


def need(request: JobRequest, wish: Wish, tally: Tally) -> GpuNeed | Refused | None:
    """What the scheduler is to find."""
    scope, counts = _scope(request, wish, tally)
    if scope is None or not counts.milli:
        return None
    return need_of(scope, counts.by_type, request.gpu_fraction_milli, request.gpu_memory_mib or 0)


def need_of(
    scope: GpuScope, by_type: tuple[tuple[str, int], ...], fraction: int | None = None, mib: int = 0
) -> GpuNeed | Refused:
    """`by_type`: thousandths of each type; less than a device is a portion of one. `fraction`, `mib`: of each device."""
    kind, milli = by_type[0]
    each = 1000 if fraction is None else fraction
    slices = [kind for kind, milli in by_type if is_mig_profile(kind) and (milli % 1000 or each < 1000 or mib)]
    if slices:
        return bad_gres(f"{slices[0]} is a MIG profile: such a device cannot be shared")
    if len(by_type) > 1:
        portions = [kind for kind, milli in by_type if milli % 1000]
        if portions:
            return bad_gres(f"A portion of a GPU ({portions[0]}) beside GPUs of other types is not supported")
        kinds = tuple((kind, milli // 1000) for kind, milli in by_type)
        return GpuNeed(scope=scope, count=sum(count for _, count in kinds), milli=each, mib=mib, kinds=kinds)
    if milli < 1000:
        return GpuNeed(scope=scope, count=1, type=kind, milli=milli)
    return GpuNeed(scope=scope, count=-(-milli // 1000), type=kind, milli=each, mib=mib)


def _scope(request: JobRequest, wish: Wish, tally: Tally) -> tuple[GpuScope | None, Counts]:
    if wish.node.milli:
        return GpuScope.NODE, wish.node
    if wish.task.milli:
        return GpuScope.TASK, wish.task
    if wish.job.milli:
        return GpuScope.JOB, wish.job
    if wish.socket.milli:
        return GpuScope.SOCKET, wish.socket
    if wish.sharing.milli:
        return GpuScope.NODE, wish.sharing
    if request.ntasks_per_gpu and tally.ntasks:
        return GpuScope.JOB, Counts(by_type=(("", tally.ntasks // request.ntasks_per_gpu * 1000),))
    if request.gpu_fraction_milli is not None or request.gpu_memory_mib is not None:
        return GpuScope.NODE, Counts(by_type=(("", 1000),))
    return None, Counts()


def totals(request: JobRequest, wish: Wish, tally: Tally, tasks: int, nodes: int, config: ClusterConfig) -> Tres:
    """`gres/gpu` and the tracked `gres/gpu:TYPE` of the whole job, in thousandths."""
    if wish.job.milli:
        counts, times = wish.job, 1
    elif wish.task.milli:
        counts, times = wish.task, tasks
    elif wish.node.milli:
        counts, times = wish.node, nodes
    elif wish.socket.milli:
        counts, times = wish.socket, (request.sockets_per_node or 1) * nodes
    else:
        counts, times = _scope(request, wish, tally)[1], 1 if request.ntasks_per_gpu else nodes
    share = _share(request, config)
    amounts = {kind: milli * times * share // 1000 for kind, milli in counts.by_type}
    total = sum(amounts.values())
    if not total:
        return ()
    found = [("gres/gpu", total)] if not config.conf_file or "gres/gpu" in config.accounting_tres else []
    found += [
        (f"gres/gpu:{kind}", milli) for kind, milli in amounts.items() if f"gres/gpu:{kind}" in config.accounting_tres
    ]
    return tuple(found)


def _share(request: JobRequest, config: ClusterConfig) -> int:
    """Thousandths of each device; memory is set against the smallest device."""
    if request.gpu_fraction_milli is not None:
        return request.gpu_fraction_milli
    if request.gpu_memory_mib is None:
        return 1000
    sizes = [
        device.memory_mib or DEFAULT_DEVICE_MIB
        for node in config.nodes
        for device in node.devices
        if not device.is_slice
    ]
    return max(min(request.gpu_memory_mib * 1000 // min(sizes, default=DEFAULT_DEVICE_MIB), 1000), 1)
