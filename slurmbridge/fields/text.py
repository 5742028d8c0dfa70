"""How are a job's values written? Shared by squeue, sacct, scontrol and JSON; each function one value, no layout.

Follows the output of squeue(1) and scontrol(1): ids of arrays and heterogeneous jobs, exit codes, memory, node lists.
"""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Callable

from slurmbridge.lang import arrays, dependencies, filenames, hostlist, sizes, tres
from slurmbridge.model.job import Job, Step, StepId
from slurmbridge.model.request import Memory
from slurmbridge.model.states import JobState
from slurmbridge.model.tres import Tres
from slurmbridge.model.units import NO_TASK

Runs = tuple[tuple[int, int, int], ...]

_STEP_NAMES = {step.value: step.name.lower() for step in StepId}
_BITSTR_DEFAULT = 64


@functools.lru_cache(maxsize=4096)
def task_text(runs: Runs, limit: int = 0, longest: int = _BITSTR_DEFAULT) -> str:
    """Task indexes of an array: `1-3,5%2`; remembered, as every listing asks again."""
    return arrays.render(runs, limit, longest)


def job_label(job: Job, longest: int = _BITSTR_DEFAULT) -> str:
    """`12`, `12_3`, `12_[0-9%2]`, `12+1`: how people name a job."""
    if job.array_job_id:
        if job.array_task_id is not None:
            return f"{job.array_job_id}_{job.array_task_id}"
        return f"{job.array_job_id}_[{task_text(job.tasks, job.array_limit, longest)}]"
    if job.het_job_id:
        return f"{job.het_job_id}+{job.het_offset}"
    return str(job.job_id)


def step_label(step_id: int) -> str:
    """`batch`, `extern`, `0` ..."""
    return _STEP_NAMES.get(step_id) or str(step_id)


def step_order(step: Step) -> tuple[int, int]:
    """Batch, extern, interactive, then by number."""
    return (0, -abs(step.step_id + 5)) if step.step_id < 0 else (1, step.step_id)


def exit_text(status: int) -> str:
    """A wait status as `code:signal`."""
    return f"{status >> 8 & 0xFF}:{status & 0x7F}"


def nodes_of(job: Job) -> tuple[str, ...]:
    """Names of allocated nodes, in rank order."""
    return tuple(share.node for share in job.allocation.nodes) if job.allocation else ()


def fold(names: tuple[str, ...]) -> str:
    """A node list, sorted and folded: `n[1-4]`."""
    if len(names) == 1:
        return names[0]
    return _fold(names)


@functools.lru_cache(maxsize=4096)
def _fold(names: tuple[str, ...]) -> str:
    return hostlist.compress_sorted(names)


def node_list(job: Job) -> str:
    return fold(nodes_of(job)) if job.allocation else ""


def reason_text(job: Job) -> str:
    """Why it waits or ended so; the longer text where there is one."""
    return job.reason_text or job.reason


_SHOWS_REASON = frozenset(
    (JobState.PENDING, JobState.TIMEOUT, JobState.OUT_OF_MEMORY, JobState.DEADLINE, JobState.FAILED)
)


def nodes_or_reason(job: Job) -> str:
    """squeue's NODELIST(REASON)."""
    if job.state in _SHOWS_REASON:
        return f"({job.reason_text or job.reason})"
    return node_list(job)


def total_cpus(job: Job) -> int:
    if job.allocation is not None:
        return sum(share.cpus for share in job.allocation.nodes)
    return job.spec.min_cpus


def job_tres(job: Job) -> Tres:
    """What it holds, or asks for while it waits."""
    return job.allocation.tres if job.allocation is not None else job.spec.req_tres


def tres_text(value: Tres) -> str:
    return tres.render(value) if value else ""


@functools.lru_cache(maxsize=1024)
def memory_text(memory: Memory | None, convert: bool = True) -> str:
    """Memory per node, CPU or GPU as asked: `100M`, `2G`, `0`."""
    if memory is None or memory.mib == 0:
        return "0"
    return mib_text(memory.mib, convert)


def mib_text(mib: int, convert: bool = True) -> str:
    if mib == 0:
        return "0"
    return sizes.render_mib(mib) if convert else f"{mib}M"


def _not_array(job_id: int) -> bool:
    return False


def dependency_text(job: Job, missing: str = "(null)", is_array: Callable[[int], bool] = _not_array) -> str:
    """`afterok:12(unfulfilled),after:13_*+5(failed)`: terms already satisfied are gone, as in Slurm."""
    dependency = job.spec.dependency
    if dependency is None:
        return missing
    parts = []
    for index, term in enumerate(dependency.terms):
        if index in job.dep_done:
            continue
        text = dependencies.render_term(term, is_array=term.job_id > 0 and is_array(term.job_id))
        parts.append(f"{text}(failed)" if index in job.dep_failed else f"{text}(unfulfilled)")
    if not parts:
        return missing
    return ("?" if dependency.any_of else ",").join(parts)


def run_seconds(job: Job, now: float) -> int:
    """Elapsed seconds of the run without suspension; 0 before it starts."""
    if job.start_time is None or job.state is JobState.PENDING:
        return 0
    start = int(job.start_time)
    if job.state is JobState.SUSPENDED:
        return int(job.pre_suspend_s)
    end = int(job.end_time) if job.end_time is not None and job.state.is_finished else int(now)
    if job.suspend_time is not None:
        return max(int(job.pre_suspend_s) + end - int(job.suspend_time), 0)
    return max(end - start, 0)


def stdio_path(job: Job, stream: str, *, expand: bool) -> str | None:
    """The pattern of `stdout`, `stderr` or `stdin` as asked, or (expanded) the absolute path it names.

    None where there is nothing to show: no separate stderr, or a job without a batch script.
    """
    spec = job.spec
    pattern = {"stdout": spec.std_out, "stderr": spec.std_err, "stdin": spec.std_in}[stream]
    if stream == "stdin" and pattern is None:
        return "/dev/null" if spec.is_batch else None
    if pattern is None:
        return None
    if not expand:
        default = "slurm-%A_%a.out" if job.array_job_id else "slurm-%j.out"
        given = spec.request.stdout if stream == "stdout" else pattern
        return pattern if given is not None else default
    path = filenames.expand(pattern, filename_values(job))
    if not pattern or pattern.startswith(f"{spec.work_dir}/"):  # a folder that an update named may be relative
        return path
    return posixpath.join(spec.work_dir, path)


def filename_values(job: Job) -> dict[str, str]:
    """What `%A %a %b %j %J %N %n %s %t %u %x` stand for in a job's file names."""
    spec = job.spec
    task = NO_TASK if job.array_task_id is None else job.array_task_id
    nodes = nodes_of(job)
    return {
        "A": str(job.array_job_id or job.job_id),
        "a": str(task),
        "b": str(task % 10),
        "j": str(job.job_id),
        "J": str(job.job_id),
        "N": (job.batch_host or (nodes[0] if nodes else "(null)")).partition(".")[0],
        "n": "0",
        "s": "batch",
        "t": "0",
        "u": spec.user,
        "x": spec.name,
    }


def index_text(indexes: list[int]) -> str:
    """Device numbers as ranges: `0-1,3`."""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
