"""The controller: memory, core, plans, runs and requests put together, whatever stores, plans and runs beneath it.

The daemon composes it with the store on disk, the planner's process and a real runtime; tests with the shipped fakes.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable

from msgspec.structs import replace

from slurmbridge.daemon.accruing import Accruing
from slurmbridge.daemon.alterations import PARTITIONS_OF, Alterations, partitions_digest
from slurmbridge.daemon.attached import Attached
from slurmbridge.daemon.changes import Changes
from slurmbridge.daemon.core import Core, Ids
from slurmbridge.daemon.deadlines import end_missed
from slurmbridge.daemon.evictions import Evictions
from slurmbridge.daemon.fleet import Fleet, Source
from slurmbridge.daemon.jobtable import holds_resources
from slurmbridge.daemon.journal import Journal
from slurmbridge.daemon.mail import Mailer
from slurmbridge.daemon.memory import Memory
from slurmbridge.daemon.output_shelf import Writer
from slurmbridge.daemon.overruns import end_overrun
from slurmbridge.daemon.performing import Estimate, ExplanationOf, FactorsOf, Performer, SharesOf
from slurmbridge.daemon.plans import Plans
from slurmbridge.daemon.requests import Blobs
from slurmbridge.daemon.resetting import UsageResets
from slurmbridge.daemon.retention import Retaining
from slurmbridge.daemon.running import Running
from slurmbridge.daemon.submission import Submissions
from slurmbridge.lifecycle import control
from slurmbridge.lifecycle.ends import Death
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.states import JobFlag, JobState
from slurmbridge.runtime.protocol import RunKey, Runtime
from slurmbridge.store.protocol import Loaded, Op, PutAccounting, PutJobs, PutMark, Store
from slurmbridge.submit.associations import initial_accounting


class Controller:
    """Made on the event loop; what the store remembers is in memory when it is made."""

    def __init__(
        self,
        memory: Memory,
        store: Store,
        runtime: Runtime,
        plans: Plans,
        *,
        clock: Callable[[], float],
        daemon_addr: str,
        estimate: Estimate,
        factors: FactorsOf,
        shares: SharesOf,
        explain: ExplanationOf,
        read_config: Callable[[], ClusterConfig],
        shut_down: Callable[[bool], None],
        cluster: Source | None = None,
        instance: str = "",
    ) -> None:
        """`cluster`: where nodes come from, under the name that this controller has there; None: the configuration."""
        self.memory, self.store, self.runtime, self.plans = memory, store, runtime, plans
        memory.capabilities = runtime.capabilities
        loaded = store.load(clock() - memory.config.min_job_age if memory.config.min_job_age else 0.0)
        journal = Journal(store, asyncio.get_running_loop())
        following = max(loaded.next_job_id, memory.config.first_job_id)
        self.core = Core(memory, journal, plans, Ids(following, memory.config.max_job_id), clock)
        plans.core = self.core
        blobs = Blobs(store.blob)
        self.running = Running(self.core, runtime, blobs, daemon_addr)
        self.retaining = Retaining(self.core, store, blobs)
        self.evictions = Evictions(self.core, runtime, lambda job_id: job_id in plans.nominations)
        self.running.evictions = self.evictions
        plans.launch = self.running.launch
        plans.evict, plans.settle_evicted = self.evictions.evict, self.evictions.look
        self.accruing = Accruing(self.core)
        self.resets = UsageResets(self.core, dict(loaded.marks))
        self.fleet: Fleet | None = None
        if cluster is not None:
            self.fleet = Fleet(
                self.core,
                cluster,
                instance,
                reconfigured=self._tell_runtime,
                tell_planner=plans.everything_changed,
                node_changed=plans.node_changed,
            )
        self._recover(loaded, journal)
        self.core.withhold = self.accruing.withheld
        self.resets.begin()
        self.mailer = self.core.mailer = Mailer(memory, journal, loaded.mails)
        alterations = Alterations(
            self.core,
            plans.everything_changed,
            plans.node_changed,
            self.resets,
            self.accruing.anew,
            self.fail_jobs,
            read_config,
            self._reconfigured,
            shut_down,
        )
        if self.fleet is not None:
            alterations.fleet = self.fleet
            self.fleet.begin()
        submissions = Submissions(self.core, store, blobs)
        self.performer = Performer(
            self.core,
            store,
            blobs,
            submissions,
            Changes(self.core, runtime),
            alterations,
            estimate,
            factors,
            shares,
            explain,
        )

    def _recover(self, loaded: Loaded, journal: Journal) -> None:
        """What the store remembers, into memory. A new store gets its first entities."""
        memory = self.memory
        ops: list[Op] = []
        if loaded.accounting is None:
            memory.accounting = initial_accounting(memory.config.cluster_name, enforced=bool(memory.config.enforce))
            ops.append(PutAccounting(accounting=memory.accounting))
        else:
            memory.accounting = loaded.accounting
        for node in loaded.nodes:
            known = memory.node_table.admin(node.conf.name)
            if known is None:
                memory.node_table.remember(node)
            else:
                memory.node_table.put_admin(
                    replace(
                        known,
                        base=node.base,
                        flags=node.flags,
                        reason=node.reason,
                        reason_uid=node.reason_uid,
                        reason_time=node.reason_time,
                        comment=node.comment,
                        extra=node.extra,
                    )
                )
        if loaded.partitions and dict(loaded.marks).get(PARTITIONS_OF) == partitions_digest(memory.config):
            memory.partition_list = list(loaded.partitions)
        memory.reservation_list = list(loaded.reservations)
        memory.usage_rows = {row.assoc_id: row for row in loaded.usage}
        if self.fleet is not None:
            self.fleet.recover(loaded.jobs, loaded.nodes)
        for job in sorted(loaded.jobs, key=lambda job: job.job_id):
            self.core.place(job)
        for step in loaded.steps:
            memory.table.put_step(step)
        following = self.core.ids.following
        settled = [after for job in memory.table.waiting() for after in self.core.settled(job)]
        for job in settled:
            self.core.place(job)
        if settled:
            ops.append(PutJobs(jobs=tuple(settled)))
        if self.core.ids.following != following:
            ops.append(PutMark(name="next_job_id", value=str(self.core.ids.following)))
        if ops:
            journal.write(ops)
        memory.count_usage(self.core.clock())
        memory.tally.reset()

    def _reconfigured(self, config: ClusterConfig) -> None:
        self._tell_runtime(config)
        if self.fleet is not None:
            self.fleet.look()

    def _tell_runtime(self, config: ClusterConfig) -> None:
        self.runtime.reconfigure(config)
        self.memory.capabilities = self.runtime.capabilities

    # ---- now and then ----

    def purge(self) -> None:
        """Forget jobs that ended MinJobAge ago."""
        self.core.purge()

    def count_usage(self) -> None:
        """Fair-share factors anew (PriorityCalcPeriod)."""
        self.resets.look()
        self.memory.count_usage(self.core.clock())
        self.plans.usage_counted()
        end_overrun(self.core, self.runtime.kill)

    def mail_of_limits(self) -> None:
        """Tell of runs that come near their time limit; send what an earlier daemon left."""
        nearing = self.mailer.nearing(self.core.clock())
        if nearing:
            self.core.update(nearing)
        self.mailer.look()

    def end_missed(self) -> None:
        """End pending jobs that would miss their deadline; see whose age counts."""
        end_missed(self.core)
        self.accruing.look()

    def end_forsaken(self, attached: Attached) -> None:
        """Cancel allocations whose srun or salloc did not come back after a restart."""
        table, now = self.memory.table, self.core.clock()
        for job in attached.forsaken(list(table), lambda job_id: bool(table.steps(job_id)), now):
            answer = control.cancel(job, uid=job.spec.uid, now=now)
            if isinstance(answer, control.Changed) and answer.jobs:
                key = RunKey(job.job_id, job.restarts)
                self.core.update(answer.jobs).add_done_callback(functools.partial(self._kill, key, Death.CANCEL.value))

    def sample(self) -> None:
        """What the runtime measures on the nodes."""
        for sample in self.runtime.sample():
            changed = self.memory.node_table.measured(
                sample.node,
                responding=sample.responding,
                free_memory=sample.free_memory_mib,
                load=sample.cpu_load,
                boot_time=sample.boot_time,
                os=sample.os,
            )
            if changed:
                self.plans.node_changed(sample.node)

    def fail_jobs(self, node: str, death: Death) -> None:
        """A node went down: every run on it ends, and is requeued once its processes are proved gone."""
        affected = [
            job
            for job in self.memory.table
            if holds_resources(job)
            and JobFlag.COMPLETING not in job.flags
            and job.allocation is not None
            and any(share.node == node for share in job.allocation.nodes)
        ]
        now = self.core.clock()
        for job in affected:
            state = job.state if job.may_requeue else JobState.NODE_FAIL
            changed = replace(
                job, state=state, flags=job.flags | {JobFlag.COMPLETING}, kill_reason=death.value, end_time=now
            )
            key = RunKey(job.job_id, job.restarts)
            self.core.update([changed]).add_done_callback(functools.partial(self._kill, key, death.value))

    def _kill(self, key: RunKey, why: str, _: asyncio.Future[None]) -> None:
        self.runtime.kill(key, why)

    def writer(self, key: RunKey) -> Writer:
        """What is known of a run that writes output."""
        job = self.memory.table.get(key.job_id)
        if job is None:
            return Writer()
        if job.restarts != key.restarts:
            return Writer(uid=job.spec.uid)
        return Writer(epoch=f"{job.start_time:.6f}", appends=job.spec.open_mode == "append", uid=job.spec.uid)

    def step_address(self, job_id: int) -> str:
        job = self.memory.table.get(job_id)
        return "" if job is None else self.runtime.step_address(RunKey(job.job_id, job.restarts))
