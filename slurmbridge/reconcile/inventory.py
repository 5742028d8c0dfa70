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

from slurmbridge.manifest.pod_devices import HOLDER_MIB
from slurmbridge.model.cluster import ClusterConfig, NodeConf, Partition, Pool
from slurmbridge.model.fleet import FleetConfig, NodeRules
from slurmbridge.reconcile.node_devices import devices_of, gres_of, shareable
from slurmbridge.reconcile.node_sight import Amounts, Foreign, SeenNode
from slurmbridge.reconcile.node_standing import Standing, standing
from slurmbridge.reconcile.node_units import topologies_of

_PIECES = re.compile(r"(\d+)")


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A node that the cluster has no more, and that something of ours may still run on."""

    conf: NodeConf
    partitions: tuple[str, ...] = ()


Memo = dict[str, tuple[tuple[object, ...], Standing, NodeConf]]
"""By the cluster's names: what was made of which records. It never changes an answer."""
NOTHING = Foreign()


def fill(
    config: FleetConfig, seen: Mapping[str, SeenNode], foreign: Mapping[str, Foreign], kept: Sequence[Kept] = (),
    memo: Memo | None = None,
) -> FleetConfig:  # fmt: skip
    """`seen` and `foreign` by the cluster's names."""
    memo = {} if memo is None else memo
    names = our_names(config, seen)
    declared = {conf.name: conf for conf in config.declared}
    places: dict[str, Standing] = {}
    confs: dict[str, NodeConf] = {}
    for kube_name, node in seen.items():
        name = names[kube_name]
        system = foreign.get(kube_name, NOTHING).system
        made_of = (name, node, system, config.rules, config.members, declared.get(name))
        known = memo.get(kube_name)
        if known is None or any(was is not now and was != now for was, now in zip(known[0], made_of, strict=True)):
            conf = conf_of(name, node, system, config.rules, declared.get(name))
            known = memo[kube_name] = made_of, standing(node, name, config.members), conf
        if known[1].partitions or name in declared:
            places[name], confs[name] = known[1:]
    for name, conf in declared.items():
        confs.setdefault(name, conf)
        places.setdefault(name, Standing(partitions=_expected(name, config)))
    for each in kept:
        confs.setdefault(each.conf.name, each.conf)
        places.setdefault(each.conf.name, Standing(partitions=each.partitions))
    order = [name for name in declared if name in confs]
    order += sorted((name for name in confs if name not in declared), key=natural)
    for gone in [kube_name for kube_name in memo if kube_name not in seen]:
        del memo[gone]
    old = {conf.name: conf for conf in config.nodes}
    nodes = tuple(_numbered(confs[name], index, old.get(name)) for index, name in enumerate(order))
    labels = {names[kube_name]: node.labels for kube_name, node in seen.items()}
    topologies = topologies_of(config.rules.topology, {name: labels.get(name, {}) for name in order})
    return replace(
        config,
        nodes=nodes,
        partitions=tuple(_with_nodes(each, order, places) for each in config.partitions),
        pools=tuple(_pools(config, order, labels)),
        topologies=topologies if config.rules.topology else config.topologies,
    )


def _expected(name: str, config: FleetConfig) -> tuple[str, ...]:
    """Partitions of a node that is declared and not there: those that would have it whatever its labels."""
    return tuple(
        partition
        for partition, membership in config.members
        if not membership.selector and (membership.named is None or name in membership.named)
    )


def _numbered(conf: NodeConf, index: int, old: NodeConf | None) -> NodeConf:
    """The very record of before where it says the same."""
    numbered = conf if conf.index == index else replace(conf, index=index)
    return old if old is not None and old == numbered else numbered


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


def kube_names(config: ClusterConfig) -> dict[str, str]:
    """Ours -> the cluster's, of those that differ; none where nodes do not come from a cluster."""
    if not isinstance(config, FleetConfig):
        return {}
    return {node.name: node.host for node in config.nodes if node.host and node.host != node.name}


def conf_of(name: str, node: SeenNode, system: Amounts, rules: NodeRules, declared: NodeConf | None) -> NodeConf:
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
    free_cpus = max(node.allocatable.cpu_milli - system.cpu_milli, 0) // 1000
    holders = HOLDER_MIB * shareable(conf)
    free_memory = max(node.allocatable.memory_mib - system.memory_mib - holders, 0)
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
