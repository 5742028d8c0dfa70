"""Which nodes, partitions, pools and topology follow from the nodes of a cluster and what a site says about them?

    fill(config, seen, foreign, kept) -> the configuration with nodes; the same again for what was filled before

Sizes are what the machine has; what the kubelet, daemon sets and static pods keep of it is CoreSpecCount and MemSpecLimit,
as in Slurm; what others' pods hold for a while is `Others` of a node (`others`). Source: "Reserve Compute Resources for
System Daemons", "Taints and Tolerations", "Well-Known Labels" of the Kubernetes documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from slurmbridge.model.cluster import NodeConf, Partition, Pool
from slurmbridge.model.fleet import FleetConfig, Membership, NodeRules
from slurmbridge.reconcile.node_devices import devices_of, gres_of
from slurmbridge.reconcile.node_sight import Foreign, SeenNode
from slurmbridge.reconcile.node_standing import Standing, standing
from slurmbridge.reconcile.node_units import topologies_of

_PIECES = re.compile(r"(\d+)")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A node that the cluster has no more, and that something of ours may still run on."""

    conf: NodeConf
    partitions: tuple[str, ...] = ()


def fill(
    config: FleetConfig, seen: Mapping[str, SeenNode], foreign: Mapping[str, Foreign], kept: Sequence[Kept] = ()
) -> FleetConfig:
    """`seen` and `foreign` by the cluster's names."""
    names = our_names(config, seen)
    declared = {conf.name: conf for conf in config.declared}
    places: dict[str, Standing] = {}
    confs: dict[str, NodeConf] = {}
    for kube_name, node in seen.items():
        name = names[kube_name]
        place = standing(node, name, config.members)
        if not place.partitions and name not in declared:
            continue
        places[name] = place
        confs[name] = conf_of(name, node, foreign.get(kube_name, Foreign()), config.rules, declared.get(name))
    for name, conf in declared.items():
        confs.setdefault(name, conf)
        named = tuple(each for each, membership in config.members if name in (membership.named or ()))
        places.setdefault(name, Standing(partitions=named))
    for each in kept:
        confs.setdefault(each.conf.name, each.conf)
        places.setdefault(each.conf.name, Standing(partitions=each.partitions))
    order = [name for name in declared if name in confs]
    order += sorted((name for name in confs if name not in declared), key=natural)
    nodes = tuple(replace(confs[name], index=index) for index, name in enumerate(order))
    labels = {names[kube_name]: node.labels for kube_name, node in seen.items()}
    topologies = topologies_of(config.rules.topology, {name: labels.get(name, {}) for name in order})
    return replace(
        config,
        nodes=nodes,
        partitions=tuple(_with_nodes(each, order, places) for each in config.partitions),
        pools=tuple(_pools(config, order, labels)),
        topologies=topologies if config.rules.topology else config.topologies,
    )


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """Order of names with numbers in them: n2 before n10."""
    pieces = _PIECES.split(name)
    numbers = [int(each) for each in pieces[1::2]] + [-1]
    return tuple(zip(pieces[::2], numbers, strict=True))


def our_names(config: FleetConfig, seen: Iterable[str]) -> dict[str, str]:
    """The cluster's name of a node -> ours: as NodeName lines say, else without the site's domain."""
    by_host = {host: conf.name for conf in config.declared for host in (conf.address, conf.host) if host}
    names = {conf.name for conf in config.declared}
    found: dict[str, str] = {}
    taken: set[str] = set()
    end = f".{config.rules.domain}" if config.rules.domain else ""
    for kube_name in sorted(seen, key=len):  # a bare name goes before the same one with a domain
        name = kube_name if kube_name in names else by_host.get(kube_name, "")
        if not name:
            name = kube_name.removesuffix(end) if end else kube_name
        found[kube_name] = name if name not in taken else kube_name
        taken.add(found[kube_name])
    return found


def kube_names(config: FleetConfig, seen: Iterable[str]) -> dict[str, str]:
    """Ours -> the cluster's, of those that differ."""
    return {name: kube_name for kube_name, name in our_names(config, seen).items() if name != kube_name}


def conf_of(name: str, node: SeenNode, foreign: Foreign, rules: NodeRules, declared: NodeConf | None) -> NodeConf:
    """One node's sizes. Of a declared one the declaration goes before what the cluster has, as in Slurm."""
    threads = max(_number(node.labels.get(rules.threads_per_core, "")), 1)
    whole = max(node.capacity.cpu_milli // 1000, 1)
    threads = threads if whole % threads == 0 else 1
    sockets = max(_number(node.labels.get(rules.sockets, "")), 1)
    sockets = sockets if whole // threads % sockets == 0 else 1
    devices = devices_of(node, rules)
    conf = NodeConf(
        name=name,
        address=node.address or name,
        host=node.name,
        cpus=whole,
        sockets=sockets,
        cores_per_socket=whole // threads // sockets,
        threads_per_core=threads,
        real_memory=max(node.capacity.memory_mib, 1),
        tmp_disk=node.allocatable.disk_mib,
        weight=max(_number(node.labels.get(rules.weight, "")), 1),
        features=_features(node, rules),
        gres=gres_of(devices),
        devices=devices,
    )
    if declared is not None:
        conf = _declared(conf, declared)
    free_cpus = max(node.allocatable.cpu_milli - foreign.system.cpu_milli, 0) // 1000
    free_memory = max(node.allocatable.memory_mib - foreign.system.memory_mib, 0)
    spare = max(conf.cpus - free_cpus, 0)
    return replace(
        conf,
        core_spec_count=max(conf.core_spec_count, -(-spare // conf.threads_per_core)),
        mem_spec_limit=max(conf.mem_spec_limit, conf.real_memory - free_memory, 0),
    )


def _declared(conf: NodeConf, declared: NodeConf) -> NodeConf:
    """Sizes as declared where somebody declared any: CPUs beyond them are not used."""
    changes: dict[str, object] = {
        "weight": declared.weight, "features": tuple(dict.fromkeys((*declared.features, *conf.features))),
        "state": declared.state, "reason": declared.reason, "port": declared.port, "comment": declared.comment,
        "extra": declared.extra, "core_spec_count": declared.core_spec_count, "mem_spec_limit": declared.mem_spec_limit,
    }  # fmt: skip
    if declared.cpus > 1:
        for field in ("cpus", "boards", "sockets", "cores_per_socket", "threads_per_core"):
            changes[field] = getattr(declared, field)
    if declared.real_memory > 1:
        changes["real_memory"] = declared.real_memory
    if declared.gres:
        changes["gres"] = declared.gres
        real = conf.devices
        changes["devices"] = tuple(
            replace(device, memory_mib=device.memory_mib or real[place].memory_mib, resource=real[place].resource,
                    whole_only=real[place].whole_only)
            if place < len(real) else device
            for place, device in enumerate(declared.devices)
        )  # fmt: skip
    return replace(conf, **changes)


def _features(node: SeenNode, rules: NodeRules) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for each in rules.features:
        value = node.labels.get(each.label)
        if value is None or value == "false" or (not value and not each.feature):
            continue
        found[each.feature or value] = None
    return tuple(found)


def _number(text: str) -> int:
    """0: it is none. Hyper-threading is often only said to be there."""
    if text == "true":
        return 2
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else 0


def _with_nodes(partition: Partition, order: Sequence[str], places: Mapping[str, Standing]) -> Partition:
    return replace(partition, nodes=tuple(name for name in order if partition.name in places[name].partitions))


def _pools(config: FleetConfig, order: Sequence[str], labels: Mapping[str, Mapping[str, str]]) -> Iterable[Pool]:
    """Disjoint: a node that two pools would have is the first one's."""
    named, taken = dict(config.pool_names), set[str]()
    for pool in config.pools:
        wanted = set(named.get(pool.name, ()))
        nodes = tuple(
            name
            for name in order
            if name not in taken
            and (name in wanted if not pool.node_selector else _has(labels.get(name, {}), pool.node_selector))
        )
        taken.update(nodes)
        yield replace(pool, nodes=nodes)


def _has(labels: Mapping[str, str], wanted: Iterable[tuple[str, str]]) -> bool:
    return all(labels.get(key) == value for key, value in wanted)


__all__ = ["Kept", "Membership", "conf_of", "fill", "kube_names", "natural", "our_names"]
