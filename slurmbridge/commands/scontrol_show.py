"""Which entity does `scontrol show ENTITY[=ID] [ID]` mean, and which records of it?

Follows scontrol(1). Entities ignore case and may be shortened; their layout is in one module each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.commands import scontrol_show_other as other
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.job_targets import read_target
from slurmbridge.commands.scontrol_jobs import complain, find_jobs
from slurmbridge.commands.scontrol_json import print_json
from slurmbridge.commands.scontrol_show_assoc import show_assoc
from slurmbridge.commands.scontrol_show_config import config_text
from slurmbridge.commands.scontrol_show_job import job_lines
from slurmbridge.commands.scontrol_show_node import node_lines
from slurmbridge.commands.scontrol_show_partition import partition_lines
from slurmbridge.commands.scontrol_show_step import show_steps
from slurmbridge.commands.scontrol_show_topology import show_topoconf, show_topology
from slurmbridge.commands.scontrol_view import Eyes, lay_out, visible_partitions
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import hostlist
from slurmbridge.model.cluster import Node
from slurmbridge.model.states import NodeBase


class Entity(msgspec.Struct, frozen=True, kw_only=True):
    """`least`: shortest beginning; `json`: name of the listing with --json and --yaml."""

    name: str
    least: int
    run: Callable[[Eyes, str | None], Command]
    json: str = ""


def show(eyes: Eyes, words: Sequence[str]) -> Command:
    """`show ENTITY`, `show ENTITY ID`, `show ENTITY=ID`."""
    word, equals, value = words[0].partition("=")
    name: str | None = value if equals else (words[1] if len(words) > 1 else None)
    if len(words) > 2 and not any(name.startswith(word.lower()) for name in ("assoc_mgr", "topology")):
        yield from complain(eyes, "too many arguments for keyword:show")
        return 1
    lowered = word.lower()
    found = next((each for each in ENTITIES if len(lowered) >= each.least and each.name.startswith(lowered)), None)
    if found is None:
        yield from complain(eyes, f"invalid entity:{word} for keyword:show")
        return 1
    if found.name in ("assoc_mgr", "cache"):
        return (yield from show_assoc(eyes, words[1:]))
    if found.name == "topology":
        return (yield from show_topology(eyes, [value, *words[1:]] if equals else words[1:]))
    if (eyes.flags.json is not None or eyes.flags.yaml is not None) and found.json:
        return (yield from print_json(eyes, found.json, name))
    return (yield from found.run(eyes, name))


def _jobs(eyes: Eyes, word: str | None) -> Command:
    one_line = eyes.flags.one_line
    if word is None or not word.strip("0"):
        shown = False
        for job in eyes.site.jobs():
            if _may_see(eyes, job.spec.uid, job.spec.account):
                yield Print(lay_out(job_lines(job, eyes), one_line))
                shown = True
        if not shown and not eyes.flags.quiet:
            yield Print("No jobs in the system\n")
        return 0
    if word.endswith("_") and word[:-1].isdecimal():
        word += "0"
    target = read_target(word, eyes.site.config.max_array_size)
    if target is None or target.step is not None or target.is_range:
        yield from complain(eyes, f"scontrol_print_job error: {SlurmErrno.INVALID_JOB_ID.text}")
        return 1
    found = [job for job in find_jobs(eyes, target) if _may_see(eyes, job.spec.uid, job.spec.account)]
    if not found:
        if target.tasks is None and target.offset is None:
            yield from complain(eyes, f"slurm_load_jobs error: {SlurmErrno.INVALID_JOB_ID.text}")
        elif not find_jobs(eyes, msgspec.structs.replace(target, tasks=None, offset=None)):
            yield from complain(eyes, f"slurm_load_jobs error: {SlurmErrno.INVALID_JOB_ID.text}")
        else:
            yield from complain(eyes, f"Job {target.text} not found")
        return 1
    for job in found:
        yield Print(lay_out(job_lines(job, eyes), one_line))
    return 0


def _may_see(eyes: Eyes, uid: int, account: str) -> bool:
    """PrivateData=jobs: one's own, one's accounts' as coordinator, all as operator."""
    if "jobs" not in eyes.site.config.private_data or uid == eyes.call.uid:
        return True
    return eyes.site.is_operator(eyes.call.uid) or eyes.site.coordinates(eyes.call.uid, account)


def _nodes(eyes: Eyes, word: str | None) -> Command:
    of_node: dict[str, list[str]] = {}
    for partition in visible_partitions(eyes):
        for name in partition.nodes:
            of_node.setdefault(name, []).append(partition.name)
    chosen: list[tuple[str, Node | None]]
    if word is None:
        chosen = [
            (node.name, node) for node in eyes.site.nodes() if eyes.flags.future or node.base is not NodeBase.FUTURE
        ]
    else:
        try:
            names = hostlist.expand(word)
        except LangError:
            yield Print(f"Node {word} not found\n")
            return 1
        chosen = [(name, eyes.site.node(name)) for name in names]
    if word is None:  # as the controller keeps them
        place = {name: at for at, name in enumerate(hostlist.expand(hostlist.compress_sorted(dict(chosen))))}
        chosen.sort(key=lambda each: place.get(each[0], 0))
    if not chosen and not eyes.flags.quiet:
        yield Print("No nodes in the system\n")
    code = 0
    for name, node in chosen:
        if node is None:
            code = 1
            if not eyes.flags.quiet:
                yield Print(f"Node {name} not found\n")
            continue
        yield Print(lay_out(node_lines(node, eyes, ",".join(of_node.get(name, ()))), eyes.flags.one_line))
    return code


def _partitions(eyes: Eyes, word: str | None) -> Command:
    nodes = {node.name: node for node in eyes.site.nodes()}
    found = visible_partitions(eyes) if word is None else [each for each in eyes.site.partitions() if each.name == word]
    for partition in found:
        yield Print(lay_out(partition_lines(partition, eyes, nodes), eyes.flags.one_line))
    if found or eyes.flags.quiet:
        return int(not found and word is not None)
    yield Print("No partitions in the system\n" if word is None else f"Partition {word} not found\n")
    return int(word is not None)


def _config(eyes: Eyes, word: str | None) -> Command:
    yield Print(config_text(eyes))
    return 0


def _licenses(eyes: Eyes, word: str | None) -> Command:
    return (yield from other.show_licenses(eyes, word))


def _reservations(eyes: Eyes, word: str | None) -> Command:
    return (yield from other.show_reservations(eyes, word))


def _hostnames(eyes: Eyes, word: str | None) -> Command:
    return (yield from other.show_hostnames(eyes, word))


def _hostlist(is_sorted: bool) -> Callable[[Eyes, str | None], Command]:
    def run(eyes: Eyes, word: str | None) -> Command:
        if word is None:
            yield from complain(eyes, "invalid encode argument")
            return 1
        return (yield from other.show_hostlist(eyes, word, is_sorted=is_sorted))

    return run


def _daemons(eyes: Eyes, word: str | None) -> Command:
    if word is not None:
        yield from complain(eyes, "too many arguments for keyword:show")
        return 1
    return (yield from other.show_daemons(eyes))


def _aliases(eyes: Eyes, word: str | None) -> Command:
    return (yield from other.show_aliases(eyes, word))


def _steps(eyes: Eyes, word: str | None) -> Command:
    return (yield from show_steps(eyes, word))


def _slurmd(eyes: Eyes, word: str | None) -> Command:
    """Supervisors come with jobs: no daemon of a node listens on this host."""
    yield Print("scontrol: error: slurm_slurmd_info: Connection refused\n", 2)
    yield Print("slurm_load_slurmd_status:Connection refused\n", 2)
    return 1


def _topoconf(eyes: Eyes, word: str | None) -> Command:
    return (yield from show_topoconf(eyes))


def _empty(eyes: Eyes, word: str | None) -> Command:
    """There are none of these here: nothing to print, as in Slurm where none is configured."""
    yield from ()
    return 0


ENTITIES: tuple[Entity, ...] = (
    Entity(name="aliases", least=1, run=_aliases),
    Entity(name="assoc_mgr", least=2, run=_empty),
    Entity(name="bbstat", least=2, run=_empty),
    Entity(name="burstbuffer", least=3, run=_empty),
    Entity(name="cache", least=4, run=_empty),
    Entity(name="config", least=1, run=_config),
    Entity(name="daemons", least=1, run=_daemons),
    Entity(name="dwstat", least=2, run=_empty),
    Entity(name="federations", least=1, run=_empty),
    Entity(name="hostnames", least=5, run=_hostnames),
    Entity(name="hostlistsorted", least=9, run=_hostlist(True)),
    Entity(name="hostlist", least=5, run=_hostlist(False)),
    Entity(name="jobs", least=1, run=_jobs, json="jobs"),
    Entity(name="jobid", least=1, run=_jobs, json="jobs"),
    Entity(name="licenses", least=2, run=_licenses, json="licenses"),
    Entity(name="nodes", least=1, run=_nodes, json="nodes"),
    Entity(name="nodename", least=1, run=_nodes, json="nodes"),
    Entity(name="partitions", least=1, run=_partitions, json="partitions"),
    Entity(name="partitionname", least=1, run=_partitions, json="partitions"),
    Entity(name="reservations", least=1, run=_reservations, json="reservations"),
    Entity(name="reservationname", least=1, run=_reservations, json="reservations"),
    Entity(name="slurmd", least=2, run=_slurmd),
    Entity(name="steps", least=2, run=_steps, json="steps"),
    Entity(name="topology", least=1, run=_empty),
    Entity(name="topoconf", least=5, run=_topoconf),
)
