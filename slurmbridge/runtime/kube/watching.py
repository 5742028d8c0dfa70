"""The thread that keeps one `Mirror` true: list, watch, and begin again where that broke off.

- A list comes in pages; a page whose token expired means that the list is begun again.
- A watch is ended by the server every few minutes, and whenever we read too slowly; the next begins where it ended.
- A watch whose beginning is too old (410) is followed by a new list; the copy then tells what happened meanwhile.
- Every other fault is waited out with a growing, random delay, for as long as it lasts: what is known stays known, and
  `Follower.fault` says that it may be old.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic

import msgspec

from slurmbridge.runtime.kube.api import Api, Stream
from slurmbridge.runtime.kube.faults import ApiFault, Backoff, Kind, Status, from_status
from slurmbridge.runtime.kube.mirror import Change, Mirror
from slurmbridge.runtime.kube.objects import Event, Listing, Object, Seen, T

PAGE = 1000
WATCH = (240, 480)
"""Seconds after which the server shall end a watch: a random time, so that clients do not come back together."""
SILENCE = 150.0
"""Seconds without a line after which a watch counts as lost; a bookmark comes about every minute."""
LEAVE_S = 2.0
"""For which the end of a follower's thread is waited for."""


class Follower(Generic[T]):
    """Follows the objects below a path. `listener` is called in the follower's thread, with changes in their order."""

    def __init__(
        self, api: Api, path: str, kind: type[T], listener: Callable[[Sequence[Change[T]]], None], *,
        labels: str = "", fields: str = "", page: int = PAGE, silence: float = SILENCE, backoff: Backoff = Backoff(),
        chance: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        self._api, self._path, self._listener, self._page, self._silence = api, path, listener, page, silence
        self._selected = {key: text for key, text in (("labelSelector", labels), ("fieldSelector", fields)) if text}
        self._page_decoder: msgspec.json.Decoder[Listing[T]] = msgspec.json.Decoder(Listing[kind])  # type: ignore[valid-type]
        self._item_decoder: msgspec.json.Decoder[T] = msgspec.json.Decoder(kind)
        self._line_decoder: msgspec.json.Decoder[Seen[T]] = msgspec.json.Decoder(Seen[kind])  # type: ignore[valid-type]
        self._backoff, self._chance = backoff, chance
        self._stop, self._listed = threading.Event(), threading.Event()
        self._stream: Stream | None = None
        self._lock = threading.RLock()  # a listener may stop its follower
        self._thread = threading.Thread(target=self._run, name=f"follow {path}", daemon=True)
        self.mirror: Mirror[T] = Mirror()
        self.fault: ApiFault | None = None
        """Why the copy may be old; None while the watch runs."""
        self.lists = 0
        """How many lists were completed: one, if no watch ever was too old."""

    def start(self) -> None:
        self._thread.start()

    def wait_listed(self, within: float) -> bool:
        """True once the first list is complete."""
        return self._listed.wait(within)

    def stop(self) -> None:
        """End the thread; no change is delivered after this returns. One that waits for a server that does not even begin to
        answer ends by itself, when that request does."""
        with self._lock:
            self._stop.set()
            if self._stream is not None:
                self._stream.interrupt()
        if self._thread.ident is not None and self._thread is not threading.current_thread():
            self._thread.join(LEAVE_S)

    def _run(self) -> None:
        attempt = 0
        while not self._stop.is_set():
            began = time.monotonic()
            try:
                if not self.mirror.version:
                    self._list()
                self._watch()
                attempt = 0
                pause = 0.0 if time.monotonic() - began > 1.0 else self._backoff.delay(0, self._chance())
            except (ApiFault, msgspec.DecodeError) as error:
                fault = error if isinstance(error, ApiFault) else ApiFault(Kind.DOWN, f"{self._path}: {error}")
                if fault.kind is Kind.EXPIRED or fault is not error:
                    self.mirror.version = ""  # list again; what is known stays until the new list is complete
                if fault.kind is not Kind.EXPIRED:
                    self.fault = fault
                attempt = 0 if time.monotonic() - began > self._backoff.longest else attempt
                pause = self._backoff.delay(attempt, self._chance(), fault)
                attempt += 1
            self._stop.wait(pause)

    def _list(self) -> None:
        query: dict[str, str | int] = {**self._selected, "limit": self._page}
        self.mirror.begin_list()
        while not self._stop.is_set():
            page = self._page_decoder.decode(self._api.get(self._path, query))
            self.mirror.add_page(page.items or ())
            if page.metadata.continue_:
                query["continue"] = page.metadata.continue_
                continue
            self._tell(self.mirror.end_list(page.metadata.resource_version))
            self.lists += 1
            self.fault = None
            self._listed.set()
            return

    def _watch(self) -> None:
        query: dict[str, str | int] = {
            **self._selected, "resourceVersion": self.mirror.version, "allowWatchBookmarks": "true",
            "timeoutSeconds": int(WATCH[0] + (WATCH[1] - WATCH[0]) * self._chance()),
        }  # fmt: skip
        if self._stop.is_set():
            return
        with self._api.watch(self._path, query, silence=self._silence) as stream:
            with self._lock:
                self._stream = stream
            try:
                if self._stop.is_set():
                    return
                self.fault = None
                for lines in stream:
                    changes: list[Change[T]] = []
                    try:
                        for line in lines:
                            changes += self._take(line)
                    finally:
                        self._tell(changes)
            finally:
                with self._lock:
                    self._stream = None

    def _take(self, line: bytes) -> list[Change[T]]:
        try:
            seen = self._line_decoder.decode(line)
        except msgspec.ValidationError:
            return self._take_other(line)
        match seen.type:
            case "ADDED" | "MODIFIED":
                return self.mirror.put(seen.object)
            case "DELETED":
                return self.mirror.remove(seen.object)
        return self._take_other(line)

    def _take_other(self, line: bytes) -> list[Change[T]]:
        """One whose object need not be of the kind that is watched."""
        event = msgspec.json.decode(line, type=Event)
        match event.type:
            case "ADDED" | "MODIFIED" | "DELETED":
                self._item_decoder.decode(event.object)  # tells what is wrong with it
            case "BOOKMARK":
                self.mirror.bookmark(msgspec.json.decode(event.object, type=Object).metadata.resource_version)
                return []
            case "ERROR":
                raise from_status(msgspec.json.decode(event.object, type=Status))
        raise ApiFault(Kind.DOWN, f"a watch of {self._path} told an event of type {event.type!r}")

    def _tell(self, changes: Sequence[Change[T]]) -> None:
        with self._lock:
            if changes and not self._stop.is_set():
                self._listener(changes)
