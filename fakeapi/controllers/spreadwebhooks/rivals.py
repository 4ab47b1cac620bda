"""Other processes that write the same statuses: that there are any, and when it is their turn.

Between processes nothing but the resourceVersion keeps order. One that writes again and again,
each time onto what it has just written itself, is never refused, and another one, which has to
read anew whenever it is, always comes too late. So whoever has found out lately that it is not
alone leaves time after each of its writes in which another can read and write, and reads itself
before it writes again.

Pods that come in that time share the next write, so little is lost by it. Upstream's webhooks do
nothing of the kind.
"""

from __future__ import annotations

from random import Random
from typing import Final

from extender.kube.clock import Clock

REMEMBERED_SECONDS: Final = 5.0
"""How long a process that has been noticed counts as being there."""
LEAST_PAUSE_SECONDS: Final = 0.01
MOST_PAUSE_SECONDS: Final = 0.5
PAUSE_FACTORS: Final = (2.0, 4.0)
"""How long to wait by how long one's own write has taken: another takes as long to read, and as
long again to write."""


class Rivals:
    """What is known of other writers, by the UID of what they write."""

    def __init__(self, clock: Clock, rng: Random) -> None:
        self._clock = clock
        self._rng = rng
        self._noticed: dict[str, float] = {}
        self._theirs_until: dict[str, float] = {}

    def notice(self, uid: str) -> None:
        """Note that somebody else has written."""
        now = self._clock.monotonic()
        self._noticed = {each: at for each, at in self._noticed.items() if _is_lately(at, now)}
        self._noticed[uid] = now

    def around(self, uid: str) -> bool:
        """Return whether somebody else has been noticed lately."""
        noticed = self._noticed.get(uid)
        return noticed is not None and _is_lately(noticed, self._clock.monotonic())

    def wrote(self, uid: str, seconds: float) -> None:
        """Note that we have written, which took so long: now it is the others' turn, if any."""
        if self.around(uid):
            pause = seconds * self._rng.uniform(*PAUSE_FACTORS)
            pause = max(LEAST_PAUSE_SECONDS, min(pause, MOST_PAUSE_SECONDS))
            self._theirs_until[uid] = self._clock.monotonic() + pause

    async def give_way(self, uid: str) -> None:
        """Return when it is our turn again."""
        until = self._theirs_until.pop(uid, None)
        if until is not None:
            await self._clock.sleep(until - self._clock.monotonic())


def _is_lately(then: float, now: float) -> bool:
    return now - then < REMEMBERED_SECONDS
