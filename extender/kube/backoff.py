"""Delays between retries: doubling, jittered, and forgotten after a time of health.

The n-th delay in a row is drawn evenly from [base, 2 * base) with base = min(0.8 s * 2^n, 30 s):

    attempt    1        2        3        4         5          6          7 and later
    seconds    0.8-1.6  1.6-3.2  3.2-6.4  6.4-12.8  12.8-25.6  25.6-51.2  30-60

The jitter keeps a fleet of clients from returning in step after an outage. When two minutes have
passed since the last delay was handed out, the server counts as healthy and the row starts anew.
These are the numbers of client-go's reflector (tools/cache/reflector.go).
"""

from __future__ import annotations

import random

from extender.kube.clock import Clock

FIRST_SECONDS = 0.8
LONGEST_SECONDS = 30.0
HEALTHY_SECONDS = 120.0


class Backoff:
    """One row of retries against one server."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._base = FIRST_SECONDS
        self._last = clock.monotonic()

    def next_delay(self) -> float:
        """Seconds to wait before the next attempt; each call moves one step up the row."""
        now = self._clock.monotonic()
        if now - self._last > HEALTHY_SECONDS:
            self._base = FIRST_SECONDS
        self._last = now
        base, self._base = self._base, min(self._base * 2, LONGEST_SECONDS)
        return base * (1 + self._rng.random())
