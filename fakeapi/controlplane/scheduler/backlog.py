"""Who waits to be scheduled: for how long, and for what.

    it was refused, and knows what may help     until such an event, or 5 minutes
    something went wrong                        until its backoff is over
    woken while its backoff runs                until that is over
    woken while it was being scheduled          as if it had been woken right after
    it preempts (held)                          until its victims have been told to go

The backoff is 1 s after the first attempt and doubles up to 10 s. What is to be tried at once waits
in a work queue in the order of priority; this module only says when a pod goes there. (kube-
scheduler looks after those that wait every second, and every 30 s after the 5 minutes; here the
time is exact. It does not, as upstream may since 1.33, take from the backoff when nobody else
waits.)

Pure: time is an argument, in seconds. Source: pkg/scheduler/backend/queue/scheduling_queue.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final

UNSCHEDULABLE_SECONDS: Final = 300.0

_MOST_DOUBLINGS: Final = 30


class Event(Enum):
    """What happens in a cluster that may let a pod fit."""

    NODE_ADDED = auto()
    NODE_CHANGED = auto()
    NODE_GONE = auto()
    POD_PLACED = auto()
    POD_CHANGED = auto()
    POD_GONE = auto()
    STORAGE_CHANGED = auto()
    OWN_CHANGE = auto()


EVERYTHING: Final = frozenset(Event)

Awaited = frozenset[Event]


@dataclass(slots=True)
class _Waiting:
    """A pod that waits; ``awaited`` is what may help it since its last attempt."""

    attempts: int = 0
    failed_at: float = 0.0
    awaited: Awaited = frozenset()
    tried: bool = False
    held: bool = False
    missed: set[Event] = field(default_factory=set)


class Backlog:
    """The pods that are not placed yet, by key."""

    def __init__(self, initial_seconds: float = 1.0, longest_seconds: float = 10.0) -> None:
        self._initial = initial_seconds
        self._longest = longest_seconds
        self._waiting: dict[str, _Waiting] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._waiting

    def __len__(self) -> int:
        return len(self._waiting)

    def enter(self, key: str) -> None:
        """Take a pod that has never been tried."""
        self._waiting[key] = _Waiting()

    def forget(self, key: str) -> None:
        """Drop a pod that is placed, or gone."""
        self._waiting.pop(key, None)

    def begin(self, key: str) -> bool:
        """Note that a pod is being tried; False if it must not be, or is not known."""
        pod = self._waiting.get(key)
        if pod is None or pod.held:
            return False
        pod.attempts += 1
        pod.tried = True
        pod.missed.clear()
        return True

    def fail(self, key: str, now: float, awaited: Awaited) -> float | None:
        """Note that a try has failed; gives the seconds until the next, whatever happens.

        Without anything ``awaited`` it comes after the backoff. None: the pod is not known.
        """
        pod = self._waiting.get(key)
        if pod is None:
            return None
        pod.tried, pod.failed_at, pod.awaited = False, now, awaited
        if pod.held:
            return None
        if not awaited or awaited & pod.missed:
            return self._left(pod, now)
        return UNSCHEDULABLE_SECONDS

    def wake(
        self, event: Event, now: float, keys: Iterable[str] = ()
    ) -> Iterator[tuple[str, float]]:
        """Return the pods (of ``keys``, or of all) that an event may help, and when to try them."""
        for key in keys or tuple(self._waiting):
            pod = self._waiting.get(key)
            if pod is None:
                continue
            if pod.tried or pod.held:
                pod.missed.add(event)
            elif event in pod.awaited:
                yield key, self._left(pod, now)

    def hold(self, key: str) -> None:
        """Have a pod not tried until it is released."""
        pod = self._waiting.get(key)
        if pod is not None:
            pod.held = True

    def release(self, key: str, now: float, *, failed: bool) -> float | None:
        """Let a pod be tried again; gives the seconds until then, None if it is not known."""
        pod = self._waiting.get(key)
        if pod is None:
            return None
        pod.held = False
        if failed:
            return 0.0
        return self._left(pod, now) if pod.missed & pod.awaited else UNSCHEDULABLE_SECONDS

    def _left(self, pod: _Waiting, now: float) -> float:
        if not pod.attempts:
            return 0.0
        doubled = self._initial * float(1 << min(pod.attempts - 1, _MOST_DOUBLINGS))
        return max(0.0, pod.failed_at + min(doubled, self._longest) - now)
