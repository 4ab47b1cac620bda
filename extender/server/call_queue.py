"""The call queue, and the answers to calls for which no decision can be made.

Decisions are made one after another, and each of their steps blocks the event loop. Without a
queue, calls that arrive together would be decided in a row, and the deadline of the last ones could
not be checked in time. So while calls wait, few decisions are made in each iteration of the event
loop. A call that finds the queue empty is decided at once.

By default one decision is made per iteration. Under load an iteration takes long, because it reads
and refuses calls, and queued calls would starve when the load is highest. So the number of
decisions per iteration is adjusted until they take about as long as the rest of the iteration.

Filter calls go first: each scheduling cycle waits for one, and a preempt call may take many times
as long. So a filter call waits for the decision in progress, and for other filter calls. After
eight of them that overtake a preempt call, one of these goes first.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

_FIRST: Final = "filter"
_MOST_OVERTAKING: Final = 8


class OverloadedError(RuntimeError):
    """Too many calls are in the queue."""


def _zero_seconds() -> float:
    return 0.0


class CallQueue:
    """A queue of at most ``limit`` calls; calls of the same verb are in the order of arrival.

    ``monotonic`` returns seconds; without it there is always one decision per iteration.
    """

    def __init__(self, limit: int = 64, monotonic: Callable[[], float] = _zero_seconds) -> None:
        self._limit = limit
        self._monotonic = monotonic
        self._filters: deque[asyncio.Future[None]] = deque()
        self._others: deque[asyncio.Future[None]] = deque()
        self._overtaking = 0
        self._taken = False
        self.last_used = 0.0
        """When a call arrived or was decided last, in seconds of ``monotonic``."""
        self._batch_size = 1
        self._iteration_began = 0.0
        self._deciding = 0.0

    @property
    def waiting(self) -> int:
        """The number of calls in the queue."""
        return sum(not call.done() for call in (*self._filters, *self._others))

    async def acquire(self, verb: str) -> None:
        """Return when a call of the verb may be decided. Raise OverloadedError."""
        loop = asyncio.get_running_loop()
        self.last_used = self._monotonic()
        if not self._taken:
            self._taken = True
            self._batch_size = 1
            self._begin_iteration()
            loop.call_soon(self._run_iteration)
            return
        if self.waiting >= self._limit:
            raise OverloadedError(f"{self._limit} calls are queued")
        admitted = loop.create_future()
        (self._filters if verb == _FIRST else self._others).append(admitted)
        await admitted

    def record_duration(self, seconds: float) -> None:
        """Record the duration of a decision."""
        self._deciding += seconds
        self.last_used = self._monotonic()

    def _run_iteration(self) -> None:
        self._adjust_batch_size()
        self._begin_iteration()
        passed = 0
        while passed < self._batch_size and (call := self._next_call()) is not None:
            call.set_result(None)
            passed += 1
        self._taken = passed > 0
        if passed:
            asyncio.get_running_loop().call_soon(self._run_iteration)

    def _next_call(self) -> asyncio.Future[None] | None:
        """Remove the next call from the queue and return it; None if there is none."""
        filters, others = self._filters, self._others
        while filters or others:
            overtakes = bool(filters) and self._overtaking < _MOST_OVERTAKING
            queue = filters if overtakes or not others else others
            call = queue.popleft()
            if not call.done():  # a cancelled call, whose client has disconnected, is skipped
                self._overtaking = self._overtaking + 1 if queue is filters and others else 0
                return call
        return None

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
