"""What does `scontrol show node` print of a node?

Follows the layout of Slurm 26.05, blanks at line ends included. -d adds the devices in use.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.scontrol_show_job import ranges
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.fields import states
from slurmbridge.lang import tres
from slurmbridge.model.cluster import ClusterConfig, Device, Node
from slurmbridge.model.tres import Tres


def node_lines(node: Node, eyes: Eyes, partitions: str) -> list[str]:
    """All lines; `partitions`: names of the partitions with this node."""
    return list(_lines(node, eyes, partitions))


def _lines(node: Node, eyes: Eyes, partitions: str) -> Iterator[str]:
    conf, view, config = node.conf, eyes.view, eyes.site.config
    yield f"NodeName={conf.name} Arch={node.arch} CoresPerSocket={conf.cores_per_socket} "
    load = "N/A" if node.cpu_load is None else f"{node.cpu_load:.2f}"
    yield f"CPUAlloc={node.alloc_cpus} CPUEfctv={conf.effective_cpus - node.others.cpus} CPUTot={conf.cpus} CPULoad={load}"
    yield f"AvailableFeatures={_names(conf.features)}"
    yield f"ActiveFeatures={_names(node.features_active or conf.features)}"
    yield f"Gres={conf.gres or '(null)'}"
    if eyes.flags.details:
        yield f"GresDrain={node.others.drained or 'N/A'}"
    if eyes.flags.details and conf.gres:
        yield f"GresUsed={gres_used(node)}"
    yield f"NodeAddr={conf.address or conf.name} NodeHostName={conf.host or conf.name} Version={SLURM_VERSION}"
    if node.os:
        yield f"OS={node.os} "
    free = "N/A" if node.free_memory is None else str(node.free_memory)
    yield f"RealMemory={conf.real_memory} AllocMem={node.alloc_memory} FreeMem={free} Sockets={conf.sockets} Boards={conf.boards}"
    if conf.core_spec_count or conf.mem_spec_limit:
        yield f"CoreSpecCount={conf.core_spec_count} MemSpecLimit={conf.mem_spec_limit}"
    owner = "N/A" if node.owner_uid is None else f"{view.user(node.owner_uid)}({node.owner_uid})"
    yield (
        f"State={states.node_complete(node)} ThreadsPerCore={conf.threads_per_core} TmpDisk={conf.tmp_disk}"
        f" Weight={conf.weight} Owner={owner} MCS_label=N/A"
    )
    if partitions:
        yield f"Partitions={partitions} "
    yield f"BootTime={view.time(node.boot_time, 'None')} SlurmdStartTime={view.time(node.slurmd_start_time, 'None')}"
    yield f"LastBusyTime={view.time(node.last_busy_time, 'Unknown')} ResumeAfterTime=None SuspendTime=INFINITE"
    yield f"CfgTRES={tres.render(configured_tres(node, config))}"
    yield f"AllocTRES={tres.render(allocated_tres(node, config))}"
    yield "CurrentWatts=0 AveWatts=0"
    if node.reason:
        who = "root" if node.reason_uid is None else view.user(node.reason_uid)
        when = f" [{who}@{view.time(node.reason_time)}]" if node.reason_time else ""
        yield f"Reason={node.reason}{when}"
    if node.comment:
        yield f"Comment={node.comment}"
    if node.extra:
        yield f"Extra={node.extra}"


def _names(features: tuple[str, ...]) -> str:
    return ",".join(features) or "(null)"


def configured_tres(node: Node, config: ClusterConfig) -> Tres:
    """CPUs, memory, billing and tracked devices of the node."""
    return _configured(node.conf.cpus, node.conf.real_memory, node.conf.devices, config.accounting_tres)


@functools.lru_cache(maxsize=256)
def _configured(cpus: int, memory: int, devices: tuple[Device, ...], counted: tuple[str, ...]) -> Tres:
    """Thousands of nodes are of a few makes."""
    counts = [("cpu", cpus), ("mem", memory), ("billing", cpus)]
    return (*counts, *_gpus([(device.type, 1000) for device in devices if device.name == "gpu"], counted))


def allocated_tres(node: Node, config: ClusterConfig) -> Tres:
    """What is in use; empty when nothing is."""
    if not node.alloc_cpus and not node.alloc_memory and not node.alloc_devices:
        return ()
    types = {device.index: device.type for device in node.conf.devices if device.name == "gpu"}
    used = [(types.get(index, ""), milli) for index, milli, _ in node.alloc_devices]
    counts = [("cpu", node.alloc_cpus), ("mem", node.alloc_memory)]
    return (*((name, amount) for name, amount in counts if amount), *_gpus(used, config.accounting_tres))


def _gpus(devices: list[tuple[str, int]], counted_names: tuple[str, ...]) -> Tres:
    """gres/gpu and its types, those that AccountingStorageTRES names; all where it names no device."""
    total = sum(milli for _, milli in devices)
    if not total:
        return ()
    by_type: dict[str, int] = {}
    for kind, milli in devices:
        if kind:
            by_type[kind] = by_type.get(kind, 0) + milli
    counted = [("gres/gpu", total), *((f"gres/gpu:{kind}", milli) for kind, milli in by_type.items())]
    tracked = [name for name in counted_names if name.startswith("gres/")]
    return tuple((name, amount) for name, amount in counted if not tracked or name in tracked)


def gres_used(node: Node) -> str:
    """`gpu:a100:2(IDX:0-1)`, zero counts included."""
    parts = []
    kinds = dict.fromkeys(device.type for device in node.conf.devices if device.name == "gpu")
    in_use = {index: milli for index, milli, _ in node.alloc_devices}
    for kind in kinds:
        indexes = [each.index for each in node.conf.devices if each.type == kind and each.index in in_use]
        milli = sum(in_use[index] for index in indexes)
        name = f"gpu:{kind}" if kind else "gpu"
        shown = ranges(tuple(indexes)) or "N/A"
        parts.append(f"{name}:{milli / 1000:g}(IDX:{shown})")
    return ",".join(parts) or "gpu:0"
