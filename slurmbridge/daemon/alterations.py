"""Alter effects: nodes, partitions, reservations, accounting entities and the configuration itself."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from slurmbridge.commands import quotas
from slurmbridge.commands.effects import Alter, AlterOutcome, Call
from slurmbridge.commands.update_fields import apply_node_update, apply_partition_update, apply_reservation
from slurmbridge.daemon.core import Core
from slurmbridge.daemon.fleet import Fleet
from slurmbridge.daemon.resetting import UsageResets
from slurmbridge.errors import ConfigError, SlurmErrno
from slurmbridge.lang.hostlist import expand
from slurmbridge.lifecycle.ends import Death
from slurmbridge.model.accounts import UsageRow
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.fleet import FleetConfig
from slurmbridge.model.states import NodeBase
from slurmbridge.store.protocol import Op, PutAccounting, PutMark, PutNodes, PutPartitions, PutReservations, PutUsage

log = logging.getLogger(__name__)

Answer = asyncio.Future[AlterOutcome]


PARTITIONS_OF = "partitions_of"
"""Name of the mark that says to which configuration changed partitions belong: a changed file goes before them."""


def partitions_digest(config: ClusterConfig) -> str:
    """Of what a file says of them: which nodes a cluster has for them is no part of it."""
    said = config.partitions
    if isinstance(config, FleetConfig):
        said = tuple(replace(partition, nodes=()) for partition in said)
    return hashlib.sha256(msgspec.msgpack.encode(said)).hexdigest()


class Alterations:
    def __init__(
        self,
        core: Core,
        tell_planner: Callable[[], None],
        node_changed: Callable[[str], None],
        resets: UsageResets,
        accrue_anew: Callable[[], None],
        fail_jobs: Callable[[str, Death], None],
        read_config: Callable[[], ClusterConfig],
        take_config: Callable[[ClusterConfig], None],
        shut_down: Callable[[bool], None],
    ) -> None:
        self.core = core
        self._tell_planner, self._node_changed, self._fail_jobs = tell_planner, node_changed, fail_jobs
        self._resets, self._accrue_anew = resets, accrue_anew
        self._read_config, self._take_config, self._shut_down = read_config, take_config, shut_down
        self.fleet: Fleet | None = None  # where nodes come from a cluster

    def alter(self, call: Call, alter: Alter) -> Answer:
        if alter.kind == "accounting":
            return self._accounting(alter)
        if not self._may(call, alter):
            denied = SlurmErrno.USER_ID_MISSING if alter.kind == "reconfigure" else SlurmErrno.ACCESS_DENIED
            return _now(AlterOutcome(errno=denied))
        match alter.kind:
            case "node":
                return self._node(call, alter)
            case "partition":
                return self._partition(alter)
            case "reservation":
                return self._reservation(alter)
            case "reconfigure":
                return asyncio.get_running_loop().create_task(self._reconfigure())
            case "statistics":
                self.core.memory.tally.reset()
                return _now(AlterOutcome())
            case "debug":
                return _now(AlterOutcome())
            case "shutdown":
                self._shut_down(bool(dict(alter.fields).get("jobs")))
                return _now(AlterOutcome())
        return _now(AlterOutcome(errno=SlurmErrno.NOT_SUPPORTED))

    def _may(self, call: Call, alter: Alter) -> bool:
        memory = self.core.memory
        if alter.kind == "reservation":
            return memory.is_operator(call.uid)
        return memory.is_admin(call.uid)

    def _accounting(self, alter: Alter) -> Answer:
        """The command checked rights on what it read; the revision proves that it read the latest."""
        memory = self.core.memory
        if alter.verb == "reset_usage":
            return self._reset_usage(alter)
        wanted = alter.accounting
        if wanted is None or wanted.revision != memory.accounting.revision:
            return _now(AlterOutcome(conflict=True))
        if wanted.assocs != memory.accounting.assocs:
            memory.count_usage(self.core.clock())
        memory.accounting = replace(wanted, revision=wanted.revision + 1)
        self._accrue_anew()
        self._tell_planner()
        return self._after([PutAccounting(accounting=memory.accounting, transactions=alter.transactions)])

    def _reset_usage(self, alter: Alter) -> Answer:
        """`RawUsage=0`: forget what these associations used."""
        memory = self.core.memory
        now = self.core.clock()
        ids = dict(alter.fields).get("assoc_ids", ())
        rows = tuple(UsageRow(assoc_id=number, as_of=now) for number in ids)
        memory.usage_rows.update({row.assoc_id: row for row in rows})
        self._tell_planner()
        return self._after(
            [PutUsage(rows=rows), PutAccounting(accounting=memory.accounting, transactions=alter.transactions)]
        )

    def _node(self, call: Call, alter: Alter) -> Answer:
        memory = self.core.memory
        names = list(memory.node_table.names()) if alter.target.upper() == "ALL" else expand(alter.target)
        if not names:
            return _now(AlterOutcome(errno=SlurmErrno.INVALID_NODE_NAME))
        changed = []
        for name in names:
            node = memory.node_table.by_operator(name)
            if node is None:
                return _now(AlterOutcome(errno=SlurmErrno.INVALID_NODE_NAME))
            after = apply_node_update(node, alter.fields, now=self.core.clock(), uid=call.uid)
            if isinstance(after, SlurmErrno):
                why = self.fleet.why_not_resumed(name) if self.fleet is not None else ""
                detail = f"{after.text}: {why}" if why and after is SlurmErrno.NODE_TRANSITION else ""
                return _now(AlterOutcome(errno=after, detail=detail))
            changed.append((node, after))
        for node, after in changed:
            memory.node_table.put_admin(after)
            self._node_changed(after.conf.name)
            if after.base is NodeBase.DOWN and node.base is not NodeBase.DOWN:
                self._fail_jobs(after.conf.name, Death.NODE_FAIL)
        names = [after.conf.name for _, after in changed]
        records = [record for name in names if (record := memory.node_table.admin(name)) is not None]
        shown = [node for name in names if (node := memory.node(name)) is not None]
        answer = self._after([PutNodes(nodes=tuple(records), shown=tuple(shown))])
        if self.fleet is not None:
            self.fleet.cordon(names)
        return answer

    def _partition(self, alter: Alter) -> Answer:
        memory = self.core.memory
        present = memory.partition(alter.target)
        if alter.verb == "delete":
            if present is None:
                return _now(AlterOutcome(errno=SlurmErrno.INVALID_PARTITION_NAME))
            if any(alter.target in job.spec.partitions and not job.is_finished for job in memory.jobs()):
                return _now(AlterOutcome(errno=SlurmErrno.PARTITION_IN_USE))
            memory.partition_list = [p for p in memory.partition_list if p.name != alter.target]
        else:
            if (present is None) != (alter.verb == "create"):
                return _now(AlterOutcome(errno=SlurmErrno.INVALID_PARTITION_NAME))
            known = tuple(memory.node_table.names())
            after = apply_partition_update(present, alter.target, alter.fields, known)
            if isinstance(after, SlurmErrno):
                return _now(AlterOutcome(errno=after))
            if not {after.qos, *after.allow_qos, *after.deny_qos} <= {"", *(qos.name for qos in memory.accounting.qos)}:
                return _now(AlterOutcome(errno=SlurmErrno.INVALID_QOS))
            if present is None:
                memory.partition_list.append(replace(after, index=len(memory.partition_list)))
            else:
                memory.partition_list = [after if p.name == alter.target else p for p in memory.partition_list]
            if after.default:
                memory.partition_list = [
                    p if p.name == alter.target else replace(p, default=False) for p in memory.partition_list
                ]
        self._tell_planner()
        mark = PutMark(name=PARTITIONS_OF, value=partitions_digest(memory.config))
        return self._after([PutPartitions(partitions=tuple(memory.partition_list)), mark])

    def _reservation(self, alter: Alter) -> Answer:
        memory = self.core.memory
        result = apply_reservation(
            tuple(memory.reservation_list), alter.verb, alter.target, alter.fields, memory, now=self.core.clock()
        )
        if isinstance(result, SlurmErrno):
            return _now(AlterOutcome(errno=result))
        reservations, name = result
        memory.reservation_list = list(reservations)
        self._tell_planner()
        return self._after([PutReservations(reservations=tuple(reservations))], detail=name)

    async def _reconfigure(self) -> AlterOutcome:
        """A bad new file is refused whole and the old configuration stays. Jobs and states of nodes are kept."""
        memory = self.core.memory
        try:
            config = await asyncio.get_running_loop().run_in_executor(None, self._read_config)
        except ConfigError as fault:
            log.warning("event=reconfigure.refused reason=%s", fault)
            return AlterOutcome(errno=SlurmErrno.INTERNAL, detail=str(fault))
        if config.cluster_name != memory.config.cluster_name:
            was, now = memory.config.cluster_name, config.cluster_name
            return AlterOutcome(
                errno=SlurmErrno.INTERNAL,
                detail=f"ClusterName={now}: this is the controller of {was}; another cluster needs another state folder",
            )
        if self.fleet is not None:
            config = self.fleet.complete(config)
        self._resets.before(config)
        memory.config = config
        self._resets.begin()
        self._accrue_anew()
        memory.node_table.configure(config.nodes, self.core.clock())
        memory.partition_list = list(config.partitions)
        self.core.ids.following = max(self.core.ids.following, config.first_job_id)
        self.core.ids.maximum = config.max_job_id
        self._take_config(config)
        self._tell_planner()
        for who, pool in quotas.without_pool(memory.accounting, config):
            log.warning("event=quota.without_pool who=%s pool=%s", who, pool)
        log.info("event=reconfigured nodes=%d partitions=%d", len(config.nodes), len(config.partitions))
        return await self._after([PutPartitions(partitions=())])

    def _after(self, ops: list[Op], detail: str = "") -> Answer:
        future: Answer = asyncio.get_running_loop().create_future()
        durable = self.core.journal.write(ops)

        def settle(done: asyncio.Future[None]) -> None:
            if future.done():
                return
            fault = done.exception()
            if fault is not None:
                future.set_exception(fault)
            else:
                future.set_result(AlterOutcome(detail=detail))

        durable.add_done_callback(settle)
        return future


def _now(outcome: AlterOutcome) -> Answer:
    future: Answer = asyncio.get_running_loop().create_future()
    future.set_result(outcome)
    return future
