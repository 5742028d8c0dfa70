"""Clusters to measure the scheduler core on: nodes, a tree of queues with quotas, running and waiting jobs, by scenario.

| scenario | what the cycle has to do |
|---|---|
| fill | a third of the devices are free: start what fits, in order |
| fair | most waiting jobs are of queues that have had more than their share |
| reclaim | the cluster is full of preemptible work above its quota; queues below theirs wait, small jobs and gangs |
| consolidate | every node has a device or two free, and jobs of whole nodes wait |
| backfill | the cluster is full, gangs lead the queue, and short jobs may pass them |
| topology | gangs that want to lie below one switch of a tree, some of them only for a while |

Deterministic by seed. At most 500 shapes wait, whatever their number; identity (user, account, length) comes on top.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import msgspec

from slurmbridge.model.accounts import Account, Accounting, Assoc, Qos, Quota, User
from slurmbridge.model.cluster import ClusterConfig, Device, NodeConf, Partition
from slurmbridge.model.job import Allocation, DeviceShare, GpuNeed, GpuScope, Job, JobSpec, NodeShare
from slurmbridge.model.request import JobRequest, Memory, MemoryPer
from slurmbridge.model.states import JobState
from slurmbridge.model.topology import Topology, TopologyUnit

SCENARIOS = ("fill", "fair", "reclaim", "consolidate", "backfill", "topology")
NOW = 1_700_000_000.0
CPUS_PER_GPU, MIB_PER_GPU = 12, 98_304
SHAPES = 500
NODES_PER_SWITCH = 16
SWITCHES_PER_SPINE = 8
SWITCH_WAITS = (300, 7 * 86_400)  # of jobs that came up to two days ago: over, and not over
LIMITS = (30, 60, 120, 240, 480, 1440, 2880)


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """How large the cluster and its queue are."""

    nodes: int = 1000
    gpus_per_node: int = 8
    queues: int = 200
    pending: int = 10_000
    running: int = 4000


class Shape(msgspec.Struct, frozen=True):
    """What a job asks for. `milli`: of each device."""

    nodes: int
    gpus: int
    milli: int = 1000
    cpus: int = 0
    switches: int = 0

    @property
    def devices(self) -> float:
        return self.nodes * self.gpus * self.milli / 1000


class World(msgspec.Struct, frozen=True, kw_only=True):
    """Records as the daemon would tell them."""

    config: ClusterConfig
    accounting: Accounting
    running: tuple[Job, ...]
    pending: tuple[Job, ...]
    more: tuple[Job, ...]  # that arrive in steady cycles


class Queue(msgspec.Struct, frozen=True):
    """A leaf of the tree, with the association of each of its users."""

    account: str
    quota: int  # devices
    users: tuple[tuple[str, int], ...]


def build(size: Size, scenario: str, seed: int = 1) -> World:
    """The whole cluster with its jobs."""
    rng = random.Random(f"{scenario} {seed}")
    accounting, queues = _tree(size)
    config = _config(size, scenario)
    jobs = _Jobs(rng, queues, scenario)
    running = tuple(jobs.running(size))
    waiting = jobs.pending(size, size.pending + max(size.pending // 4, 1000))
    pending, more = waiting[: size.pending], waiting[size.pending :]
    return World(config=config, accounting=accounting, running=running, pending=tuple(pending), more=tuple(more))


def _config(size: Size, scenario: str) -> ClusterConfig:
    cpus, memory = CPUS_PER_GPU * size.gpus_per_node, MIB_PER_GPU * size.gpus_per_node
    devices = tuple(Device(index=index, type="h100", memory_mib=81_920) for index in range(size.gpus_per_node))
    nodes = tuple(
        NodeConf(
            name=f"n{number}", cpus=cpus, sockets=2, cores_per_socket=cpus // 2, real_memory=memory, devices=devices,
            gres=f"gpu:h100:{size.gpus_per_node}", features=(f"switch{number // NODES_PER_SWITCH}",), index=number,
        )
        for number in range(size.nodes)
    )  # fmt: skip
    names = tuple(node.name for node in nodes)
    return ClusterConfig(
        nodes=nodes,
        partitions=(Partition(name="gpu", nodes=names, default=True, max_time=10_080, default_time=60),),
        gres_types=("gpu",),
        select_type_parameters=frozenset({"CR_CPU_MEMORY"}),
        accounting_tres=("gres/gpu",),
        enforce=frozenset({"associations", "limits", "qos"}),
        priority_weight_age=1000,
        priority_weight_fairshare=10_000,
        priority_weight_job_size=100,
        topology="topology/tree" if scenario == "topology" else "topology/default",
        topologies=(_tree_of_switches(names),) if scenario == "topology" else (),
        preempt_type="preempt/qos" if scenario in ("reclaim", "consolidate") else "preempt/none",
        preempt_mode="REQUEUE" if scenario in ("reclaim", "consolidate") else "OFF",
    )


def _tree_of_switches(names: tuple[str, ...]) -> Topology:
    """Leaf switches below spines below one core."""
    leaves = [
        TopologyUnit(name=f"leaf{number}", nodes=names[first : first + NODES_PER_SWITCH])
        for number, first in enumerate(range(0, len(names), NODES_PER_SWITCH))
    ]
    spines = [
        TopologyUnit(
            name=f"spine{number}", level=1, children=tuple(leaf.name for leaf in leaves[first : first + SWITCHES_PER_SPINE]),
            nodes=tuple(name for leaf in leaves[first : first + SWITCHES_PER_SPINE] for name in leaf.nodes),
        )
        for number, first in enumerate(range(0, len(leaves), SWITCHES_PER_SPINE))
    ]  # fmt: skip
    core = TopologyUnit(name="core", level=2, children=tuple(spine.name for spine in spines), nodes=names)
    return Topology(kind="tree", cluster_default=True, units=(*leaves, *spines, core))


def _tree(size: Size) -> tuple[Accounting, tuple[Queue, ...]]:
    """Departments of about fourteen projects, four users each; quotas add up to nine tenths of the devices."""
    whole = size.nodes * size.gpus_per_node
    departments = max(round(size.queues**0.5), 1)
    assocs = [Assoc(assoc_id=1, account="root", qos=("normal",))]
    users: list[User] = []
    queues: list[Queue] = []
    number = 2
    for department in range(departments):
        mine = range(department, size.queues, departments)
        name = f"department{department}"
        each = max(whole * 9 // 10 // size.queues, 1)
        quota = Quota(deserved=(("gres/gpu", 1000 * each * len(mine)),))
        assocs.append(Assoc(assoc_id=number, account=name, parent="root", quotas=(quota,)))
        number += 1
        for project in mine:
            account = f"project{project}"
            deserved = Quota(
                deserved=(("gres/gpu", 1000 * each),),
                over_quota_weight=float(1 + project % 3),
                priority=project % 4 // 3,
            )
            assocs.append(
                Assoc(assoc_id=number, account=account, parent=name, shares=1 + project % 3, quotas=(deserved,))
            )
            number += 1
            members = []
            for place in range(4):
                user = f"user{project}-{place}"
                assocs.append(Assoc(assoc_id=number, account=account, user=user))
                users.append(User(name=user, default_account=account))
                members.append((user, number))
                number += 1
            queues.append(Queue(account, each, tuple(members)))
    accounts = tuple(Account(name=assoc.account) for assoc in assocs if not assoc.user)
    return (
        Accounting(
            clusters=("cluster",), accounts=accounts, users=tuple(users), assocs=tuple(assocs),
            qos=(Qos(name="normal", qos_id=1),), next_assoc_id=number, next_qos_id=2,
        ),
        tuple(queues),
    )  # fmt: skip


class _Jobs:
    """Draws jobs. Each has a spec of its own, as they have when they come through the pipe: the planner interns them."""

    def __init__(self, rng: random.Random, queues: Sequence[Queue], scenario: str) -> None:
        self._rng, self._queues, self._scenario = rng, queues, scenario
        self._next = 1
        self._uids: dict[str, int] = {}

    def running(self, size: Size) -> Iterator[Job]:
        """Jobs on the devices that the scenario wants used: about as many as wished, fewer where they do not fit."""
        rng, slots = self._rng, size.gpus_per_node
        part = {"fill": 0.66, "fair": 0.9, "topology": 0.6, "consolidate": 0.82}.get(self._scenario, 1.0)
        budget = int(size.nodes * slots * part)
        least = 1 if self._scenario == "consolidate" else 0  # free devices on every node
        sizes = _spread(rng, size.running, budget, slots - least)
        free = [list(range(slots)) for _ in range(size.nodes)]
        by_free: dict[int, list[int]] = {slots: list(range(size.nodes))}
        packed = part == 1.0 or self._scenario == "topology"
        spread = self._scenario == "consolidate"
        greedy = self._scenario in ("reclaim", "fair")
        owners = self._queues[: max(len(self._queues) * 2 // 5, 1)] if greedy else self._queues
        for gpus in sorted(sizes, reverse=True):
            levels = [have for have in range(gpus + least, slots + 1) if by_free.get(have)]
            if not levels:
                continue
            if packed or spread:
                row = by_free[levels[-1] if spread else levels[0]].pop()
            else:  # anywhere, so that what is free lies about in pieces
                rows = rng.choices([by_free[have] for have in levels], [len(by_free[have]) for have in levels])[0]
                row = rows.pop(rng.randrange(len(rows)))
            devices = tuple(DeviceShare(index=free[row].pop(0), type="h100") for _ in range(gpus))
            by_free.setdefault(len(free[row]), []).append(row)
            first = CPUS_PER_GPU * devices[0].index
            limit = rng.choice(LIMITS)
            spec = self._spec(rng.choice(owners), Shape(1, gpus), limit, preemptible=rng.random() < 0.9)
            began = NOW - rng.random() * 30 * limit
            share = NodeShare(
                node=f"n{row}", cpus=CPUS_PER_GPU * gpus, cpu_ids=tuple(range(first, first + CPUS_PER_GPU * gpus)),
                memory_mib=MIB_PER_GPU * gpus, devices=devices,
            )  # fmt: skip
            tres = (
                ("cpu", share.cpus),
                ("mem", share.memory_mib),
                ("node", 1),
                ("billing", share.cpus),
                ("gres/gpu", 1000 * gpus),
            )
            yield Job(
                job_id=self._number(), spec=spec, state=JobState.RUNNING, submit_time=began - 600, eligible_time=began - 600,
                accrue_time=began - 600, start_time=began, time_limit_end=began + 60 * limit, batch_host=share.node,
                allocation=Allocation(partition="gpu", nodes=(share,), tres=tres),
            )  # fmt: skip

    def pending(self, size: Size, count: int) -> list[Job]:
        """Waiting jobs of at most SHAPES shapes."""
        rng = self._rng
        shapes = list(dict.fromkeys(self._shape(size) for _ in range(4 * SHAPES)))[:SHAPES]
        behind = self._queues[max(len(self._queues) * 2 // 5, 1) :] or self._queues
        found = []
        for _ in range(count):
            owners: Sequence[Queue] = self._queues
            if self._scenario == "reclaim" or (self._scenario == "fair" and rng.random() < 0.3):
                owners = behind
            elif self._scenario == "fair":
                owners = self._queues[: max(len(self._queues) * 2 // 5, 1)]
            spec = self._spec(
                rng.choice(owners), rng.choice(shapes), rng.choice(LIMITS), preemptible=rng.random() < 0.4
            )
            came = NOW - float(int(rng.random() * 172_800))
            found.append(Job(job_id=self._number(), spec=spec, submit_time=came, eligible_time=came, accrue_time=came))
        return found

    def _shape(self, size: Size) -> Shape:
        rng, slots = self._rng, size.gpus_per_node
        most = max(min(size.nodes // 4, 64), 1)
        kind = rng.random()
        cpus = rng.randint(1, CPUS_PER_GPU)
        if self._scenario == "consolidate" and kind < 0.5:
            return Shape(1, max(slots - rng.choice((0, 0, 1, 2)), 1), cpus=cpus)
        if self._scenario == "topology" and kind < 0.7:
            return Shape(min(rng.choice((2, 4, 8, 16)), most), slots, cpus=cpus, switches=1)
        if self._scenario in ("backfill", "reclaim") and kind < 0.2:
            return Shape(min(rng.choice((2, 4, 8, 16, 32)), most), slots, cpus=cpus)
        if kind < 0.45:
            return Shape(1, 1, rng.randrange(50, 960, 10), cpus=cpus)
        if kind < 0.5:
            return Shape(1, rng.choice((2, 4)) if slots >= 4 else 1, rng.choice((250, 500)), cpus=cpus)
        if kind < 0.85:
            return Shape(1, rng.choice([each for each in (1, 1, 2, 4) if each <= slots]), cpus=cpus)
        if kind < 0.95:
            return Shape(1, slots, cpus=cpus)
        return Shape(min(rng.choice((2, 4, 8)), most), slots, cpus=cpus)

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _spec(self, queue: Queue, shape: Shape, limit: int, *, preemptible: bool) -> JobSpec:
        user, assoc_id = self._rng.choice(queue.users)
        uid = self._uids.setdefault(user, 10_000 + len(self._uids))
        cpus = shape.gpus * (shape.cpus or CPUS_PER_GPU)
        memory = MIB_PER_GPU * shape.gpus if shape.milli == 1000 else MIB_PER_GPU * shape.gpus // 4
        tres = (
            ("cpu", cpus * shape.nodes), ("mem", memory * shape.nodes), ("node", shape.nodes),
            ("billing", cpus * shape.nodes), ("gres/gpu", shape.nodes * shape.gpus * shape.milli),
        )  # fmt: skip
        return JobSpec(
            request=JobRequest(), uid=uid, gid=uid, user=user, group=user, account=queue.account, assoc_id=assoc_id,
            partitions=("gpu",), name="train", work_dir="/home", time_limit=limit, min_nodes=shape.nodes,
            max_nodes=shape.nodes, num_tasks=shape.nodes, ntasks_given=True, ntasks_per_node=1, cpus_per_task=cpus,
            cpus_per_task_given=True, min_cpus=cpus * shape.nodes, pn_min_cpus=cpus,
            memory=Memory(MemoryPer.NODE, memory), req_tres=tres, preemptible=preemptible, switches=shape.switches,
            switches_wait=SWITCH_WAITS[cpus % 2] if shape.switches else 0,
            gpu=GpuNeed(scope=GpuScope.NODE, count=shape.gpus, milli=shape.milli),
        )  # fmt: skip


def _spread(rng: random.Random, count: int, budget: int, slots: int) -> list[int]:
    """`count` sizes of whole devices that add up to about `budget`: small ones, some of which grow."""
    sizes = [1] * min(count, budget)
    left = budget - len(sizes)
    steps = [each for each in (2, 4, 8) if each <= slots]
    places = list(range(len(sizes)))
    rng.shuffle(places)
    for place in places:
        if left <= 0 or not steps:
            break
        wanted = min(rng.choice(steps) if left > len(sizes) // 4 else steps[0], left + 1)
        left -= wanted - sizes[place]
        sizes[place] = wanted
    return sizes
