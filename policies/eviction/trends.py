"""How fast what a node has left is changing, and how long it will last at that rate.

A trend is the slope of the straight line that lies nearest to the last readings (least squares),
kept as a ratio of whole numbers, so that the same readings always give the same answer:

    readings (s, Mi)   (0, 900)  (10, 800)  (20, 700)
    trend              -100Mi in 10 s
    until 500Mi        200Mi / (100Mi in 10 s) = 20 s after the last reading

One reading has no trend. A reading that is not newer than the last one tells nothing new, and is
passed over: kubelets measure every ten to fifteen seconds, however often they are asked. Only the
last MOST_READINGS count, so that what began long ago does not hide what has begun since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from policies.eviction.observations import Observations
from policies.eviction.signals import Signal

MOST_READINGS: Final = 12
"""How many readings of a signal are remembered: two minutes of them, ten seconds apart."""

_MINUTE: Final = 60 * 10**9


@dataclass(frozen=True, slots=True)
class Reading:
    """What was available at a time, in whole units and nanoseconds since the epoch."""

    at_ns: int
    available: int


Readings = Mapping[Signal, Sequence[Reading]]
"""The readings of each signal, oldest first, no two of the same time."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A change of ``change`` units in each ``over_ns`` nanoseconds, by so many ``readings``."""

    change: int
    over_ns: int
    readings: int

    @property
    def per_minute(self) -> int:
        """The change in a minute, in whole units, towards zero."""
        amount = abs(self.change) * _MINUTE // self.over_ns
        return amount if self.change >= 0 else -amount

    def lasts_ns(self, amount: int, parts: int = 1) -> int | None:
        """Give how long ``amount / parts`` units last, rounded down; None if nothing is lost."""
        if self.change >= 0:
            return None
        return max(0, amount) * self.over_ns // (-self.change * parts)


def extended(readings: Readings, observations: Observations, now_ns: int) -> Readings:
    """Add what was observed; of a signal that is not observed any more nothing is kept.

    What has no time of its own was measured now.
    """
    found = {}
    for signal, observation in observations.items():
        before = readings.get(signal, ())
        at_ns = now_ns if observation.time_ns is None else observation.time_ns
        newer = not before or at_ns > before[-1].at_ns
        reading = Reading(at_ns, observation.available)
        found[signal] = [*before, reading][-MOST_READINGS:] if newer else before
    return found


def trend(readings: Sequence[Reading]) -> Trend | None:
    """Give the trend of readings, oldest first; None for fewer than two."""
    count = len(readings)
    if count < 2:
        return None
    begin = readings[0].at_ns
    times = [each.at_ns - begin for each in readings]
    amounts = [each.available for each in readings]
    products = sum(time * amount for time, amount in zip(times, amounts, strict=True))
    spread = count * sum(time * time for time in times) - sum(times) ** 2
    return Trend(count * products - sum(times) * sum(amounts), spread, count)
