"""Clocks as arguments: code that waits or records times is passed a clock, tests pass their own.

A clock has two readings. `monotonic` measures intervals and never decreases; `now_ns` is the wall
clock and may jump when the host's clock is corrected.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """The clock that code reads and waits on."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never decreases."""
        ...

    def now_ns(self) -> int:
        """Return the nanoseconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed on this clock; at once if not positive."""
        ...


class SystemClock:
    """The host's clock and the running event loop's timer."""

    def monotonic(self) -> float:
        """Return the seconds since an arbitrary start; never decreases."""
        return time.monotonic()

    def now_ns(self) -> int:
        """Return the nanoseconds since the Unix epoch."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed; at once if not positive."""
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return the result of `work`; raise TimeoutError after `seconds`, once `work` has ended.

    `work` is cancelled when the time is over; a result at that same moment is returned.
    """
    working = asyncio.create_task(work)
    alarm = asyncio.create_task(clock.sleep(seconds))
    try:
        await asyncio.wait((working, alarm), return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
        working.cancel()
        await asyncio.gather(working, alarm, return_exceptions=True)
    if working.cancelled():
        raise TimeoutError(f"not within {seconds:g} s")
    return working.result()
