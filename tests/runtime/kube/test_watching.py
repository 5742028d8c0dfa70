"""A copy stays true through everything that a server may do to a list or a watch."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import kubernetes
import msgspec
import pytest

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import Backoff, Kind
from slurmbridge.runtime.kube.mirror import Change
from slurmbridge.runtime.kube.objects import Listing, Pod
from slurmbridge.runtime.kube.watching import Follower
from tests.patience import PATIENCE_S, until
from tests.runtime.kube.scripted import Answer, Script, event, page, pod, serving, status

PODS = "/api/v1/namespaces/jobs/pods"
QUICK = Backoff(first=0.01, longest=0.02)


@dataclass
class Seen:
    changes: list[Change[Pod]] = field(default_factory=list)
    news: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, changes: Sequence[Change[Pod]]) -> None:
        with self.news:
            self.changes += changes
            self.news.notify_all()

    @property
    def words(self) -> list[str]:
        """+name, -name or =name for each change."""
        signs = [("-" if change.after is None else "+" if change.before is None else "=") for change in self.changes]
        return [sign + change.key[1] for sign, change in zip(signs, self.changes, strict=True)]

    def until(self, *words: str) -> None:
        with self.news:
            assert self.news.wait_for(lambda: self.words == list(words), PATIENCE_S), self.words


@contextmanager
def following(script: Script, **options: object) -> Iterator[tuple[Follower[Pod], Seen]]:
    seen = Seen()
    follower = Follower(script.api, PODS, Pod, seen, backoff=QUICK, **options)  # type: ignore[arg-type]
    follower.start()
    try:
        yield follower, seen
    finally:
        follower.stop()


def queries(script: Script) -> list[dict[str, str]]:
    return [query for _, _, query, _ in script.asked]


def test_a_list_is_read_page_by_page_and_watched_from_its_version() -> None:
    with (
        serving(page(10, pod("a", 1), more="next"), page(10, pod("b", 2))) as script,
        following(script, page=1, labels="instance=x") as (follower, seen),
    ):
        seen.until("+a", "+b")
        until(lambda: len(script.asked) == 3, "a watch follows")
    first, second, watch = queries(script)
    assert first == {"labelSelector": "instance=x", "limit": "1"}
    assert second == {**first, "continue": "next"}
    assert watch["resourceVersion"] == "10"
    assert watch["allowWatchBookmarks"] == "true"
    assert watch["labelSelector"] == "instance=x"
    assert follower.lists == 1


def test_events_come_in_their_order() -> None:
    lines = [event("ADDED", pod("a", 11)), event("MODIFIED", pod("a", 12)), event("DELETED", pod("a", 13))]
    with serving(page(10), Answer(lines=lines, stay=True)) as script, following(script) as (_, seen):
        seen.until("+a", "=a", "-a")


def test_a_watch_that_ends_is_begun_again_where_it_ended() -> None:
    bookmark = event("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": "20"}})
    with (
        serving(page(10), Answer(lines=[event("ADDED", pod("a", 11)), bookmark])) as script,
        following(script) as (follower, _),
    ):
        until(lambda: len(script.asked) == 3, "a second watch")
    assert queries(script)[2]["resourceVersion"] == "20"
    assert follower.lists == 1


def test_a_watch_that_breaks_off_loses_nothing() -> None:
    first = Answer(lines=[event("ADDED", pod("a", 11))], cut=True)
    second = Answer(lines=[event("ADDED", pod("b", 12))], stay=True)
    with serving(page(10), first, second) as script, following(script) as (_, seen):
        seen.until("+a", "+b")
    assert queries(script)[2]["resourceVersion"] == "11"


@pytest.mark.parametrize(
    "expired",
    [Answer(status=410, body=status(410, "Expired")), Answer(lines=[event("ERROR", status(410, "Expired"))])],
    ids=["answer", "event"],
)
def test_a_watch_that_is_too_old_is_followed_by_a_list_that_tells_the_difference(expired: Answer) -> None:
    with (
        serving(page(10, pod("a", 1), pod("b", 2)), expired, page(30, pod("b", 2), pod("c", 25))) as script,
        following(script) as (follower, seen),
    ):
        seen.until("+a", "+b", "-a", "+c")
        assert follower.fault is None


def test_a_page_that_expired_begins_the_list_again() -> None:
    expired = Answer(status=410, body=status(410, "Expired"))
    with (
        serving(page(10, pod("a", 1), more="next"), expired, page(12, pod("b", 11))) as script,
        following(script) as (_, seen),
    ):
        seen.until("+b")
    assert "continue" not in queries(script)[2]


def test_an_outage_is_waited_out_with_all_that_is_known_kept() -> None:
    down = Answer(status=503, body=b"no backend")
    with (
        serving(page(10, pod("a", 1)), down, down, Answer(lines=[event("ADDED", pod("b", 11))], stay=True)) as script,
        following(script) as (follower, seen),
    ):
        seen.until("+a", "+b")
        assert follower.lists == 1


def test_what_is_known_may_be_old_while_the_server_refuses() -> None:
    refused = Answer(status=403, body=status(403, "Forbidden", "pods is forbidden"))
    with serving(page(10, pod("a", 1)), *[refused] * 1000) as script, following(script) as (follower, _):
        until(lambda: follower.fault is not None, "the fault is told")
        assert follower.fault is not None and follower.fault.kind is Kind.FORBIDDEN
        assert len(follower.mirror) == 1


def test_a_throttled_client_waits_as_long_as_it_is_told() -> None:
    throttled = Answer(status=429, body=status(429, "TooManyRequests"), headers=(("Retry-After", "1"),))
    with serving(throttled, page(10, pod("a", 1))) as script, following(script) as (_, seen):
        before = time.monotonic()
        seen.until("+a")
        assert time.monotonic() - before > 0.9


def test_a_silent_watch_counts_as_lost() -> None:
    silent = Answer(lines=[], stay=True)
    with (
        serving(page(10), silent, Answer(lines=[event("ADDED", pod("a", 11))], stay=True)) as script,
        following(script, silence=0.2) as (_, seen),
    ):
        seen.until("+a")


def test_an_answer_that_is_no_json_is_asked_for_again() -> None:
    with serving(Answer(body=b"<html>"), page(10, pod("a", 1))) as script, following(script) as (_, seen):
        seen.until("+a")


def test_stopping_ends_a_watch_that_waits() -> None:
    with (
        serving(page(10, pod("a", 1)), Answer(lines=[], stay=True)) as script,
        following(script, silence=2 * PATIENCE_S) as (follower, seen),
    ):
        seen.until("+a")
        until(lambda: len(script.asked) == 2, "the watch is there")
        before = time.monotonic()
        follower.stop()
        assert time.monotonic() - before < PATIENCE_S  # and does not wait for its end


def test_stopping_waits_for_no_server_that_does_not_begin_to_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        configuration = kubernetes.client.Configuration()
        configuration.host = f"http://127.0.0.1:{server.getsockname()[1]}"
        seen = Seen()
        follower = Follower(Api(configuration), PODS, Pod, seen)
        follower.start()
        asked, _ = server.accept()
        with asked:
            asked.recv(1)
            before = time.monotonic()
            follower.stop()
            assert time.monotonic() - before < 30  # the answer itself is waited for much longer
            assert not seen.changes


def test_ten_thousand_pods_cost_little_of_what_it_takes_to_read_all_that_is_sent() -> None:
    """What the server sends for a running pod, some 2.5 KB each, most of it of no use here."""
    owned: dict[str, object] = {
        f"f:{name}": {".": {}, "f:value": {}}
        for name in ("containers", "image", "labels", "phase", "resources", "status")
    }
    manager = {"manager": "kubelet", "operation": "Update", "time": "2026-11-30T01:00:00Z", "fieldsV1": owned}
    times = {"status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-11-30T01:00:00Z"}
    container = {
        "name": "job",
        "image": "registry.test/image:1",
        "resources": {"requests": {"cpu": "4", "memory": "8Gi"}},
    }
    spec = {"nodeName": "n1", "containers": [container], "tolerations": [{"key": "a", "operator": "Exists"}] * 2}
    state = {
        "name": "job",
        "ready": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-11-30T01:00:00Z"}},
    }
    conditions = [{"type": name, **times} for name in ("PodScheduled", "Initialized", "ContainersReady", "Ready")]
    items = []
    for index in range(10_000):
        item = pod(f"sb-x-{index}-0-0", index)
        item["metadata"] |= {"labels": {"job": str(index), "rank": "0"}, "managedFields": [manager] * 3}
        items.append(
            item
            | {"spec": spec, "status": {"phase": "Running", "conditions": conditions, "containerStatuses": [state]}}
        )
    text = msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": items})
    assert len(text) > 15_000_000
    before = time.process_time()
    listing = msgspec.json.decode(text, type=Listing[Pod])
    spent = time.process_time() - before
    msgspec.json.decode(text)
    whole = time.process_time() - before - spent
    assert listing.items is not None and listing.items[9_999].spec.containers[0].resources.requests["memory"] == "8Gi"
    assert spent < whole / 3, (spent, whole)
