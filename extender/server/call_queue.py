"""The call queue, and the answers to calls for which no decision can be made.

Decisions are made one after another, and each of their steps blocks the event loop. Without a
queue, calls that arrive together would be decided in a row, and the deadline of the last ones could
not be checked in time. So while calls wait, few decisions are made in each iteration of the event
loop. A call that finds the queue empty is decided at once.

By default one decision is made per iteration. Under load an iteration takes long, because it reads
and refuses calls, and queued calls would starve when the load is highest. So the number of
decisions per iteration is adjusted until they take about as long as the rest of the iteration.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class OverloadedError(RuntimeError):
    """Too many calls are in the queue."""


def _zero_seconds() -> float:
    return 0.0


class CallQueue:
    """A FIFO queue of at most ``limit`` calls.

    ``monotonic`` returns seconds; without it there is always one decision per iteration.
    """

    def __init__(self, limit: int = 64, monotonic: Callable[[], float] = _zero_seconds) -> None:
        self._limit = limit
        self._monotonic = monotonic
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        self._batch_size = 1
        self._iteration_began = 0.0
        self._deciding = 0.0

    @property
    def waiting(self) -> int:
        """The number of calls in the queue."""
        return sum(not waiting.done() for waiting in self._waiting)

    async def acquire(self) -> None:
        """Return when the call may be decided. Raise OverloadedError."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            self._batch_size = 1
            self._begin_iteration()
            loop.call_soon(self._run_iteration)
            return
        if self.waiting >= self._limit:
            raise OverloadedError(f"{self._limit} calls are queued")
        admitted = loop.create_future()
        self._waiting.append(admitted)
        await admitted

    def record_duration(self, seconds: float) -> None:
        """Record the duration of a decision."""
        self._deciding += seconds

    def _run_iteration(self) -> None:
        self._adjust_batch_size()
        self._begin_iteration()
        passed = 0
        while self._waiting and passed < self._batch_size:
            call = self._waiting.popleft()
            if not call.done():  # a cancelled call, whose client has disconnected, is skipped
                call.set_result(None)
                passed += 1
        self._taken = passed > 0
        if passed:
            asyncio.get_running_loop().call_soon(self._run_iteration)

    def _begin_iteration(self) -> None:
        self._iteration_began = self._monotonic()
        self._deciding = 0.0

    def _adjust_batch_size(self) -> None:
        """Double the decisions per iteration if its rest took longer than them, or halve them."""
        rest = self._monotonic() - self._iteration_began - self._deciding
        if rest > self._deciding:
            self._batch_size = min(2 * self._batch_size, max(1, self._limit))
        elif 2 * rest < self._deciding:
            self._batch_size = max(1, self._batch_size // 2)
