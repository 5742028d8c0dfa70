"""On which nodes is a trace replayed? A CSV of nodes, what the trace's header says, or as many as the jobs need.

CSV: `node,count,cpus,mem_mib,gpus,gpu_type,gpu_mem_mib`. The node list of OpenB (`sn,cpu_milli,memory_mib,gpu,model`) is
read too. A slurm.conf gives its own nodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from slurmbridge.model.cluster import ClusterConfig, Device, NodeConf
from slurmbridge.sim.trace_csv import Row, rows
from slurmbridge.sim.workload import DEVICE_MIB, Machine, Trace, TraceJob, at, milli_of

COLUMNS = ("node", "count", "cpus", "mem_mib", "gpus", "gpu_type", "gpu_mem_mib")
OPENB = frozenset({"sn", "cpu_milli", "memory_mib", "gpu", "model"})
LOAD = 0.85
"""Part of a cluster made for a trace that its jobs would use, spread evenly over the time of their submission."""


def read(text: str, name: str) -> tuple[Machine, ...]:
    """The nodes of a CSV. Raises TraceError with the line."""
    header, lines = rows(text, name)
    if set(header) >= OPENB:
        return tuple(_openb(row) for row in lines)
    missing = [column for column in ("node", "cpus") if column not in header]
    unknown = [column for column in header if column not in COLUMNS]
    if missing or unknown:
        words = [f"no column {column}" for column in missing] + [f"unknown column {column}" for column in unknown]
        raise at(name, 1, ", ".join(words))
    found = tuple(_machine(row) for row in lines)
    if not found:
        raise at(name, 1, "no nodes")
    names = [each for machine in found for each in machine.names()]
    double = next((each for each in names if names.count(each) > 1), None) if len(names) < 5000 else None
    if double is not None:
        raise at(name, 1, f"node {double} is there twice")
    return found


def _machine(row: Row) -> Machine:
    machine = Machine(
        node=row.text("node"),
        count=row.whole("count", 1),
        cpus=row.whole("cpus"),
        mem_mib=row.whole("mem_mib"),
        gpus=row.whole("gpus"),
        gpu_type=row.text("gpu_type"),
        gpu_mem_mib=row.whole("gpu_mem_mib"),
    )
    if not machine.node or machine.count < 1 or machine.cpus < 1:
        raise row.wrong("a node needs a name, at least one CPU and a count of at least one")
    return machine


def _openb(row: Row) -> Machine:
    return Machine(
        node=row.text("sn"),
        cpus=max(row.whole("cpu_milli") // 1000, 1),
        mem_mib=row.whole("memory_mib"),
        gpus=row.whole("gpu"),
        gpu_type=row.text("model"),
    )


def write(machines: Sequence[Machine]) -> str:
    """The CSV that `read` reads."""
    lines = [",".join(COLUMNS)]
    lines += [
        f"{each.node},{each.count},{each.cpus},{each.mem_mib},{each.gpus},{each.gpu_type},{each.gpu_mem_mib}"
        for each in machines
    ]
    return "\n".join(lines) + "\n"


def nodes_of(machines: Sequence[Machine]) -> tuple[NodeConf, ...]:
    """The nodes as configured, in order."""
    found: list[NodeConf] = []
    for machine in machines:
        devices = tuple(
            Device(index=index, type=machine.gpu_type, memory_mib=machine.gpu_mem_mib or DEVICE_MIB)
            for index in range(machine.gpus)
        )
        kind = f"gpu:{machine.gpu_type}" if machine.gpu_type else "gpu"
        found += [
            NodeConf(
                name=name,
                cpus=machine.cpus,
                sockets=1,
                cores_per_socket=machine.cpus,
                real_memory=machine.mem_mib or 1,
                weight=1 + machine.gpus,  # jobs without devices leave nodes that have some alone as long as they can
                gres=f"{kind}:{machine.gpus}" if machine.gpus else "",
                devices=devices,
                index=len(found) + place,
            )
            for place, name in enumerate(machine.names())
        ]
    return tuple(found)


def of_config(config: ClusterConfig) -> tuple[Machine, ...]:
    """The nodes of a slurm.conf, one by one."""
    return tuple(
        Machine(
            node=node.name,
            cpus=node.cpus,
            mem_mib=node.real_memory if counts_memory(config) else 0,
            gpus=len(node.devices),
            gpu_type=node.devices[0].type if node.devices else "",
            gpu_mem_mib=node.devices[0].memory_mib if node.devices else 0,
        )
        for node in config.nodes
    )


def counts_memory(config: ClusterConfig) -> bool:
    return any("MEMORY" in word.upper() for word in config.select_type_parameters)


def for_trace(trace: Trace) -> tuple[Machine, ...]:
    """What the header says, else equal nodes that hold each job and are used to LOAD by all of them."""
    return trace.machines or derived(trace.jobs)


def derived(jobs: Sequence[TraceJob]) -> tuple[Machine, ...]:
    """Nodes large enough for any job's part, by GPU type; enough of them for the largest job and for LOAD."""
    kinds = sorted({job.gpu_type for job in jobs if job.gpus and job.gpu_type})
    span = max(jobs[-1].submit_s - jobs[0].submit_s, max(job.run_s for job in jobs), 1.0)
    untyped = [job for job in jobs if job.gpus and not job.gpu_type]
    plain = [job for job in jobs if not job.gpus]
    groups = [(kind, [job for job in jobs if job.gpus and job.gpu_type == kind]) for kind in kinds]
    if untyped:
        if groups:
            groups = [(kind, [*own, *untyped]) for kind, own in groups]
        else:
            groups = [("", untyped)]
    found = [
        _group(f"g{place}-" if len(groups) > 1 else "g", kind, own, span) for place, (kind, own) in enumerate(groups)
    ]
    if plain:
        found.append(_group("n", "", plain, span))
    return tuple(found)


def _group(prefix: str, kind: str, jobs: Sequence[TraceJob], span: float) -> Machine:
    gpus = max(job.gpus for job in jobs)
    cpus = max((job.cpus for job in jobs if job.nodes), default=64)
    if gpus:
        gpus = max(gpus, 8)
        cpus = max(cpus, max(-(-job.cpus * gpus // job.gpus) if job.gpu_milli == 1000 else job.cpus for job in jobs))
    memory = max((job.mem_mib * max(gpus // max(job.gpus, 1), 1) for job in jobs if job.nodes), default=0)
    work = sum(job.run_s * job.all_cpus for job in jobs) / span / cpus
    if gpus:
        devices = sum(job.run_s * max(job.nodes, 1) * job.gpus * milli_of(job, DEVICE_MIB) / 1000 for job in jobs)
        work = max(work, devices / span / gpus)
    least = max(job.nodes if job.nodes else -(-job.cpus // cpus) for job in jobs)
    return Machine(
        node=prefix,
        count=max(least, math.ceil(work / LOAD), 1),
        cpus=cpus,
        mem_mib=memory,
        gpus=gpus,
        gpu_type=kind,
    )
