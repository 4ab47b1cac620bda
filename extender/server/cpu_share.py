"""Work for which no call waits: at most a share of one core, and in pauses between calls.

The work is done in steps, each of which blocks the event loop, so that a call that arrives
meanwhile waits for it. After a step that took ``t`` seconds, the next one begins after
``t / share`` at the earliest, and in a pause: no call has been in progress for a tenth of a second.
Calls come in bursts, when kube-scheduler works off its queue, and most of them meet no such work.

Where there are no pauses, the work gets a tenth of its share, so that some of it is done. If calls
come at random, the share is also that of the calls that meet a step and wait for its rest: with
0.005, one in 200, so that the 99th percentile of their times stays about the same.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Final, TypeVar

from extender.kube.rest.clock import Clock
from extender.protocol.request_size import Steps

T = TypeVar("T")

PAUSE_SECONDS: Final = 0.1
_POLL_SECONDS: Final = 0.01
_WITHOUT_PAUSE: Final = 0.1


class CpuShare:
    """Runs steps within a ``share`` of one core.

    ``idle_seconds`` returns how long no call has been in progress, 0 while one is.
    """

    def __init__(self, share: float, clock: Clock, idle_seconds: Callable[[], float]) -> None:
        self._share = share
        self._clock = clock
        self._idle_seconds = idle_seconds
        self._ended = 0.0
        self._took = 0.0

    async def run(self, steps: Steps[T]) -> tuple[T, float]:
        """Return the result of all steps, and the seconds that they took without the waits."""
        total = 0.0
        with closing(steps):
            while True:
                await self._wait_turn()
                began = self._clock.monotonic()
                try:
                    next(steps)
                except StopIteration as end:
                    result: T = end.value
                    return result, total + self._spend_since(began)
                total += self._spend_since(began)

    async def _wait_turn(self) -> None:
        while not self._has_turn():
            left = self._next_turn(self._share) - self._clock.monotonic()
            await self._clock.sleep(max(_POLL_SECONDS, left))

    def _has_turn(self) -> bool:
        is_pause = self._idle_seconds() >= PAUSE_SECONDS
        share = self._share if is_pause else self._share * _WITHOUT_PAUSE
        return self._clock.monotonic() >= self._next_turn(share)

    def _next_turn(self, share: float) -> float:
        return self._ended + self._took / share - self._took

    def _spend_since(self, began: float) -> float:
        self._ended = self._clock.monotonic()
        self._took = self._ended - began
        return self._took
