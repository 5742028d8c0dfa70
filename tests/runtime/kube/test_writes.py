"""A write that is repeated is done once, and nobody else's object is touched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from slurmbridge.runtime.kube.faults import ApiFault, Backoff, Kind
from slurmbridge.runtime.kube.writes import Made, Writer
from tests.runtime.kube.scripted import Answer, Script, serving, status

PODS = "/api/v1/namespaces/jobs/pods"
TAKEN = Answer(status=409, body=status(409, "AlreadyExists", "taken"))
DOWN = Answer(status=503, body=b"")
GONE = Answer(status=404, body=status(404, "NotFound"))


def pod(seal: str, **metadata: Any) -> dict[str, Any]:
    return {"kind": "Pod", "metadata": {"name": "a", "annotations": {"seal": seal}, **metadata}}


def made(seal: str, **metadata: Any) -> Answer:
    return Answer(body=pod(seal, uid="u-1", resourceVersion="7", **metadata))


@contextmanager
def writing(script: Script) -> Iterator[Writer]:
    writer = Writer(script.api, seal=("seal",), threads=2, backoff=Backoff(first=0.01, longest=0.02))
    try:
        yield writer
    finally:
        writer.close()


def methods(script: Script) -> list[str]:
    return [method for method, *_ in script.asked]


def test_an_object_is_made() -> None:
    with serving(made("x")) as script, writing(script) as writer:
        assert writer.create(PODS, pod("x")).result(10) == Made(uid="u-1", version="7", fresh=True)


def test_a_lost_answer_is_followed_by_finding_our_own_object() -> None:
    with serving(DOWN, TAKEN, made("x")) as script, writing(script) as writer:
        assert writer.create(PODS, pod("x")).result(10) == Made(uid="u-1", version="7", fresh=False)
    assert methods(script) == ["POST", "POST", "GET"]


def test_an_answer_that_is_no_object_says_nothing_about_the_request() -> None:
    with serving(Answer(body=b"<html>"), TAKEN, made("x")) as script, writing(script) as writer:
        assert writer.create(PODS, pod("x")).result(10) == Made(uid="u-1", version="7", fresh=False)
    assert methods(script) == ["POST", "POST", "GET"]


def test_a_name_that_somebody_else_has_is_a_conflict() -> None:
    with serving(TAKEN, made("another")) as script, writing(script) as writer:
        with pytest.raises(ApiFault, match="taken") as caught:
            writer.create(PODS, pod("x")).result(10)
        assert caught.value.kind is Kind.CONFLICT


def test_a_name_that_becomes_free_meanwhile_is_tried_again() -> None:
    with serving(TAKEN, GONE, made("x")) as script, writing(script) as writer:
        assert writer.create(PODS, pod("x")).result(10).fresh


def test_our_object_that_is_being_deleted_is_told() -> None:
    with serving(TAKEN, made("x", deletionTimestamp="2026-11-30T00:00:00Z")) as script, writing(script) as writer:
        assert writer.create(PODS, pod("x")).result(10).leaving


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(status=403, body=status(403, "Forbidden")), Kind.FORBIDDEN),
        (Answer(status=422, body=status(422, "Invalid")), Kind.INVALID),
    ],
    ids=["forbidden", "invalid"],
)
def test_what_does_not_pass_by_itself_is_asked_once(answer: Answer, kind: Kind) -> None:
    with serving(answer) as script, writing(script) as writer:
        with pytest.raises(ApiFault) as caught:
            writer.create(PODS, pod("x")).result(10)
        assert caught.value.kind is kind
    assert methods(script) == ["POST"]


def test_an_outage_is_told_when_the_time_is_over() -> None:
    with serving(*[DOWN] * 1000) as script, writing(script) as writer:
        with pytest.raises(ApiFault) as caught:
            writer.create(PODS, pod("x"), within=0.1).result(10)
        assert caught.value.kind is Kind.DOWN
    assert len(script.asked) > 1


CONFLICT = Answer(status=409, body=status(409, "Conflict"))


@pytest.mark.parametrize(
    "answers", [(GONE,), (CONFLICT, GONE), (CONFLICT, made("x"))], ids=["gone", "gone meanwhile", "another"]
)
def test_deleting_what_is_gone_or_replaced_does_nothing(answers: tuple[Answer, ...]) -> None:
    with serving(*answers) as script, writing(script) as writer:
        assert not writer.delete(f"{PODS}/a", "u-0").result(10)


def test_a_delete_that_met_another_change_is_tried_again() -> None:
    with serving(CONFLICT, made("x"), CONFLICT, DOWN, Answer(body={})) as script, writing(script) as writer:
        assert writer.delete(f"{PODS}/a", "u-1").result(10)
    assert methods(script) == ["DELETE", "GET", "DELETE", "GET", "DELETE"]


def test_a_delete_is_repeated_until_it_is_known_to_be_done() -> None:
    with serving(DOWN, Answer(body={})) as script, writing(script) as writer:
        assert writer.delete(f"{PODS}/a", "u-1").result(10)
    assert methods(script) == ["DELETE", "DELETE"]


def test_closing_ends_waiting() -> None:
    throttled = Answer(status=429, body=status(429, "TooManyRequests", seconds=3600))
    with serving(throttled) as script, writing(script) as writer:
        waiting = writer.create(PODS, pod("x"), within=7200)
        while not script.asked:
            pass
        writer.close()
        with pytest.raises(ApiFault):
            waiting.result(10)
