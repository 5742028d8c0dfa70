"""What keeps the sharers of a device to their part of its memory? One table of ways; a partition names one.

`gpuSharing` of the site file. None of them is a wall: what each leaves open is said in its label, which `scontrol show job`
prints. Sources: NVIDIA's documentation of the Multi-Process Service (environment variables, memory protection), and the
README of HAMi-core. The first counts devices as the container sees them, so do the second's numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import msgspec

from slurmbridge.model.pods import Manifest

MPS = "/run/nvidia/mps"
"""On a node whose partition says mps: its control daemon's pipes (`pipe`), and what is its /dev/shm (`shm`)."""
HAMI = "/usr/local/vgpu"
"""On a node whose partition says hami-core: the folder of libvgpu.so."""
HAMI_CACHE = "/dev/shm/.slurmbridge-vgpu.cache"
"""Of each pod: the library's books, which must not outlive a limit."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Of one device, in the order in which the container sees them. `milli`: its share; `mib`: what it may allocate."""

    milli: int
    mib: int


class Limiter(msgspec.Struct, frozen=True, kw_only=True):
    """One way. Variables go to the container, those that tell the loader something only to the job's own processes:
    the supervisor is no program of the image."""

    name: str
    label: str  # one word, as shown
    env: Callable[[Sequence[Part]], dict[str, str]] = lambda parts: {}
    job_env: tuple[tuple[str, str], ...] = ()
    volumes: tuple[Manifest, ...] = ()
    mounts: tuple[Manifest, ...] = ()
    shm: Manifest | None = None  # in place of the pod's own /dev/shm
    kept: re.Pattern[str] = re.compile(r"(?!)")  # variables that a submission cannot bring along

    @property
    def departing(self) -> tuple[str, ...]:
        """Folders of a node that it mounts: no restricted namespace takes such pods."""
        sources = [volume.get("hostPath") for volume in (*self.volumes, *((self.shm,) if self.shm else ()))]
        return tuple(str(source["path"]) for source in sources if isinstance(source, Mapping))


def _percent(parts: Sequence[Part]) -> str:
    """Of the processors: one number for all devices of a process, so the smallest part's."""
    return str(max(min(-(-part.milli // 10) for part in parts), 1))


def _mps(parts: Sequence[Part]) -> dict[str, str]:
    return {
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": ",".join(f"{place}={part.mib}M" for place, part in enumerate(parts)),
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": _percent(parts),
        "CUDA_MPS_PIPE_DIRECTORY": f"{MPS}/pipe",
    }


def _hami_core(parts: Sequence[Part]) -> dict[str, str]:
    limits = {f"CUDA_DEVICE_MEMORY_LIMIT_{place}": f"{part.mib}m" for place, part in enumerate(parts)}
    return {**limits, "CUDA_DEVICE_SM_LIMIT": _percent(parts), "CUDA_DEVICE_MEMORY_SHARED_CACHE": HAMI_CACHE}


NONE = Limiter(name="none", label="not_enforced")
LIMITERS: dict[str, Limiter] = {
    limiter.name: limiter
    for limiter in (
        NONE,
        Limiter(
            name="mps",
            label="mps:each_process",
            env=_mps,
            volumes=({"name": "slurmbridge-mps", "hostPath": {"path": f"{MPS}/pipe", "type": "Directory"}},),
            mounts=({"name": "slurmbridge-mps", "mountPath": f"{MPS}/pipe"},),
            shm={"hostPath": {"path": f"{MPS}/shm", "type": "Directory"}},
            kept=re.compile(r"CUDA_MPS_.*"),
        ),
        Limiter(
            name="hami-core",
            label="hami-core:each_container",
            env=_hami_core,
            job_env=(("LD_PRELOAD", f"{HAMI}/libvgpu.so"),),
            volumes=({"name": "slurmbridge-vgpu", "hostPath": {"path": HAMI, "type": "Directory"}},),
            mounts=({"name": "slurmbridge-vgpu", "mountPath": HAMI, "readOnly": True},),
            kept=re.compile(
                r"CUDA_DEVICE_.*|CUDA_DISABLE_CONTROL|CUDA_OVERSUBSCRIBE|CUDA_TASK_PRIORITY|GPU_CORE_UTILIZATION_POLICY"
                r"|ACTIVE_OOM_KILLER|LD_PRELOAD"
            ),
        ),
    )
}
"""By name; a name that is none of these is none in a site file."""


def limiter_of(name: str, parts: Sequence[Part]) -> Limiter:
    """For a rank: where it shares nothing there is nothing to limit."""
    return LIMITERS[name] if parts else NONE
