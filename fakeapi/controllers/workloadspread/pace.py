"""How soon a WorkloadSpread is looked at for what its pods do.

Pods come and go by the hundred, each with an event of its own and one of the status that counts it,
and a look goes through all pods: time in which webhooks of the same process answer nobody. So a
WorkloadSpread that has just been looked at is left alone for a moment, the longer the more there
was to look at, and one look is for all that has happened by then. Upstream looks each time.

What changes how many pods are wanted where is another matter, for new pods go by it: for changes of
WorkloadSpreads and of their targets a look comes at once.
"""

from __future__ import annotations

from typing import Final

from extender.kube.clock import Clock
from extender.kube.workqueue import WorkQueue

PAUSE_SECONDS: Final = 0.1
"""How long a WorkloadSpread is left alone after a look."""

PAUSE_FACTOR: Final = 9
"""How many times as long as a look has reckoned it is left alone at least."""


class Pace:
    """When WorkloadSpreads, by their keys, may be looked at again."""

    def __init__(self, queue: WorkQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._due: dict[str, float] = {}
        self._reckoned: dict[str, float] = {}

    def soon(self, key: str) -> None:
        """Have a WorkloadSpread looked at: at once, or when its pause is over."""
        due = self._due.get(key)
        self._queue.add_after(key, 0.0 if due is None else due - self._clock.monotonic())

    def reckoned(self, key: str, seconds: float) -> None:
        """Note that a look has kept all others waiting for so long."""
        self._reckoned[key] = self._reckoned.get(key, 0.0) + seconds

    def looked(self, key: str) -> None:
        """Note that a look has ended."""
        pause = max(PAUSE_SECONDS, PAUSE_FACTOR * self._reckoned.pop(key, 0.0))
        self._due[key] = self._clock.monotonic() + pause

    def forget(self, key: str) -> None:
        """Forget a WorkloadSpread that has gone."""
        self._due.pop(key, None)
        self._reckoned.pop(key, None)
