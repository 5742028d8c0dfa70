"""An allocation that belongs to the command on a connection (srun, salloc): what its client does there, and its end.

The client works on its own while it has the allocation (frame J); until it says what came of it (D), the job may end
and signals may arrive. When the client is gone, so is the allocation.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Callable
from typing import Any

from slurmbridge.commands import effects as fx
from slurmbridge.daemon.attached import Attached
from slurmbridge.daemon.performing import Performer
from slurmbridge.wire import client as wire

log = logging.getLogger(__name__)

INTERACTIVE = ("srun", "salloc")
"""Commands that know what to do when their caller is sent a signal; any other ends with its caller."""

Answer = asyncio.Future[Any]


class Held:
    """See the module docstring. `send` queues a frame for the client."""

    def __init__(
        self,
        call: fx.Call,
        performer: Performer,
        attached: Attached,
        step_address: Callable[[int], str],
        send: Callable[[bytes], None],
    ) -> None:
        self._call, self._performer, self._attached = call, performer, attached
        self._step_address, self._send = step_address, send
        self._job_id = 0
        self._signals: list[int] = []  # caught by the client, not told to the command yet
        self._is_handed = False
        self._returned: fx.Returned | None = None
        self._open: Answer | None = None  # of a HandOver or Recall under way

    # ---- effects ----

    def perform(self, effect: fx.Effect) -> Answer:
        """Any effect that is not the client's alone."""
        if type(effect) is fx.HandOver:
            return self._hand_over(effect)
        if type(effect) is fx.Recall:
            self._send(wire.frame(b"R", str(effect.signal).encode()))
            return self._until_returned()
        if type(effect) is fx.WaitStart and self._signals:
            return _done(self._interrupted(effect))
        return self._performer.perform(self._call, effect)

    def note(self, effect: fx.Effect | None, answer: Any) -> None:
        """From here on the job lives as long as the command."""
        if type(effect) is fx.Submit and not effect.batch and not effect.test_only and isinstance(answer, fx.Submitted):
            self._job_id = answer.job_id
            self._attached.attach(answer.job_id)

    def _hand_over(self, effect: fx.HandOver) -> Answer:
        facts: dict[str, Any] = {"job": effect.job_id, **dict(effect.facts)}
        if effect.what != "command":
            facts["address"] = self._step_address(effect.job_id)
            for part in facts.get("components", ()):
                part["address"] = self._step_address(part["job"])
        env = [os.fsencode(f"{name}={value}") for name, value in effect.env]
        self._send(wire.frame(b"J", wire.pack(effect.what.encode(), json.dumps(facts).encode(), *env)))
        self._is_handed = True
        if self._signals:
            return _done(fx.Returned(signal=self._signals.pop(0)))
        future = self._until_returned()
        over = self._performer.perform(self._call, fx.WaitFor(job_ids=(effect.job_id,)))
        over.add_done_callback(lambda _: None if future.done() else future.set_result(fx.Returned(is_over=True)))
        return future

    def _until_returned(self) -> Answer:
        if self._returned is not None:
            return _done(self._returned)
        self._open = asyncio.get_running_loop().create_future()
        return self._open

    def _interrupted(self, effect: fx.WaitStart) -> fx.Progress:
        return fx.Progress(phase=self._performer.progress(effect.job_id), signal=self._signals.pop(0))

    # ---- what the client says ----

    def returned(self, payload: bytes) -> None:
        """D: what was handed over is done. ValueError: nonsense."""
        code, status = (int(part) for part in wire.unpack(payload))
        if not self._is_handed:
            raise ValueError("nothing was handed over")
        self._returned = fx.Returned(code=code, status=status)
        if self._open is not None and not self._open.done():
            self._open.set_result(self._returned)

    def signalled(self, payload: bytes, effect: fx.Effect | None) -> fx.Progress | bool | None:
        """S: the client caught a signal while the command waits for `effect`.

        False: this command knows no signals. A Progress: the effect's answer, now. None: noted, the command will hear.
        """
        if os.path.basename(self._call.argv[0]) not in INTERACTIVE or not payload.isdigit():
            return False
        self._signals.append(int(payload))
        if type(effect) is fx.WaitStart:
            return self._interrupted(effect)
        if type(effect) is fx.HandOver and self._open is not None and not self._open.done():
            self._open.set_result(fx.Returned(signal=self._signals.pop(0)))
        return None

    # ---- the end ----

    def let_go(self, *, is_lost: bool) -> None:
        """The command is over. `is_lost`: its client is gone or it broke, and nobody else will end the job."""
        job_id, self._job_id = self._job_id, 0
        if not job_id:
            return
        self._attached.detach(job_id)
        if is_lost:
            log.info("event=allocation.abandoned job=%d", job_id)
            self._performer.perform(self._call, fx.Change(verb="cancel", job_id=job_id))


def _done(value: Any) -> Answer:
    future: Answer = asyncio.get_running_loop().create_future()
    future.set_result(value)
    return future
