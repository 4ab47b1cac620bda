"""Other processes that write the same statuses, and pauses that let them write.

Between processes only the resourceVersion orders writes. A process that writes repeatedly, each
time onto its own last write, never gets a conflict, and another one, which must read again after
each conflict, is always too late. A process that has recently detected another writer therefore
pauses after each of its writes, so that the other can read and write, and reads from the server
before it writes again.

Pods that arrive in the pause share the next write, so little time is lost. Upstream's webhooks do
not do this.
"""

from __future__ import annotations

from random import Random
from typing import Final

from extender.kube.clock import Clock

REMEMBERED_SECONDS: Final = 5.0
"""How long a detected writer counts as active."""
LEAST_YIELD_SECONDS: Final = 0.01
LONGEST_YIELD_SECONDS: Final = 0.5
YIELD_FACTORS: Final = (2.0, 4.0)
"""The pause, as multiples of the duration of our own write.

Another process takes as long to read, and as long again to write.
"""


class ConcurrentWriters:
    """Tracks other writers, by the UID of the WorkloadSpread that they write."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._noticed: dict[str, float] = {}
        self._theirs_until: dict[str, float] = {}

    def record_other_write(self, uid: str) -> None:
        """Record a write by another process."""
        now = self._clock.monotonic()
        self._noticed = {each: at for each, at in self._noticed.items() if _is_recent(at, now)}
        self._noticed[uid] = now

    def has_other_writers(self, uid: str) -> bool:
        """Return whether another process has written recently."""
        noticed = self._noticed.get(uid)
        return noticed is not None and _is_recent(noticed, self._clock.monotonic())

    def record_own_write(self, uid: str, seconds: float) -> None:
        """Record our own write and its duration: if others write, pause before the next one."""
        if self.has_other_writers(uid):
            pause = seconds * self._rng.uniform(*YIELD_FACTORS)
            pause = max(LEAST_YIELD_SECONDS, min(pause, LONGEST_YIELD_SECONDS))
            self._theirs_until[uid] = self._clock.monotonic() + pause

    async def wait_for_others(self, uid: str) -> None:
        """Wait until the pause is over."""
        until = self._theirs_until.pop(uid, None)
        if until is not None:
            await self._clock.sleep(until - self._clock.monotonic())


def _is_recent(then: float, now: float) -> bool:
    return now - then < REMEMBERED_SECONDS
