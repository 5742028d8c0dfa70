"""Creating and deleting objects so that doing it twice is the same as doing it once.

An answer that is lost says nothing about whether the request was carried out. So an object's name is derived from what it
is for, and it is sealed: annotations tell what it was made from and for which life of the run. A name that is taken is
ours if the seal is the same, and then it was created; with another seal it is somebody else's, and nothing is done to it.
A delete names the object by uid, so that it never meets a later one of the same name.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from slurmbridge.runtime.kube.api import Api
from slurmbridge.runtime.kube.faults import ApiFault, Backoff, Kind
from slurmbridge.runtime.kube.objects import Meta, Object

Answer = TypeVar("Answer")

WITHIN = 30.0
"""Seconds for which a write that may pass is tried again before its fault is told; the caller knows what waits on it."""


class Made(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    version: str  # the copy of the cluster's objects is as new as this write once it has come to this version
    fresh: bool  # False: it was there already, from an earlier try
    leaving: bool = False  # it is there, but somebody has deleted it


class Writer:
    """Requests in a few threads. `seal`: the annotations by which an object is known as ours."""

    def __init__(
        self, api: Api, *, seal: Sequence[str], threads: int = 16, backoff: Backoff = Backoff(first=0.2, longest=5.0),
        chance: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self._api, self._seal, self._backoff, self._chance = api, tuple(seal), backoff, chance
        self._stop = threading.Event()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="write")

    def close(self) -> None:
        """Give up what waits; what was sent may be carried out."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def create(self, collection: str, manifest: Mapping[str, Any], *, within: float = WITHIN) -> Future[Made]:
        """Make an object below a collection's path; the future's exception is an ApiFault."""
        return self._pool.submit(self._create, collection, manifest, within)

    def delete(self, path: str, uid: str, *, grace: int | None = None, within: float = WITHIN) -> Future[bool]:
        """Delete that object; False if it was gone already."""
        return self._pool.submit(self._delete, path, uid, grace, within)

    def _create(self, collection: str, manifest: Mapping[str, Any], within: float) -> Made:
        def attempt() -> Made:
            try:
                made = _meta(self._api.create(collection, manifest))
                return Made(uid=made.uid, version=made.resource_version, fresh=True)
            except ApiFault as fault:
                if fault.kind is not Kind.CONFLICT:
                    raise
                return self._found(collection, manifest, fault)

        return self._persist(attempt, within)

    def _found(self, collection: str, manifest: Mapping[str, Any], conflict: ApiFault) -> Made:
        """The object that has the name, if it is the one that was to be made."""
        try:
            found = _meta(self._api.get(f"{collection}/{manifest['metadata']['name']}"))
        except ApiFault as fault:
            if fault.kind is Kind.GONE:  # it went between the two requests: the name is free now
                raise ApiFault(Kind.DOWN, conflict.message, code=conflict.code) from fault
            raise
        wanted = manifest["metadata"].get("annotations", {})
        if any(found.annotations.get(key) != wanted.get(key) for key in self._seal):
            raise conflict
        gone = found.deletion_timestamp is not None
        return Made(uid=found.uid, version=found.resource_version, fresh=False, leaving=gone)

    def _delete(self, path: str, uid: str, grace: int | None, within: float) -> bool:
        def attempt() -> bool:
            try:
                self._api.delete(path, uid=uid, grace=grace)
            except ApiFault as fault:
                if fault.kind is Kind.CONFLICT and self._is_there(path, uid):
                    raise ApiFault(Kind.DOWN, fault.message, code=fault.code) from fault
                if fault.kind in (Kind.GONE, Kind.CONFLICT):
                    return False
                raise
            return True

        return self._persist(attempt, within)

    def _is_there(self, path: str, uid: str) -> bool:
        """Whether a conflict was one of two changes at the same time, and not about another object that has the name now."""
        try:
            return _meta(self._api.get(path)).uid == uid
        except ApiFault as fault:
            if fault.kind is Kind.GONE:
                return False
            raise

    def _persist(self, attempt: Callable[[], Answer], within: float) -> Answer:
        end, tries = time.monotonic() + within, 0
        while True:
            try:
                return attempt()
            except ApiFault as fault:
                pause = self._backoff.delay(tries, self._chance(), fault)
                if not fault.kind.passes or time.monotonic() + pause > end or self._stop.wait(pause):
                    raise
            tries += 1


def _meta(text: bytes) -> Meta:
    try:
        return msgspec.json.decode(text, type=Object).metadata
    except (msgspec.DecodeError, UnicodeDecodeError) as error:  # of something between us and the API server
        raise ApiFault(Kind.DOWN, f"the answer is no object: {error}") from error
