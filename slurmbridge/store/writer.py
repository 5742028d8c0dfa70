"""The one thread that writes: group commit, retries, health.

It takes all that is queued, commits once, and then calls back. When the disk is full or fails, or the server is away,
submissions (droppable) fail at once, everything else stays in order and is tried again until it is durable. An op that is
wrong in itself (a record that cannot be encoded, an id given out twice) fails alone.

A connection that breaks while a commit is under way leaves it in doubt. Nobody is told anything of it, submissions
included, until a new session knows whether it happened; nothing else is written before that.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from slurmbridge.errors import StoreError
from slurmbridge.store.dialect import Database, Fenced, Session
from slurmbridge.store.protocol import Op
from slurmbridge.store.writes import Batch, Known, already_stored

LOG = logging.getLogger(__name__)
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0
_PROBE = (
    "INSERT INTO marks VALUES ('probe', '1')"
    " ON CONFLICT (name) DO UPDATE SET value = CAST(CAST(marks.value AS INTEGER) + 1 AS TEXT)"
)

Done = Callable[[Exception | None], None]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call of `Store.write`: its ops are stored together or not at all."""

    ops: tuple[Op, ...]
    done: Done
    droppable: bool


class Doubt(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of which nobody knows yet whether it happened."""

    ticket: str
    requests: tuple[Request, ...]
    known: Known  # if it did


class Writer:
    """Owns the writing session. `submit` and `close` from any thread."""

    def __init__(
        self,
        database: Database,
        known: Known,
        half_life: float,
        *,
        committed: Callable[[], None] = lambda: None,
        lost: Callable[[str], None] = lambda reason: None,
    ) -> None:
        """`committed`: called after each commit. `lost`: once, when another daemon has the records; nothing is written
        from then on. Both on the writer's thread."""
        self._database, self._known, self._half_life = database, known, half_life
        self._committed, self._lost = committed, lost
        self._queue: deque[Request] = deque()
        self._wake = threading.Condition()
        self._closing = False
        self._healthy = True
        self._trouble = ""  # why not
        self._doubt: Doubt | None = None
        self._was_cut = False  # the last attempt, before it came to its commit
        self._fenced: Fenced | None = None
        self.commits = 0
        self._session: Session | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    @property
    def healthy(self) -> bool:
        return self._healthy

    def submit(self, request: Request) -> None:
        """Queue; after `close` the request fails at once."""
        with self._wake:
            if not self._closing:
                self._queue.append(request)
                self._wake.notify()
                return
        _call(request, StoreError("the store is closed"))

    def close(self) -> None:
        """Commit what is queued and end the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    # the thread

    def _run(self) -> None:
        kept: list[Request] = []  # not droppable, waiting for the disk or the server
        pause = FIRST_PAUSE_S
        while True:
            with self._wake:
                if not self._queue and not self._closing:
                    self._wake.wait(self._database.look_every_s if self._healthy else pause)
                requests = kept + list(self._queue)
                self._queue.clear()
                last = self._closing
            kept, error = self._write_all(requests)
            if error is None and not requests and not last:
                error = self._look() if self._healthy else self._probe()
            if error is None:
                self._recover()
                pause = FIRST_PAUSE_S
            else:
                pause = min(LONGEST_PAUSE_S, pause * 2)
                if not last and (kept or self._doubt is not None):
                    self._rest(pause)
            if last:
                for request in self._doubt.requests if self._doubt is not None else ():
                    _call(request, StoreError(f"{self._trouble}; whether it was stored is not known"))
                for request in kept:
                    _call(request, error)
                break
        if self._session is not None:
            self._session.close()

    def _rest(self, seconds: float) -> None:
        """Wait before trying again, but fail submissions that arrive meanwhile without delay."""
        with self._wake:
            if self._closing:
                return
            self._wake.wait(seconds)
            refused = [request for request in self._queue if request.droppable]
            if refused:
                self._queue = deque(request for request in self._queue if not request.droppable)
        self._refuse(refused)

    def _write_all(self, requests: list[Request]) -> tuple[list[Request], Exception | None]:
        """Write and call back; what must be tried again, and why."""
        if self._doubt is not None:
            undone, undecided = self._decide()
            if undecided is not None:
                self._fail(undecided)
                return self._without_droppable(requests), undecided
            requests = [*undone, *requests]
        if not requests:
            return [], None
        error = self._attempt(requests)
        if self._was_cut:  # before the commit: a server that was restarted takes it by a new connection
            error = self._attempt(requests)
        if error is None:
            self._recover()  # before anybody hears that writes are taken again
            _call_all(requests)
            return [], None
        if not self._is_of_the_place(error):
            return self._one_by_one(requests)
        self._fail(error)
        if self._doubt is not None:
            return [], error
        kept = [request for request in requests if not request.droppable]
        if kept and len(kept) < len(requests):
            again = self._attempt(kept)
            if again is None:
                _call_all(kept)
            if again is None or self._doubt is not None:
                kept = []
        self._refuse([request for request in requests if request.droppable])
        return kept, error

    def _one_by_one(self, requests: list[Request]) -> tuple[list[Request], Exception | None]:
        """Some request is wrong in itself: each gets a transaction of its own."""
        for at, request in enumerate(requests):
            error = self._attempt([request])
            if error is not None and self._database.is_conflict(error):
                error = self._judge_conflict(request, error)
            if error is not None and self._is_of_the_place(error):
                self._fail(error)
                return self._without_droppable(requests[at + (self._doubt is not None) :]), error
            if error is not None and not isinstance(error, StoreError):
                error = StoreError(self._database.describe(error))
            _call(request, error)
        return [], None

    def _judge_conflict(self, request: Request, error: Exception) -> Exception | None:
        """A submission that is already there is done; any other conflict stays an error."""
        try:
            session = self._open()
            try:
                missing = tuple(op for op in request.ops if not already_stored(session, op))
            finally:
                session.undo()
        except Exception as other:  # judged by the caller, as any attempt
            if self._is_of_the_place(other):
                self._forget_session()
            return other
        if len(missing) == len(request.ops):
            return error
        return self._attempt([msgspec.structs.replace(request, ops=missing)])

    def _without_droppable(self, requests: Sequence[Request]) -> list[Request]:
        """Those that wait; the others are refused."""
        self._refuse([request for request in requests if request.droppable])
        return [request for request in requests if not request.droppable]

    def _refuse(self, requests: Sequence[Request]) -> None:
        for request in requests:
            _call(request, StoreError(self._trouble))

    def _attempt(self, requests: Sequence[Request]) -> Exception | None:
        """All requests in one transaction: None when durable, else why nothing was stored, or is in doubt."""
        batch = Batch(self._known, self._half_life)
        ticket, is_committing, self._was_cut = "", False, False
        try:
            for request in requests:
                for op in request.ops:
                    batch.add(op)
            session = self._open()
            try:
                ticket = session.begin()
                batch.apply(session)
                is_committing = True
                session.commit()
            except BaseException:
                session.undo()
                raise
        except Exception as error:  # judged by the caller: of the place, or of one request
            if self._is_of_the_place(error):
                is_broken = self._session is not None and self._session.is_broken
                if is_broken and is_committing and ticket:
                    self._doubt = Doubt(ticket=ticket, requests=tuple(requests), known=batch.known)
                self._was_cut = is_broken and self._doubt is None
                self._forget_session()
            return error
        self._take(batch.known)
        return None

    def _take(self, known: Known) -> None:
        """A commit happened."""
        self._known = known
        self.commits += 1
        self._committed()

    def _decide(self) -> tuple[list[Request], Exception | None]:
        """Ask whether the commit in doubt happened: what has to be written again, or why that cannot be told yet."""
        doubt = self._doubt
        assert doubt is not None
        try:
            is_there = self._open().knows(doubt.ticket)
        except Exception as error:  # of the place, whatever it is: nothing was asked to be written
            self._forget_session()
            return [], error
        self._doubt = None
        LOG.warning("event=store.decided committed=%s requests=%d", is_there, len(doubt.requests))
        if not is_there:
            return list(doubt.requests), None
        self._take(doubt.known)
        self._recover()
        _call_all(doubt.requests)
        return [], None

    def _open(self) -> Session:
        if self._fenced is not None:
            raise self._fenced
        if self._session is None:
            self._session = self._database.connect()
        return self._session

    def _forget_session(self) -> None:
        """After an I/O error the connection's state is not relied upon."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _look(self) -> Exception | None:
        """Whether the session is still there, when there is nothing to write."""
        if self._database.look_every_s is None:
            return None
        try:
            self._open().look()
        except Exception as error:
            self._forget_session()
            self._fail(error)
            return error
        return None

    def _probe(self) -> Exception | None:
        """Whether writes are taken again, when nothing else waits to be written."""
        try:
            session = self._open()
            try:
                session.begin()
                session.execute(_PROBE)
                session.commit()
            except BaseException:
                session.undo()
                raise
        except Exception as error:
            self._forget_session()
            self._fail(error)
            return error
        return None

    def _is_of_the_place(self, error: Exception) -> bool:
        return isinstance(error, Fenced) or self._database.is_of_the_place(error)

    def _fail(self, error: Exception) -> None:
        self._trouble = str(error) if isinstance(error, StoreError) else self._database.describe(error)
        if self._healthy:
            LOG.error("event=store.failed %s", self._trouble)
        self._healthy = False
        if isinstance(error, Fenced) and self._fenced is None:
            self._fenced = error
            self._lost(str(error))

    def _recover(self) -> None:
        if self._healthy or self._fenced is not None:
            return
        LOG.warning("event=store.recovered %s", self._database.name)
        self._healthy = True


def _call_all(requests: Sequence[Request]) -> None:
    for request in requests:
        _call(request, None)


def _call(request: Request, error: Exception | None) -> None:
    """A callback that fails (its loop may be gone) must not end the writer."""
    try:
        request.done(error)
    except Exception:
        LOG.exception("event=store.callback_failed")
