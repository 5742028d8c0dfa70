"""The nodes as they stand: what is configured, what an operator said, and what running jobs hold.

Amounts in use are kept by adding and taking away allocations; `Node` records are built when somebody looks, and kept
until something about that node changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.model.cluster import Node, NodeConf
from slurmbridge.model.job import Allocation, Job
from slurmbridge.model.request import Exclusive
from slurmbridge.model.states import JobFlag, NodeBase, NodeFlag

_CLOSED = (NodeBase.DOWN, NodeBase.FUTURE, NodeBase.ERROR)
_ADMIN_FLAGS = {NodeFlag.DRAIN, NodeFlag.FAIL, NodeFlag.MAINTENANCE, NodeFlag.NOT_RESPONDING}


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
        self.configure(confs, now)

    def configure(self, confs: Sequence[NodeConf], now: float) -> None:
        """Nodes of the (new) configuration; states of those that stay are kept."""
        base: dict[str, Node] = {}
        for conf in confs:
            known = self._base.get(conf.name)
            if known is not None:
                base[conf.name] = replace(known, conf=conf, features_active=conf.features)
                continue
            base[conf.name] = _configured(conf, now)
        self._base = base
        still_busy = {name: use for name, use in self._use.items() if use.jobs and name not in base}
        self._use = {name: self._use.get(name) or _Use() for name in base} | still_busy
        self._built.clear()

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
        if old is not None:
            self._apply(old, -1, now)
        if new is not None:
            self._apply(new, 1, now)

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
                if not use.jobs and share.node in self._base:
                    self._base[share.node] = replace(self._base[share.node], last_busy_time=now)
            self._built.pop(share.node, None)

    def has_room(self, allocation: Allocation, *, shared_cpus: bool = False) -> bool:
        """Whether everything of it is still free (checked again inside the commit).

        shared_cpus: the partition puts several jobs on one CPU (OverSubscribe=FORCE or YES)."""
        for share in allocation.nodes:
            base, use = self._base.get(share.node), self._use.get(share.node)
            if base is None or use is None or base.base in _CLOSED or base.flags & _ADMIN_FLAGS:
                return False
            if use.cpus + share.cpus > base.conf.cpus and not shared_cpus:
                return False
            if use.memory + share.memory_mib > base.conf.real_memory:
                return False
            for device in share.devices:
                if use.devices.get(device.index, (0, 0))[0] + device.milli > 1000:
                    return False
        return True

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
        built = self._built[name] = self._build(base, self._use[name])
        return built

    def all(self) -> Sequence[Node]:
        """In configuration order."""
        return [node for name in self._base if (node := self.get(name)) is not None]

    @staticmethod
    def _build(base: Node, use: _Use) -> Node:
        running = tuple(job for job, completing in use.jobs.items() if not completing)
        completing = tuple(job for job, is_completing in use.jobs.items() if is_completing)
        state, flags = base.base, set(base.flags)
        if state not in _CLOSED:
            whole = use.cpus >= base.conf.cpus - base.conf.core_spec_count
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
        )
