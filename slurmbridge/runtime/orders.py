"""Orders that a runtime only passes on to the supervisor of rank 0."""

from __future__ import annotations

import abc

from slurmbridge.model.run import RunKey
from slurmbridge.wire import supervisor as wire


class Orders(abc.ABC):
    """See `runtime.protocol` for what each of them asks."""

    @abc.abstractmethod
    def _command(self, key: RunKey, kind: bytes, payload: bytes) -> None:
        """Send it, or keep it until the supervisor has dialled in."""

    def signal(self, key: RunKey, signal: int, scope: str, step_id: int | None = None) -> None:
        self._command(key, wire.SIGNAL, wire.encode({"signal": signal, "scope": scope, "step": step_id}))

    def suspend(self, key: RunKey) -> None:
        self._command(key, wire.SUSPEND, b"")

    def resume(self, key: RunKey) -> None:
        self._command(key, wire.RESUME, b"")

    def set_time_limit(self, key: RunKey, limit_s: int | None) -> None:
        self._command(key, wire.LIMIT, wire.encode({"limit": limit_s}))

    def notify(self, key: RunKey, message: str) -> None:
        self._command(key, wire.NOTIFY, message.encode("utf-8", "replace"))
