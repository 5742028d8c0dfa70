"""What does `scontrol show job` print of a job that Slurm has no line for? Lines of ours stand behind Slurm's."""

from __future__ import annotations

from collections.abc import Iterator

from slurmbridge.commands.scontrol_view import Eyes
from slurmbridge.fields import containers
from slurmbridge.lang import sizes
from slurmbridge.manifest.pod_limits import LIMITERS, NONE, Limiter
from slurmbridge.manifest.pod_resources import WHOLE
from slurmbridge.model.job import Job


def own_lines(job: Job, eyes: Eyes) -> Iterator[str]:
    """Those that mean something for the job."""
    spec = job.spec
    if spec.preemptible is not None:
        yield f"Preemptible={'yes' if spec.preemptible else 'no'}"
    if spec.gpu is not None and (spec.gpu.milli < WHOLE or spec.gpu.mib):
        yield f"GpuMemoryLimit={_gpu_memory(job)} GpuMemoryLimiter={_limiter(job, eyes).label}"
    wishes = containers.wishes(spec.request)
    if wishes:
        yield " ".join(f"Container{name}={value}" for name, value in wishes)


def _gpu_memory(job: Job) -> str:
    """Of each device; what a portion is in MiB is known with the devices."""
    shares = job.allocation.nodes if job.allocation is not None else ()
    known = [device.mib for share in shares for device in share.devices if device.mib]
    least = min(known, default=job.spec.gpu.mib if job.spec.gpu is not None else 0)
    return sizes.render_mib(least) if least else "N/A"


def _limiter(job: Job, eyes: Eyes) -> Limiter:
    """What keeps it to that: of the partition it is in, or may start in first."""
    partition = job.allocation.partition if job.allocation is not None else job.spec.partitions[0]
    able = eyes.site.capabilities
    return LIMITERS[able.template(partition).gpu_sharing] if able.containers else NONE
