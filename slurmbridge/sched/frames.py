"""Bytes between the daemon and the planner's process: a length, then msgpack.

Requests go one way, answers the other, in order. Pure: reading and writing pipes is the caller's business.
"""

from __future__ import annotations

import struct

import msgspec

from slurmbridge.errors import ProtocolError
from slurmbridge.model.explain import Explanation
from slurmbridge.model.job import Job
from slurmbridge.model.plan import Delta, Factors, Plan, QueueShare, Verdict

HEADER = struct.Struct("!I")
MAX_FRAME = 1 << 30


class CycleRequest(msgspec.Struct, frozen=True, kw_only=True, tag="cycle"):
    """Take the delta in and plan as of `now`. Answer: Plan."""

    delta: Delta
    now: float


class EstimateRequest(msgspec.Struct, frozen=True, kw_only=True, tag="estimate"):
    """When and where would this job start (--test-only)? Answer: Verdict or null."""

    job: Job
    now: float


class FactorsRequest(msgspec.Struct, frozen=True, kw_only=True, tag="factors"):
    """What are the priorities of the last cycle made of (sprio)? Answer: Factors of every waiting job."""


class SharesRequest(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    """What did the last cycle find every association to deserve and to use (sshare)? Answer: QueueShare by pool."""


class ExplainRequest(msgspec.Struct, frozen=True, kw_only=True, tag="explain"):
    """Why does this job wait (slurmbridge why)? Answer: Explanation."""

    job: Job
    now: float


Request = CycleRequest | EstimateRequest | FactorsRequest | SharesRequest | ExplainRequest


class PlanAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="plan"):
    plan: Plan


class EstimateAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="estimate"):
    verdict: Verdict | None


class FactorsAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="factors"):
    factors: tuple[Factors, ...]


class SharesAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="shares"):
    shares: tuple[QueueShare, ...]


class ExplainAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="explain"):
    explanation: Explanation


class Failure(msgspec.Struct, frozen=True, kw_only=True, tag="failure"):
    """The planner broke on this request; its next request must bring everything again."""

    text: str


Answer = PlanAnswer | EstimateAnswer | FactorsAnswer | SharesAnswer | ExplainAnswer | Failure

_encoder = msgspec.msgpack.Encoder()
_requests = msgspec.msgpack.Decoder(Request)
_answers = msgspec.msgpack.Decoder(Answer)


def _frame(message: object) -> bytes:
    body = _encoder.encode(message)
    return HEADER.pack(len(body)) + body


def encode_request(delta: Delta, now: float) -> bytes:
    """A cycle request, framed."""
    return _frame(CycleRequest(delta=delta, now=now))


def encode_estimate(job: Job, now: float) -> bytes:
    """An estimate request, framed."""
    return _frame(EstimateRequest(job=job, now=now))


def encode_explain(job: Job, now: float) -> bytes:
    """A question about a job that waits, framed."""
    return _frame(ExplainRequest(job=job, now=now))


def encode_factors() -> bytes:
    """A request for factors, framed."""
    return _frame(FactorsRequest())


def encode_shares() -> bytes:
    """A request for shares, framed."""
    return _frame(SharesRequest())


def encode_answer(answer: Answer) -> bytes:
    """An answer, framed."""
    return _frame(answer)


def frame_length(header: bytes) -> int:
    """Bytes of the body that follows a 4-byte header."""
    length: int = HEADER.unpack(header)[0]
    if length > MAX_FRAME:
        raise ProtocolError(f"planner frame of {length} bytes")
    return length


def decode_request(body: bytes) -> Request:
    """Of a body without its header."""
    try:
        return _requests.decode(body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"planner request: {error}") from error


def decode_answer(body: bytes) -> Answer:
    """Of a body without its header."""
    try:
        return _answers.decode(body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"planner answer: {error}") from error


def decode_plan(body: bytes) -> Plan:
    """The plan in an answer's body; ProtocolError when it is a failure or an answer to something else."""
    answer = decode_answer(body)
    match answer:
        case PlanAnswer():
            return answer.plan
        case Failure():
            raise ProtocolError(f"planner: {answer.text}")
        case EstimateAnswer() | FactorsAnswer() | SharesAnswer() | ExplainAnswer():
            raise ProtocolError("planner answered something else where a plan was due")
