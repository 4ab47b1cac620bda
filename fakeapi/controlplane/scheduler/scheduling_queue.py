"""The scheduling queue's state: which pods wait, for how long, and for which events.

    unschedulable, with known queueing hints    until such an event, or 5 minutes
    failed with an error                        until its backoff is over
    woken during its backoff                    until the backoff is over
    woken during its scheduling attempt         as if woken right after it
    preempting (held)                           until its victims have been deleted
    a pod group that is not complete            until any event

The backoff is 1 s after the first attempt and doubles up to 10 s. Pods that are ready wait in a
work queue in the order of priority; this module only decides when a pod is added to it.
(kube-scheduler checks backoffs every second, and the 5 minutes every 30 s; here the times are
exact. Unlike upstream since 1.33, the backoff is not shortened when no other pod waits.)

Queueing hints are the events that may help a pod, by the reasons of the nodes that rejected it:

    reason                                            events that may help
    unschedulable, taints, affinity, name             a node is added or changed
    resources, number of pods, ports                  the same, or a pod is deleted or scaled down
    affinity to pods, spread                          the same, or any event of pods and nodes
    volumes, device claims                            all of these, or storage
    an extender                                       any

An update of the pod itself always may. Upstream's hints are more precise (whether the changed node
fits now); here a pod is sometimes retried without need. In simulations, a hint is more precise than
upstream's where pods leave nodes (:mod:`fakeapi.controlplane.scheduler.departure_hint`).

An entry is a pod, or a pod group with all its waiting members.

Pure: time is an argument, in seconds. Sources: pkg/scheduler/backend/queue/scheduling_queue.go,
EventsToRegister in pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, Protocol
from weakref import WeakValueDictionary

from policies.kubernetes.snapshot import NodeState
from policies.preemption.filtering.status import Code, Rejection

UNSCHEDULABLE_SECONDS: Final = 300.0
"""kube-scheduler's ``--pod-max-in-unschedulable-pods-duration``."""

_MOST_DOUBLINGS: Final = 30


class ClusterEvent(Enum):
    """Cluster events that may make a pod schedulable.

    STORAGE_CHANGED is a change of an object behind a volume or a device claim, or of a pod group.
    """

    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    NODE_GONE = auto()
    POD_PLACED = auto()
    POD_CHANGED = auto()
    POD_GONE = auto()
    STORAGE_CHANGED = auto()
    OWN_CHANGE = auto()


ALL_EVENTS: Final = frozenset(ClusterEvent)

AwaitedEvents = frozenset[ClusterEvent]


class NodeHint(Protocol):
    """A more precise hint for events of scheduled pods; equal for pods that it holds for equally.

    It takes into account that other pods are nominated to a node. The end of a nomination is no
    event, so a node that has one is looked at again after any event. ``nominated`` are these nodes
    at first.
    """

    @property
    def nominated(self) -> frozenset[str]:
        """The nodes that have a nomination."""
        ...

    def may_help(self, state: NodeState) -> bool:
        """Return whether a node may help, one of whose pods has left it or has changed."""
        ...

    def __hash__(self) -> int: ...


@dataclass(eq=False)
class _HopelessPods:
    """Pods that have failed with equal hints; since then, only the nodes ``changed`` may help."""

    hint: NodeHint
    changed: set[str] = field(default_factory=set)

    def need_no_attempt(self, nodes: Mapping[str, NodeState]) -> bool:
        """Return whether an attempt must fail; then forget what has changed."""
        states = [nodes[name] for name in self.changed if name in nodes]
        if any(map(self.hint.may_help, states)):
            return False
        self.changed = {state.node.name for state in states if state.nominated}
        return True


@dataclass(slots=True)
class _QueuedPod:
    """A pod that waits; ``awaited`` are the events that may help it since its last attempt.

    As long as it is one of ``hopeless``, nothing but events of scheduled pods has happened.
    """

    attempts: int = 0
    failed_at: float = 0.0
    awaited: AwaitedEvents = frozenset()
    in_attempt: bool = False
    is_held: bool = False
    missed: set[ClusterEvent] = field(default_factory=set)
    hopeless: _HopelessPods | None = None


class SchedulingQueue:
    """Keeps the pods that are not scheduled yet, by key.

    A pod whose events do not occur is tried again after ``unschedulable_seconds``; never if None.
    """

    def __init__(
        self,
        initial_seconds: float = 1.0,
        longest_seconds: float = 10.0,
        unschedulable_seconds: float | None = UNSCHEDULABLE_SECONDS,
    ) -> None:
        self._initial = initial_seconds
        self._longest = longest_seconds
        self._unschedulable_seconds = unschedulable_seconds
        self._waiting: dict[str, _QueuedPod] = {}
        self._hopeless: WeakValueDictionary[NodeHint, _HopelessPods] = WeakValueDictionary()

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, key: str) -> None:
        """Add a pod that has never been tried."""
        self._waiting[key] = _QueuedPod()

    def forget(self, key: str) -> None:
        """Remove a pod that is scheduled or deleted."""
        self._waiting.pop(key, None)

    def start_attempt(self, key: str, nodes: Mapping[str, NodeState]) -> bool:
        """Record the start of an attempt; return False if the pod is held or unknown.

        The same if by its hint none of the ``nodes`` can help it: it waits for further events.
        """
        pod = self._waiting.get(key)
        if pod is None or pod.is_held:
            return False
        if pod.hopeless is not None and pod.hopeless.need_no_attempt(nodes):
            return False
        pod.attempts += 1
        pod.in_attempt = True
        pod.missed.clear()
        return True

    def record_failure(
        self, key: str, now: float, awaited: AwaitedEvents, hint: NodeHint | None = None
    ) -> float | None:
        """Record a failed attempt; return the seconds until the next one at the latest.

        With no ``awaited`` events this is the backoff. Return None if the pod is unknown or held,
        or waits for events alone, as it does with a ``hint``.
        """
        pod = self._waiting.get(key)
        if pod is None:
            return None
        pod.in_attempt, pod.failed_at, pod.awaited = False, now, awaited
        pod.hopeless = None
        if pod.is_held:
            return None
        if not awaited or awaited & pod.missed:
            return self._backoff_left(pod, now)
        if hint is None:
            return self._unschedulable_seconds
        pod.hopeless = self._hopeless.setdefault(hint, _HopelessPods(hint))
        pod.hopeless.changed |= hint.nominated
        return None

    def wake(
        self, event: ClusterEvent, now: float, keys: Iterable[str] = ()
    ) -> Iterator[tuple[str, float]]:
        """Return the pods (of ``keys``, or all) that an event may help, and when to try them."""
        for key in keys or tuple(self._waiting):
            pod = self._waiting.get(key)
            if pod is not None and self._awaits(pod, event):
                pod.hopeless = None
                yield key, self._backoff_left(pod, now)

    def wake_by_pod(
        self,
        event: ClusterEvent,
        now: float,
        node: str,
        nodes: Callable[[], Mapping[str, NodeState]],
    ) -> Iterator[tuple[str, float]]:
        """Do the same for an event of a pod on a node; ``nodes`` is called if a pod has a hint."""
        hopeless: set[_HopelessPods] = set()
        if self._hopeless:
            states = nodes()
            for group in self._hopeless.values():
                group.changed.add(node)
            hopeless = {each for each in self._hopeless.values() if each.need_no_attempt(states)}
        for key, pod in self._waiting.items():
            if self._awaits(pod, event) and pod.hopeless not in hopeless:
                yield key, self._backoff_left(pod, now)

    def gate(self, key: str) -> None:
        """Let an entry wait for any event, without an attempt."""
        pod = self._waiting.get(key)
        if pod is not None:
            pod.awaited = ALL_EVENTS

    def hold(self, key: str) -> None:
        """Hold a pod back until it is released."""
        pod = self._waiting.get(key)
        if pod is not None:
            pod.is_held = True

    def release(self, key: str, now: float, *, failed: bool) -> float | None:
        """Release a held pod; return the seconds until its next attempt, None if unknown."""
        pod = self._waiting.get(key)
        if pod is None:
            return None
        pod.is_held = False
        if failed:
            return 0.0
        helped = pod.missed & pod.awaited
        return self._backoff_left(pod, now) if helped else self._unschedulable_seconds

    def _awaits(self, pod: _QueuedPod, event: ClusterEvent) -> bool:
        """Return whether a pod awaits an event; record it if an attempt is in progress."""
        if pod.in_attempt or pod.is_held:
            pod.missed.add(event)
            return False
        return event in pod.awaited

    def _backoff_left(self, pod: _QueuedPod, now: float) -> float:
        if not pod.attempts:
            return 0.0
        doubled = self._initial * float(1 << min(pod.attempts - 1, _MOST_DOUBLINGS))
        return max(0.0, pod.failed_at + min(doubled, self._longest) - now)


_NODE_EVENTS: Final = frozenset(
    {ClusterEvent.OWN_CHANGE, ClusterEvent.NODE_ADDED, ClusterEvent.NODE_CHANGED}
)
RESOURCE_EVENTS: Final = _NODE_EVENTS | {ClusterEvent.POD_GONE, ClusterEvent.POD_CHANGED}
"""The events that may help a pod which the resources of nodes do not suffice for."""

_TOPOLOGY_EVENTS: Final = RESOURCE_EVENTS | {ClusterEvent.POD_PLACED, ClusterEvent.NODE_GONE}

_HINTS: Final[Mapping[Code, AwaitedEvents]] = {
    **dict.fromkeys(
        (
            Code.UNSCHEDULABLE,
            Code.OTHER_NODE,
            Code.UNTOLERATED_TAINT,
            Code.UNTOLERATED_TAINTS,
            Code.NODE_AFFINITY,
            Code.ENFORCED_AFFINITY,
            Code.AFFINITY_CONFLICT,
            Code.NOT_EXAMINED,
        ),
        _NODE_EVENTS,
    ),
    **dict.fromkeys((Code.HOST_PORTS, Code.TOO_MANY_PODS, Code.INSUFFICIENT), RESOURCE_EVENTS),
    **dict.fromkeys(
        (
            Code.POD_AFFINITY,
            Code.POD_ANTI_AFFINITY,
            Code.EXISTING_ANTI_AFFINITY,
            Code.SPREAD,
            Code.SPREAD_LABEL,
        ),
        _TOPOLOGY_EVENTS,
    ),
}


def events_that_may_help(rejections: Iterable[Rejection]) -> AwaitedEvents:
    """Return the events that may resolve any of these rejections; all for an unknown reason."""
    awaited: AwaitedEvents = frozenset({ClusterEvent.OWN_CHANGE})
    for rejection in rejections:
        for reason in rejection.reasons:
            awaited |= _HINTS.get(reason.code, ALL_EVENTS)
        if len(awaited) == len(ALL_EVENTS):
            break
    return awaited
