"""Does the output of a job outlive its pods, or has the daemon to keep it?

A file stays where it lies below a mount of a volume that is somebody's outside of the pod; volumes that are made with a pod,
or that nobody can write to, keep nothing. A folder of the nodes counts as shared: a site mounts one where its nodes have a
file system in common. Follows "Volumes" of the Kubernetes documentation.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping

from slurmbridge.lang import filenames
from slurmbridge.lang.lasting import Mounts, lasts
from slurmbridge.manifest.launch import pattern_values
from slurmbridge.manifest.pod_container import Settled, settle, wish_of
from slurmbridge.manifest.pod_volumes import TAKEN
from slurmbridge.model.capabilities import Capabilities
from slurmbridge.model.job import Job
from slurmbridge.model.pods import Manifest, PodTemplate

PASSING = frozenset(
    {
        "emptyDir",
        "ephemeral",
        "configMap",
        "secret",
        "downwardAPI",
        "projected",
        "image",
        "gitRepo",
        "serviceAccountToken",
    }
)
"""Kinds of volumes that are made with a pod and go with it, or are read only by their nature."""
KEPT_MIB = 64
"""Of the output of one job, all its files and restarts together; what is beyond is dropped, and a line says so."""


def mounts_of(template: PodTemplate, container: Settled) -> Mounts:
    """Of a job's container."""
    passing = {str(each.get("name")) for each in template.volumes if PASSING & each.keys()}
    return (
        *((folder, False) for folder in sorted(TAKEN)),
        *(
            (posixpath.normpath(str(mount["mountPath"])), _stays(mount, passing))
            for mount in (*template.volume_mounts, *container.mounts)
        ),
    )


def _stays(mount: Manifest, passing: set[str]) -> bool:
    return not mount.get("readOnly") and str(mount.get("name")) not in passing


def note(job: Job, home: str, capabilities: Capabilities) -> str:
    """Where the output of a job that is submitted goes, if it is no file that its owner would find; else empty."""
    path = unshared(job, {} if job.array_job_id else dict(pattern_values(job)), home, capabilities)
    if not path:
        return ""
    return (
        f"note: no shared file system holds {path}: output goes to the controller, which keeps {KEPT_MIB} MiB of it; "
        f"`slurmbridge logs {job.job_id}` shows it"
    )


def unshared(job: Job, values: Mapping[str, str], home: str, capabilities: Capabilities) -> str:
    """The first of a batch job's output files that no shared file system holds, wherever it may start; empty: none.

    `values`: of its file names' marks, as far as they are known before it starts.
    """
    if not capabilities.containers or job.spec.std_out is None:
        return ""
    partitions = (job.allocation.partition,) if job.allocation else job.spec.partitions
    for partition in partitions:
        template = capabilities.template(partition)
        container = settle(wish_of(job.spec.request), template, home)
        if isinstance(container, str):
            continue
        for pattern in (job.spec.std_out, job.spec.std_err):
            path = filenames.expand(pattern, values) if pattern else ""
            if path and not lasts(mounts_of(template, container), path):
                return path
    return ""
