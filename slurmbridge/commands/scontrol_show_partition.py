"""What does `scontrol show partition` print of a partition?

Follows the layout of Slurm 26.05.
"""

from __future__ import annotations

from collections.abc import Iterator

from slurmbridge.commands.scontrol_show_node import configured_tres
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.lang import durations, hostlist, tres
from slurmbridge.model.cluster import Node, Partition
from slurmbridge.model.tres import Tres, merge


def partition_lines(partition: Partition, eyes: Eyes, nodes: dict[str, Node]) -> list[str]:
    """All lines; `nodes`: every node by name."""
    return list(_lines(partition, eyes, nodes))


def _lines(part: Partition, eyes: Eyes, nodes: dict[str, Node]) -> Iterator[str]:
    config = eyes.site.config
    members = [nodes[name] for name in part.nodes if name in nodes]
    yield f"PartitionName={part.name}"
    accounts = (
        f"DenyAccounts={','.join(part.deny_accounts)}"
        if part.deny_accounts
        else f"AllowAccounts={_all(part.allow_accounts)}"
    )
    qos = f"DenyQos={','.join(part.deny_qos)}" if part.deny_qos else f"AllowQos={_all(part.allow_qos)}"
    yield f"AllowGroups={_all(part.allow_groups)} {accounts} {qos}"
    yield f"AllocNodes={part.alloc_nodes or 'ALL'} Default={_yes(part.default)} QoS={part.qos or 'N/A'}"
    default = "NONE" if part.default_time is None else durations.render_minutes(part.default_time)
    yield (
        f"DefaultTime={default} DisableRootJobs={_yes(part.disable_root_jobs)} Exclusive={_exclusive(part)}"
        f" GraceTime={part.grace_time} Hidden={_yes(part.hidden)}"
    )
    yield (
        f"MaxNodes={_limit(part.max_nodes)} MaxTime={durations.render_minutes(part.max_time)} MinNodes={part.min_nodes}"
        f" LLN={_yes(part.lln)} MaxCPUsPerNode={_limit(part.max_cpus_per_node)}"
        f" MaxCPUsPerSocket={_limit(part.max_cpus_per_socket)}"
    )
    yield f"Nodes={hostlist.compress(part.nodes) if part.nodes else '(null)'}"
    shared = "NO" if part.oversubscribe == "EXCLUSIVE" else part.oversubscribe
    yield (
        f"PriorityJobFactor={part.priority_job_factor} PriorityTier={part.priority_tier} RootOnly={_yes(part.root_only)}"
        f" ReqResv={_yes(part.req_resv)} OverSubscribe={shared}"
    )
    over = "NONE" if part.over_time_limit is None else str(part.over_time_limit)
    yield f"OverTimeLimit={over} PreemptMode={part.preempt_mode or config.preempt_mode}"
    if part.topology:
        yield f"Topology={part.topology}"
    cpus = sum(node.conf.cpus for node in members)
    yield f"State={part.state.value} TotalCPUs={cpus} TotalNodes={len(members)} SelectTypeParameters=NONE"
    yield f"JobDefaults={part.job_defaults or '(null)'}"
    yield f"{_memory('Def', part.def_mem_per_cpu, part.def_mem_per_node)} {_memory('Max', part.max_mem_per_cpu, part.max_mem_per_node)}"
    yield f"TRES={tres.render(partition_tres(members, eyes)) or '(null)'}"
    if part.tres_billing_weights:
        yield f"TRESBillingWeights={part.tres_billing_weights}"


def _all(names: tuple[str, ...]) -> str:
    return ",".join(names) or "ALL"


def _yes(value: bool) -> str:
    return "YES" if value else "NO"


def _limit(value: int | None) -> str:
    return "UNLIMITED" if value is None else str(value)


def _exclusive(part: Partition) -> str:
    if part.oversubscribe == "EXCLUSIVE":
        return "NODE"
    if part.exclusive_user:
        return "USER"
    return "TOPO" if part.exclusive_topo else "NO"


def _memory(kind: str, per_cpu: int | None, per_node: int | None) -> str:
    if per_cpu is not None:
        return f"{kind}MemPerCPU={per_cpu}"
    return f"{kind}MemPerNode={_limit(per_node)}"


def partition_tres(members: list[Node], eyes: Eyes) -> Tres:
    """Sum over the nodes, with the cluster's tracked licences; empty without nodes."""
    if not members:
        return ()
    config = eyes.site.config
    total = dict(merge(*(configured_tres(node, config) for node in members)))
    licences = {each.name: each.total for each in config.licenses}
    tracked = [name for name in config.accounting_tres if name.startswith("license/")]
    first = [
        ("cpu", total.pop("cpu")),
        ("mem", total.pop("mem")),
        ("node", len(members)),
        ("billing", total.pop("billing")),
    ]
    held = [
        (name, licences[name.removeprefix("license/")]) for name in tracked if name.removeprefix("license/") in licences
    ]
    return (*first, *total.items(), *held)
