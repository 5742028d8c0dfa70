"""A copy of some of a cluster's objects, kept true by one list and a watch after it; without any I/O.

Follows "Efficient detection of changes" in the Kubernetes API concepts. The rules that are easy to get wrong:

- A list that comes after a loss tells what is there now; what was there before and is not in it was removed meanwhile.
- "Not in the copy" is not "gone": the copy may be older than our own write. `knows_absent` tells the two apart by the
  resourceVersion that the write was given (comparable as numbers for the kinds used here: Kubernetes 1.35, "Resource
  version semantics"); where that is not possible the answer is no, and the caller has to ask the server.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic

import msgspec

from slurmbridge.runtime.kube.objects import T


class Change(msgspec.Struct, Generic[T], frozen=True):
    """An object as it was and as it is; one of the two is None when it appeared or went."""

    before: T | None
    after: T | None

    @property
    def key(self) -> tuple[str, str]:
        known = self.after if self.after is not None else self.before
        assert known is not None
        return known.key


class Mirror(Generic[T]):
    """Objects by (namespace, name). Every method that changes it gives the changes in their order.

    One thread changes it; others may read. `version` is set last, so that nobody takes an object for absent that is only
    not entered yet.
    """

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str], T] = {}
        self._listing: dict[tuple[str, str], T] | None = None
        self.version = ""
        """resourceVersion up to which everything is known; empty before the first list is complete."""

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[T]:
        return iter(self._objects.values())

    def get(self, namespace: str, name: str) -> T | None:
        return self._objects.get((namespace, name))

    # listing: pages are set aside until the last has come, so that a list that breaks off changes nothing

    def begin_list(self) -> None:
        self._listing = {}

    def add_page(self, items: Iterable[T]) -> None:
        assert self._listing is not None, "begin_list comes first"
        for item in items:
            self._listing[item.key] = item

    def end_list(self, version: str) -> list[Change[T]]:
        """Take the list as what is there."""
        assert self._listing is not None, "begin_list comes first"
        listed, self._listing = self._listing, None
        changes = [Change(old, None) for key, old in self._objects.items() if key not in listed]
        for key, new in listed.items():
            old = self._objects.get(key)
            if old is not None and old.metadata.uid != new.metadata.uid:
                changes.append(Change(old, None))  # another object of the same name: the first is gone
                old = None
            if old is None or old.metadata.resource_version != new.metadata.resource_version:
                changes.append(Change(old, new))
        self._objects, self.version = listed, version
        return changes

    # watching

    def put(self, item: T) -> list[Change[T]]:
        """ADDED or MODIFIED; an event that repeats what is known changes nothing."""
        old = self._objects.get(item.key)
        if old is not None and old.metadata.resource_version == item.metadata.resource_version:
            return []
        self._objects[item.key] = item
        self.version = item.metadata.resource_version or self.version
        if old is not None and old.metadata.uid != item.metadata.uid:
            return [Change(old, None), Change(None, item)]
        return [Change(old, item)]

    def remove(self, item: T) -> list[Change[T]]:
        """DELETED; the item is the object's last state."""
        old = self._objects.pop(item.key, None)
        self.version = item.metadata.resource_version or self.version
        return [] if old is None else [Change(item, None)]

    def bookmark(self, version: str) -> None:
        """Nothing happened up to this version."""
        self.version = version or self.version

    def knows_absent(self, namespace: str, name: str, written: str) -> bool:
        """Whether an object that we wrote at version `written` is proved to be gone."""
        if (namespace, name) in self._objects:
            return False
        return self.version.isdecimal() and written.isdecimal() and int(self.version) >= int(written)
