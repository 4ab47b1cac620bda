"""Calls take turns: while others wait, one decision is made in each round of the event loop.

Decisions are made at a stroke and hold everything else up. Without turns, calls that arrive
together would be decided in a row, and those at the end could not be told how long they have been
waiting. A call that meets nobody goes on at once, without a round.
"""

from __future__ import annotations

import asyncio
from collections import deque


class OverloadedError(RuntimeError):
    """Too many calls wait for their turn already."""


class Turns:
    """At most ``limit`` calls wait, the first to come first."""

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._taken = False

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return sum(not waiting.done() for waiting in self._waiting)

    async def take(self) -> None:
        """Return when it is one's turn. Raises OverloadedError."""
        loop = asyncio.get_running_loop()
        if not self._taken:
            self._taken = True
            loop.call_soon(self._pass_on)
            return
        if self.waiting >= self._limit:
            raise OverloadedError(f"{self._limit} calls wait already")
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _pass_on(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():  # a client that has gone away gives up its turn
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._pass_on)
                return
        self._taken = False
