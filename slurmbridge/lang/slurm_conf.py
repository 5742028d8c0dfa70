"""What cluster do slurm.conf and its companions describe?

Follows slurm.conf(5) and gres.conf(5) of Slurm 26.05. Every key that Slurm knows is known (`slurm_conf_keys`): it takes
effect, or it is listed in `ClusterConfig.without_effect`; any other key is an error with its file and line. Pure: texts
come in by path, an edge that reads files asks `included_files` what else to read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from slurmbridge.errors import ConfigError
from slurmbridge.lang import site_fields, slurm_conf_preempt, slurm_conf_words, topology_conf
from slurmbridge.lang import slurm_conf_values as values
from slurmbridge.lang.slurm_conf_dbd import NAME as DBD
from slurmbridge.lang.slurm_conf_dbd import WITHOUT_EFFECT as DBD_KEYS
from slurmbridge.lang.slurm_conf_dbd import Accounts, read_accounts
from slurmbridge.lang.slurm_conf_gres import read_gres
from slurmbridge.lang.slurm_conf_keys import BY_NAME, ConfKey, Kind
from slurmbridge.lang.slurm_conf_lines import ConfLine, Pair, included_names, read_lines, resolve_name
from slurmbridge.lang.slurm_conf_nodes import WITHOUT_EFFECT as NODE_KEYS
from slurmbridge.lang.slurm_conf_nodes import read_down_nodes, read_node_sets, read_nodes
from slurmbridge.lang.slurm_conf_partitions import SHOWN_ONLY, read_partitions
from slurmbridge.lang.slurm_conf_partitions import WITHOUT_EFFECT as PARTITION_KEYS
from slurmbridge.lang.slurm_conf_settings import FIELDS, check
from slurmbridge.model.cluster import ClusterConfig, Device, NodeConf, Partition
from slurmbridge.model.topology import Topology

RECORDS = ("nodename", "partitionname", "nodeset", "downnodes")
WHOLE_FILES = {
    "cgroup.conf": "supervisors measure and limit jobs in their own way",
}
"""Companions of which nothing takes effect, with the reason."""
TOPOLOGY_FILES = (topology_conf.CONF, topology_conf.YAML)
COMPANIONS = (DBD, "gres.conf", *TOPOLOGY_FILES, *WHOLE_FILES)
"""Files beside slurm.conf that belong to the cluster's description; any of them may be absent."""
IGNORED_RECORDS = ("poweraction",)
_BY_TIER = ("partitionname preemptmode", "partitionname gracetime")


def why_without_effect(key: str) -> str:
    """The reason of a key listed in `ClusterConfig.without_effect`; empty for a remark that speaks for itself."""
    if key == DBD:
        return "it cannot be read by this user; everything is kept for ever"
    of_site = site_fields.why_without_effect(key)
    if of_site is not None:
        return of_site
    record, _, name = key.partition(" ")
    if record in ("PreemptMode", "PreemptParameters"):
        return slurm_conf_preempt.why(record, name)
    if name and slurm_conf_words.why(record, name):
        return slurm_conf_words.why(record, name)
    if record == DBD:
        return DBD_KEYS.get(name, "")
    if name:
        tables = {"NodeName": NODE_KEYS, "PartitionName": {**PARTITION_KEYS, **SHOWN_ONLY}}
        return tables.get(record, {}).get(name.lower(), "")
    if key in WHOLE_FILES:
        return WHOLE_FILES[key]
    if key == topology_conf.CONF:
        return "TopologyPlugin names no plugin that reads it, or topology.yaml stands in its place"
    known = BY_NAME.get(key.lower())
    return known.why if known else "nodes are not switched on or off"


def included_files(text: str) -> list[str]:
    """The names behind `Include`, as written, in order. Relative ones lie beside slurm.conf (`resolve_name`)."""
    return included_names(text)


def companion(conf_name: str, name: str) -> str:
    """The path of a file beside slurm.conf."""
    return resolve_name(conf_name, name)


def read_cluster(files: Mapping[str, str], conf_name: str, *, cpus: int, memory_mib: int) -> ClusterConfig:
    """The whole description. `files`: path -> text of slurm.conf, its includes and the companions that exist.

    `cpus` and `memory_mib` of this machine stand in when no NodeName line is given. Raises ConfigError with file and line.
    """
    plain: dict[str, Pair] = {}
    hosts: list[Pair] = []
    records: dict[str, list[ConfLine]] = {name: [] for name in RECORDS}
    notes: list[tuple[str, int, str]] = []
    for line in read_lines(files, conf_name):
        name = line.head.key.lower()
        if name in records:
            records[name].append(line)
        elif name in IGNORED_RECORDS:
            notes.append((line.head.file, line.head.line, line.head.key))
        elif name == "slurmctldhost":
            hosts.append(line.head)
        else:
            _take_plain(line, plain, notes)
    gres_types = tuple(word.lower() for word in values.names(plain["grestypes"])) if "grestypes" in plain else ()
    gres_name = companion(conf_name, "gres.conf")
    gres = read_gres(read_lines(files, gres_name), gres_types) if gres_name in files else ()
    dbd_name = companion(conf_name, DBD)
    accounts = read_accounts(read_lines(files, dbd_name)) if dbd_name in files else Accounts()
    nodes = read_nodes(records["nodename"], gres, gres_types)
    sets = read_node_sets(records["nodeset"], nodes)
    partitions = read_partitions(records["partitionname"], nodes, sets, notes)
    slurm_conf_preempt.check(plain)
    notes += slurm_conf_preempt.notes(plain)
    notes += slurm_conf_words.notes(plain)
    if "preempttype" in plain and plain["preempttype"].value.lower() == "preempt/partition_prio":
        notes = [note for note in notes if note[2].lower() not in _BY_TIER]
    plugin = plain["topologyplugin"].value.lower() if "topologyplugin" in plain else ""
    topologies, remarks = topology_conf.read_topologies(files, conf_name, plugin, tuple(nodes.confs))
    notes += _topology_notes(plain, topologies, partitions)
    config = ClusterConfig(
        conf_file=conf_name,
        topologies=topologies,
        nodes=tuple(nodes.confs.values()) or tuple(_machine(cpus, memory_mib, "localhost", 1)),
        partitions=partitions,
        down_nodes=read_down_nodes(records["downnodes"], nodes),
        gres_types=gres_types,
        values=tuple((BY_NAME[name].name, pair.value) for name, pair in plain.items()),
        without_effect=tuple(sorted([*notes, *nodes.without_effect], key=lambda note: note[1]))
        + accounts.notes
        + tuple(remarks)
        + _whole_files(files, conf_name),
        retention=accounts.retention,
        dbd_values=accounts.shown,
    )
    return _derived(msgspec.structs.replace(config, **_control(hosts, plain), **_settings(plain)), plain)


def _topology_notes(
    plain: Mapping[str, Pair], topologies: tuple[Topology, ...], partitions: tuple[Partition, ...]
) -> list[tuple[str, int, str]]:
    """Where a topology is asked for that nobody describes."""
    pair, names = plain.get("topologyplugin"), {each.name for each in topologies}
    found = []
    if pair is not None and pair.value.lower() in ("topology/tree", "topology/block") and not topologies:
        found.append(
            (pair.file, pair.line, f"{pair.key}={pair.value} without {topology_conf.CONF}: nodes are equally near")
        )
    for each in partitions:
        if each.topology and each.topology not in names:
            raise ConfigError(f"PartitionName={each.name}: topology {each.topology} is not in {topology_conf.YAML}")
    return found


def _whole_files(files: Mapping[str, str], conf_name: str) -> tuple[tuple[str, int, str], ...]:
    """Companions that say something, though nothing of it takes effect: (path, first line that says it, name)."""
    found = []
    for name in WHOLE_FILES:
        path = companion(conf_name, name)
        lines = enumerate(files.get(path, "").splitlines(), 1)
        first = next((number for number, line in lines if line.partition("#")[0].strip()), None)
        if first is not None:
            found.append((path, first, name))
    return tuple(found)


def _take_plain(line: ConfLine, plain: dict[str, Pair], notes: list[tuple[str, int, str]]) -> None:
    pair = line.head
    key = BY_NAME.get(pair.key.lower())
    if key is None:
        raise pair.error(f"Parsing error at unrecognized key: {pair.key}")
    if len(line.pairs) > 1:
        rest = " ".join(f"{each.key}={each.value}" for each in line.pairs[1:])
        raise pair.error(f'Parse error: " {rest}"')
    check(key, pair)
    if key.why:
        notes.append((pair.file, pair.line, key.name))
    name = key.name.lower()
    if name in plain and key.kind is Kind.TEXT and key.default is None:
        pair = msgspec.structs.replace(pair, value=f"{plain[name].value},{pair.value}")
    plain.pop(name, None)
    plain[name] = pair


def _control(hosts: list[Pair], plain: Mapping[str, Pair]) -> dict[str, str]:
    """The controller's name and address from the first SlurmctldHost, or from ControlMachine of old files."""
    if hosts:
        name, _, rest = hosts[0].value.partition("(")
        return {"control_host": name, "control_addr": rest.rstrip(")")}
    old = plain.get("controlmachine")
    if old is None and "slurmctldaddr" in plain:
        return {"control_addr": plain["slurmctldaddr"].value}
    return (
        {"control_host": old.value, "control_addr": plain["controladdr"].value if "controladdr" in plain else ""}
        if old
        else {}
    )


def _settings(plain: Mapping[str, Pair]) -> dict[str, Any]:
    """The fields of ClusterConfig that plain keys set."""
    fields: dict[str, Any] = {}
    for name, pair in plain.items():
        if name in FIELDS:
            field, read = FIELDS[name]
            fields[field] = read(pair)
    return fields


def _derived(config: ClusterConfig, plain: Mapping[str, Pair]) -> ClusterConfig:
    """Settings that follow from others: tasks of one array, root's jobs in every partition."""
    words = dict(word.partition("=")[::2] for word in config.scheduler_parameters.replace(" ", "").split(","))
    tasks = words.get("max_array_tasks", "")
    partitions = config.partitions
    if "disablerootjobs" in plain and values.switch(plain["disablerootjobs"]):
        partitions = tuple(msgspec.structs.replace(each, disable_root_jobs=True) for each in partitions)
    return msgspec.structs.replace(
        config, partitions=partitions, max_array_tasks=int(tasks) if tasks.isdecimal() else config.max_array_size
    )


def default_cluster(*, cpus: int, memory_mib: int, host: str) -> ClusterConfig:
    """No file given: two virtual nodes that each have this machine's CPUs and half its memory, one partition of both."""
    nodes = tuple(_machine(cpus, max(memory_mib // 2, 1), host, 2))
    names = tuple(node.name for node in nodes)
    partition = Partition(name="debug", nodes=names, nodes_text="ALL", default=True)
    return ClusterConfig(
        cluster_name="slurmbridge", control_host=host, nodes=nodes, partitions=(partition,),
        gres_types=("gpu", "mps", "shard"),
        select_type_parameters=frozenset({"CR_CORE_MEMORY"}),
        values=(("ClusterName", "slurmbridge"), ("SelectTypeParameters", "CR_Core_Memory")),
    )  # fmt: skip


def _machine(cpus: int, memory_mib: int, host: str, count: int) -> list[NodeConf]:
    names = [f"n{number}" for number in range(1, count + 1)] if count > 1 else [host]
    return [
        NodeConf(
            name=name, address=name, host=name, cpus=cpus, cores_per_socket=cpus, real_memory=memory_mib, index=index
        )
        for index, name in enumerate(names)
    ]


Reader = Callable[[Pair], Any]
__all__ = [
    "ConfKey",
    "ConfigError",
    "Device",
    "Reader",
    "companion",
    "default_cluster",
    "included_files",
    "read_cluster",
]
