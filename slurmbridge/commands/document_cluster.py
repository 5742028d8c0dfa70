"""Nodes, partitions, licences, reservations and the controller as records of `--json` and `--yaml`."""

from __future__ import annotations

from collections.abc import Sequence

from slurmbridge import SLURM_VERSION
from slurmbridge.commands.scontrol_show_node import allocated_tres, configured_tres, gres_used
from slurmbridge.commands.scontrol_show_partition import partition_tres
from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.fields import states
from slurmbridge.fields.structured import Value
from slurmbridge.lang import hostlist, tres
from slurmbridge.model.cluster import LicenseConf, Node, Partition
from slurmbridge.model.plan import Reservation
from slurmbridge.model.tres import Tres


def number(value: float | None, *, infinite: bool = False) -> Value:
    """A number that may be missing or without end."""
    return {"set": value is not None, "infinite": infinite, "number": 0 if value is None else value}


def moment(value: float | None) -> Value:
    """Epoch seconds; 0 when there is none, which counts as set."""
    return number(int(value or 0))


def _plain(value: Tres) -> str:
    """TRES with memory in larger units only where no more than a half of one is left over."""
    parts = []
    for name, amount in value:
        if name == "mem":
            parts.append(tres.render(((name, amount),)) if amount % 512 == 0 else f"mem={amount}M")
        else:
            parts.append(tres.render(((name, amount),)))
    return ",".join(parts)


def node_document(node: Node, eyes: Eyes, partitions: Sequence[str]) -> dict[str, Value]:
    """One node; `partitions`: those with it that the caller sees."""
    conf, config = node.conf, eyes.site.config
    used = allocated_tres(node, config)
    return {
        "architecture": node.arch,
        "burstbuffer_network_address": "",
        "boards": conf.boards,
        "boot_time": moment(node.boot_time),
        "tls_cert_last_renewal": moment(None),
        "cert_flags": [],
        "cluster_name": "",
        "cores": conf.cores_per_socket,
        "specialized_cores": conf.core_spec_count,
        "cpu_binding": 0,
        "cpu_load": round((node.cpu_load or 0.0) * 100),
        "free_mem": number(node.free_memory),
        "cpus": conf.cpus,
        "effective_cpus": conf.effective_cpus,
        "specialized_cpus": "",
        "energy": {
            "average_watts": 0,
            "base_consumed_energy": 0,
            "consumed_energy": 0,
            "current_watts": number(0),
            "previous_consumed_energy": 0,
            "last_collected": 0,
        },
        "extra": node.extra,
        "features": list(conf.features),
        "active_features": list(node.features_active or conf.features),
        "gpu_spec": "",
        "gres": conf.gres,
        "gres_drained": "N/A",
        "gres_used": gres_used(node) if conf.gres else "",
        "instance_id": "",
        "instance_type": "",
        "last_busy": moment(node.last_busy_time),
        "mcs_label": "",
        "specialized_memory": conf.mem_spec_limit,
        "name": conf.name,
        "next_state_after_reboot": ["INVALID"],
        "address": conf.address or conf.name,
        "hostname": conf.host or conf.name,
        "state": states.node_complete(node).split("+"),
        "operating_system": node.os,
        "owner": "" if node.owner_uid is None else eyes.view.user(node.owner_uid),
        "partitions": list(partitions),
        "port": conf.port,
        "real_memory": conf.real_memory,
        "res_cores_per_gpu": 0,
        "comment": node.comment,
        "reason": node.reason,
        "reason_changed_at": moment(node.reason_time),
        "reason_set_by_user": "" if node.reason_uid is None else eyes.view.user(node.reason_uid),
        "resume_after": moment(None),
        "reservation": "",
        "suspend_time": number(None, infinite=True),
        "alloc_memory": node.alloc_memory,
        "alloc_cpus": node.alloc_cpus,
        "alloc_idle_cpus": conf.cpus - node.alloc_cpus,
        "tres_used": _plain(used),
        "slurmd_start_time": moment(node.slurmd_start_time),
        "sockets": conf.sockets,
        "threads": conf.threads_per_core,
        "temporary_disk": conf.tmp_disk,
        "weight": conf.weight,
        "topology": "",
        "tres": _plain(configured_tres(node, config)),
        "version": SLURM_VERSION,
    }


def partition_document(part: Partition, eyes: Eyes, nodes: dict[str, Node]) -> dict[str, Value]:
    """One partition."""
    members = [nodes[name] for name in part.nodes if name in nodes]
    cpus = sum(node.conf.cpus for node in members)
    kind, _, shares = part.oversubscribe.partition(":")
    return {
        "nodes": {
            "allowed_allocation": "" if part.alloc_nodes == "ALL" else part.alloc_nodes,
            "configured": hostlist.compress(part.nodes),
            "total": len(members),
        },
        "accounts": {"allowed": ",".join(part.allow_accounts), "deny": ",".join(part.deny_accounts)},
        "groups": {"allowed": ",".join(part.allow_groups)},
        "qos": {"allowed": ",".join(part.allow_qos), "deny": ",".join(part.deny_qos), "assigned": part.qos},
        "alternate": "",
        "tres": {"billing_weights": part.tres_billing_weights, "configured": _plain(partition_tres(members, eyes))},
        "cluster": "",
        "select_type": ["NONE"],
        "cpus": {"task_binding": [], "total": cpus},
        "defaults": {
            "memory_per_cpu": part.def_mem_per_cpu or 0,
            "partition_memory_per_cpu": number(part.def_mem_per_cpu),
            "partition_memory_per_node": number(None if part.def_mem_per_cpu else part.def_mem_per_node or 0),
            "time": number(part.default_time),
            "job": part.job_defaults,
        },
        "flags": [name for name, is_set in (("DEFAULT", part.default), ("HIDDEN", part.hidden), ("LLN", part.lln),
                  ("NO_ROOT", part.disable_root_jobs), ("REQ_RESV", part.req_resv), ("ROOT_ONLY", part.root_only))
                  if is_set],
        "partition": {
            "exclusive": "NODE" if kind == "EXCLUSIVE" else "USER" if part.exclusive_user else "NO",
            "oversubscribe": "NO" if kind == "EXCLUSIVE" else kind,
            "state": [part.state.value],
        },
        "grace_time": part.grace_time,
        "maximums": {
            "cpus_per_node": number(part.max_cpus_per_node, infinite=part.max_cpus_per_node is None),
            "cpus_per_socket": number(part.max_cpus_per_socket, infinite=part.max_cpus_per_socket is None),
            "memory_per_cpu": part.max_mem_per_cpu or 0,
            "partition_memory_per_cpu": number(part.max_mem_per_cpu),
            "partition_memory_per_node": number(None if part.max_mem_per_cpu else part.max_mem_per_node or 0),
            "nodes": number(part.max_nodes, infinite=part.max_nodes is None),
            "shares": int(shares or 0),
            "oversubscribe": {"jobs": int(shares or 0), "flags": ["force"] if kind == "FORCE" else []},
            "time": number(part.max_time, infinite=part.max_time is None),
            "over_time_limit": number(part.over_time_limit),
        },
        "minimums": {"nodes": part.min_nodes},
        "name": part.name,
        "node_sets": "",
        "preempt_mode": [part.preempt_mode or "CLUSTER_GLOBAL"],
        "priority": {"job_factor": part.priority_job_factor, "tier": part.priority_tier},
        "timeouts": {"resume": number(None), "suspend": number(None)},
        "topology": part.topology,
        "suspend_time": number(part.suspend_time),
    }  # fmt: skip


def license_document(each: LicenseConf, used: int) -> dict[str, Value]:
    return {
        "LicenseName": each.name, "Total": each.total, "Used": used, "Free": each.total - used, "Remote": False,
        "Reserved": 0, "LastConsumed": 0, "LastDeficit": 0, "LastUpdate": 0, "Nodes": "",
    }  # fmt: skip


def reservation_document(made: Reservation, eyes: Eyes) -> dict[str, Value]:
    nodes = [node for name in made.nodes if (node := eyes.site.node(name)) is not None]
    return {
        "accounts": ",".join(made.accounts),
        "burst_buffer": "",
        "core_count": sum(node.conf.sockets * node.conf.cores_per_socket for node in nodes),
        "core_specializations": [],
        "end_time": moment(made.end_time),
        "features": made.features,
        "flags": list(made.flags),
        "groups": "",
        "licenses": made.licenses,
        "max_start_delay": 0,
        "name": made.name,
        "node_count": len(made.nodes),
        "node_list": hostlist.compress_sorted(made.nodes),
        "partition": made.partition,
        "purge_completed": {"time": number(None)},
        "start_time": moment(made.start_time),
        "watts": number(None),
        "tres": f"cpu={sum(node.conf.cpus for node in nodes)}",
        "users": ",".join(made.users),
    }


def ping_document(eyes: Eyes) -> dict[str, Value]:
    """The controller as seen from itself: it answers at once."""
    return {
        "hostname": eyes.site.config.control_host, "responding": True, "latency": 0, "primary": True, "status": "No error",
    }  # fmt: skip
