"""A work queue: a queue of keys without duplicates.

Guarantees, as client-go's util/workqueue:

- Fair: keys are processed in the order in which they were added.
- Stingy: a key that is added several times before it is processed is processed once.
- One at a time: two workers never process the same key. A key that is added while it is processed
  is processed again afterwards.
- ``add_after`` adds later; of several times for one key the earliest counts.
- ``add_rate_limited`` adds after a delay that doubles with each call (5 ms, 10 ms ... 1,000 s)
  until ``forget``; all keys together are limited to 10 a second beyond the first hundred.
- After a shutdown, the queue accepts no keys and drops delayed ones. Waiting keys are still
  returned, keys that were added again while being processed are returned once more, and then every
  worker receives ShutDownError.

A paused queue accepts keys and returns none, except by :meth:`WorkQueue.take`. A shutdown ends a
pause.

With a rank, waiting keys are processed in its order (the smallest first), and in the order of
arrival where ranks are equal; a key's rank is read when it begins to wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from extender.kube.rest.clock import Clock

BASE_DELAY_SECONDS: Final = 0.005
MAX_DELAY_SECONDS: Final = 1000.0
OVERALL_RATE: Final = 10.0
OVERALL_BURST: Final = 100

_MAX_DOUBLINGS: Final = 18

K = TypeVar("K", bound=Hashable)


class ShutDownError(Exception):
    """The queue has been shut down, and no keys are left."""


class _TokenBucket:
    """A token bucket whose tokens can be reserved in advance, at a delay."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._last = clock.monotonic()

    def delay(self) -> float:
        """Take a token; return the seconds until it is available."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)


def _no_rank(_key: object) -> int:
    return 0


class WorkQueue(Generic[K]):
    """Keys in the order of their rank and arrival; see the module's rules.

    ``max_delay`` is the maximum delay of a single key, in seconds.
    """

    def __init__(
        self,
        clock: Clock,
        max_delay: float = MAX_DELAY_SECONDS,
        rank: Callable[[K], int] = _no_rank,
    ) -> None:
        self._clock = clock
        self._max_delay = max_delay
        self._rank = rank
        self._waiting: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._processing: dict[K, None] = {}
        self._again: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._bucket = _TokenBucket(clock, OVERALL_RATE, OVERALL_BURST)
        self._order = count()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._timer: asyncio.Task[None] | None = None
        self._getters: deque[asyncio.Future[None]] = deque()
        self._idle = asyncio.Event()
        self._paused = self._shut = self._draining = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether no key waits and none is processed (delayed keys do not count)."""
        return not self._waiting and not self._processing

    def add(self, key: K) -> None:
        """Enqueue ``key``."""
        if self._shut:
            return
        if key in self._processing:
            self._again[key] = None
        else:
            self._push(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Enqueue ``key`` after ``seconds``."""
        if seconds <= 0 or self._shut:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key not in self._due or due < self._due[key]:
            self._due[key] = due
            heappush(self._later, (due, next(self._order), key))
            if self._later[0][2] == key:
                self._set_timer()

    def add_rate_limited(self, key: K) -> None:
        """Enqueue ``key`` again, after the delay of its failures and of the overall rate limit."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = BASE_DELAY_SECONDS * 2 ** min(failures, _MAX_DOUBLINGS)
        self.add_after(key, max(min(own, self._max_delay), self._bucket.delay()))

    def forget(self, key: K) -> None:
        """Reset the delay of ``key``."""
        self._failures.pop(key, None)

    def cancel(self, key: K) -> bool:
        """Cancel the delayed add of ``key``; return whether there was one."""
        return self._due.pop(key, None) is not None

    def discard(self, key: K) -> None:
        """Remove ``key`` from the queue, delayed or not, unless it is being processed."""
        self._waiting.pop(key, None)
        self._again.pop(key, None)
        self.cancel(key)

    def due_in(self, key: K) -> float | None:
        """Return the seconds until ``key`` is added; None without a delayed add."""
        due = self._due.get(key)
        return None if due is None else max(0.0, due - self._clock.monotonic())

    async def get(self) -> K:
        """Wait for a key and take it; :meth:`done` must follow. Raise ShutDownError."""
        while self._paused or not self._waiting:
            if self._shut:
                raise ShutDownError
            await self._wait_for_key()
        return self._take()

    def take(self) -> K | None:
        """Take a key even though the queue is paused; return None if none waits."""
        return self._take() if self._waiting else None

    def done(self, key: K) -> None:
        """Mark a key as processed."""
        self._processing.pop(key, None)
        if key in self._again:
            del self._again[key]
            self._push(key)
        elif self.idle:
            self._idle.set()

    def pause(self) -> None:
        """Return no more keys; no effect after a shutdown."""
        self._paused = not self._shut

    def resume(self) -> None:
        """Return keys again."""
        self._paused = False
        self._wake_all()

    def shut_down(self) -> None:
        """Accept no more keys, and let workers end when none are left; end a drain.

        It may be called more than once.
        """
        self._shut, self._paused, self._draining = True, False, False
        if self._timer is not None:
            self._timer.cancel()
        self._later.clear()
        self._due.clear()
        self._idle.set()
        self._wake_all()

    async def drain(self) -> None:
        """Shut down, and return when all remaining keys have been processed.

        Workers must be running; :meth:`shut_down` ends the wait.
        """
        self.shut_down()
        self._draining = True
        while self._draining and not self.idle:
            self._idle.clear()
            await self._idle.wait()

    def close(self) -> None:
        """Shut down, and drop the remaining keys."""
        self._waiting.clear()
        self._heap.clear()
        self._again.clear()
        self.shut_down()

    def _push(self, key: K) -> None:
        if key not in self._waiting:
            self._waiting[key] = place = next(self._order)
            heappush(self._heap, (self._rank(key), place, key))
            self._wake_one()

    async def _wait_for_key(self) -> None:
        getter = asyncio.get_running_loop().create_future()
        self._getters.append(getter)
        try:
            await getter
        except asyncio.CancelledError:
            if not getter.cancelled():
                self._wake_one()  # the key is left to another worker
            raise

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._getters:
            self._wake_one()

    def _take(self) -> K:
        while True:
            _, place, key = heappop(self._heap)
            if self._waiting.get(key) == place:
                del self._waiting[key]
                self._processing[key] = None
                return key

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.create_task(self._run_timer())

    async def _run_timer(self) -> None:
        while self._later:
            due, _, key = self._later[0]
            if self._due.get(key) != due:  # cancelled, or replaced by an earlier time
                heappop(self._later)
                continue
            left = due - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            heappop(self._later)
            del self._due[key]
            self.add(key)
