"""A clock that moves only when it is told to.

Everything in this project that waits or stamps asks a :class:`extender.kube.clock.Clock`; over the
transport without sockets, a world on a virtual clock lives an hour in as long as its events take.
Sleepers wake in the order of their time, and those of one time in the order in which they lay down;
after each the others get their turns, so that what one does at 3 s has happened at 4 s.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from itertools import count
from typing import Final

START_NS: Final = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z

_TURNS: Final = 50
"""How often others get their turn before time goes on: longer than any chain of tasks that wake
one another without waiting for time."""


class VirtualClock:
    """Stands still until :meth:`advance`; ``start_ns`` is the moment it begins at."""

    def __init__(self, start_ns: int = START_NS) -> None:
        self._start_ns = start_ns
        self._now = 0.0
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        return self._now

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._start_ns + round(self._now * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Return when the clock has been advanced by ``seconds``; at once if not positive."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self._now + seconds, next(self._order), waking))
        await waking

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass; raises ValueError for a negative number."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        end = self._now + seconds
        await settle()
        while self._sleepers and self._sleepers[0][0] <= end:
            self._now, _, waking = heappop(self._sleepers)
            if not waking.done():  # its task may have been cancelled
                waking.set_result(None)
                await settle()
        self._now = end
        await settle()


async def settle() -> None:
    """Let every task go on until all wait for time or for a socket."""
    for _ in range(_TURNS):
        await asyncio.sleep(0)
