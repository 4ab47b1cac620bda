"""Timeouts by a clock: one task serves all pending timeouts.

A timeout that does not expire costs one entry in a dict. Without pending timeouts no task sleeps on
the clock, so that a jumping virtual clock does not stop at times at which nothing is due.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from extender.kube.clock import Clock


class Deadlines:
    """Expires timeouts by ``clock``; its task ends with the last pending timeout."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[Limit, float] = {}
        self._ringing: asyncio.Task[None] | None = None
        self._next = 0.0

    def limit(self, seconds: float) -> Limit:
        """Return an ``async with`` that raises TimeoutError once ``seconds`` have passed in it."""
        return Limit(self, seconds)

    def begin(self, limit: Limit, seconds: float) -> None:
        """Expire a timeout once ``seconds`` have passed."""
        due = self._due[limit] = self._clock.monotonic() + seconds
        if self._ringing is None or due < self._next:
            self._restart(due)

    def end(self, limit: Limit) -> None:
        """Remove a timeout."""
        del self._due[limit]
        if not self._due and self._ringing is not None:
            self._ringing.cancel()
            self._ringing = None

    def _restart(self, due: float) -> None:
        if self._ringing is not None:
            self._ringing.cancel()
        self._next = due
        self._ringing = asyncio.create_task(self._ring())

    async def _ring(self) -> None:
        while True:
            await self._clock.sleep(self._next - self._clock.monotonic())
            for limit, due in self._due.items():
                if due <= self._next:
                    limit.ring()
            later = [due for due in self._due.values() if due > self._next]
            if not later:
                self._ringing = None
                return
            self._next = min(later)


class Limit:
    """An ``async with`` block with a timeout; ``has_expired`` identifies its own TimeoutError."""

    def __init__(self, deadlines: Deadlines, seconds: float) -> None:
        self._deadlines = deadlines
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    @property
    def is_over(self) -> bool:
        """Whether the timeout expired before the block ended."""
        return self._timeout.expired()

    def ring(self) -> None:
        """Cancel the block at its next await."""
        self._timeout.reschedule(0)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._deadlines.begin(self, self._seconds)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.end(self)
        await self._timeout.__aexit__(kind, error, trace)
