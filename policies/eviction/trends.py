"""How fast what a node has left is changing, and how long it will last at that rate.

A trend is the median of the slopes between every two of the last readings (Theil and Sen), kept in
whole nanos of a unit in a second, so that the same readings always give the same answer:

    readings (s, Mi)   (0, 900)  (10, 800)  (20, 700)
    slopes             -10, -10, -10 Mi/s
    until 500Mi        200Mi / (10Mi/s) = 20 s after the last reading

The median is not led astray by what happens once. A pod that starts, or one that goes, is a step in
what is left, not a slope; the straight line that lies nearest to all readings would tilt with it
for as long as it remembers them. With five readings one step at either end is outvoted.

What was lost can come back: a leaking pod goes, and all that it has ever taken is there again. What
was read before says nothing of what is left then, so with a reading that is as high as any before,
after a fall, everything begins anew.

One reading has no trend. A reading that is not newer than the last one tells nothing new, and is
passed over: kubelets measure every ten to fifteen seconds, however often they are asked. Only the
last MOST_READINGS count, so that what began long ago does not hide what has begun since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from policies.eviction.observations import Observations
from policies.eviction.signals import Signal
from policies.quantity import NANOS

MOST_READINGS: Final = 12
"""How many readings of a signal are remembered: two minutes of them, ten seconds apart."""

_SECOND: Final = 10**9
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class Reading:
    """What was available at a time, in whole units and nanoseconds since the epoch."""

    at_ns: int
    available: int


Readings = Mapping[Signal, Sequence[Reading]]
"""The readings of each signal, oldest first, no two of the same time."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A change of so many nanos of a unit in a second, by ``readings`` from ``since_ns`` on."""

    nanos: int
    readings: int
    since_ns: int = 0

    @property
    def per_minute(self) -> int:
        """The change in a minute, in whole units, towards zero."""
        amount = abs(self.nanos) * _MINUTE // NANOS
        return amount if self.nanos >= 0 else -amount

    def lasts_ns(self, nanos: int) -> int | None:
        """Return how long so many nanos of a unit last, rounded down; None if nothing is lost."""
        return None if self.nanos >= 0 else max(0, nanos) * _SECOND // -self.nanos


def extended(readings: Readings, observations: Observations, now_ns: int) -> Readings:
    """Add what was observed; of a signal that is not observed any more nothing is kept.

    What has no time of its own was measured now.
    """
    found: dict[Signal, Sequence[Reading]] = {}
    for signal, observation in observations.items():
        before = readings.get(signal, ())
        at_ns = now_ns if observation.time_ns is None else observation.time_ns
        if before and at_ns <= before[-1].at_ns:
            found[signal] = before
            continue
        reading = Reading(at_ns, observation.available)
        kept = () if _has_come_back(before, reading) else before
        found[signal] = [*kept, reading][-MOST_READINGS:]
    return found


def trend(readings: Sequence[Reading]) -> Trend | None:
    """Return the trend of readings, oldest first; None for fewer than two."""
    if len(readings) < 2:
        return None
    slopes = sorted(
        (later.available - earlier.available) * NANOS * _SECOND // (later.at_ns - earlier.at_ns)
        for earlier, later in combinations(readings, 2)
    )
    middle = len(slopes) // 2
    median = slopes[middle] if len(slopes) % 2 else (slopes[middle - 1] + slopes[middle]) // 2
    return Trend(median, len(readings), readings[0].at_ns)


def _has_come_back(before: Sequence[Reading], reading: Reading) -> bool:
    """Return whether all that was lost is there again."""
    fall = trend(before)
    if fall is None or fall.nanos >= 0:
        return False
    return reading.available >= max(each.available for each in before)
