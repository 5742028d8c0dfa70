"""Is who dials from a pod of the run that it names? By its projected token, which the API server reviews.

Follows "TokenReview" of the API reference and "Bound service account tokens" of the Kubernetes documentation: the review
says of which pod a token is, by name and uid, and that this pod still is. The token is never logged, nor kept: what is
remembered for a moment is its hash. Lives on the event loop; threads make the requests.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import msgspec

from slurmbridge.manifest.pod_names import pod_name
from slurmbridge.manifest.pod_site import AUDIENCE, PodSite
from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import SeenPod
from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Kind

REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
POD_NAME, POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"
ACCOUNT = "system:serviceaccount:{namespace}:{name}"
KEEP_S, KEEP_REFUSED_S = 10.0, 2.0
MOST = 4096
"""Answers that are remembered."""
THREADS = 8


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """Whose a token is."""

    user: str
    pod: str
    uid: str


Verdict: TypeAlias = Proof | str
"""A text: why it is no proof."""


class _User(msgspec.Struct, frozen=True, kw_only=True):
    username: str = ""
    extra: Mapping[str, Sequence[str]] = {}


class _ReviewStatus(msgspec.Struct, frozen=True, kw_only=True):
    authenticated: bool = False
    user: _User = _User()
    audiences: Sequence[str] = ()
    error: str = ""


class _Review(msgspec.Struct, frozen=True, kw_only=True):
    status: _ReviewStatus = _ReviewStatus()


class Tokens:
    """Reviews, each made once in a while."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="review")
        self._known: dict[bytes, tuple[float, asyncio.Future[Verdict]]] = {}  # by hash, oldest first

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def read(self, token: str) -> Verdict:
        """ApiFault: there is nobody to tell."""
        key, now = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest(), self._clock()
        known = self._known.get(key)
        if known is not None and not _is_old(known, now):
            return await asyncio.shield(known[1])
        asked = asyncio.wrap_future(self._threads.submit(self._review, token))
        self._known.pop(key, None)
        while len(self._known) >= MOST:
            del self._known[next(iter(self._known))]
        self._known[key] = (now, asked)
        try:
            return await asyncio.shield(asked)
        except ApiFault:
            if self._known.get(key, (0.0, None))[1] is asked:
                del self._known[key]
            raise

    def _review(self, token: str) -> Verdict:
        body: dict[str, Any] = {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": [AUDIENCE]},
        }  # fmt: skip
        try:
            status = msgspec.json.decode(self._api.create(REVIEWS, body), type=_Review).status
        except ApiFault as fault:  # its words may repeat what was sent
            raise ApiFault(fault.kind, fault.message.replace(token, "TOKEN"), code=fault.code) from None
        except msgspec.DecodeError:
            raise ApiFault(Kind.DOWN, f"{self._api.server}: its answer is no TokenReview") from None
        if not status.authenticated:
            return f"the token is not valid: {status.error.replace(token, 'TOKEN') or 'no reason given'}"
        if AUDIENCE not in status.audiences:
            return "the token is for somebody else"
        pod, uid = (_only(status.user.extra.get(name, ())) for name in (POD_NAME, POD_UID))
        if not pod or not uid:
            return f"the token of {status.user.username} is not bound to a pod"
        return Proof(user=status.user.username, pod=pod, uid=uid)


def _is_old(known: tuple[float, asyncio.Future[Verdict]], now: float) -> bool:
    """One that is under way is not."""
    made, asked = known
    if not asked.done():
        return False
    if asked.cancelled() or asked.exception() is not None:
        return True
    return now - made >= (KEEP_REFUSED_S if isinstance(asked.result(), str) else KEEP_S)


def _only(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else ""


def mismatch(proof: Proof, site: PodSite, key: RunKey, rank: int, pods: Sequence[SeenPod]) -> str:
    """Why a proved pod is not that of the rank of this run; empty: it is. `pods`: of the run, as they are seen now."""
    if proof.user != ACCOUNT.format(namespace=site.namespace, name=site.service_account):
        return f"the token is of {proof.user}, not of a pod of jobs"
    wanted = pod_name(site.instance, key, rank)
    if proof.pod != wanted:
        return f"the token is of pod {proof.pod}, not of {wanted}"
    seen = [pod.uid for pod in pods if pod.name == wanted]
    if not seen:
        return f"pod {wanted} is not known, or not yet"
    if proof.uid not in seen:
        return f"the token is of another pod that was called {wanted}"
    return ""


class Admission:
    """What is asked about each connection. `pods`: of a run, as they are seen now."""

    def __init__(self, tokens: Tokens, site: PodSite, pods: Callable[[RunKey], Sequence[SeenPod]]) -> None:
        self._tokens, self._site, self._pods = tokens, site, pods

    async def why_not(self, token: str, key: RunKey, rank: int) -> str:
        """Empty: it is a pod of that run and rank. ApiFault: that cannot be told at present."""
        verdict = await self._tokens.read(token)
        return verdict if isinstance(verdict, str) else mismatch(verdict, self._site, key, rank, self._pods(key))

    def close(self) -> None:
        self._tokens.close()
