"""One clock for a whole world: it stands still and is stepped, runs at any pace, or jumps.

Everything in this project that waits or stamps asks a :class:`extender.kube.clock.Clock`. A world
on a :class:`VirtualClock` lives an hour in as long as its events take:

    await clock.advance(60)          a minute passes, and all that happens in it happens
    await clock.jump()               on to the next moment for which somebody waits
    async with clock.jumping(): ...  the same, again and again, whenever nobody has anything to do
    clock.run(60)                    a minute each second, by the host's clock; 0: stand still
    with clock.standing(): ...       stand still meanwhile

Stepping and jumping are exact: sleepers wake in the order of their time, and those of one time in
the order in which they lay down; after each the others go on until all of them wait, so that what
one does at 3 s has happened at 4 s. Who waits for a socket counts as waiting: sockets and exact
virtual time do not mix. A running clock wakes sleepers as the host's timers come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Self

from extender.kube.clock import Clock, SystemClock

START_NS: Final = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z

_TURNS: Final = 50
_MOST_TURNS: Final = 5_000_000
_TOLERANCE_SECONDS: Final = 1e-6


class RestlessError(RuntimeError):
    """Tasks go on and on without ever waiting, so time cannot go on."""


class VirtualClock:
    """Begins at ``start_ns`` and runs at ``factor`` seconds for each of the host's (0: stands)."""

    def __init__(
        self, start_ns: int = START_NS, factor: float = 0.0, host: Clock | None = None
    ) -> None:
        self._host = host or SystemClock()
        self._start_ns = start_ns
        self._factor = factor
        self._now = 0.0
        self._anchor = self._host.monotonic()
        self._order = count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._lain = asyncio.Event()
        self._moving = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._standing = 0
        self._pace = 0.0

    @classmethod
    def like_the_host(cls) -> Self:
        """Return a clock that shows the host's time and runs as the host's does, until told else."""
        host = SystemClock()
        return cls(host.now_ns(), 1.0, host)

    @property
    def factor(self) -> float:
        """How many seconds pass in each of the host's."""
        return self._factor

    def monotonic(self) -> float:
        """Seconds since the clock was made."""
        if not self._factor:
            return self._now
        return self._now + (self._host.monotonic() - self._anchor) * self._factor

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._start_ns + round(self.monotonic() * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Return when ``seconds`` have passed on this clock; at once if not positive."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self.monotonic() + seconds, next(self._order), waking))
        self._lain.set()
        if self._factor and self._sleepers[0][2] is waking:
            self._set_timer()
        await waking

    async def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass; raises ValueError for a negative number, RestlessError."""
        if seconds < 0:
            raise ValueError(f"time does not go back: {seconds} s")
        async with self._stepping():
            end = self._now + seconds
            await settle()
            while self._sleepers and self._sleepers[0][0] <= end:
                await self._wake_next()
            self._now = end
            await settle()

    async def jump(self) -> bool:
        """Go on to the next moment for which anybody waits; False if nobody does."""
        async with self._stepping():
            await settle()
            while self._sleepers and self._sleepers[0][2].done():
                heappop(self._sleepers)
            if not self._sleepers:
                return False
            moment = self._sleepers[0][0]
            while self._sleepers and self._sleepers[0][0] == moment:
                await self._wake_next()
            return True

    @asynccontextmanager
    async def jumping(self) -> AsyncIterator[None]:
        """Jump whenever nobody has anything to do, until the block ends."""
        task = asyncio.create_task(self._jump_on())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def run(self, factor: float) -> None:
        """Run at a pace from now on; raises ValueError for a negative factor."""
        if factor < 0:
            raise ValueError(f"time does not go back: factor {factor}")
        self._hold()
        self._factor = factor
        self._set_timer()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Have a clock that runs stand still until the block ends, and all others like it."""
        if not self._standing:
            self._pace = self._factor
            self.run(0.0)
        self._standing += 1
        try:
            yield
        finally:
            self._standing -= 1
            if not self._standing:
                self.run(self._pace)

    async def _jump_on(self) -> None:
        while True:
            if not await self.jump():
                self._lain.clear()
                await self._lain.wait()

    @asynccontextmanager
    async def _stepping(self) -> AsyncIterator[None]:
        """Hold the clock, for one mover at a time, and let it run again as it ran."""
        async with self._moving:
            factor = self._factor
            self.run(0.0)
            try:
                yield
            finally:
                self.run(factor)

    def _hold(self) -> None:
        self._now, self._anchor = self.monotonic(), self._host.monotonic()

    async def _wake_next(self) -> None:
        moment, _, waking = heappop(self._sleepers)
        if not waking.done():  # its task may have been cancelled
            self._now = max(self._now, moment)
            waking.set_result(None)
            await settle()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._factor and self._sleepers:
            moment, _, waking = self._sleepers[0]
            left = (moment - self.monotonic()) / self._factor
            self._timer = waking.get_loop().call_later(max(left, 0.0), self._ring)

    def _ring(self) -> None:
        now = self.monotonic() + _TOLERANCE_SECONDS
        while self._sleepers and self._sleepers[0][0] <= now:
            waking = heappop(self._sleepers)[2]
            if not waking.done():
                waking.set_result(None)
        self._set_timer()


async def settle() -> None:
    """Let every task go on until all wait for time or for a socket; raises RestlessError."""
    ready = _ready(asyncio.get_running_loop())
    if ready is None:
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        return
    for _ in range(_MOST_TURNS):
        await asyncio.sleep(0)
        if not ready:
            return
    raise RestlessError("tasks go on and on without waiting, so time cannot go on")


def _ready(loop: Any) -> deque[Any] | None:
    """Return what the event loop is about to call; None if it is one that does not tell.

    asyncio has no public way to ask whether anything is left to do, and guessing a number of turns
    would make time pass under whoever needs one more.
    """
    ready = getattr(loop, "_ready", None)
    return ready if isinstance(ready, deque) else None
