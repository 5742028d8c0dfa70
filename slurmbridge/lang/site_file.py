"""What does a site file say? Node pools, the order of jobs, and what pods of partitions are like: YAML beside slurm.conf.

Strict: a key that is not known, a value of another kind, a node that is not there or that is in two pools is an error
with its line. Fields of pods are in Kubernetes' own words; on virtual nodes there are no pods, so they are listed as
without effect. Pure: the text comes in, `with_site` puts what it says into the configuration.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import cast

import msgspec
import yaml
from msgspec.structs import replace

from slurmbridge.errors import ConfigError, LangError
from slurmbridge.lang import hostlist
from slurmbridge.lang.site_fields import (
    DEVICE_FIELDS,
    MEMORY_FIELDS,
    PLACEMENTS,
    POD_FIELDS,
    POOL_FIELDS,
    SCHEDULING_CHOICES,
    SCHEDULING_FIELDS,
    SECTIONS,
)
from slurmbridge.lang.site_nodes import read_rules
from slurmbridge.lang.site_pods import templates_of
from slurmbridge.model.cluster import (
    DEFAULT_DEVICE_MIB,
    ClusterConfig,
    Device,
    NodeConf,
    Partition,
    Placement,
    Pool,
    Scheduling,
)
from slurmbridge.model.fleet import NodeRules
from slurmbridge.model.pods import PodTemplate

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


class DeclaredPool(msgspec.Struct, frozen=True, kw_only=True):
    """A pool as written: `hosts` is its host list, not yet expanded."""

    pool: Pool
    line: int
    hosts: str = ""


class PartitionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """`placement` of a partition, "" = of `defaults`."""

    name: str
    line: int
    placement: str = ""


class DeviceMemory(msgspec.Struct, frozen=True, kw_only=True):
    """MiB of each type of GPU (devices of other types have the usual size), and what the driver keeps of each."""

    by_type: tuple[tuple[str, int], ...] = ()
    reserve: int = 0


class SiteFile(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the file says; what has no meaning on virtual nodes is also in the notes (file, line, key)."""

    file: str
    pools: tuple[DeclaredPool, ...] = ()
    placement: str = ""
    partitions: tuple[PartitionPlace, ...] = ()
    scheduling: Scheduling = Scheduling()
    memory: DeviceMemory = DeviceMemory()
    notes: tuple[tuple[str, int, str], ...] = ()
    rules: NodeRules = NodeRules()  # of nodes that come from a cluster
    rule_lines: tuple[tuple[str, int], ...] = ()  # where they are written
    pods: PodTemplate = PodTemplate()  # of partitions that the file does not name
    partition_pods: tuple[tuple[str, PodTemplate], ...] = ()


class _Reader:
    """One file's nodes; every complaint has its line."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.notes: list[tuple[str, int, str]] = []
        self.memory = DeviceMemory()

    def wrong(self, node: yaml.Node, message: str) -> ConfigError:
        return ConfigError(message, file=self.file, line=node.start_mark.line + 1)

    def pairs(self, node: yaml.Node, what: str) -> Iterator[tuple[str, yaml.Node, yaml.Node]]:
        """(key, its node, value) of a mapping; nothing written counts as an empty one."""
        if isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null":
            return
        if not isinstance(node, yaml.MappingNode):
            raise self.wrong(node, f"{what} is not a mapping")
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self.wrong(key, f"a key of {what} is not a word")
            if key.value in seen:
                raise self.wrong(key, f"{key.value} is there twice in {what}")
            seen.add(key.value)
            yield key.value, key, value

    def text(self, node: yaml.Node, what: str) -> str:
        if not isinstance(node, yaml.ScalarNode) or not node.value:
            raise self.wrong(node, f"{what} is not a text")
        return str(node.value)

    def one_of(self, node: yaml.Node, what: str, words: Sequence[str]) -> str:
        text = self.text(node, what)
        if text not in words:
            raise self.wrong(node, f"{what} is {', '.join(words[:-1])} or {words[-1]}, not '{text}'")
        return text

    def placement(self, node: yaml.Node, what: str) -> Placement:
        return cast(Placement, self.one_of(node, what, PLACEMENTS))

    def amount(self, node: yaml.Node, what: str) -> float:
        """A number that is not negative."""
        text = self.text(node, what)
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise self.wrong(node, f"{what} is a number of at least 0, not '{text}'")
        return number

    def scheduling(self, node: yaml.Node) -> Scheduling:
        found: dict[str, str | float] = {}
        for key, at, value in self.pairs(node, "scheduling"):
            if key in SCHEDULING_CHOICES:
                found[key] = self.one_of(value, f"{key} of scheduling", SCHEDULING_CHOICES[key])
            elif key == "history":
                found[key] = self.amount(value, "history of scheduling")
            else:
                raise self.wrong(at, f"scheduling has no field '{key}'; fields are {', '.join(SCHEDULING_FIELDS)}")
        return msgspec.convert(found, Scheduling)

    def pod_fields(self, node: yaml.Node, section: str, what: str) -> str:
        """The placement among them; the others become notes."""
        placement = ""
        for key, at, value in self.pairs(node, what):
            if key == "placement":
                placement = self.placement(value, f"placement of {what}")
            elif key in MEMORY_FIELDS and section == "defaults":
                self.device_memory(key, value)
            elif key in POD_FIELDS or key in DEVICE_FIELDS:
                self.notes.append((self.file, at.start_mark.line + 1, f"{section} {key}"))
            else:
                own = MEMORY_FIELDS[:1] if section == "defaults" else ()
                known = ", ".join(sorted((*POD_FIELDS, *DEVICE_FIELDS, *own, "placement"), key=str.lower))
                raise self.wrong(at, f"{what} has no field '{key}'; fields are {known}")
        return placement

    def device_memory(self, key: str, node: yaml.Node) -> None:
        if key == "gpuMemoryReserveMiB":
            self.memory = replace(self.memory, reserve=self.mib(node, key))
            return
        sizes = [(kind, self.mib(value, f"{key} of {kind}")) for kind, _, value in self.pairs(node, key)]
        self.memory = replace(self.memory, by_type=tuple(sizes))

    def mib(self, node: yaml.Node, what: str) -> int:
        amount = self.amount(node, what)
        if amount != int(amount):
            raise self.wrong(node, f"{what} is a whole number of MiB")
        return int(amount)

    def pool(self, name: str, at: yaml.Node, node: yaml.Node) -> DeclaredPool:
        if not _NAME.fullmatch(name):
            raise self.wrong(at, f"'{name}' is no name for a pool: letters, digits, '.', '_' and '-'")
        pool, hosts = Pool(name=name), ""
        given: set[str] = set()
        for key, where, value in self.pairs(node, f"pool {name}"):
            given.add(key)
            if key == "nodes":
                hosts = self.text(value, f"nodes of pool {name}")
            elif key == "nodeSelector":
                labels = self.pairs(value, f"nodeSelector of pool {name}")
                pool = replace(
                    pool, node_selector=tuple((label, self.text(each, f"label {label}")) for label, _, each in labels)
                )
            elif key == "placement":
                pool = replace(pool, placement=self.placement(value, f"placement of pool {name}"))
            elif key == "devicePlacement":
                pool = replace(pool, device_placement=self.placement(value, f"devicePlacement of pool {name}"))
            else:
                raise self.wrong(where, f"pool {name} has no field '{key}'; fields are {', '.join(POOL_FIELDS)}")
        if {"nodes", "nodeSelector"} <= given:
            raise self.wrong(at, f"pool {name} has both nodes and nodeSelector: one of them says which nodes it has")
        if not hosts and not pool.node_selector:
            raise self.wrong(at, f"pool {name} has neither nodes nor nodeSelector")
        return DeclaredPool(pool=pool, line=at.start_mark.line + 1, hosts=hosts)


def read_site(text: str, file: str) -> SiteFile:
    """The file's content. ConfigError with line: not YAML, or not a site file."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as fault:
        raise _not_yaml(fault, text, file) from fault
    except RecursionError as fault:
        raise ConfigError("nested too deep", file=file) from fault
    if root is None:
        return SiteFile(file=file)
    reader = _Reader(file)
    placement, partitions, pools = "", list[PartitionPlace](), list[DeclaredPool]()
    scheduling, rules, rule_lines = Scheduling(), NodeRules(), tuple[tuple[str, int], ...]()
    for section, at, value in reader.pairs(root, "the file"):
        if section == "defaults":
            placement = reader.pod_fields(value, section, section)
        elif section == "partitions":
            for name, where, fields in reader.pairs(value, section):
                chosen = reader.pod_fields(fields, section, f"partition {name}")
                partitions.append(PartitionPlace(name=name, line=where.start_mark.line + 1, placement=chosen))
        elif section == "pools":
            pools = [reader.pool(name, where, fields) for name, where, fields in reader.pairs(value, section)]
        elif section == "scheduling":
            scheduling = reader.scheduling(value)
        elif section == "nodes":
            rules, rule_lines = read_rules(value, file)
            reader.notes += [(file, line, f"nodes {field}") for field, line in rule_lines]
        else:
            raise reader.wrong(at, f"there is no section '{section}'; sections are {', '.join(SECTIONS)}")
    pods, partition_pods = templates_of(root, file)
    return SiteFile(
        file=file,
        rules=rules,
        rule_lines=rule_lines,
        pods=pods,
        partition_pods=tuple(partition_pods.items()),
        pools=tuple(pools),
        placement=placement,
        partitions=tuple(partitions),
        scheduling=scheduling,
        memory=reader.memory,
        notes=tuple(reader.notes),
    )


def _not_yaml(fault: yaml.YAMLError, text: str, file: str) -> ConfigError:
    if isinstance(fault, yaml.reader.ReaderError):
        return ConfigError(str(fault.reason), file=file, line=text.count("\n", 0, fault.position) + 1)
    mark, problem = getattr(fault, "problem_mark", None), getattr(fault, "problem", None) or "not YAML"
    hint = " (inside braces a host list is written in quotes)" if "'['" in problem else ""
    return ConfigError(problem + hint, file=file, line=mark.line + 1 if mark is not None else 0)


def with_site(config: ClusterConfig, site: SiteFile) -> ClusterConfig:
    """The configuration of virtual nodes with what the site file says. ConfigError: names that are not there."""
    known = {partition.name for partition in config.partitions}
    for place in site.partitions:
        if place.name not in known:
            raise ConfigError(f"there is no partition '{place.name}'", file=site.file, line=place.line)
    chosen = {place.name: place.placement for place in site.partitions}
    return replace(
        config,
        pools=_pools(config, site),
        scheduling=site.scheduling,
        nodes=tuple(_with_memory(node, site) for node in config.nodes),
        partitions=tuple(
            placed(partition, chosen.get(partition.name) or site.placement) for partition in config.partitions
        ),
        without_effect=config.without_effect + site.notes,
    )


def _with_memory(node: NodeConf, site: SiteFile) -> NodeConf:
    """The memory of its GPUs that jobs may use."""
    if site.memory == DeviceMemory() or not node.devices:
        return node
    return replace(node, devices=tuple(_usable(device, site) for device in node.devices))


def _usable(device: Device, site: SiteFile) -> Device:
    whole = dict(site.memory.by_type).get(device.type) or device.memory_mib or DEFAULT_DEVICE_MIB
    if whole <= site.memory.reserve and not device.is_slice:
        kind = f" {device.type}" if device.type else ""
        raise ConfigError(f"gpuMemoryReserveMiB leaves nothing of a GPU{kind} of {whole} MiB", file=site.file)
    return replace(device, memory_mib=max(whole - site.memory.reserve, 1))


def placed(partition: Partition, placement: str) -> Partition:
    """Spreading is what slurm.conf calls LLN: the node with the most free CPUs first."""
    return replace(partition, lln=placement == "spread") if placement else partition


def _pools(config: ClusterConfig, site: SiteFile) -> tuple[Pool, ...]:
    places = {node.name: place for place, node in enumerate(config.nodes)}
    owner: dict[str, str] = {}
    pools = []
    for declared in site.pools:
        pool, line = declared.pool, declared.line
        if pool.node_selector:
            text = f"pool {pool.name}: virtual nodes have no labels; name them with nodes"
            raise ConfigError(text, file=site.file, line=line)
        try:
            names = list(dict.fromkeys(hostlist.expand(declared.hosts)))
        except LangError as fault:
            text = f"pool {pool.name}: '{declared.hosts}' is no host list: {fault.message}"
            raise ConfigError(text, file=site.file, line=line) from fault
        for name in names:
            if name not in places:
                raise ConfigError(f"pool {pool.name}: there is no node '{name}'", file=site.file, line=line)
            if name in owner:
                text = f"pool {pool.name}: node {name} is in pool {owner[name]} already; pools are disjoint"
                raise ConfigError(text, file=site.file, line=line)
            owner[name] = pool.name
        pools.append(replace(pool, nodes=tuple(sorted(names, key=places.__getitem__))))
    return tuple(pools)
