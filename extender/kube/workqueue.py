"""A queue of keys to work on, each once.

Guarantees, those of client-go's util/workqueue:

- Fair: keys are worked on in the order in which they were added.
- Stingy: a key added several times before anybody has taken it is worked on once.
- One at a time: a key is never worked on by two workers. Added while it is being worked on, it
  comes again when that is done.
- ``add_after`` adds later; of several times for one key the earliest counts.
- ``add_rate_limited`` adds after a delay that doubles with each time (5 ms, 10 ms ... 1,000 s)
  until ``forget``; and all keys together are held to 10 a second beyond the first hundred.
- Shut down, it takes no more keys and forgets those that were to come later. Those that wait are
  still given, those that were added again while they are worked on come once more, and then every
  worker is told that it is over.

A paused queue takes keys and gives none, but to :meth:`WorkQueue.take`. Shutting down ends a pause.

With a rank, keys that wait are worked on in its order (the smallest first), and in the order of
their arrival only where ranks are equal; a key's rank is asked for when it begins to wait.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Final, Generic, TypeVar

from extender.kube.clock import Clock

FIRST_DELAY_SECONDS: Final = 0.005
LONGEST_DELAY_SECONDS: Final = 1000.0
OVERALL_RATE: Final = 10.0
OVERALL_BURST: Final = 100

_MOST_DOUBLINGS: Final = 18

K = TypeVar("K", bound=Hashable)


class ShutDownError(Exception):
    """The queue has been shut down, and there is nothing left to work on."""


class _Bucket:
    """Tokens that come at a rate, and may be taken ahead of their time, for a delay."""

    def __init__(self, clock: Clock, rate: float, burst: int) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = burst
        self._tokens = float(burst)
        self._last = clock.monotonic()

    def delay(self) -> float:
        """Take a token; gives the seconds until it has come."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= 1
        return max(0.0, -self._tokens / self._rate)


def _equal(_key: object) -> int:
    return 0


class WorkQueue(Generic[K]):
    """Keys in the order of their rank and arrival; see the module's rules.

    ``longest`` is the longest delay of a key of its own, in seconds.
    """

    def __init__(
        self,
        clock: Clock,
        longest: float = LONGEST_DELAY_SECONDS,
        rank: Callable[[K], int] = _equal,
    ) -> None:
        self._clock = clock
        self._longest = longest
        self._rank = rank
        self._waiting: dict[K, int] = {}
        self._lined_up: list[tuple[int, int, K]] = []
        self._working: dict[K, None] = {}
        self._again: dict[K, None] = {}
        self._failures: dict[K, int] = {}
        self._bucket = _Bucket(clock, OVERALL_RATE, OVERALL_BURST)
        self._order = count()
        self._later: list[tuple[float, int, K]] = []
        self._due: dict[K, float] = {}
        self._alarm: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._paused = self._shut = self._draining = False

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is worked on (what is to come later does not count)."""
        return not self._waiting and not self._working

    def add(self, key: K) -> None:
        """Have ``key`` worked on."""
        if self._shut:
            return
        if key in self._working:
            self._again[key] = None
        else:
            self._line_up(key)

    def add_after(self, key: K, seconds: float) -> None:
        """Have ``key`` worked on when ``seconds`` have passed."""
        if seconds <= 0 or self._shut:
            self.add(key)
            return
        due = self._clock.monotonic() + seconds
        if key not in self._due or due < self._due[key]:
            self._due[key] = due
            heappush(self._later, (due, next(self._order), key))
            if self._later[0][2] == key:
                self._set_alarm()

    def add_rate_limited(self, key: K) -> None:
        """Have ``key`` worked on again after as long as its failures, and all keys', ask for."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        own = FIRST_DELAY_SECONDS * 2 ** min(failures, _MOST_DOUBLINGS)
        self.add_after(key, max(min(own, self._longest), self._bucket.delay()))

    def forget(self, key: K) -> None:
        """Begin with the shortest delay again."""
        self._failures.pop(key, None)

    def cancel(self, key: K) -> bool:
        """Take back what :meth:`add_after` was to add; tells whether there was anything."""
        return self._due.pop(key, None) is not None

    def discard(self, key: K) -> None:
        """Have ``key`` worked on no more, now or later; one that is worked on is left alone."""
        self._waiting.pop(key, None)
        self._again.pop(key, None)
        self.cancel(key)

    def due_in(self, key: K) -> float | None:
        """Return the seconds until ``key`` is added, None if nobody asked for that."""
        due = self._due.get(key)
        return None if due is None else max(0.0, due - self._clock.monotonic())

    async def get(self) -> K:
        """Wait for a key and take it; :meth:`done` must follow. Raises ShutDownError."""
        while self._paused or not self._waiting:
            if self._shut:
                raise ShutDownError
            await self._next_change()
        return self._take()

    def take(self) -> K | None:
        """Take a key even though the queue is paused; None if none waits."""
        return self._take() if self._waiting else None

    def done(self, key: K) -> None:
        """Tell that a key has been worked on."""
        self._working.pop(key, None)
        if key in self._again:
            del self._again[key]
            self._line_up(key)
        elif self._draining:
            self._changed.set()

    def pause(self) -> None:
        """Return no more keys; a queue that has been shut down is not paused any more."""
        self._paused = not self._shut

    def resume(self) -> None:
        """Return keys again."""
        self._paused = False
        self._changed.set()

    def shut_down(self) -> None:
        """Take no more keys, and let workers end when none are left; whoever drains waits no more.

        It may be called more than once.
        """
        self._shut, self._paused, self._draining = True, False, False
        if self._alarm is not None:
            self._alarm.cancel()
        self._later.clear()
        self._due.clear()
        self._changed.set()

    async def drain(self) -> None:
        """Shut down, and return when all that is left has been worked on.

        Somebody must work on it; :meth:`shut_down` ends the waiting.
        """
        self.shut_down()
        self._draining = True
        while self._draining and not self.idle:
            await self._next_change()

    def close(self) -> None:
        """Shut down, and forget what is left, too."""
        self._waiting.clear()
        self._lined_up.clear()
        self._again.clear()
        self.shut_down()

    def _line_up(self, key: K) -> None:
        if key not in self._waiting:
            self._waiting[key] = place = next(self._order)
            heappush(self._lined_up, (self._rank(key), place, key))
        self._changed.set()

    async def _next_change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _take(self) -> K:
        while True:
            _, place, key = heappop(self._lined_up)
            if self._waiting.get(key) == place:
                del self._waiting[key]
                self._working[key] = None
                return key

    def _set_alarm(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.create_task(self._ring())

    async def _ring(self) -> None:
        while self._later:
            due, _, key = self._later[0]
            if self._due.get(key) != due:  # taken back, or an earlier time came to count
                heappop(self._later)
                continue
            left = due - self._clock.monotonic()
            if left > 0:
                await self._clock.sleep(left)
                continue
            heappop(self._later)
            del self._due[key]
            self.add(key)
