"""How soon a WorkloadSpread is looked at for what its pods do.

Pods come and go by the hundred, each with an event of its own and one of the status that counts it,
and a look goes through all pods: time in which webhooks of the same process answer nobody. So a
WorkloadSpread that has just been looked at is left alone for a moment, and one look is for
all that has happened by then. Upstream looks each time.

What changes how many pods are wanted where is another matter, for new pods go by it: for changes of
WorkloadSpreads and of their targets a look comes at once.
"""

from __future__ import annotations

from typing import Final

from extender.kube.clock import Clock
from extender.kube.workqueue import WorkQueue

PAUSE_SECONDS: Final = 0.1
"""How long a WorkloadSpread is left alone after a look."""


class Pace:
    """When WorkloadSpreads, by their keys, have been looked at."""

    def __init__(self, queue: WorkQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._looked: dict[str, float] = {}

    def soon(self, key: str) -> None:
        """Have a WorkloadSpread looked at: at once, or when its pause is over."""
        looked = self._looked.get(key)
        rest = 0.0 if looked is None else looked + PAUSE_SECONDS - self._clock.monotonic()
        self._queue.add_after(key, rest)

    def looked(self, key: str) -> None:
        """Note that a look has ended."""
        self._looked[key] = self._clock.monotonic()

    def forget(self, key: str) -> None:
        """Forget a WorkloadSpread that has gone."""
        self._looked.pop(key, None)
