"""How does scontrol show the devices that a job asked for: TresPerJob, TresPerTask, TresBind, TresFreq?"""

from __future__ import annotations

import msgspec

from slurmbridge.model.request import GresRequest, JobRequest
from slurmbridge.submit.devices import Wish


class DeviceTexts(msgspec.Struct, frozen=True, kw_only=True):
    per_job: str = ""
    per_node: str = ""
    per_socket: str = ""
    per_task: str = ""
    bind: str = ""
    freq: str = ""
    enforce_bind: bool | None = None


def device_texts(request: JobRequest, wish: Wish) -> DeviceTexts:
    """Texts as typed, with what --cpus-per-task and --gpus-per-task add."""
    flags = (request.gres_flags or "").split(",")
    per_node = (_text(request.gres), _text(request.gpus_per_node))
    return DeviceTexts(
        per_job=_text(request.gpus),
        per_node=",".join(text for text in per_node if text),
        per_socket=_text(request.gpus_per_socket),
        per_task=_per_task(request),
        bind=_bind(request, wish),
        freq=f"gpu:{request.gpu_freq}" if request.gpu_freq else "",
        enforce_bind=True if "enforce-binding" in flags else (False if "disable-binding" in flags else None),
    )


def _text(part: GresRequest | None) -> str:
    return part.text if part is not None else ""


def _per_task(request: JobRequest) -> str:
    parts = [f"cpu={request.cpus_per_task}"] if request.cpus_per_task is not None else []
    for term in request.gpus_per_task.terms if request.gpus_per_task is not None else ():
        kind = f":{term.type}" if term.type else ""
        count = term.milli / 1000
        if term.milli:
            parts.append(f"gres/{term.name}{kind}={count:g}")
    if request.tres_per_task is not None:
        parts.append(request.tres_per_task.text)
    return ",".join(parts)


def _bind(request: JobRequest, wish: Wish) -> str:
    if request.tres_bind:
        return request.tres_bind
    if request.gpu_bind:
        return f"gres/gpu:{request.gpu_bind}"
    return f"gres/gpu:per_task:{wish.task.devices}" if wish.task.devices else ""
