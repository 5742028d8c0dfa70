"""How records become rows: key columns for searching, msgpack for the rest.

A field that has its default takes no room (defaults are part of the format: a record that changes one needs a
migration). Unknown fields of a newer minor release are passed over, missing ones get their defaults.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, TypeVar

import msgspec

from slurmbridge.errors import StoreError
from slurmbridge.model.accounts import Accounting, Assoc, Quota
from slurmbridge.model.job import Job, JobSpec
from slurmbridge.model.request import JobRequest
from slurmbridge.model.states import JobFlag
from slurmbridge.model.tres import Tres
from slurmbridge.store.schema import ALIVE

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)
_ENCODER = msgspec.msgpack.Encoder()


def _twin(record: type[msgspec.Struct], without: frozenset[str] = frozenset()) -> Any:
    """A positional struct of the same fields that leaves out defaults when encoded; it is never decoded."""
    always = object()  # no value is this: a required field is always written
    fields: list[Any] = []
    for field in msgspec.structs.fields(record):
        if field.name in without:
            continue
        fields.append((field.name, Any, always if field.default is msgspec.NODEFAULT else field.default))
    return msgspec.defstruct(f"Compact{record.__name__}", fields, omit_defaults=True, gc=False)


_REQUEST = _twin(JobRequest)
_SPEC = _twin(JobSpec)
_LIVE = _twin(Job, frozenset({"spec"}))
_request_values = attrgetter(*(f.name for f in msgspec.structs.fields(JobRequest)))
_spec_values = attrgetter(*(f.name for f in msgspec.structs.fields(JobSpec)))
_live_names = tuple(f.name for f in msgspec.structs.fields(Job) if f.name != "spec")
_live_values = attrgetter(*_live_names)
_REQUEST_AT = [f.name for f in msgspec.structs.fields(JobSpec)].index("request")

_spec_decoder = msgspec.msgpack.Decoder(JobSpec)
_LIVE_READ: Any = msgspec.defstruct(
    "LiveJob",
    [
        (f.name, f.type) if f.default is msgspec.NODEFAULT else (f.name, f.type, f.default)
        for f in sorted(msgspec.structs.fields(Job), key=lambda f: not f.required)
        if f.name != "spec"
    ],
    gc=False,
)
_live_decoder = msgspec.msgpack.Decoder(_LIVE_READ)


def encode(record: Any) -> bytes:
    """Any record as it is."""
    return _ENCODER.encode(record)


def encode_spec(spec: JobSpec) -> tuple[bytes, bytes]:
    """(digest, data) of a specification; equal specifications have equal digests."""
    values = list(_spec_values(spec))
    values[_REQUEST_AT] = _REQUEST(*_request_values(spec.request))
    data = _ENCODER.encode(_SPEC(*values))
    return hashlib.sha256(data).digest()[:16], data


def decode_spec(data: bytes) -> JobSpec:
    """A specification that `encode_spec` wrote."""
    try:
        return _spec_decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise StoreError(f"a specification of the database cannot be read: {error}") from error


def blob_uses(digest: bytes, spec: JobSpec) -> list[tuple[str, bytes, str]]:
    """Rows of `blob_uses`: what this specification needs of the stored scripts and environments."""
    named = {spec.script_sha: "script", spec.env_sha: "env"}
    return [(sha, digest, kind) for sha, kind in named.items() if sha]


def is_final(job: Job) -> bool:
    """Ended for good: nothing of the run is left on any node."""
    return job.is_finished and JobFlag.COMPLETING not in job.flags


def ended_at(job: Job) -> float:
    """The end of a run, ALIVE when it has none yet."""
    if not is_final(job):
        return ALIVE
    return job.end_time if job.end_time is not None else job.submit_time


def partition_text(job: Job) -> str:
    """The partition a run got, or those it may get."""
    return job.allocation.partition if job.allocation is not None else ",".join(job.spec.partitions)


def run_row(job: Job, digest: bytes) -> tuple[Any, ...]:
    """Values of the columns of `runs`, in their order, with `rolled` 0."""
    spec = job.spec
    nodes = f",{','.join(n.node for n in job.allocation.nodes)}," if job.allocation is not None else ""
    return (
        job.job_id,
        job.restarts,
        job.array_job_id or None,
        job.het_job_id or None,
        spec.uid,
        spec.account,
        spec.qos,
        partition_text(job),
        spec.name.replace("\0", "\ufffd"),  # which PostgreSQL does not take; the record itself has it
        job.state.name,
        job.submit_time,
        ended_at(job),
        nodes,
        0,
        digest,
        _ENCODER.encode(_LIVE(*_live_values(job))),
    )


class JobDecoder:
    """Rows to jobs; specifications that several runs share are decoded once and shared."""

    def __init__(self) -> None:
        self._specs: dict[bytes, JobSpec] = {}

    def job(self, live: bytes, digest: bytes, spec_data: bytes) -> Job:
        spec = self._specs.get(digest)
        try:
            if spec is None:
                spec = self._specs[digest] = _spec_decoder.decode(spec_data)
            return _join(live, spec)
        except msgspec.MsgspecError as error:
            raise StoreError(f"a job record of the database cannot be read: {error}") from error


def _join(live: bytes, spec: JobSpec) -> Job:
    record = _live_decoder.decode(live)
    return Job(spec=spec, **dict(zip(_live_names, _live_values(record), strict=True)))


def decode(data: bytes, record: type[S]) -> S:
    """A record that `encode` wrote."""
    try:
        return msgspec.msgpack.decode(data, type=record)
    except msgspec.MsgspecError as error:
        raise StoreError(f"a {record.__name__} of the database cannot be read: {error}") from error


class _AssocOnce(Assoc, frozen=True, kw_only=True):
    """An association as it was written when there was one quota for all pools."""

    deserved_tres: Tres = ()
    over_quota_weight: float | None = None
    queue_priority: int | None = None


class _AccountingOnce(Accounting, frozen=True, kw_only=True):
    assocs: tuple[_AssocOnce, ...] = ()


_NAMES = tuple(field.name for field in msgspec.structs.fields(Assoc))


def decode_accounting(data: bytes) -> Accounting:
    """The entities, whichever release wrote them."""
    if b"deserved_tres" not in data:
        return decode(data, Accounting)
    once = decode(data, _AccountingOnce)
    values = {field.name: getattr(once, field.name) for field in msgspec.structs.fields(Accounting)}
    return Accounting(**{**values, "assocs": tuple(_assoc_now(assoc) for assoc in once.assocs)})


def _assoc_now(once: _AssocOnce) -> Assoc:
    quota = Quota(
        deserved=once.deserved_tres, over_quota_weight=once.over_quota_weight, priority=once.queue_priority
    )  # fmt: skip
    values = {name: getattr(once, name) for name in _NAMES}
    return Assoc(**{**values, "quotas": (quota,) if quota != Quota() else once.quotas})


def encode_environment(pairs: Iterable[tuple[str, str]]) -> bytes:
    """An environment as the kernel has it: NAME=VALUE, each ended by NUL; undecodable bytes survive."""
    return b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in pairs)


def decode_environment(data: bytes) -> tuple[tuple[str, str], ...]:
    """The inverse of `encode_environment`."""
    pairs: list[tuple[str, str]] = []
    for entry in data.split(b"\0"):
        name, equals, value = entry.partition(b"=")
        if equals:
            pairs.append((os.fsdecode(name), os.fsdecode(value)))
    return tuple(pairs)


def chunks(items: Sequence[T], size: int) -> Iterable[Sequence[T]]:
    """Slices of at most `size` items."""
    return (items[at : at + size] for at in range(0, len(items), size))
