"""Where the tasks of a step go: nodes, CPUs, and which task runs on which node. Pure.

Follows srun(1): a plain step takes all CPUs of the job on its nodes and waits while another plain step has them;
`--exact` (implied by -c) takes only what its tasks need; `--overlap` shares; `--external-launcher` takes nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TOO_MANY_TASKS = "Task count specification invalid"
TOO_MANY_STEPS = "Step limit reached for this job"
TOO_MANY = "More processors requested than permitted"
NO_MEMORY = "Memory required by task is not available"
NO_GRES = "Invalid generic resource (gres) specification"
BUSY = "Requested nodes are busy"
BAD_NODES = "Requested node configuration is not available"


class Place(NamedTuple):
    """One node of the allocation: its rank, the job's CPUs and tasks there, CPUs no step holds, free device indices,
    the job's memory (MiB, 0 = not counted) and its number of devices."""

    rank: int
    name: str
    cpus: int
    tasks: int
    free: int
    free_devices: tuple[int, ...] = ()
    memory: int = 0
    devices: int = 0


class Layout(NamedTuple):
    """The step's nodes in rank order, their task ids, and CPUs held on each."""

    ranks: tuple[int, ...]
    tasks: tuple[tuple[int, ...], ...]
    cpus: tuple[int, ...]
    distribution: str  # "block", "cyclic", "plane"
    notes: tuple[str, ...] = ()


class Wait(NamedTuple):
    """Not now."""

    reason: str


class Never(NamedTuple):
    """Not in this allocation: lines for srun's stderr, each after "srun: error: "."""

    lines: tuple[str, ...]


class Limits(NamedTuple):
    """MaxTasksPerNode and MaxStepCount of slurm.conf(5)."""

    tasks: int = 512
    steps: int = 40_000

    @classmethod
    def of(cls, header: dict[str, Any]) -> Limits:
        return cls(int(header.get("max_tasks", 512)), int(header.get("max_steps", 40_000)))


def plan(
    request: dict[str, Any], job: int, places: list[Place], limits: Limits = Limits(), *, earlier: int = 0
) -> Layout | Wait | Never:
    """Lay a step out. Keys of the request: see `wire.step`. `earlier`: steps that the job has had."""
    if earlier >= limits.steps:
        return Never((f"Unable to create step for job {job}: {TOO_MANY_STEPS}",))
    asked_nodes = request.get("nodes")
    external = bool(request.get("external"))
    chosen = _eligible(request, places, job)
    if isinstance(chosen, Never):
        return chosen
    if asked_nodes is not None and asked_nodes > len(places):
        return Never((f"Only allocated {len(places)} nodes asked for {asked_nodes}",))
    per_node = int(request.get("per_node") or 0)
    c = max(1, int(request.get("cpus_per_task") or 1))
    ntasks = request.get("ntasks")
    nodes = int(asked_nodes or len(chosen))
    notes: list[str] = []
    if ntasks is None:
        nodes = min(nodes, len(chosen))
        ntasks = nodes * per_node if per_node else nodes
    ntasks = int(ntasks)
    if per_node and ntasks > nodes * per_node:
        notes.append(
            f"warning: can't honor --ntasks-per-node set to {per_node} which doesn't match the requested tasks {ntasks}"
            f" with the maximum number of requested nodes {nodes}. Ignoring --ntasks-per-node."
        )
        per_node = 0
    if ntasks < nodes:
        if asked_nodes is not None:
            notes.append(f"warning: can't run {ntasks} processes on {nodes} nodes, setting nnodes to {ntasks}")
        nodes = ntasks
    if ntasks > limits.tasks * max(1, nodes):
        return Never((f"Unable to create step for job {job}: {TOO_MANY_TASKS}",))
    if len(chosen) < nodes:
        return Never((f"Unable to create step for job {job}: {BAD_NODES}",))
    over = bool(request.get("overcommit")) or external
    exact = bool(request.get("exact"))
    shared = bool(request.get("overlap")) or external
    short = _short(request, chosen, ntasks, nodes, c)
    if short:
        return Never((f"Unable to create step for job {job}: {short}",))
    fixed = asked_nodes is not None or request.get("nodelist")
    total = sum(place.cpus // c for place in chosen)
    if not over and ntasks > total:
        return Never((f"Unable to create step for job {job}: {TOO_MANY}",))
    devices = _devices_asked(request, -(-ntasks // max(1, nodes)), nodes)
    with_devices = chosen if shared else [place for place in chosen if len(place.free_devices) >= devices]
    picked = _pick(with_devices, ntasks, nodes, c, per_node, exact=exact, shared=shared, over=over, fixed=bool(fixed))
    if isinstance(picked, (Wait, Never)):
        if isinstance(picked, Never) and len(with_devices) < len(chosen):
            return Wait(BUSY)
        if isinstance(picked, Never):
            return Never((f"Unable to create step for job {job}: {TOO_MANY}",))
        return picked
    distribution = str(request.get("distribution") or "")
    if not distribution:
        distribution = "cyclic" if ntasks <= len(picked) else "block"
    pack = ",pack" in distribution.lower()
    room = [(place.free if exact and not shared else place.cpus) // c for place in picked]
    if ntasks == sum(place.tasks for place in places) and len(picked) == len(places) and not per_node and not over:
        known = [place.tasks for place in picked]
        counts = known if all(known) else _block(ntasks, room, pack=pack)
    else:
        counts = _counts(ntasks, room, per_node, pack)
    tasks = _number(counts, ntasks, distribution, int(request.get("plane") or 0), room, per_node)
    if external:
        cpus = [0] * len(picked)
    elif exact:
        cpus = [min(len(ids) * c, place.cpus) for ids, place in zip(tasks, picked, strict=True)]
    else:
        cpus = [place.cpus for place in picked]
    return Layout(
        tuple(place.rank for place in picked),
        tuple(tuple(ids) for ids in tasks),
        tuple(cpus),
        distribution,
        tuple(notes),
    )


def _short(request: dict[str, Any], chosen: list[Place], ntasks: int, nodes: int, c: int) -> str:
    """What the job has too little of, in Slurm's words; nothing when it has enough."""
    per_node = -(-ntasks // max(1, nodes))
    memory = int(request.get("memory") or 0) or int(request.get("memory_per_cpu") or 0) * per_node * c
    if memory and all(place.memory and place.memory < memory for place in chosen):
        return NO_MEMORY
    asked = _devices_asked(request, per_node, nodes)
    if asked and all(place.devices < asked for place in chosen):
        return NO_GRES
    return ""


def _devices_asked(request: dict[str, Any], per_node: int, nodes: int) -> int:
    """Devices that the step needs on each node."""
    return max(
        int(request.get("gpus_per_node") or 0),
        int(request.get("gpus_per_task") or 0) * per_node,
        -(-int(request.get("gpus") or 0) // max(1, nodes)),
    )


def _eligible(request: dict[str, Any], places: list[Place], job: int) -> list[Place] | Never:
    names = {place.name for place in places}
    wanted = list(request.get("nodelist") or ())
    missing = [name for name in wanted if name not in names]
    if missing:
        return Never((f"Unable to create step for job {job}: {BAD_NODES}",))
    without = set(request.get("exclude") or ())
    relative = int(request.get("relative") or 0)
    chosen = [place for place in places[relative:] if place.name not in without]
    if wanted:
        order = {name: index for index, name in enumerate(dict.fromkeys(wanted))}
        first = [place for place in chosen if place.name in order]
        chosen = first if not request.get("nodes") or int(request["nodes"]) <= len(first) else first + [
            place for place in chosen if place.name not in order
        ]  # fmt: skip
    if not chosen:
        return Never((f"Unable to create step for job {job}: {BAD_NODES}",))
    return chosen


def _pick(
    chosen: list[Place],
    ntasks: int,
    nodes: int,
    c: int,
    per_node: int,
    *,
    exact: bool,
    shared: bool,
    over: bool,
    fixed: bool,
) -> list[Place] | Wait | Never:
    """The nodes to use: enough of them, free unless shared."""
    if shared:
        usable = chosen
    elif exact:
        usable = [place for place in chosen if place.free >= c] if not over else chosen
    else:
        usable = [place for place in chosen if place.free == place.cpus]
    for pool, answer in ((usable, "now"), (chosen, "later")):
        picked: list[Place] = []
        room = 0
        for place in pool:
            free = (place.free if answer == "now" and exact and not shared else place.cpus) // c
            slots = min(free, per_node) if per_node else free
            picked.append(place)
            room += slots
            enough = over or room >= ntasks
            if len(picked) >= nodes and enough:
                return picked if answer == "now" else Wait(BUSY)
            if fixed and len(picked) >= nodes and not enough:
                # the number of nodes was given: drop the smallest for a larger one
                picked.remove(min(picked, key=lambda each: each.cpus))
                room = sum(_slots(each, c, per_node) for each in picked)
    return Never((TOO_MANY,))


def _slots(place: Place, c: int, per_node: int) -> int:
    free = place.cpus // c
    return min(free, per_node) if per_node else free


def _counts(ntasks: int, room: list[int], per_node: int, pack: bool) -> list[int]:
    if per_node:
        counts = [0] * len(room)
        left = ntasks
        for index in range(len(room)):
            counts[index] = min(per_node, left)
            left -= counts[index]
        if left == 0:
            return counts
    return _block(ntasks, room, pack=pack)


def _block(ntasks: int, room: list[int], *, pack: bool = False) -> list[int]:
    """Round the nodes one by one, full ones left out until all are full; `pack`: one each, then fill in turn."""
    if not pack:
        return [len(ids) for ids in _deal(ntasks, room, 1)]
    counts = [1 if index < ntasks else 0 for index in range(len(room))]
    left = ntasks - sum(counts)
    for index, limit in enumerate(room):
        more = min(left, max(0, limit - counts[index]))
        counts[index] += more
        left -= more
    for index in range(left):
        counts[index % len(counts)] += 1
    return counts


def _number(
    counts: list[int], ntasks: int, distribution: str, plane: int, room: list[int], per_node: int
) -> list[list[int]]:
    """Task ids of each node."""
    tasks: list[list[int]] = [[] for _ in counts]
    if distribution.startswith("cyclic"):
        limits = list(room)
        if per_node:
            limits = [min(limit, per_node) if per_node * len(room) >= ntasks else limit for limit in limits]
        return _deal(ntasks, limits, 1)
    if distribution.startswith("plane") and plane:
        return _deal(ntasks, list(room), plane)
    number = 0
    for index, count in enumerate(counts):
        tasks[index] = list(range(number, number + count))
        number += count
    return tasks


def _deal(ntasks: int, limits: list[int], width: int) -> list[list[int]]:
    """Round the nodes, `width` tasks at a time, full ones left out until all are full; the rest goes round again."""
    tasks: list[list[int]] = [[] for _ in limits]
    number = 0
    while number < ntasks:
        before = number
        for index, limit in enumerate(limits):
            for _ in range(width):
                if number < ntasks and len(tasks[index]) < limit:
                    tasks[index].append(number)
                    number += 1
        if number == before:
            limits = [ntasks] * len(limits)
    return tasks
