"""Do the merged options of one component go together? sbatch's own checks, made before anything is submitted.

Order and wording follow sbatch 26.05. A check may settle a value (memory, nodes, tasks) or complain; what only the
controller can know is left to `submit.resolve`, but the texts that have a grammar are read here, with the controller's
words for the user.
"""

from __future__ import annotations

import math
import re

import msgspec

from slurmbridge.errors import LangError, SlurmErrno
from slurmbridge.lang import arrays, binding, dependencies, licenses
from slurmbridge.model.capabilities import VIRTUAL_NODES, Capabilities
from slurmbridge.model.cluster import ClusterConfig
from slurmbridge.model.request import GresRequest, JobRequest, Memory, MemoryPer
from slurmbridge.model.verdict import Refused
from slurmbridge.submit import devices, size
from slurmbridge.submit.merge import Draft, request_of
from slurmbridge.submit.value import Bad, error, fatal
from slurmbridge.submit.value_shape import HINTS

Line = tuple[str, str]


class Verified(msgspec.Struct, frozen=True):
    """The request, and what is said on stderr all the same: (level, text)."""

    request: JobRequest
    lines: tuple[Line, ...] = ()


_SHAPED_BY = ("extra-node-info", "sockets-per-node", "cores-per-socket", "threads-per-core", "ntasks-per-core")
_EXCLUSIVE_WITH_NTASKS_PER_GPU = ("gpus-per-task", "gpus-per-socket", "ntasks-per-node")


SUBMISSION_FAILED = "Batch job submission failed: "
"""What sbatch says before the controller's words; srun and salloc have words of their own."""


def submission_failed(errno: SlurmErrno) -> Bad:
    """The controller's refusal, in sbatch's words."""
    return error(SUBMISSION_FAILED + errno.text, 1)


def needs_capabilities(draft: Draft) -> bool:
    """Whether an option was given that not every runtime can honour."""
    return any(typed.option.needs for typed in draft.typed.values())


def verify(
    draft: Draft, config: ClusterConfig, *, is_admin: bool = False, components: int = 1, failed: str = "",
    capabilities: Capabilities = VIRTUAL_NODES,
) -> Verified | Bad:  # fmt: skip
    """One component; `components`: how many there are in all. `failed`: what the command says before a refusal of GPUs."""
    lines: list[Line] = []
    for typed in draft.typed.values():
        if typed.option.needs and not getattr(capabilities, typed.option.needs):
            return error(f"--{typed.option.long}: {typed.option.why}", 1)
    for check in _CHECKS:
        bad = check(draft, config, lines)
        if bad is not None:
            return _after(lines, bad)
    refused = _devices(draft, config)
    if refused is not None:
        said = tuple(("error", line) for line in refused.before)
        return _after([*lines, *said], error(failed + refused.errno.text, 1))
    if draft.values.get("reboot"):
        if is_admin:
            return _after(lines, submission_failed(SlurmErrno.NOT_SUPPORTED))
        denied = submission_failed(SlurmErrno.ACCESS_DENIED)
        return _after([*lines, ("error", "rebooting of nodes is only allowed for admins")], denied)
    found = _controller_texts(draft, config, components)
    if isinstance(found, Bad):
        return _after(lines, found)
    return Verified(request_of(draft, **found), tuple(lines))


def _devices(draft: Draft, config: ClusterConfig) -> Refused | None:
    """Generic resources that can't be: said before anything that only the controller checks, wrong node names aside."""
    request = request_of(draft)
    wish = devices.read_wish(request, config)
    if not isinstance(wish, Refused):
        named = request.nodelist is not None or request.exclude is not None
        found = None if named else devices.settle(request, wish, size.first_tally(request))
    else:
        found = wish
    return found if found is not None and found.errno is SlurmErrno.INVALID_GRES else None


def _after(lines: list[Line], bad: Bad) -> Bad:
    return Bad((*lines, *bad.lines), bad.exit_code, bad.stdout)


def _is_given(draft: Draft, long: str) -> bool:
    return long in draft.typed


def _has_gpu(value: object) -> bool:
    return isinstance(value, GresRequest) and any(term.name == "gpu" for term in value.terms)


def _gres_help(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if not draft.values.get("+gres-help"):
        return None
    kinds = "".join(f"{name}[[:type]:count]\n" for name in config.gres_types)
    return Bad((), 0, "Valid gres options are:\n" + kinds)


def _reserved(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if _is_given(draft, "core-spec") and _is_given(draft, "thread-spec"):
        return Bad((("fatal", "-S/--core-spec and --thred-spec options are mutually exclusive"),), 1)
    for long, shown, field in (("core-spec", "-S", "core_spec"), ("thread-spec", "--thread-spec", "thread_spec")):
        if _is_given(draft, long) and not config.allow_spec_resources:
            lines.append(
                (
                    "error",
                    f"Ignoring {shown} since it's not allowed by configuration (AllowSpecResourcesUsage = No)",
                )
            )
            draft.values.pop(field, None)
    return None


def _hint(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    """What a hint sets, unless sockets, cores or threads are asked for by name, wherever they stand."""
    word = draft.values.get("hint")
    if word is None or any(_is_given(draft, long) for long in _SHAPED_BY):
        return None
    for field, value in HINTS[str(word)]:
        draft.values[field] = value
        draft.origins[field] = draft.origins["hint"]
    return None


def _threads(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if _is_given(draft, "threads-per-core"):
        lines.append(("verbose", "Setting --cpu-bind=threads as a default of --threads-per-core use"))
    return None


def _external(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if not _is_given(draft, "external"):
        return None
    if draft.values.get("wrap") is not None:
        return error("--wrap option not permitted with --external option", 1)
    return submission_failed(SlurmErrno.NOT_SUPPORTED)


def _sharing(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if _is_given(draft, "exclusive") and draft.values.get("oversubscribe"):
        return fatal("--exclusive and --oversubscribe options are mutually exclusive")
    return None


def _memory(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    given = [field for field in ("+memory-node", "+memory-cpu", "+memory-gpu") if field in draft.values]
    typed = [field for field in given if draft.origins[field].source != "environment"]
    if len(typed) > 1:
        return fatal("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.")
    for chosen in (typed or given)[:1]:
        memory = draft.values[chosen]
        is_all = isinstance(memory, Memory) and memory.per is MemoryPer.CPU and memory.mib == 0
        draft.values["memory"] = Memory(MemoryPer.NODE, 0) if is_all else memory
        draft.origins["memory"] = draft.origins[chosen]
    return None


def _gpus(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    values = draft.values
    if values.get("gpus_per_node") is not None and _has_gpu(values.get("gres")):
        return fatal("--gpus-per-node and --gres=gpu are mutually exclusive.")
    if _is_given(draft, "ntasks-per-gpu") or _is_given(draft, "ntasks-per-tres"):
        for long in _EXCLUSIVE_WITH_NTASKS_PER_GPU:
            if _is_given(draft, long):
                return fatal(f"--{long} is mutually exclusive with --ntasks-per-gpu and SLURM_NTASKS_PER_GPU")
    per_task = values.get("tres_per_task")
    names = {term.name for term in per_task.terms} if isinstance(per_task, GresRequest) else set()
    without_count = values.get("+tres-no-cpu") is not None
    if ("cpu" in names or without_count) and _is_given(draft, "cpus-per-task"):
        return fatal("You can not have --tres-per-task=cpu= and --cpus-per-task please use one or the other")
    if without_count:
        return fatal("Invalid --tres-per-task=cpu=0")
    if "gpu" in names and values.get("gpus_per_task") is not None:
        return fatal("You can not have --tres-per-task=gres/gpu= and --gpus-per-task please use one or the other")
    if _is_given(draft, "cpus-per-gpu") and ("cpu" in names or _is_given(draft, "cpus-per-task")):
        return fatal("--cpus-per-task, --tres-per-task=cpu:#, and --cpus-per-gpu are mutually exclusive")
    if values.get("gpu_memory_mib") is not None and values.get("gpu_fraction_milli") is not None:
        return error("--gpu-memory and --gpu-fraction are two ways to say the same: give one of them", 1)
    flags = str(values.get("gres_flags") or "").split(",")
    if "one-task-per-sharing" in flags:
        return error(
            "In order to use --gres-flags=one-task-per-sharing you must also have "
            "SelectTypeParameters=MULTIPLE_SHARING_GRES_PJ in your slurm.conf"
        )
    if "allow-task-sharing" in flags:
        return error("--gres-flags=allow-task-sharing is only used with srun.")
    return None


def _hosts(draft: Draft) -> tuple[str, ...] | None:
    hosts = draft.values.get("nodelist")
    return hosts if isinstance(hosts, tuple) else None


def _number(draft: Draft, field: str) -> int | None:
    value = draft.values.get(field)
    return value if isinstance(value, int) else None


def _shape_product(draft: Draft, least: int | None, most: int | None) -> int | None:
    """Tasks per node that sockets, cores and threads imply: with a fixed node count, or asked for by -B at once."""
    if least is None or (most is not None and least == most):
        info = _number(draft, "+node-info-tasks")
        shape = [_number(draft, field) for field in ("sockets_per_node", "cores_per_socket", "threads_per_core")]
        product = math.prod(count for count in shape if count is not None)
        if info is not None or (most is not None and product > 1):
            return product
    return None


def _tasks_and_nodes(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    values, hosts = draft.values, _hosts(draft)
    layout = str(values.get("distribution") or "")
    if layout.startswith("arbitrary"):
        if hosts is None:
            return error("With Arbitrary distribution you need to specify a nodelist or hostfile with the -w option", 1)
        if _is_given(draft, "nodes"):
            return error("--nodes is incompatible with --distribution=arbitrary", 1)
    least, most = _number(draft, "nodes_min"), _number(draft, "nodes_max")
    if least is None and hosts is not None:
        least = len(dict.fromkeys(hosts))
    if "ntasks" not in values and "ntasks_per_node" not in values:
        product = _shape_product(draft, least, most)
        if product is not None:
            values["ntasks"] = product * (1 if least is None else least)
            lines.append(("verbose", f"Number of tasks implicitly set to {values['ntasks']}."))
    tasks = _number(draft, "ntasks")
    if least == 0 and tasks is not None:  # as many nodes as the tasks want
        del values["nodes_min"]
        if most == 0:
            del values["nodes_max"]
        least = most = None
    plane = re.match(r"plane=([0-9]+)", layout)
    if plane and least and (least - 1) * int(plane[1]) >= (least if tasks is None else tasks):
        return error("Too few processes for the requested {plane,node} distribution", 1)
    if tasks is not None and least is not None and tasks < least:
        if not layout.startswith("arbitrary"):
            lines.append(("warning", f"can't run {tasks} processes on {least} nodes, setting nnodes to {tasks}"))
        values["nodes_min"] = tasks
        values["nodes_max"] = tasks if most is None else min(most, tasks)
        values["node_counts"] = ()
    return None


def _segment(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    segment, nodes = _number(draft, "segment"), _number(draft, "nodes_min")
    if segment and nodes and nodes > segment and nodes % segment:
        return fatal(
            f"--segment={segment} does not fit the job size ({nodes}): "
            "node count must be evenly divisible by segment size"
        )
    return None


def _ports(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    if not _is_given(draft, "resv-ports"):
        return None
    if not draft.values.get("stepmgr"):
        return error("Slurmstepd step management must be enabled to use --resv-ports for job allocations", 1)
    return error(SUBMISSION_FAILED + "Requires more ports than can be reserved", 1)


def _moments(draft: Draft, config: ClusterConfig, lines: list[Line]) -> Bad | None:
    begin, deadline = draft.values.get("begin"), draft.values.get("deadline")
    if isinstance(begin, int) and isinstance(deadline, int) and begin > deadline:
        return error("Incompatible begin and deadline time specification", 1)
    return None


_CHECKS = (
    _gres_help,
    _moments,
    _reserved,
    _hint,
    _threads,
    _external,
    _sharing,
    _memory,
    _gpus,
    _tasks_and_nodes,
    _segment,
    _ports,
)


def _controller_texts(draft: Draft, config: ClusterConfig, components: int) -> dict[str, object] | Bad:
    """Texts whose grammar the controller checks; fields of the request that come of them."""
    values, found = draft.values, dict[str, object]()
    if values.get("+requeue-expedite"):
        return submission_failed(SlurmErrno.NOT_SUPPORTED)
    if values.get("+tres-refused") is not None:
        return submission_failed(SlurmErrno.INVALID_TRES)
    if values.get("+resources"):
        return submission_failed(SlurmErrno.INVALID_LICENSES)
    if not _sampling_is_allowed(str(values.get("acctg_freq") or ""), config):
        return submission_failed(SlurmErrno.INVALID_ACCTG_FREQ)
    bind = values.get("tres_bind")
    if bind and not all(_is_binding(part) for part in str(bind).split("+")):
        return submission_failed(SlurmErrno.INVALID_TRES)
    try:
        array = values.get("array")
        if array is not None:
            if components > 1:
                return submission_failed(SlurmErrno.INVALID_ARRAY)
            found["array"] = arrays.parse(str(array), config.max_array_size)
    except LangError:
        return submission_failed(SlurmErrno.INVALID_ARRAY)
    text = str(values.get("dependency") or "")
    if text.lower().startswith("expand:"):
        return submission_failed(SlurmErrno.NOT_SUPPORTED)
    try:
        if text:
            found["dependency"] = dependencies.parse(text)
    except LangError:
        return submission_failed(SlurmErrno.DEPENDENCY)
    try:
        if values.get("licenses"):
            terms, any_of = licenses.parse(str(values["licenses"]))
            found["license_terms"], found["licenses_any_of"] = terms, any_of
        elif "licenses" in values:
            found["licenses"] = None
    except LangError:
        return submission_failed(SlurmErrno.INVALID_LICENSES)
    return found


def _is_binding(text: str) -> bool:
    head, colon, rest = text.partition(":")
    if not colon or not head.startswith("gres/"):
        return False
    try:
        binding.check_gpu_bind(rest)
    except LangError:
        return False
    return True


def _sampling_is_allowed(text: str, config: ClusterConfig) -> bool:
    """A job may sample its tasks more often than the cluster does, not less."""
    wanted = _task_interval(text)
    if wanted is None:
        return True
    site = _task_interval(dict(config.values).get("JobAcctGatherFrequency", "30"))
    return wanted > 0 and (not site or wanted <= site)


def _task_interval(text: str) -> int | None:
    for part in text.split(","):
        name, equals, interval = part.rpartition("=")
        if interval.isdecimal() and (not equals or name.lower() == "task"):
            return int(interval)
    return None
