"""What is to be done so that a run's objects become what they shall be? Wish and sight in, actions out; nothing is done here.

The rules, each of which a crash or an old sight must not break:

- A pod is ours only by instance, hash and epoch; another one of its name goes first. Deletes name a uid, so that they never
  hit a later pod.
- Rank 0 is made last, after the others and the service by which they find each other. So a run whose rank 0 is not there
  never began, and making it again is safe.
- All pods of a run are held by a finalizer: one that was deleted, by whomever, is still seen. It is let go when its run is
  settled and it is dead.
- A gang lives or dies as a whole.

Applying a plan and planning again gives in the end nothing to do, whatever part of the actions was lost on the way.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import msgspec

from slurmbridge.model.run import RunKey
from slurmbridge.reconcile.observed import Life, SeenPod, SeenService, Share


class Goal(enum.Enum):
    BEGIN = "begin"  # all pods there
    RUN = "run"  # they were all there; none is made again
    END = "end"  # nothing may run
    RELEASE = "release"  # its end is stored: nothing may be left


class State(enum.Enum):
    """How far the objects are, for who has the wish."""

    PENDING = "pending"  # objects are still to come
    COMPLETE = "complete"  # all pods are there
    BROKEN = "broken"  # one is missing, ended or taken away: the gang has to end
    ENDING = "ending"  # something may still run
    DEAD = "dead"  # proved: nothing runs
    CLEAR = "clear"  # nothing is left


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """One object of the run, by what tells it from others."""

    name: str
    spec_hash: str
    shares: tuple[Share, ...] = ()  # of which devices a pod has a part


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """`pods` by rank and `service` are known where the run was launched from here; else only how many there are."""

    key: RunKey
    goal: Goal
    epoch: str = ""
    pods: tuple[Wanted, ...] = ()
    service: Wanted | None = None


class CreatePod(msgspec.Struct, frozen=True):
    rank: int


class CreateService(msgspec.Struct, frozen=True):
    name: str


class DeletePod(msgspec.Struct, frozen=True):
    """`at_once`: without asking its kubelet, which is proved to be gone."""

    name: str
    uid: str
    at_once: bool = False


class FreePod(msgspec.Struct, frozen=True):
    """Take our finalizer away."""

    name: str
    uid: str


class DeleteService(msgspec.Struct, frozen=True):
    name: str
    uid: str


Action: TypeAlias = CreatePod | CreateService | DeletePod | FreePod | DeleteService


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`actions` are done in their order; a later one may be left out when an earlier one failed."""

    state: State
    actions: tuple[Action, ...] = ()


def plan(wish: Wish | None, pods: Sequence[SeenPod], services: Sequence[SeenService] = ()) -> Plan:
    """For one run. No wish: nobody knows the run, so that nothing of it may stay."""
    pods = sorted(pods, key=lambda pod: (pod.rank, pod.uid))
    if wish is None:
        return _release(pods, services)
    match wish.goal:
        case Goal.BEGIN:
            return _begin(wish, pods, services)
        case Goal.RUN:
            return Plan(state=State.COMPLETE if is_whole(pods) else State.BROKEN)
        case Goal.END:
            actions = tuple(_stop(pods))
            return Plan(state=State.DEAD if all(pod.is_dead for pod in pods) else State.ENDING, actions=actions)
        case Goal.RELEASE:
            return _release(pods, services)


def was_begun(pods: Sequence[SeenPod]) -> bool:
    """Whether a run that is found may have begun, so that it must not be launched again."""
    return any(pod.rank == 0 for pod in pods)


def is_whole(pods: Sequence[SeenPod]) -> bool:
    """All ranks are there, and none has ended or is being taken away."""
    ranks = [pod.rank for pod in pods if not pod.is_dead and not pod.is_deleting]
    return bool(pods) and sorted(ranks) == list(range(pods[0].ranks)) and len(pods) == len(ranks)


def own(wish: Wish, pods: Sequence[SeenPod]) -> list[SeenPod]:
    """Those that count for the run: of one that is begun, only what was made for it."""
    if wish.goal is not Goal.BEGIN:
        return list(pods)
    wanted = {pod.name: pod.spec_hash for pod in wish.pods}
    return [pod for pod in pods if (wanted.get(pod.name), wish.epoch) == (pod.spec_hash, pod.epoch)]


def _begin(wish: Wish, pods: Sequence[SeenPod], services: Sequence[SeenService]) -> Plan:
    ours = own(wish, pods)
    strangers = [pod for pod in pods if pod not in ours]
    old_services = [service for service in services if not _is_of(service, wish)]
    if strangers or old_services:
        gone = [DeleteService(each.name, each.uid) for each in old_services if not each.is_deleting]
        return Plan(state=State.PENDING, actions=(*_remove(strangers), *gone))
    if any(pod.is_deleting or pod.life is Life.ENDED for pod in ours):
        return Plan(state=State.BROKEN)
    there = {pod.name for pod in ours}
    missing = [rank for rank, pod in enumerate(wish.pods) if pod.name not in there]
    if not missing:
        return Plan(state=State.COMPLETE)
    actions: list[Action] = []
    if wish.service is not None and not services:
        actions.append(CreateService(wish.service.name))
    if any(service.is_deleting for service in services):
        return Plan(state=State.PENDING)
    is_last_due = missing == [0] and (wish.service is None or bool(services))
    actions += [CreatePod(rank) for rank in missing if rank or is_last_due]
    return Plan(state=State.PENDING, actions=tuple(actions))


def _is_of(service: SeenService, wish: Wish) -> bool:
    wanted = wish.service
    return wanted is not None and (service.name, service.spec_hash, service.epoch) == (
        wanted.name, wanted.spec_hash, wish.epoch,
    )  # fmt: skip


def _release(pods: Sequence[SeenPod], services: Sequence[SeenService]) -> Plan:
    if pods:
        return Plan(
            state=State.DEAD if all(pod.is_dead for pod in pods) else State.ENDING, actions=tuple(_remove(pods))
        )
    if services:
        gone = tuple(DeleteService(each.name, each.uid) for each in services if not each.is_deleting)
        return Plan(state=State.DEAD, actions=gone)
    return Plan(state=State.CLEAR)


def _stop(pods: Sequence[SeenPod]) -> Iterator[Action]:
    """Whatever still may run gets its end; what has ended stays to be read."""
    for pod in pods:
        if pod.life is not Life.ENDED and not pod.is_deleting:
            yield DeletePod(pod.name, pod.uid)


def _remove(pods: Sequence[SeenPod]) -> Iterator[Action]:
    """The others first, so that rank 0, by which a run is known to have begun, is the last to go."""
    for pod in sorted(pods, key=lambda pod: -pod.rank):
        if pod.node_state.proves_death and pod.life is not Life.ENDED:
            yield DeletePod(pod.name, pod.uid, at_once=True)
        elif not pod.is_deleting:
            yield DeletePod(pod.name, pod.uid)
        if pod.is_dead and pod.is_held:
            yield FreePod(pod.name, pod.uid)
