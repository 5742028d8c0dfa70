"""What can go wrong between us and an API server, by what may be done about it.

Follows "API concepts" and the Status object of the Kubernetes reference. A fault's kind decides everything: whether the
same request may be sent again, after how long, and whether what we know must be read anew. Pure: chance is an argument.
"""

from __future__ import annotations

import enum

import msgspec

from slurmbridge.errors import RuntimeFault


class Kind(enum.Enum):
    FORBIDDEN = "forbidden"  # 401, 403: rights or keys are missing; a person has to act
    INVALID = "invalid"  # 400, 405, 413, 415, 422: the request is wrong and stays wrong
    GONE = "gone"  # 404: the object is not there
    CONFLICT = "conflict"  # 409: another object has the name, or the object was changed since it was read
    EXPIRED = "expired"  # 410: what is asked about lies too far back; list again
    THROTTLED = "throttled"  # 429, or a quota that is full: not done, later
    DOWN = "down"  # 5xx, no connection, no answer: later; whether it was done is not known

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed later, with nothing changed by us or by a person."""
        return self in (Kind.THROTTLED, Kind.DOWN)


class Details(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    retry_after_seconds: int = 0
    kind: str = ""
    name: str = ""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The body of an answer that is not the object asked for (meta/v1 Status)."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Details | None = None


class ApiFault(RuntimeFault):
    """A request that did not succeed. `after`: seconds that the server wants us to wait, 0 if it did not say."""

    def __init__(self, kind: Kind, message: str, *, code: int = 0, reason: str = "", after: float = 0.0) -> None:
        super().__init__(message)
        self.kind, self.message, self.code, self.reason, self.after = kind, message, code, reason, after


# Status.reason -> kind; it is more exact than the code, where the server gives one
REASONS = {
    "Unauthorized": Kind.FORBIDDEN, "Forbidden": Kind.FORBIDDEN, "NotFound": Kind.GONE, "AlreadyExists": Kind.CONFLICT,
    "Conflict": Kind.CONFLICT, "Gone": Kind.EXPIRED, "Expired": Kind.EXPIRED, "Invalid": Kind.INVALID,
    "BadRequest": Kind.INVALID, "MethodNotAllowed": Kind.INVALID, "NotAcceptable": Kind.INVALID,
    "UnsupportedMediaType": Kind.INVALID, "RequestEntityTooLarge": Kind.INVALID, "TooManyRequests": Kind.THROTTLED,
    "ServerTimeout": Kind.DOWN, "Timeout": Kind.DOWN, "InternalError": Kind.DOWN, "ServiceUnavailable": Kind.DOWN,
    "StorageReadError": Kind.DOWN,
}  # fmt: skip
CODES = {
    401: Kind.FORBIDDEN,
    403: Kind.FORBIDDEN,
    404: Kind.GONE,
    409: Kind.CONFLICT,
    410: Kind.EXPIRED,
    429: Kind.THROTTLED,
}
QUOTA = "exceeded quota"  # how the ResourceQuota admission says that it is full; no reason of its own tells it


def from_answer(code: int, body: bytes, retry_after: str | None = None) -> ApiFault:
    """The fault that an answer with an error code means; any body will do, proxies send what they like."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status(message=body[:200].decode(errors="replace").strip())
    return from_status(status, code, retry_after)


def from_status(status: Status, code: int = 0, retry_after: str | None = None) -> ApiFault:
    """The same of a Status that came as an event of a watch."""
    code = code or status.code
    kind = REASONS.get(status.reason) or CODES.get(code) or (Kind.DOWN if code >= 500 or code == 0 else Kind.INVALID)
    if kind is Kind.FORBIDDEN and QUOTA in status.message:
        kind = Kind.THROTTLED
    after = float(status.details.retry_after_seconds) if status.details else 0.0
    if retry_after is not None and retry_after.isdecimal():
        after = max(after, float(retry_after))
    message = status.message or f"the API server answered {code}"
    return ApiFault(kind, message, code=code, reason=status.reason, after=after)


class Backoff(msgspec.Struct, frozen=True, kw_only=True):
    """How long to wait before try number `attempt` (0 is the first after a failure): exponential, with jitter over the
    upper half, so that many clients that lost the same server do not come back together."""

    first: float = 0.5
    longest: float = 30.0

    def delay(self, attempt: int, chance: float, fault: ApiFault | None = None) -> float:
        """Seconds; `chance` is a random number from 0 to 1. Never less than the server asked for."""
        whole = min(self.longest, self.first * 2.0 ** min(attempt, 32))
        return max(whole * (0.5 + 0.5 * chance), fault.after if fault else 0.0)
