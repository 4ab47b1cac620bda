"""Calls take turns: while others wait, few decisions are made in each round of the event loop.

Decisions are made at a stroke and hold everything else up. Without turns, calls that arrive
together would be decided in a row, and those at the end could not be told how long they have been
waiting. A call that meets nobody goes on at once, without a round.

As a rule there is one decision in a round. Where many calls come in, a round is long for reading
and refusing them, and those that wait would starve just when there is the most to do; so as many
are made as take about as long as the rest of the round.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class OverloadedError(RuntimeError):
    """Too many calls wait for their turn already."""


def _timeless() -> float:
    return 0.0


class Turns:
    """At most ``limit`` calls wait, the first to come first.

    ``monotonic`` gives seconds; without it there is one decision in each round, come what may.
    """

    def __init__(self, limit: int = 64, monotonic: Callable[[], float] = _timeless) -> None:
        self._limit = limit
        self._monotonic = monotonic
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False
        self._together = 1
        self._round_began = 0.0
        self._deciding = 0.0

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return sum(not waiting.done() for waiting in self._waiting)

    async def take(self) -> None:
        """Return when it is one's turn. Raises OverloadedError."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            self._together = 1
            self._begin_round()
            loop.call_soon(self._pass_on)
            return
        if self.waiting >= self._limit:
            raise OverloadedError(f"{self._limit} calls wait already")
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def spent(self, seconds: float) -> None:
        """Take note of how long somebody whose turn it was has decided."""
        self._deciding += seconds

    def _pass_on(self) -> None:
        self._weigh()
        self._begin_round()
        passed = 0
        while self._waiting and passed < self._together:
            turn = self._waiting.popleft()
            if not turn.done():  # a client that has gone away gives up its turn
                turn.set_result(None)
                passed += 1
        self._taken = passed > 0
        if passed:
            asyncio.get_running_loop().call_soon(self._pass_on)

    def _begin_round(self) -> None:
        self._round_began = self._monotonic()
        self._deciding = 0.0

    def _weigh(self) -> None:
        """Make more decisions at once if the rest of the round took longer, and fewer again."""
        rest = self._monotonic() - self._round_began - self._deciding
        if rest > self._deciding:
            self._together = min(2 * self._together, max(1, self._limit))
        elif 2 * rest < self._deciding:
            self._together = max(1, self._together // 2)
