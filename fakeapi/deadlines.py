"""Timeouts by a clock: one task serves all pending timeouts.

A timeout that does not expire costs one entry in a dict. Without pending timeouts no task sleeps on
the clock, so that a jumping virtual clock does not stop at times at which nothing is due.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from extender.kube.clock import Clock


class TimeoutScheduler:
    """Expires timeouts by ``clock``; its task ends with the last pending timeout."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: dict[ScheduledTimeout, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0

    def timeout(self, seconds: float) -> ScheduledTimeout:
        """Return an ``async with`` that raises TimeoutError once ``seconds`` have passed in it."""
        return ScheduledTimeout(self, seconds)

    def start(self, timeout: ScheduledTimeout, seconds: float) -> None:
        """Expire a timeout once ``seconds`` have passed."""
        due = self._due[timeout] = self._clock.monotonic() + seconds
        if self._task is None or due < self._next:
            self._restart(due)

    def remove(self, timeout: ScheduledTimeout) -> None:
        """Remove a timeout."""
        del self._due[timeout]
        if not self._due and self._task is not None:
            self._task.cancel()
            self._task = None

    def _restart(self, due: float) -> None:
        if self._task is not None:
            self._task.cancel()
        self._next = due
        self._task = asyncio.create_task(self._expire_due())

    async def _expire_due(self) -> None:
        while True:
            await self._clock.sleep(self._next - self._clock.monotonic())
            for limit, due in self._due.items():
                if due <= self._next:
                    limit.expire()
            later = [due for due in self._due.values() if due > self._next]
            if not later:
                self._task = None
                return
            self._next = min(later)


class ScheduledTimeout:
    """An ``async with`` block with a timeout; ``has_expired`` identifies its own TimeoutError."""

    def __init__(self, scheduler: TimeoutScheduler, seconds: float) -> None:
        self._deadlines = scheduler
        self._seconds = seconds
        self._timeout = asyncio.timeout(None)

    @property
    def has_expired(self) -> bool:
        """Whether the timeout expired before the block ended."""
        return self._timeout.expired()

    def expire(self) -> None:
        """Cancel the block at its next await."""
        self._timeout.reschedule(0)

    async def __aenter__(self) -> Self:
        await self._timeout.__aenter__()
        self._deadlines.start(self, self._seconds)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deadlines.remove(self)
        await self._timeout.__aexit__(kind, error, trace)
