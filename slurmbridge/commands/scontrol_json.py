"""Which records does `scontrol show ... --json` or `--yaml` put into its document?

Follows scontrol(1); the records themselves are in `document_job` and `document_cluster`.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.commands import document_cluster as cluster
from slurmbridge.commands.document_cluster import moment
from slurmbridge.commands.effects import Command, Print
from slurmbridge.commands.job_targets import read_target
from slurmbridge.commands.listing import document
from slurmbridge.commands.scontrol_jobs import complain, find_jobs
from slurmbridge.commands.scontrol_view import Eyes, visible_partitions
from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.fields.job_json import job_record
from slurmbridge.fields.structured import Value
from slurmbridge.lang import hostlist

Records = dict[str, Value] | str


def print_json(eyes: Eyes, listing: str, name: str | None) -> Command:
    """The document of one listing, or the complaint."""
    build = _LISTINGS.get(listing)
    if build is None:
        yield from complain(eyes, f"scontrol: error: show {listing} is not offered as a document")
        return 1
    records = build(eyes, name)
    if isinstance(records, str):
        yield from complain(eyes, records)
        return 1
    yield Print(document(eyes.call, eyes.site, "yaml" if eyes.flags.yaml is not None else "json", records))
    return 0


def _jobs(eyes: Eyes, name: str | None) -> Records:
    jobs = list(eyes.site.jobs())
    if name is not None:
        target = read_target(name, eyes.site.config.max_array_size)
        jobs = find_jobs(eyes, target) if target else []
        if not jobs:
            return f"slurm_load_jobs error: {SlurmErrno.INVALID_JOB_ID.text}"
    if "jobs" in eyes.site.config.private_data and not eyes.site.is_operator(eyes.call.uid):
        jobs = [job for job in jobs if job.spec.uid == eyes.call.uid]
    return {
        "jobs": [job_record(job, eyes.view) for job in jobs],
        "last_backfill": moment(eyes.call.now),
        "last_update": moment(None if name is not None else eyes.call.now),
    }


def _nodes(eyes: Eyes, name: str | None) -> Records:
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
    documents = [cluster.node_document(node, eyes, of_node.get(node.name, [])) for node in nodes]
    return {"nodes": documents, "last_update": moment(eyes.call.now)}


def _partitions(eyes: Eyes, name: str | None) -> Records:
    nodes = {node.name: node for node in eyes.site.nodes()}
    found = [each for each in visible_partitions(eyes) if name is None or each.name == name]
    documents = [cluster.partition_document(each, eyes, nodes) for each in found]
    return {"partitions": documents, "last_update": moment(eyes.call.now)}


def _licenses(eyes: Eyes, name: str | None) -> Records:
    used = eyes.site.licenses_used()
    found = [each for each in eyes.site.config.licenses if name is None or each.name == name]
    documents = [cluster.license_document(each, used.get(each.name, 0)) for each in found]
    return {"licenses": documents, "last_update": moment(eyes.call.now)}


def _reservations(eyes: Eyes, name: str | None) -> Records:
    found = [each for each in eyes.site.reservations() if name is None or each.name == name]
    documents = [cluster.reservation_document(each, eyes) for each in found]
    return {"reservations": documents, "last_update": moment(eyes.call.now)}


def _pings(eyes: Eyes, name: str | None) -> Records:
    return {"pings": [cluster.ping_document(eyes)]}


_LISTINGS: dict[str, Callable[[Eyes, str | None], Records]] = {
    "jobs": _jobs, "nodes": _nodes, "partitions": _partitions, "licenses": _licenses, "reservations": _reservations,
    "pings": _pings,
}  # fmt: skip
