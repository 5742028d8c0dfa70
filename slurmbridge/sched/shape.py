"""What does a job ask for, apart from who asks and for how long?

Jobs of equal shape get equal verdicts in one cycle, so each shape is looked at once. Shapes are interned: equal ones are
the same object and compare by `number`. Source: sbatch(1), the options of size and place.
"""

from __future__ import annotations

import msgspec

from slurmbridge.model.job import GpuNeed, GpuScope, JobSpec
from slurmbridge.model.request import Exclusive, Memory


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """See `JobSpec` for the fields; those that are equal for most jobs come last."""

    number: int
    min_nodes: int
    max_nodes: int | None
    tasks: int
    tasks_given: bool
    cpus_per_task: int
    min_cpus: int
    node_cpus: int
    memory: Memory | None
    gpu: GpuNeed | None
    cpus_per_gpu: int
    tasks_per_node: int
    tasks_per_socket: int
    tasks_per_core: int
    tasks_per_gpu: int
    sockets: int | None
    cores: int | None
    threads: int | None
    overcommit: bool
    tmp_mib: int
    features: str | None
    prefer: str | None
    req_nodes: tuple[str, ...]
    exc_nodes: tuple[str, ...]
    contiguous: bool
    exclusive: Exclusive
    oversubscribe: bool
    node_counts: tuple[int, ...]
    use_min_nodes: bool
    spread: bool
    block: bool
    reservation: str
    licenses: tuple[tuple[str, int], ...]
    any_license: bool
    lifted: tuple[str, ...]  # see `submit.lifting`
    uid: int  # of jobs that want nodes for their user alone, else -1
    switches: int  # most leaf switches; 0 = any number
    segment: int  # nodes that stay in one block; 0 = all of them
    spread_segments: bool  # no two of them in one base block
    consolidate: bool  # all of them in one block that is planned for the whole job


_Key = tuple[object, ...]


def key_of(spec: JobSpec) -> _Key:
    """Everything of `Shape` but the number, in its order."""
    request = spec.request
    kept = [name for name, _ in request.recorded] if request.segment else ()
    return (
        spec.min_nodes,
        None if spec.gpu is not None and _spreads_freely(spec) else spec.max_nodes,
        spec.num_tasks,
        spec.ntasks_given,
        max(spec.cpus_per_task, 1),
        spec.min_cpus,
        max(spec.pn_min_cpus, 1),
        spec.memory,
        spec.gpu,
        spec.cpus_per_gpu,
        spec.ntasks_per_node,
        spec.ntasks_per_socket,
        spec.ntasks_per_core,
        spec.ntasks_per_gpu,
        spec.sockets_per_node,
        spec.cores_per_socket,
        spec.threads_per_core,
        spec.overcommit,
        spec.pn_min_tmp_mib,
        spec.features,
        spec.prefer,
        spec.req_nodes,
        spec.exc_nodes,
        spec.contiguous,
        spec.exclusive,
        spec.oversubscribe,
        spec.node_counts,
        request.use_min_nodes or not _wants_range(spec),
        request.spread_job,
        spec.ntasks_per_node > 0 or _is_block(request.distribution),
        spec.reservation,
        tuple([(term.name, term.count) for term in spec.license_terms]) if spec.license_terms else (),
        spec.licenses_any_of,
        spec.lifted,
        spec.uid if spec.exclusive is Exclusive.USER else -1,
        spec.switches,
        request.segment or 0,
        "spread-segments" in kept,
        "consolidate-segments" in kept,
    )


def _wants_range(spec: JobSpec) -> bool:
    """Whether the user gave a range of node counts; without one a job of N tasks has an upper bound of N nodes too."""
    return spec.request.nodes_max is not None or spec.max_nodes not in (None, spec.num_tasks)


def _spreads_freely(spec: JobSpec) -> bool:
    """Whether --gpus alone says how large the job is: it may then have as many nodes as it has devices."""
    if spec.gpu is None or spec.gpu.scope is not GpuScope.JOB or spec.ntasks_given or spec.ntasks_per_node:
        return False
    return spec.request.nodes_min is None and spec.request.nodes_max is None and not spec.request.gpus_per_node


def _is_block(distribution: str | None) -> bool:
    """Whether tasks fill one socket after the other: the second part of --distribution."""
    if not distribution:
        return False
    parts = distribution.lower().split(",")[0].split(":")
    return len(parts) > 1 and parts[1] == "block"


class ShapeTable:
    """Interns shapes. Growing it never changes an answer; numbers are only names."""

    __slots__ = ("_groups", "_known", "_looser", "_relaxed", "any_het", "het", "samples", "shapes")

    def __init__(self) -> None:
        self._known: dict[_Key, Shape] = {}
        self._groups: dict[_Key, int] = {}
        self.shapes: list[Shape] = []  # by number
        self.samples: list[tuple[JobSpec, Shape]] = []  # one job of each group, by its number
        self.het: list[int] = []  # het_job_id of each group
        self.any_het = False
        self._relaxed: dict[int, tuple[int, Shape]] = {}  # by group
        self._looser: dict[int, Shape] = {}  # by the number of the shape

    def of(self, spec: JobSpec) -> Shape:
        key = key_of(spec)
        shape = self._known.get(key)
        if shape is None:
            fields = Shape.__struct_fields__[1:]
            shape = Shape(number=len(self._known), **dict(zip(fields, key, strict=True)))  # type: ignore[arg-type]
            self._known[key] = shape
            self.shapes.append(shape)
        return shape

    def group(self, spec: JobSpec, shape: Shape, het_job_id: int = 0) -> int:
        """A number for jobs that differ in nothing that decides whether they may start: one verdict serves all.

        The factors of their priorities are equal too, but for age and nice.
        """
        key = (
            shape.number,
            spec.partitions,
            spec.uid,
            spec.user,
            spec.group,
            spec.account,
            spec.assoc_id,
            spec.qos,
            spec.time_limit,
            spec.time_min,
            spec.deadline,
            spec.req_tres,
            spec.preemptible,
            het_job_id,
        )
        number = self._groups.get(key)
        if number is None:
            number = self._groups[key] = len(self.samples)
            self.samples.append((spec, shape))
            self.het.append(het_job_id)
            self.any_het = self.any_het or bool(het_job_id)
        return number

    def relaxed(self, group: int) -> tuple[int, Shape]:
        """The group of jobs that differ from these in nothing but that any number of switches will do, and their shape."""
        found = self._relaxed.get(group)
        if found is None:
            spec = msgspec.structs.replace(self.samples[group][0], switches=0)
            before = self.samples[group][1].number
            shape = self._looser.get(before) or self.of(spec)
            self._looser[before] = shape
            found = self._relaxed[group] = len(self.samples), shape
            self.samples.append((spec, shape))
            self.het.append(self.het[group])
        return found

    def __len__(self) -> int:
        return max(len(self._known), len(self.samples))
