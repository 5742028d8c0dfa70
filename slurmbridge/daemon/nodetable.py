"""The nodes as they stand: what is configured, what an operator said, what a cluster says, and what running jobs hold.

Amounts in use are kept by adding and taking away allocations; `Node` records are built when somebody looks, and kept
until something about that node changes. What the operator said and how the cluster says a node is are kept apart, so that
neither ever undoes the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.model.cluster import Health, Node, NodeConf, Others, Taken
from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.request import Exclusive
from slurmbridge.model.states import JobFlag, NodeBase, NodeFlag

_CLOSED = (NodeBase.DOWN, NodeBase.FUTURE, NodeBase.ERROR)
_ADMIN_FLAGS = {NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.MAINTENANCE, NodeFlag.NOT_RESPONDING}
_WELL = Health()


class _Use:
    """What runs on one node."""

    __slots__ = ("cpus", "devices", "jobs", "memory", "owner")

    def __init__(self) -> None:
        self.cpus = 0
        self.memory = 0
        self.devices: dict[int, tuple[int, int]] = {}  # index -> (milli, mib)
        self.jobs: dict[int, bool] = {}  # job id -> completing
        self.owner: dict[int, int] = {}  # job id -> uid of exclusive=user jobs


def _configured(conf: NodeConf, now: float) -> Node:
    """A node that nobody has said anything about but the configuration (State= and DownNodes lines)."""
    words = set(conf.state.upper().split("+"))
    base = next((b for b in _CLOSED if b.value in words), NodeBase.IDLE)
    flags = {flag for flag in _ADMIN_FLAGS if flag.value in words}
    if words & {"DRAINED", "DRAINING"}:
        flags.add(NodeFlag.DRAIN)
    if "FAILING" in words:
        flags.add(NodeFlag.FAIL)
    unusable = base is not NodeBase.IDLE or bool(flags)
    return Node(
        conf=conf,
        base=base,
        flags=frozenset(flags),
        reason=conf.reason,
        reason_uid=0 if unusable and conf.reason else None,
        reason_time=now if unusable and conf.reason else None,
        features_active=conf.features,
        slurmd_start_time=now,
        last_busy_time=now,
        comment=conf.comment,
    )


class NodeTable:
    def __init__(self, confs: Sequence[NodeConf], now: float) -> None:
        self._base: dict[str, Node] = {}
        self._use: dict[str, _Use] = {}
        self._built: dict[str, Node] = {}
        self._parted: dict[str, Node] = {}  # what an operator said of nodes that are not there now
        self._health: dict[str, Health] = {}
        self._taken: dict[str, Taken] = {}
        self.shifted: Callable[[str], None] = lambda name: None  # beside our jobs others have something else of it now
        self.emptied: Callable[[str], None] = lambda name: None  # the last job is gone
        self.configure(confs, now)

    def configure(self, confs: Sequence[NodeConf], now: float) -> None:
        """Nodes of the (new) configuration; states of those that stay are kept."""
        base: dict[str, Node] = {}
        for conf in confs:
            known = self._base.get(conf.name) or self._parted.pop(conf.name, None)
            if known is not None:
                base[conf.name] = replace(known, conf=conf, features_active=conf.features)
                continue
            base[conf.name] = _configured(conf, now)
        for name, node in self._base.items():
            if name not in base:
                self.remember(node)
        self._base = base
        still_busy = {name: use for name, use in self._use.items() if use.jobs and name not in base}
        self._use = {name: self._use.get(name) or _Use() for name in base} | still_busy
        self._built.clear()

    def remember(self, node: Node) -> None:
        """What an operator said of a node that is not there: it goes on when the node comes back."""
        if node.base in _CLOSED or node.flags & _ADMIN_FLAGS - {NodeFlag.NOT_RESPONDING}:
            self._parted[node.name] = replace(node, flags=node.flags - {NodeFlag.NOT_RESPONDING})

    def resize(self, conf: NodeConf) -> None:
        """A node that is there has other sizes or features."""
        self._base[conf.name] = replace(self._base[conf.name], conf=conf, features_active=conf.features)
        self._built.pop(conf.name, None)

    def tell_health(self, states: Mapping[str, Health]) -> list[str]:
        """How the cluster says its nodes are, all of them; those that it says something else of than before."""
        changed = [
            name for name in self._base if states.get(name, Health()) != self._health.get(name, Health())
        ]  # fmt: skip
        self._health = {name: states[name] for name in self._base if name in states}
        self._forget(changed)
        return changed

    def tell_taken(self, amounts: Mapping[str, Taken]) -> list[str]:
        """What others have of the nodes, all of them; those of which they have something else than before."""
        changed = [name for name in self._base if amounts.get(name, Taken()) != self._taken.get(name, Taken())]
        self._taken = {name: amounts[name] for name in self._base if name in amounts}
        self._forget(changed)
        return changed

    def describe(self, name: str, *, os: str, arch: str) -> None:
        """What the machine says that it is."""
        self._base[name] = replace(self._base[name], os=os, arch=arch)
        self._built.pop(name, None)

    def health(self, name: str) -> Health:
        return self._health.get(name, Health())

    def busy(self) -> Iterable[str]:
        """Nodes that jobs hold something of, there or not."""
        return (name for name, use in self._use.items() if use.jobs)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._built.pop(name, None)

    def names(self) -> Iterable[str]:
        return self._base.keys()

    def admin(self, name: str) -> Node | None:
        """The record without amounts in use: what an operator's update changes and the store keeps."""
        return self._base.get(name)

    def put_admin(self, node: Node) -> None:
        """`base` DOWN and the operator's flags count; the rest of the state is derived."""
        self._base[node.conf.name] = replace(
            node,
            base=node.base if node.base in _CLOSED else NodeBase.IDLE,
            flags=frozenset(node.flags & _ADMIN_FLAGS),
            alloc_cpus=0,
            alloc_memory=0,
            alloc_devices=(),
            running_jobs=(),
            completing_jobs=(),
        )
        self._built.pop(node.conf.name, None)

    def account(self, before: Job | None, after: Job | None, now: float) -> None:
        """A job changed: its old holdings go, its new ones come."""
        old = before if before is not None and holds_resources(before) else None
        new = after if after is not None and holds_resources(after) else None
        if old is None and new is None:
            return
        if old is not None and new is not None and old.allocation is new.allocation and old.flags == new.flags:
            if old.is_without_cpus == new.is_without_cpus:
                return
        held = [job.allocation for job in (old, new) if job is not None and job.allocation is not None]
        names = {share.node for allocation in held for share in allocation.nodes} & self._taken.keys()
        others_were = {name: self._others(name) for name in names}
        if old is not None:
            self._apply(old, -1, now)
        if new is not None:
            self._apply(new, 1, now)
        for name, others in others_were.items():
            if self._others(name) != others:
                self.shifted(name)

    def _apply(self, job: Job, sign: int, now: float) -> None:
        assert job.allocation is not None
        for share in job.allocation.nodes:
            use = self._use.get(share.node)
            if use is None:
                continue
            use.cpus += 0 if job.is_without_cpus else sign * share.cpus
            use.memory += sign * share.memory_mib
            for device in share.devices:
                milli, mib = use.devices.get(device.index, (0, 0))
                milli, mib = milli + sign * device.milli, mib + sign * device.mib
                if milli or mib:
                    use.devices[device.index] = (milli, mib)
                else:
                    use.devices.pop(device.index, None)
            if sign > 0:
                use.jobs[job.job_id] = JobFlag.COMPLETING in job.flags
                if job.spec.exclusive is Exclusive.USER:
                    use.owner[job.job_id] = job.spec.uid
            else:
                use.jobs.pop(job.job_id, None)
                use.owner.pop(job.job_id, None)
                if not use.jobs:
                    if share.node in self._base:
                        self._base[share.node] = replace(self._base[share.node], last_busy_time=now)
                    self.emptied(share.node)
            self._built.pop(share.node, None)

    def _others(self, name: str) -> Others:
        """What is in other hands than our jobs'."""
        base, taken = self._base.get(name), self._taken.get(name)
        return Others() if base is None or taken is None else _others(base.conf, self._use[name], taken)

    def has_room(self, allocation: Allocation, *, shared_cpus: bool = False) -> bool:
        """Whether everything of it is still free (checked again inside the commit).

        shared_cpus: the partition puts several jobs on one CPU (OverSubscribe=FORCE or YES)."""
        for share in allocation.nodes:
            base, use = self._base.get(share.node), self._use.get(share.node)
            if base is None or use is None or self._is_closed(base):
                return False
            others = self._others(share.node)
            if use.cpus + others.cpus + share.cpus > base.conf.effective_cpus and not shared_cpus:
                return False
            if use.memory + others.memory + share.memory_mib > base.conf.real_memory:
                return False
            for device in share.devices:
                if use.devices.get(device.index, (0, 0))[0] + device.milli > 1000 or device.index in others.devices:
                    return False
        return True

    def _is_closed(self, base: Node) -> bool:
        health = self._health.get(base.name, _WELL)
        by_cluster = health.is_down or health.drains or health.is_silent
        return by_cluster or base.base in _CLOSED or bool(base.flags & _ADMIN_FLAGS)

    def measured(
        self, name: str, *, responding: bool, free_memory: int | None, load: float | None, **more: object
    ) -> bool:
        """A sample of the runtime; True when the node stopped or began to respond."""
        node = self._base.get(name)
        if node is None:
            return False
        flags = node.flags - {NodeFlag.NOT_RESPONDING} if responding else node.flags | {NodeFlag.NOT_RESPONDING}
        changed = flags != node.flags
        self._base[name] = replace(
            node,
            flags=frozenset(flags),
            free_memory=free_memory,
            cpu_load=load,
            **more,
        )
        self._built.pop(name, None)
        return changed

    def get(self, name: str) -> Node | None:
        built = self._built.get(name)
        if built is not None:
            return built
        base = self._base.get(name)
        if base is None:
            return None
        health = self._health.get(name)
        node = base if health is None else _with_health(base, health)
        taken = self._taken.get(name)
        if taken is not None and taken.trouble and not node.reason:  # in work, and this is why it lacks something
            node = replace(node, reason=taken.trouble)
        built = self._built[name] = self._build(node, self._use[name], taken)
        return built

    def by_operator(self, name: str) -> Node | None:
        """The node as if no cluster said anything of it: what an operator's update starts from."""
        base = self._base.get(name)
        return None if base is None else self._build(base, self._use[name], None)

    def all(self) -> Sequence[Node]:
        """In configuration order."""
        return [node for name in self._base if (node := self.get(name)) is not None]

    @staticmethod
    def _build(base: Node, use: _Use, taken: Taken | None) -> Node:
        others = Others() if taken is None else _others(base.conf, use, taken)
        running = tuple(job for job, completing in use.jobs.items() if not completing)
        completing = tuple(job for job, is_completing in use.jobs.items() if is_completing)
        state, flags = base.base, set(base.flags)
        if state not in _CLOSED:
            whole = use.cpus + others.cpus >= base.conf.effective_cpus
            if running:
                state = NodeBase.ALLOCATED if whole else NodeBase.MIXED
            elif completing:
                state = NodeBase.IDLE
        if completing:
            flags.add(NodeFlag.COMPLETING)
        return replace(
            base,
            base=state,
            flags=frozenset(flags),
            alloc_cpus=use.cpus,
            alloc_memory=use.memory,
            alloc_devices=tuple((index, *amounts) for index, amounts in sorted(use.devices.items())),
            running_jobs=running,
            completing_jobs=completing,
            owner_uid=next(iter(use.owner.values()), None),
            others=others,
        )


def _with_health(node: Node, health: Health) -> Node:
    """A reason that an operator gave goes before the cluster's."""
    flags = set(node.flags)
    flags |= {NodeFlag.DRAIN} if health.drains else set()
    flags |= {NodeFlag.NOT_RESPONDING} if health.is_silent else set()
    base = NodeBase.DOWN if health.is_down and node.base not in _CLOSED else node.base
    changed = replace(node, base=base, flags=frozenset(flags))
    if node.reason or not health.reason:
        return changed
    return replace(changed, reason=health.reason, reason_uid=health.uid, reason_time=health.since)


def _others(conf: NodeConf, use: _Use, taken: Taken) -> Others:
    """Of devices those that are known, whoever has them, else the last ones that no job of ours has."""
    indexes: list[int] = []
    for resource, count in taken.devices:
        every = [each.index for each in conf.devices if each.resource == resource]
        known = [index for index in every if index in taken.slots]
        free = [index for index in every if index not in use.devices and index not in known]
        indexes += known + free[max(len(free) - max(count - len(known), 0), 0) :]
    cpus = taken.cpus
    if taken.jobs is not None and len(use.jobs) >= taken.jobs:
        cpus = max(conf.effective_cpus - use.cpus, cpus)
    return Others(cpus=cpus, memory=taken.memory, devices=tuple(sorted(indexes)), drained=_drained(conf, taken))


def _drained(conf: NodeConf, taken: Taken) -> str:
    kinds = {device.resource: device.type for device in conf.devices}
    return ",".join(
        f"gpu:{kind}:{count}" if (kind := kinds[resource]) else f"gpu:{count}" for resource, count in taken.bad
    )
