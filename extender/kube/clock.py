"""Time as an argument: whoever waits or stamps is handed a clock, and tests hand over their own.

Two readings, because they answer different questions. `monotonic` measures intervals and never
goes back; `now_ns` says which moment it is in the world and may jump when the host is corrected.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Clock(Protocol):
    """What the code may ask about time."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never decreases."""
        ...

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed on this clock; at once if not positive."""
        ...


class SystemClock:
    """The host's clock and the running event loop's timer."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary start; never decreases."""
        return time.monotonic()

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""
        return time.time_ns()

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed; at once if not positive."""
        await asyncio.sleep(seconds)


async def within(clock: Clock, seconds: float, work: Coroutine[Any, Any, T]) -> T:
    """Return what `work` gives; raises TimeoutError once `seconds` have passed and it has ended.

    It is cancelled when its time is over; what it gives in the very moment counts.
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
