"""What each kind of refusal means, and how long is waited."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Backoff, Kind, from_answer
from tests.runtime.kube.scripted import Answer, serving, status

MEANINGS = [
    (401, "Unauthorized", "", Kind.FORBIDDEN),
    (403, "Forbidden", 'pods is forbidden: User "x" cannot create resource', Kind.FORBIDDEN),
    (403, "Forbidden", 'pods "a" is forbidden: exceeded quota: team, requested: pods=1', Kind.THROTTLED),
    (404, "NotFound", "", Kind.GONE),
    (409, "AlreadyExists", "", Kind.CONFLICT),
    (409, "Conflict", "", Kind.CONFLICT),
    (410, "Expired", "", Kind.EXPIRED),
    (410, "Gone", "", Kind.EXPIRED),
    (400, "BadRequest", "", Kind.INVALID),
    (422, "Invalid", "", Kind.INVALID),
    (429, "TooManyRequests", "", Kind.THROTTLED),
    (500, "InternalError", "", Kind.DOWN),
    (504, "Timeout", "", Kind.DOWN),
    (503, "", "", Kind.DOWN),
    (418, "", "", Kind.INVALID),
]


@pytest.mark.parametrize(("code", "reason", "message", "kind"), MEANINGS)
def test_an_answer_is_known_by_its_reason_and_else_by_its_code(
    code: int, reason: str, message: str, kind: Kind
) -> None:
    fault = from_answer(code, json.dumps(status(code, reason, message)).encode())
    assert (fault.kind, fault.code) == (kind, code)


@example(400, b"", "¹")
@given(st.integers(400, 599), st.binary(max_size=300), st.none() | st.text(max_size=10))
def test_any_body_of_a_refusal_makes_a_fault(code: int, body: bytes, retry_after: str | None) -> None:
    assert isinstance(from_answer(code, body, retry_after).kind, Kind)


def test_what_passes_by_itself_is_throttling_and_an_outage() -> None:
    assert {kind for kind in Kind if kind.passes} == {Kind.THROTTLED, Kind.DOWN}


def test_the_longer_of_two_waiting_times_counts() -> None:
    assert from_answer(429, json.dumps(status(429, "TooManyRequests", seconds=3)).encode(), "2").after == 3
    assert from_answer(429, json.dumps(status(429, "TooManyRequests", seconds=3)).encode(), "5").after == 5


@given(st.integers(0, 10_000), st.floats(0, 1))
def test_a_delay_grows_to_a_bound_and_never_falls_below_half_of_it(attempt: int, chance: float) -> None:
    delay = Backoff(first=0.5, longest=30).delay(attempt, chance)
    whole = min(30, 0.5 * 2 ** min(attempt, 20))
    assert whole / 2 <= delay <= whole


def test_the_server_s_own_waiting_time_is_kept() -> None:
    fault = ApiFault(Kind.THROTTLED, "", after=70)
    assert Backoff(longest=30).delay(0, 0.5, fault) == 70


def test_nobody_listening_is_an_outage() -> None:
    with serving() as script:
        api = script.api
    with pytest.raises(ApiFault) as caught:
        api.get("/api/v1/pods")
    assert caught.value.kind is Kind.DOWN


def test_a_refusal_carries_the_server_s_words() -> None:
    with (
        serving(Answer(status=409, body=status(409, "AlreadyExists", 'pods "a" already exists'))) as script,
        pytest.raises(ApiFault, match='pods "a" already exists') as caught,
    ):
        script.api.create("/api/v1/namespaces/jobs/pods", {"kind": "Pod"})
    assert caught.value.kind is Kind.CONFLICT


def test_a_delete_with_a_uid_spares_a_later_object_of_the_same_name() -> None:
    with serving(Answer(body={})) as script:
        script.api.delete("/api/v1/namespaces/jobs/pods/a", uid="u-1", grace=0)
    ((method, path, _, body),) = script.asked
    assert (method, path) == ("DELETE", "/api/v1/namespaces/jobs/pods/a")
    assert body["preconditions"] == {"uid": "u-1"}
    assert body["gracePeriodSeconds"] == 0


def test_a_kubeconfig_that_is_not_there_is_told() -> None:
    with pytest.raises(ApiFault, match="no cluster"):
        Api.find("/nonexistent/kubeconfig")
