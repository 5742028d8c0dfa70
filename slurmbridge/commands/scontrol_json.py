"""Which records does `scontrol show ... --json` or `--yaml` put into its document?

Follows scontrol(1); the records themselves are in `document_job` and `document_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from slurmbridge.commands import document_cluster as cluster
from slurmbridge.commands.document_cluster import moment
from slurmbridge.commands.effects import Command
from slurmbridge.commands.job_targets import read_target
from slurmbridge.commands.listing import print_document
from slurmbridge.commands.scontrol_jobs import complain, find_jobs
from slurmbridge.commands.scontrol_view import Eyes, visible_partitions
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.fields.job_json import JOB
from slurmbridge.fields.structured import Value, element
from slurmbridge.lang import hostlist


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The document's list with its elements written, one after the other, and what stands behind it."""

    name: str
    elements: Iterable[str]
    rest: dict[str, Value] = {}


Records = Listing | str


def print_json(eyes: Eyes, listing: str, name: str | None) -> Command:
    """The document of one listing, or the complaint."""
    build = _LISTINGS.get(listing)
    if build is None:
        yield from complain(eyes, f"scontrol: error: show {listing} is not offered as a document")
        return 1
    kind = "yaml" if eyes.flags.yaml is not None else "json"
    found = build(eyes, name, kind)
    if isinstance(found, str):
        yield from complain(eyes, found)
        return 1
    yield from print_document(eyes.call, eyes.site, kind, found.name, found.elements, **found.rest)
    return 0


def _listing(name: str, kind: str, values: Iterable[Value], **rest: Value) -> Listing:
    return Listing(name=name, elements=(element(kind, value) for value in values), rest=rest)


def _jobs(eyes: Eyes, name: str | None, kind: str) -> Records:
    jobs = list(eyes.site.jobs())
    if name is not None:
        target = read_target(name, eyes.site.config.max_array_size)
        jobs = find_jobs(eyes, target) if target else []
        if not jobs:
            return f"slurm_load_jobs error: {SlurmErrno.INVALID_JOB_ID.text}"
    if "jobs" in eyes.site.config.private_data and not eyes.site.is_operator(eyes.call.uid):
        jobs = [job for job in jobs if job.spec.uid == eyes.call.uid]
    rest = {
        "last_backfill": moment(eyes.call.now),
        "last_update": moment(None if name is not None else eyes.call.now),
    }
    return Listing(name="jobs", elements=(JOB.text(job, eyes.view, kind) for job in jobs), rest=rest)


def _nodes(eyes: Eyes, name: str | None, kind: str) -> Records:
    of_node: dict[str, list[str]] = {}
    for partition in visible_partitions(eyes):
        for each in partition.nodes:
            of_node.setdefault(each, []).append(partition.name)
    nodes = list(eyes.site.nodes())
    if name is not None:
        try:
            wanted = hostlist.expand(name)
        except LangError:
            return f"Node {name} not found"
        known = {node.name: node for node in nodes}
        nodes = [known[each] for each in wanted if each in known]
    documents = (cluster.node_document(node, eyes, of_node.get(node.name, [])) for node in nodes)
    return _listing("nodes", kind, documents, last_update=moment(eyes.call.now))


def _partitions(eyes: Eyes, name: str | None, kind: str) -> Records:
    nodes = {node.name: node for node in eyes.site.nodes()}
    found = [each for each in visible_partitions(eyes) if name is None or each.name == name]
    documents = (cluster.partition_document(each, eyes, nodes) for each in found)
    return _listing("partitions", kind, documents, last_update=moment(eyes.call.now))


def _licenses(eyes: Eyes, name: str | None, kind: str) -> Records:
    used = dict(eyes.site.licenses_used())
    found = [each for each in eyes.site.config.licenses if name is None or each.name == name]
    documents = (cluster.license_document(each, used.get(each.name, 0)) for each in found)
    return _listing("licenses", kind, documents, last_update=moment(eyes.call.now))


def _reservations(eyes: Eyes, name: str | None, kind: str) -> Records:
    found = [each for each in eyes.site.reservations() if name is None or each.name == name]
    documents = (cluster.reservation_document(each, eyes) for each in found)
    return _listing("reservations", kind, documents, last_update=moment(eyes.call.now))


def _pings(eyes: Eyes, name: str | None, kind: str) -> Records:
    return _listing("pings", kind, [cluster.ping_document(eyes)])


_LISTINGS: dict[str, Callable[[Eyes, str | None, str], Records]] = {
    "jobs": _jobs, "nodes": _nodes, "partitions": _partitions, "licenses": _licenses, "reservations": _reservations,
    "pings": _pings,
}  # fmt: skip
