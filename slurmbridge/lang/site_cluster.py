"""What configuration follows from slurm.conf and a site file where nodes come from a cluster?

NodeName lines are no list of all nodes there: what they say goes for the node of that name. A partition's `Nodes=` names
some of them, and without it (or with `ALL`) labels decide. Without slurm.conf the site file's partitions are the
partitions, the first of them the default one. Follows slurm.conf(5).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from slurmbridge.errors import ConfigError, LangError
from slurmbridge.lang import hostlist
from slurmbridge.lang.site_file import SiteFile, placed
from slurmbridge.model.cluster import ClusterConfig, Partition, Pool
from slurmbridge.model.fleet import FleetConfig, Membership, Tolerated
from slurmbridge.model.pods import Manifest, PodTemplate


def on_cluster(config: ClusterConfig | None, site: SiteFile, *, cluster_name: str = "slurmbridge") -> FleetConfig:
    """`config` None: there is no slurm.conf. Its nodes are those of NodeName lines alone. ConfigError with line."""
    plain = ClusterConfig(
        cluster_name=cluster_name, gres_types=("gpu", "mps", "shard"),
        select_type_parameters=frozenset({"CR_CORE_MEMORY"}),
        values=(("ClusterName", cluster_name), ("SelectTypeParameters", "CR_Core_Memory")),
    )  # fmt: skip
    base = config or plain
    partitions = base.partitions if config is not None else tuple(_own_partitions(site))
    known = {partition.name for partition in partitions}
    for place in site.partitions:
        if place.name not in known:
            raise ConfigError(f"there is no partition '{place.name}'", file=site.file, line=place.line)
    if base.topologies and site.rules.topology:
        line = dict(site.rule_lines).get("topology", 0)
        raise ConfigError("topology.conf says which nodes are near to each other already", file=site.file, line=line)
    chosen = {place.name: place.placement for place in site.partitions}
    templates = dict(site.partition_pods)
    fields = {name: getattr(base, name) for name in ClusterConfig.__struct_fields__}
    fields |= {
        "nodes": (),
        "partitions": tuple(placed(each, chosen.get(each.name) or site.placement) for each in partitions),
        "pools": tuple(replace(declared.pool, nodes=()) for declared in site.pools),
        "scheduling": site.scheduling,
    }
    if site.rules.topology:
        fields["topology"] = "topology/tree"
    return FleetConfig(
        **fields,
        declared=base.nodes,
        rules=replace(site.rules, gpu_memory=site.memory.by_type, gpu_reserve=site.memory.reserve),
        members=tuple((each.name, _membership(each, templates.get(each.name, site.pods))) for each in partitions),
        pool_names=tuple(_pool_names(site)),
        pods=site.pods,
        partition_pods=site.partition_pods,
    )


def _own_partitions(site: SiteFile) -> Iterable[Partition]:
    names = [place.name for place in site.partitions] or ["debug"]
    return (Partition(name=name, default=not index, index=index) for index, name in enumerate(names))


def _membership(partition: Partition, template: PodTemplate) -> Membership:
    named = None if partition.nodes_text.upper() in ("", "ALL") else partition.nodes
    if named == ():
        text = f"PartitionName={partition.name}: Nodes={partition.nodes_text} is no node; without Nodes= the site file's nodeSelector says which"
        raise ConfigError(text)
    return Membership(
        named=named,
        selector=template.node_selector,
        tolerated=tuple(_tolerated(each) for each in template.tolerations),
        needs=tuple((name, int(amount) if amount.isdecimal() else 1) for name, amount in template.resources),
    )


def _tolerated(written: Manifest) -> Tolerated:
    value = None if written.get("operator") == "Exists" else str(written.get("value") or "")
    return Tolerated(key=str(written.get("key") or ""), value=value, effect=str(written.get("effect") or ""))


def _pool_names(site: SiteFile) -> Iterable[tuple[str, tuple[str, ...]]]:
    owner: dict[str, str] = {}
    for declared in site.pools:
        pool: Pool = declared.pool
        if pool.node_selector:
            continue
        try:
            names = tuple(dict.fromkeys(hostlist.expand(declared.hosts)))
        except LangError as fault:
            text = f"pool {pool.name}: '{declared.hosts}' is no host list: {fault.message}"
            raise ConfigError(text, file=site.file, line=declared.line) from fault
        for name in names:
            if name in owner:
                text = f"pool {pool.name}: node {name} is in pool {owner[name]} already; pools are disjoint"
                raise ConfigError(text, file=site.file, line=declared.line)
            owner[name] = pool.name
        yield pool.name, names
