"""How soon a pod event makes a WorkloadSpread sync.

Pods are created and deleted by the hundred, each with an event of its own and one of the status
that counts it, and a sync goes through all pods of the target; meanwhile webhooks of the same
process cannot answer. A WorkloadSpread that has just been synced is therefore delayed, the longer
the more time the sync took, and one sync handles all events until then. Upstream syncs for each
event.

Changes of WorkloadSpreads and of their targets, which decide the subsets of new pods, are enqueued
without delay.
"""

from __future__ import annotations

from typing import Final

from extender.kube.clock import Clock
from extender.kube.workqueue import WorkQueue

LEAST_DELAY_SECONDS: Final = 0.1
"""How long after a sync the next one starts at the earliest."""

DELAY_FACTOR: Final = 9
"""The least delay, as a multiple of the time that the sync spent calculating."""


class EnqueueDelay:
    """Enqueues WorkloadSpreads, by their keys, not before their delay has passed."""

    def __init__(self, queue: WorkQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._due: dict[str, float] = {}
        self._reckoned: dict[str, float] = {}

    def enqueue(self, key: str) -> None:
        """Enqueue a WorkloadSpread: at once, or when its delay has passed."""
        due = self._due.get(key)
        self._queue.add_after(key, 0.0 if due is None else due - self._clock.monotonic())

    def record_calculation(self, key: str, seconds: float) -> None:
        """Record for how long a sync has blocked the event loop."""
        self._reckoned[key] = self._reckoned.get(key, 0.0) + seconds

    def record_sync_end(self, key: str) -> None:
        """Record that a sync has ended."""
        pause = max(LEAST_DELAY_SECONDS, DELAY_FACTOR * self._reckoned.pop(key, 0.0))
        self._due[key] = self._clock.monotonic() + pause

    def forget(self, key: str) -> None:
        """Forget a deleted WorkloadSpread."""
        self._due.pop(key, None)
        self._reckoned.pop(key, None)
