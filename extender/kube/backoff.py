"""Backoff of list and watch requests: exponential, with jitter, reset after a healthy period.

The n-th delay in a row is uniform in [base, 2 * base) with base = min(0.8 s * 2^n, 30 s):

    attempt    1        2        3        4         5          6          7 and later
    seconds    0.8-1.6  1.6-3.2  3.2-6.4  6.4-12.8  12.8-25.6  25.6-51.2  30-60

The jitter prevents many clients from returning at the same time after an outage. After two minutes
without a new delay, the server counts as healthy and the backoff starts again. The numbers are
those of client-go's reflector (tools/cache/reflector.go).
"""

from __future__ import annotations

import random

from extender.kube.clock import Clock

INITIAL_BACKOFF_SECONDS = 0.8
MAX_BACKOFF_SECONDS = 30.0
BACKOFF_RESET_SECONDS = 120.0


class ReflectorBackoff:
    """The backoff of retries against one server."""

    def __init__(self, clock: Clock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._base = INITIAL_BACKOFF_SECONDS
        self._last = clock.monotonic()

    def next_delay(self) -> float:
        """Return the delay before the next attempt, in seconds, and increase the backoff."""
        now = self._clock.monotonic()
        if now - self._last > BACKOFF_RESET_SECONDS:
            self._base = INITIAL_BACKOFF_SECONDS
        self._last = now
        base, self._base = self._base, min(self._base * 2, MAX_BACKOFF_SECONDS)
        return base * (1 + self._rng.random())
