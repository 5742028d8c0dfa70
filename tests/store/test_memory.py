"""The memory store keeps the contract."""

from __future__ import annotations

from pathlib import Path

from slurmbridge.store.memory import MemoryStore
from slurmbridge.store.protocol import Store
from tests.store.contract import StoreContract


class TestMemoryStore(StoreContract):
    def make(self, folder: Path) -> Store:
        return MemoryStore()
