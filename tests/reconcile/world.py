"""A cluster without a cluster: objects that plans are done to, kubelets that take time, sights that are old."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from msgspec.structs import replace

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, SeenPod, SeenService
from slurmbridge.reconcile.plan import (
    Action,
    CreatePod,
    CreateService,
    DeletePod,
    DeleteService,
    FreePod,
    Wanted,
    Wish,
)

KEY = RunKey(7, 0)


def wanted(ranks: int, version: str = "a") -> tuple[Wanted, ...]:
    return tuple(Wanted(name=f"pod-{rank}", spec_hash=f"{version}{rank}") for rank in range(ranks))


class World:
    """Applies actions as an API server would: names are unique, deletes need the right uid, finalizers hold."""

    def __init__(self) -> None:
        self.pods: dict[str, SeenPod] = {}
        self.services: dict[str, SeenService] = {}
        self.made: list[tuple[str, str]] = []  # (name, hash) of every pod that was ever made by an action
        self.early = False  # rank 0 was made while another rank was not there
        self._uids = itertools.count(1)
        self._past: list[tuple[list[SeenPod], list[SeenService]]] = []

    def put(self, name: str, rank: int, ranks: int, spec_hash: str, epoch: str, life: Life = Life.UNTAKEN) -> None:
        self.pods[name] = SeenPod(
            name=name, uid=f"u{next(self._uids)}", key=KEY, rank=rank, ranks=ranks, spec_hash=spec_hash, epoch=epoch,
            node=f"n{rank}", life=life,
        )  # fmt: skip

    def do(self, action: Action, wish: Wish | None) -> None:
        match action:
            case CreatePod(rank):
                assert wish is not None
                pod = wish.pods[rank]
                if pod.name in self.pods:
                    return  # AlreadyExists: the next sight tells whose it is
                if rank == 0:
                    self.early |= len(self.pods) < len(wish.pods) - 1
                self.put(pod.name, rank, len(wish.pods), pod.spec_hash, wish.epoch)
                self.made.append((pod.name, pod.spec_hash))
            case CreateService(name):
                assert wish is not None and wish.service is not None
                self.services.setdefault(
                    name,
                    SeenService(
                        name=name,
                        uid=f"u{next(self._uids)}",
                        key=KEY,
                        spec_hash=wish.service.spec_hash,
                        epoch=wish.epoch,
                    ),
                )
            case DeletePod(name, uid, at_once):
                found = self.pods.get(name)
                if found is not None and found.uid == uid:
                    life = Life.ENDED if at_once or found.life is Life.UNTAKEN else found.life
                    self.pods[name] = replace(found, is_deleting=True, life=life)
            case FreePod(name, uid):
                found = self.pods.get(name)
                if found is not None and found.uid == uid:
                    self.pods[name] = replace(found, is_held=False)
            case DeleteService(name, uid):
                service = self.services.get(name)
                if service is not None and service.uid == uid:
                    del self.services[name]
        self._sweep()

    def kubelets(self) -> None:
        """Pods are taken, start and, once deleted, end."""
        for name, pod in self.pods.items():
            if pod.is_deleting:
                self.pods[name] = replace(pod, life=Life.ENDED)
            elif pod.life is not Life.ENDED:
                self.pods[name] = replace(pod, life=Life.WAITING if pod.life is Life.UNTAKEN else Life.RUNNING)
        self._sweep()

    def end(self, name: str) -> None:
        if name in self.pods:
            self.pods[name] = replace(self.pods[name], life=Life.ENDED)

    def remember(self) -> None:
        self._past.append((list(self.pods.values()), list(self.services.values())))

    def sight(self, age: int) -> tuple[Sequence[SeenPod], Sequence[SeenService]]:
        """What was there `age` moments ago."""
        self.remember()
        return self._past[max(len(self._past) - 1 - age, 0)]

    def _sweep(self) -> None:
        for name, pod in list(self.pods.items()):
            if pod.is_deleting and not pod.is_held and pod.life is Life.ENDED:
                del self.pods[name]
