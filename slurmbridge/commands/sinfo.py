"""sinfo: which nodes and partitions are there, and in which state?

Follows sinfo(1). Nodes of a partition share a line when they are equal in what the columns tell apart (`fields.nodes`);
columns that are no names or states are merged into sums and ranges.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from slurmbridge.commands import listing
from slurmbridge.commands.document_cluster import partition_document
from slurmbridge.commands.document_sinfo import COLUMNS, sinfo_record
from slurmbridge.commands.effects import Call, Command, Print, Site, Sleep
from slurmbridge.commands.listing import Stop, is_number
from slurmbridge.commands.scontrol_view import Flags, look
from slurmbridge.commands.sinfo_options import Wanted, read
from slurmbridge.fields import nodes as node_fields
from slurmbridge.fields import states, text
from slurmbridge.fields.layout import Layout
from slurmbridge.fields.nodes import NodeGroup
from slurmbridge.fields.structured import element
from slurmbridge.fields.view import View
from slurmbridge.lang import durations
from slurmbridge.model.cluster import Node, Partition
from slurmbridge.model.plan import Reservation
from slurmbridge.model.states import NodeBase, NodeFlag

_NAME_WIDTH = 9


def main(call: Call, site: Site) -> Command:
    """Exit code 0, or 1 for a wrong request."""
    wanted = read(call, site)
    if isinstance(wanted, Stop):
        yield from wanted.effects()
        return wanted.exit_code
    now = call.now
    while True:
        if (wanted.long and wanted.header) or wanted.iterate:
            yield Print(listing.date_line(call, site, now))
        if wanted.names_cluster:
            yield Print(f"CLUSTER: {site.config.cluster_name}\n")
        yield from (_reservations if wanted.reservations else _nodes)(replace(call, now=now), site, wanted)
        if not wanted.iterate:
            return 0
        yield Print("\n")
        answer = yield Sleep(float(wanted.iterate))
        now = float(answer) if isinstance(answer, (int, float)) else now + wanted.iterate


def _nodes(call: Call, site: Site, wanted: Wanted) -> Command:
    view = listing.make_view(call, site)
    partitions = _partitions(call, site, wanted)
    if wanted.document:
        eyes = look(call, site, Flags())
        rows = order(group(partitions, COLUMNS, wanted, view), wanted.sort, partitions)
        shown = {row.partition.name: row.partition for row in rows}
        documents = {name: partition_document(each, eyes, dict(view.nodes)) for name, each in shown.items()}
        kind = wanted.document
        elements = (element(kind, sinfo_record(row, eyes, documents[row.partition.name])) for row in rows)
        yield from listing.print_document(call, site, kind, "sinfo", elements)
        return 0
    names = [node_fields.partition_name(partition) for partition in partitions]
    layout, problems = make_layout(wanted.format, wanted.named, names, list(view.nodes))
    yield from listing.errors(*problems)
    columns = [cell.field.name for cell in layout.cells]
    rows = order(group(partitions, columns, wanted, view), wanted.sort, partitions)
    if wanted.header:
        yield Print(layout.header + "\n")
    for piece in layout.pieces(rows, view):
        yield Print(piece)
    return 0


def _partitions(call: Call, site: Site, wanted: Wanted) -> list[Partition]:
    """Those asked for; hidden ones and ones of other groups only by name, --all, or to operators."""
    everything = wanted.hidden or site.is_operator(call.uid)
    groups = set(site.groups_of(call.user))
    shown = []
    for partition in site.partitions():
        if wanted.partitions is not None:
            if partition.name in wanted.partitions:
                shown.append(partition)
        elif everything or not (
            partition.hidden or (partition.allow_groups and groups.isdisjoint(partition.allow_groups))
        ):
            shown.append(partition)
    return shown


def make_layout(
    template: str, named: bool, partitions: Sequence[str], nodes: Sequence[str]
) -> tuple[Layout[NodeGroup], list[str]]:
    """The compiled format; `#` as a width becomes that of the longest partition or node name."""
    registry = node_fields.REGISTRY
    if named:
        return registry.from_names(template)
    if template.lower() == "%all":
        return registry.all_fields(), []
    widths = {"P": partitions, "R": partitions, "N": nodes, "n": nodes}

    def widen(match: re.Match[str]) -> str:
        longest = max((len(name) for name in widths.get(match[2], ())), default=0)
        return f"%{match[1]}{max(longest, _NAME_WIDTH)}{match[2]}"

    return registry.from_letters(re.sub(r"%(\.?)#([A-Za-z])", widen, template))


def group(partitions: Sequence[Partition], columns: Sequence[str], wanted: Wanted, view: View) -> list[NodeGroup]:
    """Rows: equal nodes together, each node once per row; a partition without any has a row of its own."""
    tells_partitions = any(name in ("Partition", "PartitionName") for name in columns)
    of_node, of_partition = node_fields.matchers(columns, wanted.exact)
    shown = {name: (node, of_node(node)) for name, node in view.nodes.items() if _passes(node, wanted)}
    members: dict[tuple[object, ...], dict[str, Node]] = {}
    owners: dict[tuple[object, ...], Partition] = {}
    for partition in partitions:
        found, mine = False, of_partition(partition)
        for name in partition.nodes:
            each = shown.get(name)
            if each is None:
                continue
            found = True
            node, its = each
            key: tuple[object, ...] = (name, partition.name) if wanted.by_node else (its, mine)
            known = members.get(key)
            if known is None:
                owners[key], members[key] = partition, {name: node}
            else:
                known[name] = node
        if not found and tells_partitions and not (wanted.by_node or wanted.reasons):
            owners[("no nodes", partition.name)] = partition
    return [NodeGroup(partition=owner, nodes=tuple(members.get(key, {}).values())) for key, owner in owners.items()]


def _passes(node: Node, wanted: Wanted) -> bool:
    silent = NodeFlag.NOT_RESPONDING in node.flags
    if wanted.nodes is not None and node.name not in wanted.nodes:
        return False
    if (wanted.dead and not silent) or (wanted.responding and silent):
        return False
    if wanted.reasons and not node.reason:
        return False
    if node.base is NodeBase.FUTURE and not wanted.future and wanted.states is None:
        return False
    return wanted.states is None or wanted.states(node)


def _lowest(rows: NodeGroup) -> tuple[tuple[object, ...], ...]:
    return tuple(_natural(node.name) for node in rows.nodes)


@functools.lru_cache(maxsize=1 << 14)
def _natural(name: str) -> tuple[object, ...]:
    """Numbers inside a name count as numbers."""
    return tuple((0, int(part), "") if is_number(part) else (1, 0, part) for part in re.split(r"(\d+)", name) if part)


def _least(get: Callable[[Node], float]) -> Callable[[NodeGroup], object]:
    return lambda row: min((get(node) for node in row.nodes), default=0)


_KEYS: dict[str, Callable[[NodeGroup], object]] = {
    "a": lambda row: row.partition.state.value,
    "A": lambda row: node_fields.node_counts(row)[0],
    "b": lambda row: row.nodes[0].features_active if row.nodes else (),
    "c": _least(lambda node: node.conf.cpus),
    "d": _least(lambda node: node.conf.tmp_disk),
    "D": lambda row: len(row.nodes),
    "e": _least(lambda node: node.free_memory or 0),
    "E": lambda row: row.nodes[0].reason if row.nodes else "",
    "f": lambda row: row.nodes[0].conf.features if row.nodes else (),
    "F": lambda row: node_fields.node_counts(row)[0],
    "g": lambda row: row.partition.allow_groups,
    "G": lambda row: row.nodes[0].conf.gres if row.nodes else "",
    "h": lambda row: row.partition.oversubscribe,
    "H": lambda row: (row.nodes[0].reason_time or 0.0) if row.nodes else 0.0,
    "l": lambda row: 1 << 40 if row.partition.max_time is None else row.partition.max_time,
    "m": _least(lambda node: node.conf.real_memory),
    "n": _lowest,
    "N": _lowest,
    "o": _lowest,
    "O": _least(lambda node: node.cpu_load or 0.0),
    "p": lambda row: row.partition.priority_tier,
    "P": lambda row: row.partition.name,
    "r": lambda row: row.partition.root_only,
    "R": lambda row: row.partition.name,
    "s": lambda row: row.partition.max_nodes or 1 << 40,
    "S": lambda row: row.partition.priority_job_factor,
    "t": lambda row: states.node_rank(row.nodes[0]) if row.nodes else 0,
    "T": lambda row: states.node_rank(row.nodes[0]) if row.nodes else 0,
    "u": lambda row: (row.nodes[0].reason_uid or 0) if row.nodes else 0,
    "U": lambda row: (row.nodes[0].reason_uid or 0) if row.nodes else 0,
    "w": _least(lambda node: node.conf.weight),
    "X": _least(lambda node: node.conf.sockets),
    "Y": _least(lambda node: node.conf.cores_per_socket),
    "z": _least(lambda node: node.conf.sockets * node.conf.cores_per_socket),
    "Z": _least(lambda node: node.conf.threads_per_core),
}


def order(rows: list[NodeGroup], spec: str, partitions: Sequence[Partition]) -> list[NodeGroup]:
    """Stable sorts, the last field first; unknown letters sort nothing; `#P` is the order of configuration."""
    places = {partition.name: index for index, partition in enumerate(partitions)}
    for at in range(len(spec) - 1, -1, -1):
        signs = spec[max(at - 2, 0) : at]
        key = _KEYS.get(spec[at])
        if key is None:
            continue
        if spec[at] == "P" and signs.endswith("#"):
            rows.sort(key=lambda row: places[row.partition.name], reverse=signs == "-#")
        else:
            rows.sort(key=key, reverse=signs.endswith("-"))  # type: ignore[arg-type]
    return rows


def _reservations(call: Call, site: Site, wanted: Wanted) -> Command:
    booked = site.reservations()
    if not booked:
        yield Print("No reservations in the system\n")
        return 0
    view = listing.make_view(call, site)
    width = max(10, *(len(each.name) for each in booked))
    rows = [("RESV_NAME", "STATE", "START_TIME", "END_TIME", "DURATION", "NODELIST")] if wanted.header else []
    rows.extend(_reservation(each, view) for each in booked)
    for name, state, start, end, length, names in rows:
        yield Print(f"{name:<{width}} {state:>8}  {start:>19}  {end:>19}  {length:>11}  {names}\n")
    return 0


def _reservation(each: Reservation, view: View) -> tuple[str, str, str, str, str, str]:
    state = "ACTIVE" if each.start_time <= view.now < each.end_time else "INACTIVE"
    length = durations.render_elapsed(int(each.end_time - each.start_time))
    names = text.fold(each.nodes) if each.nodes else ""
    return each.name, state, view.time(each.start_time), view.time(each.end_time), length, names
