"""How many requests were made to an API server, of which kind, and how did they end? For /metrics."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Mapping
from typing import Final

from slurmbridge.manifest.rights import RIGHTS, asked
from slurmbridge.runtime.kube.faults import Kind

GOOD: Final = "ok"
OUTCOMES: Final = (GOOD, *(kind.value for kind in Kind))
OTHER: Final = "other"
KNOWN: Final = frozenset(right.resource for right in RIGHTS)
VERBS: Final = frozenset(verb for right in RIGHTS for verb in right.verbs)


class Counts:
    """By verb, resource and outcome; threads may share it. There are only so many keys, whatever is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counted: Counter[tuple[str, str, str]] = Counter()

    def add(self, method: str, path: str, query: Mapping[str, object] | None, outcome: str) -> None:
        request = asked(method, path, query)
        verb = request.verb if request.verb in VERBS else OTHER
        resource = request.resource if request.resource in KNOWN else OTHER
        with self._lock:
            self._counted[verb, resource, outcome] += 1

    def all(self) -> dict[tuple[str, str, str], int]:
        with self._lock:
            return dict(self._counted)
