"""Submissions that say again what was accepted before: the specification then, without working it out anew.

Only while nothing has changed that decided it, and only for requests whose answer depends on nothing but themselves, the
caller, the configuration, the accounts, the partitions and the reservations. Equal submissions share one record, so
they also take the room of one.
"""

from __future__ import annotations

from collections.abc import Callable

from slurmbridge.daemon.memory import Memory
from slurmbridge.model.job import JobSpec
from slurmbridge.model.request import JobRequest
from slurmbridge.submit.caller import Caller, Resolved

MOST = 512
FIT = 4  # what goes along with one accepted request: scripts, environments, limits

Key = tuple[int, Caller, str | None, bool]
Luggage = tuple[object, ...]


class Accepted:
    """One answer of `submit.resolve`, and the specifications made of it."""

    __slots__ = ("_complete", "request", "resolved")

    def __init__(self, request: JobRequest, resolved: Resolved) -> None:
        self.request, self.resolved = request, resolved  # the request is kept so that its identity stays its own
        self._complete: dict[Luggage, JobSpec] = {}

    def complete(self, luggage: Luggage, make: Callable[[], JobSpec]) -> JobSpec:
        """The specification with what goes along; made once for each."""
        found = self._complete.get(luggage)
        if found is None:
            if len(self._complete) >= FIT:
                self._complete.clear()
            found = self._complete[luggage] = make()
        return found


class Recent:
    """Bounded; `find` and `keep` for the same arguments that `resolve` gets."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._found: dict[Key, Accepted] = {}
        self._world: tuple[object, ...] = ()
        self._is_of_use = True

    def find(self, request: JobRequest, caller: Caller, script_path: str | None, batch: bool) -> Accepted | None:
        memory = self._memory
        world = (
            memory.config,
            memory.accounting,
            memory.capabilities,
            *memory.partition_list,
            *memory.reservation_list,
        )
        if not _same(world, self._world):
            self._world = world
            self._found.clear()
            self._is_of_use = "limits" not in memory.config.enforce and not any(
                partition.allow_groups for partition in memory.partition_list
            )
        return self._found.get((id(request), caller, script_path, batch)) if self._is_of_use else None

    def keep(
        self, request: JobRequest, caller: Caller, script_path: str | None, batch: bool, resolved: Resolved
    ) -> Accepted:
        """After `find` of the same arguments has found nothing."""
        accepted = Accepted(request, resolved)
        if self._is_of_use and _stands_alone(request) and not resolved.warnings:
            if len(self._found) >= MOST:
                self._found.clear()
            self._found[(id(request), caller, script_path, batch)] = accepted
        return accepted


def _same(first: tuple[object, ...], second: tuple[object, ...]) -> bool:
    """The very same records: they are replaced, never changed."""
    return len(first) == len(second) and all(one is other for one, other in zip(first, second, strict=True))


def _stands_alone(request: JobRequest) -> bool:
    """Neither the time nor nodes nor other jobs have a say."""
    return (
        request.begin is None
        and request.deadline is None
        and request.dependency is None
        and not (request.constraint or request.prefer or request.batch_features)
        and not (request.nodelist or request.exclude)
        and not (request.uid or request.gid)
    )
