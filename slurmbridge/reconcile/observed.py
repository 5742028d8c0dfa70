"""What is seen of a run in the cluster: its pods, its service and the state of their nodes, as far as decisions need it.

Made from the cluster's objects in `runtime.kube`; nothing here knows an API. Times are epoch seconds.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

import msgspec

from slurmbridge.model.run import RunKey

Share: TypeAlias = tuple[tuple[str, int], str]
"""A part of a device: the slot (node, index) of the planner, and the device's id."""


class Life(enum.Enum):
    """Of a pod's containers, as its kubelet tells."""

    UNTAKEN = "untaken"  # no kubelet has taken the pod yet
    WAITING = "waiting"  # taken, its main container was not started
    RUNNING = "running"
    ENDED = "ended"  # all containers have ended: told by the kubelet, and final


class NodeState(enum.Enum):
    THERE = "there"
    SILENT = "silent"  # its kubelet is not heard: what ran there may run on
    GONE = "gone"  # no such Node object any more
    OUT_OF_SERVICE = "out-of-service"  # an administrator vouches that it is off

    @property
    def proves_death(self) -> bool:
        return self in (NodeState.GONE, NodeState.OUT_OF_SERVICE)


class SeenPod(msgspec.Struct, frozen=True, kw_only=True):
    """A pod with our instance's label."""

    name: str
    uid: str
    key: RunKey
    rank: int
    ranks: int = 1  # of the whole run
    spec_hash: str = ""
    epoch: str = ""
    node: str = ""
    node_state: NodeState = NodeState.THERE
    life: Life = Life.UNTAKEN
    is_held: bool = True  # our finalizer is on it
    is_deleting: bool = False
    created: float = 0.0
    reason: str = ""  # of its status: Evicted, OutOfcpu, ...
    message: str = ""
    waiting: str = ""  # why a container is not started: ImagePullBackOff, ...
    waiting_message: str = ""
    exit_reason: str = ""  # of the main container: OOMKilled, Error, Completed
    exit_code: int = 0
    disruption: str = ""  # reason of condition DisruptionTarget
    event: str = ""  # reason of the last warning about it: FailedMount, ...
    event_message: str = ""
    last_words: str = ""  # what the supervisor left for whom finds its container ended
    shares: tuple[Share, ...] = ()  # of which devices it has a part
    title: str = ""  # what it is in words, where it is no rank of a run

    @property
    def is_dead(self) -> bool:
        """Proved that nothing of it runs, or ever will."""
        return self.life is Life.ENDED or self.node_state.proves_death


class SeenService(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    uid: str
    key: RunKey
    spec_hash: str = ""
    epoch: str = ""
    is_deleting: bool = False
