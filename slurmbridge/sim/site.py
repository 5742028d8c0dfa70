"""The site that a trace is replayed on: its configuration, and jobs as submission would have made them.

Without a slurm.conf: the nodes of the cluster file, one partition for each that the trace names, accounts that take turns by
what they have of their shares, who has waited longest first inside them (short limits a little before), starts promised by age,
what is kept for them lent to work that may be ended, and GPUs counted in what is billed. A slurm.conf says all of that itself.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from slurmbridge.model.accounts import Accounting
from slurmbridge.model.cluster import ClusterConfig, Node, Partition, Scheduling
from slurmbridge.model.job import JobSpec
from slurmbridge.model.plan import Reservation
from slurmbridge.model.request import GresRequest, GresTerm, JobRequest, Memory, MemoryPer
from slurmbridge.model.verdict import Refused
from slurmbridge.sim import accounts, machines
from slurmbridge.sim.workload import Machine, TraceError, TraceJob
from slurmbridge.submit.resolve import Caller, Resolved, resolve

PARTITION = "main"
BILLED_PER_GPU = 1000
ORDER = Scheduling(order="fair", backfill="aged", promise="age", nodes="lasting", promised="lent", history=0.0)
"""What we advise a site without habits of its own to say."""


def config_of(found: Sequence[Machine], jobs: Sequence[TraceJob]) -> ClusterConfig:
    """A site of these nodes."""
    nodes = machines.nodes_of(found)
    names = tuple(node.name for node in nodes)
    has_gpus, counted = any(each.gpus for each in found), any(each.mem_mib for each in found)
    if counted:  # nodes whose memory nobody said have enough of it
        nodes = tuple(
            node if node.real_memory > 1 else msgspec.structs.replace(node, real_memory=1 << 40) for node in nodes
        )
    partitions = list(dict.fromkeys(job.partition or PARTITION for job in jobs))
    billed = f"CPU=1,GRES/gpu={BILLED_PER_GPU}" if has_gpus else ""
    return ClusterConfig(
        nodes=nodes,
        partitions=tuple(
            Partition(name=name, nodes=names, default=place == 0, tres_billing_weights=billed, index=place)
            for place, name in enumerate(partitions)
        ),
        gres_types=("gpu",),
        select_type_parameters=frozenset({"CR_CPU_MEMORY" if counted else "CR_CPU"}),
        accounting_tres=("gres/gpu",),
        scheduling=ORDER,
        priority_weight_fairshare=100_000,
        priority_weight_age=10_000,
        priority_weight_qos=1_000_000,
    )


class Desk:
    """Submits: a resolved JobSpec for each job, equal ones made once. What submission asks of the cluster is here too."""

    def __init__(self, config: ClusterConfig, accounting: Accounting, jobs: Sequence[TraceJob]) -> None:
        self._config, self._accounting = config, accounting
        self._nodes = {conf.name: Node(conf=conf) for conf in config.nodes}
        self._partitions = {partition.name for partition in config.partitions}
        self._uids = accounts.uids(jobs)
        self._specs: dict[tuple[object, ...], JobSpec] = {}

    def spec(self, job: TraceJob) -> JobSpec:
        """The job as accepted. Raises TraceError with the refusal."""
        key = (
            job.limit_s, job.user, job.account, job.partition, job.nodes, job.cpus, job.mem_mib, job.gpus, job.gpu_milli,
            job.gpu_mem_mib, job.gpu_type, job.preemptible, job.priority,
        )  # fmt: skip
        found = self._specs.get(key)
        if found is None:
            found = self._specs[key] = self._resolved(job)
        return found

    def _resolved(self, job: TraceJob) -> JobSpec:
        uid = self._uids[job.user]
        caller = Caller(uid=uid, gid=uid, user=job.user, group=job.user, cwd="/")
        made = resolve(
            request_of(job, self._partitions),
            caller,
            self._config,
            self._accounting,
            self._config.partitions,
            self,
            now=0.0,
            script_path="/job",
        )
        if isinstance(made, Refused):
            raise TraceError(f"job {job.id} is refused: {made.errno.text}")
        assert isinstance(made, Resolved)
        return made.spec

    def nodes(self) -> Sequence[Node]:
        return list(self._nodes.values())

    def node(self, name: str) -> Node | None:
        return self._nodes.get(name)

    def reservations(self) -> Sequence[Reservation]:
        return ()

    def user_name(self, uid: int) -> str:
        return str(uid)

    def group_name(self, gid: int) -> str:
        return str(gid)

    def groups_of(self, user: str) -> Sequence[str]:
        return ()


def request_of(job: TraceJob, partitions: set[str]) -> JobRequest:
    """What its sbatch would have said."""
    common = JobRequest(
        name=job.id,
        account=job.account,
        partitions=(job.partition,) if job.partition in partitions else None,
        qos=accounts.qos_name(job.priority) if job.priority else None,
        time_limit=max(-(-int(-(-job.limit_s // 1)) // 60), 1),
        requeue=True,
        preemptible=job.preemptible,
    )
    if not job.nodes:
        memory = Memory(MemoryPer.CPU, job.mem_mib) if job.mem_mib else None
        return msgspec.structs.replace(common, ntasks=job.cpus, memory=memory)
    gpus = None
    if job.gpus:
        text = f"gres/gpu:{job.gpu_type}:{job.gpus}" if job.gpu_type else f"gres/gpu:{job.gpus}"
        gpus = GresRequest(
            terms=(GresTerm(name="gpu", type=job.gpu_type, milli=1000 * job.gpus, text=text),), text=text
        )
    return msgspec.structs.replace(
        common,
        nodes_min=job.nodes,
        nodes_max=job.nodes,
        ntasks=job.nodes,
        ntasks_per_node=1,
        cpus_per_task=job.cpus,
        memory=Memory(MemoryPer.NODE, job.mem_mib) if job.mem_mib else None,
        gpus_per_node=gpus,
        gpu_fraction_milli=job.gpu_milli if gpus is not None and job.gpu_milli < 1000 and not job.gpu_mem_mib else None,
        gpu_memory_mib=job.gpu_mem_mib or None if gpus is not None else None,
    )
