"""Who dials is what the API server says of its token, and what the daemon sees of its pod; nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from slurmbridge.manifest.pod_site import PodSite
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, SeenPod
from slurmbridge.runtime.kube import tokens
from slurmbridge.runtime.kube.faults import ApiFault, Kind
from slurmbridge.runtime.kube.tokens import Admission, Tokens
from tests.runtime.kube.paper import Paper, paper_cluster

SITE = PodSite(instance="t", namespace="jobs", daemon="ctl:1")
KEY = RunKey(7, 1)
NAME = "sb-t-7-1-0"


class Bench:
    def __init__(self, paper: Paper, reviewer: Tokens) -> None:
        self.paper, self.reviewer = paper, reviewer
        self.now = 0.0
        self.seen: list[SeenPod] = []
        self.admission = Admission(reviewer, SITE, lambda key: self.seen if key == KEY else [])

    def pod(self, name: str = NAME, namespace: str = "jobs") -> None:
        made = self.paper.put("pods", {"metadata": {"name": name, "namespace": namespace}})
        self.see(name, made["metadata"]["uid"])

    def see(self, name: str, uid: str) -> None:
        self.seen = [
            SeenPod(
                name=name, uid=uid, key=KEY, rank=0, ranks=1, spec_hash="", epoch="", life=Life.RUNNING, created=0.0
            )
        ]

    async def why_not(self, token: str, key: RunKey = KEY, rank: int = 0) -> str:
        return await self.admission.why_not(token, key, rank)


Rule = Callable[[Bench], Coroutine[Any, Any, None]]


@pytest.fixture
def keep() -> Iterator[Callable[[Rule], None]]:
    def run(rule: Rule) -> None:
        with paper_cluster() as (paper, connect):
            bench = Bench(paper, Tokens(connect(), lambda: bench.now))
            try:
                asyncio.run(rule(bench))
            finally:
                bench.admission.close()

    yield run


def test_a_pod_of_the_run_is_admitted(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        assert await bench.why_not(bench.paper.token(NAME)) == ""

    keep(rule)


@pytest.mark.parametrize(
    ("key", "rank"), [(RunKey(8, 1), 0), (RunKey(7, 0), 0), (KEY, 1)], ids=["job", "restart", "rank"]
)
def test_a_token_of_another_pod_is_refused(keep: Callable[[Rule], None], key: RunKey, rank: int) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        assert "the token is of pod" in await bench.why_not(bench.paper.token(NAME), key, rank)

    keep(rule)


def test_a_token_of_another_namespace_is_refused(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod(namespace="elsewhere")
        assert "system:serviceaccount:elsewhere:default" in await bench.why_not(bench.paper.token(NAME))

    keep(rule)


def test_a_token_of_another_account_is_refused(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        assert "not of a pod of jobs" in await bench.why_not(bench.paper.token(NAME, account="admin"))

    keep(rule)


def test_a_token_for_another_audience_is_refused(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        assert "not valid" in await bench.why_not(bench.paper.token(NAME, audience="api"))

    keep(rule)


def test_a_token_that_nobody_gave_is_refused_and_not_repeated(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        said = await bench.why_not("secret-words")
        assert "not valid" in said and "secret-words" not in said

    keep(rule)


def test_a_token_of_a_pod_that_was_deleted_and_made_anew_is_refused(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        old = bench.paper.token(NAME)
        assert await bench.why_not(old) == ""
        bench.paper.remove("pods", NAME)
        bench.pod()
        assert "another pod that was called" in await bench.why_not(old), "what is remembered is held against the watch"
        bench.now += tokens.KEEP_S
        assert "not valid" in await bench.why_not(old)
        assert await bench.why_not(bench.paper.token(NAME)) == ""

    keep(rule)


def test_a_pod_that_is_not_seen_yet_waits(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        token = bench.paper.token(NAME)
        pods, bench.seen = bench.seen, []
        assert "not yet" in await bench.why_not(token)
        bench.seen = pods
        assert await bench.why_not(token) == ""

    keep(rule)


def test_a_token_is_reviewed_once_in_a_while(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        token = bench.paper.token(NAME)
        assert await asyncio.gather(*(bench.why_not(token) for _ in range(20))) == [""] * 20
        assert bench.paper.reviews == 1
        bench.now += tokens.KEEP_S
        await bench.why_not(token)
        assert bench.paper.reviews == 2
        for passed, reviews in ((0.0, 3), (tokens.KEEP_REFUSED_S, 4)):
            bench.now += passed
            await bench.why_not("nobody's")
            await bench.why_not("nobody's")
            assert bench.paper.reviews == reviews

    keep(rule)


def test_an_api_server_that_is_away_says_nothing_that_is_remembered(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        token = bench.paper.token(NAME)
        bench.paper.fail = lambda method, path: (503, f"no {token}")
        for _ in range(2):
            with pytest.raises(ApiFault) as caught:
                await bench.why_not(token)
            assert caught.value.kind is Kind.DOWN and token not in caught.value.message
        bench.paper.fail = lambda method, path: None
        assert await bench.why_not(token) == ""

    keep(rule)


def test_only_so_many_answers_are_remembered(keep: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MOST", 3)

    async def rule(bench: Bench) -> None:
        for number in range(10):
            await bench.why_not(f"token {number}")
        assert len(bench.reviewer._known) == 3

    keep(rule)


def test_an_answer_that_is_no_review_is_no_verdict(keep: Callable[[Rule], None]) -> None:
    async def rule(bench: Bench) -> None:
        bench.pod()
        token = bench.paper.token(NAME)
        bench.paper.tokens[token]["user"] = 7
        with pytest.raises(ApiFault) as caught:
            await bench.why_not(token)
        assert caught.value.kind is Kind.DOWN

    keep(rule)
