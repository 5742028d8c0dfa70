"""`sacctmgr --json show qos|tres|cluster`: the records of data_parser v0.0.45."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from slurmbridge.commands.accounting_words import known_tres
from slurmbridge.commands.effects import Site
from slurmbridge.commands.quotas import order
from slurmbridge.commands.sacctmgr_json_assoc import number, tres_list
from slurmbridge.lang import hostlist
from slurmbridge.model.accounts import Qos
from slurmbridge.submit import associations

Document = dict[str, Any]
PROTOCOL: Final = 11520
_FLAGS: Final = {
    "DenyOnLimit": "DENY_LIMIT", "EnforceUsageThreshold": "ENFORCE_USAGE_THRESHOLD", "NoDecay": "NO_DECAY",
    "NoReserve": "NO_RESERVE", "OverPartQOS": "OVERRIDE_PARTITION_QOS", "PartitionMaxNodes": "PARTITION_MAXIMUM_NODE",
    "PartitionMinNodes": "PARTITION_MINIMUM_NODE", "PartitionTimeLimit": "PARTITION_TIME_LIMIT", "Relative": "RELATIVE",
    "RequiresReservation": "REQUIRED_RESERVATION", "UsageFactorSafe": "USAGE_FACTOR_SAFE",
}  # fmt: skip


def json_qos(site: Site, qos: Qos) -> Document:
    numbers = order(known_tres(site.config), site.config)
    limits = qos.limits

    def tres(value: Any) -> list[Document]:
        return tres_list(value, numbers)

    def per(account: int | None, user: int | None) -> Document:
        return {"per": {"account": number(account), "user": number(user)}}

    return {
        "description": qos.description,
        "flags": [_FLAGS.get(flag, flag.upper()) for flag in qos.flags],
        "id": qos.qos_id,
        "limits": {
            "grace_time": qos.grace_time,
            "max": {
                "active_jobs": {"accruing": number(limits.grp_jobs_accrue), "count": number(limits.grp_jobs)},
                "jobs": {
                    "count": number(limits.grp_submit),
                    "active_jobs": per(qos.max_jobs_per_account, limits.max_jobs),
                    **per(qos.max_submit_per_account, limits.max_submit),
                },
                "tres": {
                    "total": tres(limits.grp_tres),
                    "minutes": {
                        "total": tres(limits.grp_tres_mins),
                        "per": {
                            "qos": tres(limits.grp_tres_run_mins),
                            "job": tres(limits.max_tres_mins_per_job),
                            "account": tres(qos.max_tres_run_mins_per_account),
                            "user": tres(qos.max_tres_run_mins_per_user),
                        },
                    },
                    "per": {
                        "account": tres(qos.max_tres_per_account),
                        "job": tres(limits.max_tres_per_job),
                        "node": tres(limits.max_tres_per_node),
                        "user": tres(qos.max_tres_per_user),
                    },
                },
                "wall_clock": {"per": {"qos": number(limits.grp_wall), "job": number(limits.max_wall)}},
                "accruing": per(qos.max_jobs_accrue_per_account, limits.max_jobs_accrue),
            },
            "factor": _real(qos.limit_factor),
            "min": {
                "priority_threshold": number(qos.min_prio_threshold),
                "tres": {"per": {"job": tres(qos.min_tres_per_job)}},
            },
        },
        "name": qos.name,
        "preempt": {
            "list": list(qos.preempt),
            "mode": ["DISABLED" if qos.preempt_mode.lower() == "cluster" else qos.preempt_mode.upper()],
            "exempt_time": number(qos.preempt_exempt_time),
        },
        "priority": number(qos.priority),
        "usage_factor": _real(qos.usage_factor),
        "usage_threshold": _real(qos.usage_threshold),
    }


def _real(value: float | None) -> Document:
    return {**number(value), "number": float(value or 0)}


def json_tres(rows: Iterable[Mapping[str, str]]) -> list[Document]:
    """From the rows of the listing: kinds have no count of their own."""
    return [{"type": row["Type"], "name": row["Name"], "id": int(row["ID"]), "count": 0} for row in rows]


def json_cluster(site: Site, rows: Iterable[Mapping[str, str]]) -> list[Document]:
    config = site.config
    names = [node.conf.name for node in site.nodes()]
    root = associations.index(site.accounting).assocs.get((associations.ROOT, "", ""))
    held = associations_total(site)
    found = []
    for row in rows:
        is_ours = row["Cluster"] == config.cluster_name
        assoc = {"account": associations.ROOT, "cluster": row["Cluster"], "partition": "", "user": ""}
        found.append(
            {
                "controller": {"host": row.get("ControlHost", ""), "port": int(row.get("ControlPort", 0))},
                "flags": ["MULTIPLE_SLURMD"] if is_ours else [],
                "name": row["Cluster"],
                "nodes": hostlist.compress_sorted(names) if is_ours else "",
                "associations": {"root": {**assoc, "id": root.assoc_id if root is not None and is_ours else 0}},
                "rpc_version": PROTOCOL if is_ours else 0,
                "tres": held if is_ours else [],
            }
        )
    return found


def associations_total(site: Site) -> list[Document]:
    """What the cluster has of every kind."""
    confs = [node.conf for node in site.nodes()]
    totals = {
        "cpu": sum(conf.cpus for conf in confs), "mem": sum(conf.real_memory for conf in confs), "node": len(confs),
    }  # fmt: skip
    totals["billing"] = totals["cpu"]
    for conf in confs:
        for device in conf.devices:
            for name in {f"gres/{device.name}", f"gres/{device.name}:{device.type}"}:
                totals[name] = totals.get(name, 0) + 1
    totals.update({f"license/{each.name}": each.total for each in site.config.licenses})
    found = []
    for full, tres_id in known_tres(site.config).items():
        kind, _, name = full.partition("/")
        found.append({"type": kind, "name": name, "id": tres_id, "count": totals.get(full, 0)})
    return found
