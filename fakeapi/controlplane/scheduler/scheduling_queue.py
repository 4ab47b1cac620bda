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
fits now); here a pod is sometimes retried without need.

An entry is a pod, or a pod group with all its waiting members.

Pure: time is an argument, in seconds. Sources: pkg/scheduler/backend/queue/scheduling_queue.go,
EventsToRegister in pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

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


@dataclass(slots=True)
class _QueuedPod:
    """A pod that waits; ``awaited`` are the events that may help it since its last attempt."""

    attempts: int = 0
    failed_at: float = 0.0
    awaited: AwaitedEvents = frozenset()
    in_attempt: bool = False
    is_held: bool = False
    missed: set[ClusterEvent] = field(default_factory=set)


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

    def start_attempt(self, key: str) -> bool:
        """Record the start of an attempt; return False if the pod is held or unknown."""
        pod = self._waiting.get(key)
        if pod is None or pod.is_held:
            return False
        pod.attempts += 1
        pod.in_attempt = True
        pod.missed.clear()
        return True

    def record_failure(self, key: str, now: float, awaited: AwaitedEvents) -> float | None:
        """Record a failed attempt; return the seconds until the next one at the latest.

        With no ``awaited`` events this is the backoff. Return None if the pod is unknown or held,
        or waits for events alone.
        """
        pod = self._waiting.get(key)
        if pod is None:
            return None
        pod.in_attempt, pod.failed_at, pod.awaited = False, now, awaited
        if pod.is_held:
            return None
        if not awaited or awaited & pod.missed:
            return self._backoff_left(pod, now)
        return self._unschedulable_seconds

    def wake(
        self, event: ClusterEvent, now: float, keys: Iterable[str] = ()
    ) -> Iterator[tuple[str, float]]:
        """Return the pods (of ``keys``, or all) that an event may help, and when to try them."""
        for key in keys or tuple(self._waiting):
            pod = self._waiting.get(key)
            if pod is None:
                continue
            if pod.in_attempt or pod.is_held:
                pod.missed.add(event)
            elif event in pod.awaited:
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

    def _backoff_left(self, pod: _QueuedPod, now: float) -> float:
        if not pod.attempts:
            return 0.0
        doubled = self._initial * float(1 << min(pod.attempts - 1, _MOST_DOUBLINGS))
        return max(0.0, pod.failed_at + min(doubled, self._longest) - now)


_NODE_EVENTS: Final = frozenset(
    {ClusterEvent.OWN_CHANGE, ClusterEvent.NODE_ADDED, ClusterEvent.NODE_CHANGED}
)
_RESOURCE_EVENTS: Final = _NODE_EVENTS | {ClusterEvent.POD_GONE, ClusterEvent.POD_CHANGED}
_TOPOLOGY_EVENTS: Final = _RESOURCE_EVENTS | {ClusterEvent.POD_PLACED, ClusterEvent.NODE_GONE}

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
    **dict.fromkeys((Code.HOST_PORTS, Code.TOO_MANY_PODS, Code.INSUFFICIENT), _RESOURCE_EVENTS),
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
