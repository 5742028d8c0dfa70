"""Everything the controller knows, in memory: the `Site` that commands read.

Only the event loop touches it. What is in here was committed to the store, or is about to be: `daemon.core` keeps the
order (memory first, answer after the commit).
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from slurmbridge.daemon.accrual import is_limited
from slurmbridge.daemon.jobtable import JobTable, holds_resources
from slurmbridge.daemon.names import Names
from slurmbridge.daemon.nodetable import NodeTable
from slurmbridge.daemon.spending import with_running
from slurmbridge.daemon.tally import Tally
from slurmbridge.daemon.zones import zone
from slurmbridge.model.accounts import Accounting, UsageRow
from slurmbridge.model.capabilities import VIRTUAL_NODES
from slurmbridge.model.cluster import ClusterConfig, Node, Partition
from slurmbridge.model.job import Job, Step
from slurmbridge.model.plan import Reservation
from slurmbridge.model.statistics import Statistics
from slurmbridge.submit import associations, lifting
from slurmbridge.submit.relative import absolute


class Memory:
    """Implements `commands.effects.Site`."""

    def __init__(
        self,
        config: ClusterConfig,
        names: Names,
        *,
        owner_uid: int,
        host: str,
        now: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self.names = names
        self.capabilities = VIRTUAL_NODES
        self.owner_uid = owner_uid  # who started the daemon
        self.daemon_host = host
        self.start_time = now
        self.accounting = Accounting()
        self.table = JobTable()
        self.node_table = NodeTable(config.nodes, now)
        self.partition_list: list[Partition] = list(config.partitions)
        self.reservation_list: list[Reservation] = []
        self.usage_rows: dict[int, UsageRow] = {}
        self.counted: tuple[UsageRow, ...] = ()
        self._lifted: tuple[object, dict[str, tuple[str, ...]]] = (None, {})
        self._accruing: tuple[object, object, bool] = (None, None, False)
        self._limiting: tuple[tuple[object, ...], Accounting] = ((), self.accounting)
        self.counted_at = now  # until when use of runs that go on counts
        self._licenses: dict[str, int] = {}
        self.tally = Tally(clock)
        self.tally.user_name = names.user_name

    # ---- jobs ----

    def job(self, job_id: int) -> Job | None:
        return self.table.get(job_id)

    def jobs(self) -> Iterable[Job]:
        return self.table.all()

    def jobs_of_array(self, array_job_id: int) -> Sequence[Job]:
        return self.table.of_array(array_job_id)

    def jobs_of_het(self, het_job_id: int) -> Sequence[Job]:
        return self.table.of_het(het_job_id)

    def steps(self, job_id: int) -> Sequence[Step]:
        return self.table.steps(job_id)

    def count_licenses(self, before: Job | None, after: Job | None) -> None:
        """A job changed: keep the licences in use."""
        for job, sign in ((before, -1), (after, 1)):
            if job is not None and holds_resources(job) and job.allocation is not None:
                for term in job.allocation.licenses:
                    self._licenses[term.name] = self._licenses.get(term.name, 0) + sign * term.count

    # ---- the cluster ----

    def nodes(self) -> Sequence[Node]:
        return self.node_table.all()

    def node(self, name: str) -> Node | None:
        return self.node_table.get(name)

    def partitions(self) -> Sequence[Partition]:
        return self.partition_list

    def partition(self, name: str) -> Partition | None:
        return next((p for p in self.partition_list if p.name == name), None)

    def reservations(self) -> Sequence[Reservation]:
        return self.reservation_list

    def licenses_used(self) -> Mapping[str, int]:
        return self._licenses

    def usage(self) -> Sequence[UsageRow]:
        """Of associations, and of runs until the last count."""
        return tuple(row for row in self.all_usage() if row.assoc_id > 0)

    def all_usage(self) -> tuple[UsageRow, ...]:
        """That of QOS too."""
        partitions = {each.name: each for each in self.partition_list}
        return with_running(self.usage_rows, self.table, self.accounting, partitions, self.counted_at)

    def counted_usage(self) -> Sequence[UsageRow]:
        return self.counted

    @property
    def limits_accruing(self) -> bool:
        """Whether only so many jobs may grow older."""
        accounting, config, limited = self._accruing
        if accounting is not self.accounting or config is not self.config:
            limited = is_limited(self.accounting, self.config)
            self._accruing = self.accounting, self.config, limited
        return limited

    def lifted(self) -> Mapping[str, tuple[str, ...]]:
        """Limits of partitions that QOS lift."""
        if self._lifted[0] is not self.accounting:
            self._lifted = self.accounting, lifting.by_qos(self.accounting)
        return self._lifted[1]

    def limiting(self) -> Accounting:
        """The entities with the limits of relative QOS in plain numbers."""
        known, made = self._limiting
        of = (self.accounting, self.config, *self.partition_list)
        if len(known) != len(of) or any(one is not other for one, other in zip(known, of, strict=True)):
            made = absolute(self.accounting, self.config, self.partition_list)
            self._limiting = of, made
        return made

    def count_usage(self, now: float) -> None:
        """Fair-share factors are made of this until the next count."""
        self.counted_at = now
        self.counted = tuple(self.usage())

    def statistics(self) -> Statistics:
        return self.tally.view(self.table.all())

    def time_zone(self, name: str) -> datetime.tzinfo:
        """Of the caller's TZ; the machine's when it is empty."""
        return zone(name)

    # ---- people ----

    def user_name(self, uid: int) -> str:
        return self.names.user_name(uid)

    def user_id(self, name: str) -> int | None:
        return self.names.user_id(name)

    def group_name(self, gid: int) -> str:
        return self.names.group_name(gid)

    def group_id(self, name: str) -> int | None:
        return self.names.group_id(name)

    def groups_of(self, user: str) -> Sequence[str]:
        return self.names.group_names(user)

    def is_admin(self, uid: int) -> bool:
        return self.is_master(uid) or associations.admin_level(self.accounting, self.user_name(uid)) == "Administrator"

    def is_operator(self, uid: int) -> bool:
        return self.is_master(uid) or associations.admin_level(self.accounting, self.user_name(uid)) != "None"

    def coordinates(self, uid: int, account: str) -> bool:
        return associations.coordinates(self.accounting, self.user_name(uid), account)

    def is_master(self, uid: int) -> bool:
        """root, SlurmUser, and the owner of a personal daemon."""
        return uid == 0 or uid == self.owner_uid or uid == self.names.user_id(self.config.slurm_user)
