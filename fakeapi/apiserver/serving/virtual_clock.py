"""Virtual clock of a world: paused and stepped, running at a factor, or jumping between timers.

All code in this project that waits or takes timestamps uses a
:class:`extender.kube.rest.clock.Clock`. On a :class:`VirtualClock` an hour takes as long as the
work that is due in it:

    await clock.advance(60)          let a minute pass, with all work that is due in it
    await clock.jump()               go to the next time for which a task sleeps
    async with clock.jumping(): ...  jump repeatedly, whenever all tasks wait
    clock.run(60)                    one minute per second of the host's clock; 0: pause
    with clock.paused(): ...         pause until the block ends

Stepping and jumping are exact. Sleepers wake in the order of their due times, and sleepers of the
same time in the order in which they began to sleep. After each wake-up all tasks run until all of
them wait, so that work due at 3 s is done before 4 s. A task that waits for a socket counts as
waiting: sockets and exact virtual time do not mix. A running clock wakes sleepers by timers of the
event loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Self

from extender.kube.rest.clock import Clock, SystemClock

START_NS: Final = 1_767_225_600 * 10**9  # 2026-01-01T00:00:00Z
END_NS: Final = 2**63 - 1  # 2262-04-11T23:47:16Z, the last time of Go's UnixNano

_IDLE_ITERATIONS: Final = 50
_MAX_IDLE_ITERATIONS: Final = 5_000_000
_TOLERANCE_SECONDS: Final = 1e-6


class NeverIdleError(RuntimeError):
    """Tasks keep running without ever waiting, so virtual time cannot advance."""


class VirtualClock:
    """A clock that runs ``factor`` times as fast as the host's (0: paused).

    ``start_ns`` is its start, in nanoseconds since the Unix epoch.
    """

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
        self._sleeper_added = asyncio.Event()
        self._moving = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._pauses = 0
        self._factor_before_pause = 0.0

    @classmethod
    def from_host(cls) -> Self:
        """Return a clock that starts at the host's time and runs at the host's speed."""
        host = SystemClock()
        return cls(host.now_ns(), 1.0, host)

    @property
    def factor(self) -> float:
        """Virtual seconds per second of the host's clock; 0 while paused."""
        return self._factor

    def monotonic(self) -> float:
        """Seconds since the clock was created."""
        if not self._factor:
            return self._now
        return self._now + (self._host.monotonic() - self._anchor) * self._factor

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return self._start_ns + round(self.monotonic() * 10**9)

    async def sleep(self, seconds: float) -> None:
        """Sleep for ``seconds`` on this clock; return at once if not positive."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heappush(self._sleepers, (self.monotonic() + seconds, next(self._order), waking))
        self._sleeper_added.set()
        if self._factor and self._sleepers[0][2] is waking:
            self._set_timer()
        await waking

    async def advance(self, seconds: float) -> None:
        """Advance by ``seconds``; raises ValueError, NeverIdleError.

        The number must not be negative, and the clock cannot pass ``END_NS``.
        """
        if seconds < 0:
            raise ValueError(f"the clock cannot move back: {seconds} s")
        left = (END_NS - self.now_ns()) // 10**9
        if seconds > left:
            raise ValueError(f"expected at most {left} s, up to the year 2262, found {seconds} s")
        async with self._stepping():
            end = self._now + seconds
            await wait_idle()
            while self._sleepers and self._sleepers[0][0] <= end:
                await self._wake_next()
            self._now = end
            await wait_idle()

    async def jump(self) -> bool:
        """Advance to the next time for which a task sleeps; return False if no task sleeps."""
        async with self._stepping():
            await wait_idle()
            while self._sleepers and self._sleepers[0][2].done():
                heappop(self._sleepers)
            if not self._sleepers:
                return False
            due = self._sleepers[0][0]
            while self._sleepers and self._sleepers[0][0] == due:
                await self._wake_next()
            return True

    @asynccontextmanager
    async def jumping(self) -> AsyncIterator[None]:
        """Jump whenever all tasks wait, until the block ends."""
        task = asyncio.create_task(self._jump_repeatedly())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def run(self, factor: float) -> None:
        """Run at ``factor`` from now on; raises ValueError for a negative factor."""
        if factor < 0:
            raise ValueError(f"the clock cannot move back: factor {factor}")
        self._capture_now()
        self._factor = factor
        self._set_timer()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the clock until the block ends, and every other such block that is open."""
        if not self._pauses:
            self._factor_before_pause = self._factor
            self.run(0.0)
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self.run(self._factor_before_pause)

    async def _jump_repeatedly(self) -> None:
        while True:
            if not await self.jump():
                self._sleeper_added.clear()
                await self._sleeper_added.wait()

    @asynccontextmanager
    async def _stepping(self) -> AsyncIterator[None]:
        """Pause the clock for one caller at a time, then restore its factor."""
        async with self._moving:
            factor = self._factor
            self.run(0.0)
            try:
                yield
            finally:
                self.run(factor)

    def _capture_now(self) -> None:
        self._now, self._anchor = self.monotonic(), self._host.monotonic()

    async def _wake_next(self) -> None:
        due, _, waking = heappop(self._sleepers)
        if not waking.done():  # its task may have been cancelled
            self._now = max(self._now, due)
            waking.set_result(None)
            await wait_idle()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._factor and self._sleepers:
            due, _, waking = self._sleepers[0]
            left = (due - self.monotonic()) / self._factor
            self._timer = waking.get_loop().call_later(max(left, 0.0), self._wake_due)

    def _wake_due(self) -> None:
        now = self.monotonic() + _TOLERANCE_SECONDS
        while self._sleepers and self._sleepers[0][0] <= now:
            waking = heappop(self._sleepers)[2]
            if not waking.done():
                waking.set_result(None)
        self._set_timer()


async def wait_idle() -> None:
    """Run all tasks until each waits for time or a socket; raises NeverIdleError."""
    ready = _ready_callbacks(asyncio.get_running_loop())
    if ready is None:
        for _ in range(_IDLE_ITERATIONS):
            await asyncio.sleep(0)
        return
    for _ in range(_MAX_IDLE_ITERATIONS):
        await asyncio.sleep(0)
        if not ready:
            return
    raise NeverIdleError("tasks run without waiting, so the clock cannot advance")


def _ready_callbacks(loop: Any) -> deque[Any] | None:
    """Return the event loop's queue of ready callbacks, or None if the loop has no such attribute.

    asyncio has no public way to find out whether callbacks are left. With a fixed number of
    iterations instead, time could advance before a task that needs one more iteration has run.
    """
    ready = getattr(loop, "_ready", None)
    return ready if isinstance(ready, deque) else None
