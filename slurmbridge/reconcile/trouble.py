"""What is wrong with a pod, what does that make of its run, and after how long is it certain?

One table. Sources: "Pod Lifecycle", "Debug Pods", "Node-pressure Eviction", "Pod disruption conditions" and "Non-graceful
node shutdown" of the Kubernetes documentation; the words are those that kubelets and controllers write. What a run becomes
has the words of `runtime.protocol.Ended.why`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from slurmbridge.reconcile.observed import Life, NodeState, SeenPod


class Sign(enum.Enum):
    """Where a word stands."""

    WAITING = "waiting"  # of a container that is not started
    STATUS = "status"  # of a pod that failed as a whole
    EXIT = "exit"  # of the main container's end
    DISRUPTION = "disruption"  # condition DisruptionTarget
    EVENT = "event"  # the last warning about a pod that is not started


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds from a pod's creation after which what may pass by itself counts as failed."""

    image: float = 300.0  # registries are slow and come back
    config: float = 60.0  # secrets and config maps that may be made a little later
    mount: float = 180.0
    sandbox: float = 180.0
    start: float = 600.0  # whatever the cause
    refusal: float = 10.0  # of creation: a service account or a quota that comes a little later
    outage: float = 600.0  # an API server that does not take it
    device: float = 20.0  # a device to hold that another pod still has


AT_ONCE = "at once"


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    sign: Sign
    words: str  # a pattern for the whole word
    why: str
    text: str
    within: str = AT_ONCE  # a field of Patience
    said: str = ""  # a pattern for a part of the message


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """`why`: launch, requeue, node_fail, preempt, oom, timeout. `message`: for people, with what the cluster says."""

    why: str
    message: str
    rank: int = 0
    node: str = ""


def _rule(sign: Sign, words: str, why: str, text: str, within: str = AT_ONCE, said: str = "") -> Rule:
    return Rule(sign=sign, words=words, why=why, text=text, within=within, said=said)


NOT_STARTED = "ContainerCannotRun|StartError"
CUT_OFF = r"context (canceled|deadline exceeded)|transport is closing|ttrpc: closed|connection (refused|reset)|error reading from server"
"""What a container runtime says when its kubelet, or a part of itself, went away meanwhile."""


# Order matters: of several signs the first is the cause, the others may follow from it.
TABLE: tuple[Rule, ...] = (
    _rule(Sign.DISRUPTION, "PreemptionByScheduler", "preempt", "another scheduler took its place"),
    _rule(Sign.DISRUPTION, "TerminationByKubelet", "node_fail", "its node ended it"),
    _rule(Sign.DISRUPTION, "DeletionByTaintManager", "node_fail", "a taint of its node drove it away"),
    _rule(Sign.DISRUPTION, "EvictionByEvictionAPI", "node_fail", "it was evicted"),
    _rule(Sign.DISRUPTION, "DeletionByPodGC", "node_fail", "its node is gone"),
    _rule(Sign.STATUS, "OutOf.+", "requeue", "its node had less room than was known"),
    _rule(Sign.STATUS, "UnexpectedAdmissionError", "requeue", "its node could not give it its devices"),
    _rule(Sign.STATUS, "Evicted", "node_fail", "its node evicted it"),
    _rule(Sign.STATUS, "Preempting|Preempted", "preempt", "its node needed the room for a pod of the system"),
    _rule(Sign.STATUS, "NodeShutdown|Shutdown|Terminated|NodeLost", "node_fail", "its node was shut down"),
    _rule(Sign.STATUS, "DeadlineExceeded", "timeout", "the pod's own deadline"),
    _rule(Sign.STATUS, "NodeAffinity|NodeName|NodePorts|TaintToleration|InvalidNodeInfo|AppArmor|.*Forbidden|.*NotSupported",
          "launch", "its node does not take such pods"),
    _rule(Sign.EXIT, "OOMKilled", "oom", "it used more memory than it has"),
    _rule(Sign.EXIT, "ContainerStatusUnknown", "node_fail", "its node lost it"),
    _rule(Sign.EXIT, NOT_STARTED, "requeue", "its node was interrupted when it started it", said=CUT_OFF),
    _rule(Sign.EXIT, NOT_STARTED, "launch", "its container could not be started"),
    _rule(Sign.WAITING, "InvalidImageName", "launch", "its image has no valid name"),
    _rule(Sign.WAITING, "ErrImageNeverPull", "launch", "its image is not on the node and may not be pulled"),
    _rule(Sign.WAITING, "ErrImagePull|ImagePullBackOff|ImageInspectError|RegistryUnavailable|SignatureValidationFailed",
          "launch", "its image cannot be pulled", "image"),
    _rule(Sign.WAITING, "CreateContainerConfigError", "launch", "something it refers to is not there", "config"),
    _rule(Sign.WAITING, "CreateContainerError|RunContainerError|PreCreateHookError|PreStartHookError|PostStartHookError",
          "launch", "its container could not be started", "config"),
    _rule(Sign.WAITING, "CrashLoopBackOff", "launch", "its container ends as soon as it is started"),
    _rule(Sign.EVENT, "FailedMount|FailedAttachVolume|FailedMapVolume|VolumeResizeFailed", "launch",
          "a volume cannot be mounted", "mount"),
    _rule(Sign.EVENT, "FailedCreatePodSandBox|NetworkNotReady|FailedCreatePodContainer|FailedPodSandBoxStatus", "launch",
          "its node cannot set it up", "sandbox"),
)  # fmt: skip
_COMPILED = tuple((rule, re.compile(rule.words), re.compile(rule.said)) for rule in TABLE)
_NOT_STARTED = NOT_STARTED.split("|")
_SAID: dict[Sign, Callable[[SeenPod], tuple[str, str]]] = {
    Sign.WAITING: lambda pod: (pod.waiting, pod.waiting_message),
    Sign.STATUS: lambda pod: (pod.reason, pod.message),
    Sign.EXIT: lambda pod: (pod.exit_reason, pod.last_words if pod.exit_reason in _NOT_STARTED else pod.message),
    Sign.DISRUPTION: lambda pod: (pod.disruption, pod.message),
    Sign.EVENT: lambda pod: (pod.event, pod.event_message),
}
_BEFORE_START = (Sign.WAITING, Sign.EVENT)
COLLATERAL = len(TABLE)
"""Place of what says least: that a pod is missing, deleted or slow."""


def trouble_of(pods: Sequence[SeenPod], now: float, patience: Patience = Patience()) -> Trouble | None:
    """Why a run that shall go on cannot; the cause that says most, of the lowest rank. None: nothing is wrong, or not yet."""
    found = [(place, pod.rank, trouble) for pod in pods for place, trouble in _signs(pod, now, patience)]
    return min(found, key=lambda each: each[:2])[2] if found else None


def next_look(pods: Sequence[SeenPod], now: float, patience: Patience = Patience()) -> float | None:
    """When the passing of time alone may make a trouble of what is seen; None: never."""
    waits = (
        pod.created + wait
        for pod in pods
        if pod.life in (Life.UNTAKEN, Life.WAITING)
        for wait in (getattr(patience, name) for name in ("image", "config", "mount", "sandbox", "start"))
    )
    return min((time for time in waits if time > now), default=None)


def _signs(pod: SeenPod, now: float, patience: Patience) -> Iterator[tuple[int, Trouble]]:
    is_started = pod.life in (Life.RUNNING, Life.ENDED)
    said = {sign: told for sign, of in _SAID.items() if (told := of(pod))[0]}  # of nearly all pods nothing
    for place, (rule, words, part) in enumerate(_COMPILED) if said else ():
        if rule.sign not in said or (is_started and rule.sign in _BEFORE_START):
            continue
        word, message = said[rule.sign]
        # at once: however our clock stands to the one that the pod's creation is from
        is_due = rule.within == AT_ONCE or now >= pod.created + float(getattr(patience, rule.within))
        if is_due and words.fullmatch(word) and part.search(message):
            yield place, _trouble(pod, rule.why, f"{rule.text} ({word}{f': {message}' if message else ''})")
    if pod.node_state is NodeState.GONE:
        yield COLLATERAL, _trouble(pod, "node_fail", "its node is gone")
    elif pod.node_state is NodeState.OUT_OF_SERVICE:
        yield COLLATERAL, _trouble(pod, "node_fail", "its node is out of service")
    elif pod.is_deleting:
        yield COLLATERAL + 1, _trouble(pod, "node_fail", "its pod was deleted")
    elif not is_started and now >= pod.created + patience.start:
        last = pod.waiting or pod.event
        text = f"it did not start within {patience.start:.0f} s" + (f" ({last})" if last else "")
        yield COLLATERAL + 2, _trouble(pod, "launch", text)


def _trouble(pod: SeenPod, why: str, text: str) -> Trouble:
    who = pod.title or f"rank {pod.rank}"
    return Trouble(why=why, message=f"{who} on {pod.node}: {text}", rank=pod.rank, node=pod.node)


# Creation that the API server does not accept: by the kinds of its faults (`runtime.kube.faults`)
REFUSALS: dict[str, tuple[str, str]] = {
    "forbidden": ("refusal", "the cluster does not allow its pods"),
    "invalid": (AT_ONCE, "the cluster does not accept its pods"),
    "gone": ("refusal", "the namespace of its pods is not there"),
    "throttled": ("outage", "the cluster takes no more pods"),
    "down": ("outage", "the cluster cannot be reached"),
    "expired": ("outage", "the cluster cannot be reached"),
    "conflict": ("outage", "other pods have its names"),
}


def refusal(kind: str, message: str, first: float, now: float, patience: Patience = Patience()) -> Trouble | None:
    """What a failed creation makes of a run, tried since `first`; None: try again."""
    within, text = REFUSALS[kind]
    wait = 0.0 if within == AT_ONCE else float(getattr(patience, within))
    return Trouble(why="launch", message=f"{text}: {message}") if now >= first + wait else None
