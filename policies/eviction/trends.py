"""Trends: the rate at which an available amount changes, and how long it lasts at that rate.

A trend is the median of the slopes between each two of the last measurements (Theil-Sen), in whole
nanos of a unit per second, so that the same measurements always yield the same result:

    measurements (s, Mi)   (0, 900)  (10, 800)  (20, 700)
    slopes                 -10, -10, -10 Mi/s
    until 500Mi            200Mi / (10Mi/s) = 20 s after the last measurement

The median is robust against single events. The start or the end of a pod is a step in the available
amount, not a slope; a least-squares line would tilt with it for as long as the measurement is kept.
With five measurements one step at either end is outvoted.

A loss can be reversed: when a leaking pod ends, all its memory is available again. Earlier
measurements then say nothing about the rest, so a measurement that is as high as any before, after
a fall, starts a new series.

One measurement has no trend. A measurement that is not newer than the last one is skipped: kubelets
measure every ten to fifteen seconds, however often they are queried. Only the last MAX_MEASUREMENTS
count, so that an old trend does not hide a recent one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from policies.eviction.observations import Observations
from policies.eviction.signals import Signal
from policies.kubernetes.quantity import NANOS

MAX_MEASUREMENTS: Final = 12
"""How many measurements of a signal are kept: two minutes of them, ten seconds apart."""

_SECOND: Final = 10**9
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class Measurement:
    """The amount available at a time, in whole units and nanoseconds since the epoch."""

    at_ns: int
    available: int


Measurements = Mapping[Signal, Sequence[Measurement]]
"""The measurements of each signal, oldest first, no two of the same time."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A change in nanos of a unit per second.

    ``measurements`` is the number of measurements that it comes from, ``since_ns`` the time of the
    first.
    """

    nanos: int
    measurements: int
    since_ns: int = 0

    @property
    def per_minute(self) -> int:
        """The change per minute, in whole units, rounded towards zero."""
        amount = abs(self.nanos) * _MINUTE // NANOS
        return amount if self.nanos >= 0 else -amount

    def lasts_ns(self, nanos: int) -> int | None:
        """Return how long ``nanos`` of a unit last, rounded down; None without a fall."""
        return None if self.nanos >= 0 else max(0, nanos) * _SECOND // -self.nanos


def extend_measurements(
    measurements: Measurements, observations: Observations, now_ns: int
) -> Measurements:
    """Add observations to the measurements; drop the signals that are no longer observed.

    An observation without a time is dated ``now_ns``.
    """
    found: dict[Signal, Sequence[Measurement]] = {}
    for signal, observation in observations.items():
        before = measurements.get(signal, ())
        at_ns = now_ns if observation.time_ns is None else observation.time_ns
        if before and at_ns <= before[-1].at_ns:
            found[signal] = before
            continue
        measurement = Measurement(at_ns, observation.available)
        kept = () if _has_recovered(before, measurement) else before
        found[signal] = [*kept, measurement][-MAX_MEASUREMENTS:]
    return found


def estimate_trend(measurements: Sequence[Measurement]) -> Trend | None:
    """Return the trend of measurements, oldest first; None for fewer than two."""
    if len(measurements) < 2:
        return None
    slopes = sorted(
        (later.available - earlier.available) * NANOS * _SECOND // (later.at_ns - earlier.at_ns)
        for earlier, later in combinations(measurements, 2)
    )
    middle = len(slopes) // 2
    median = slopes[middle] if len(slopes) % 2 else (slopes[middle - 1] + slopes[middle]) // 2
    return Trend(median, len(measurements), measurements[0].at_ns)


def _has_recovered(before: Sequence[Measurement], measurement: Measurement) -> bool:
    """Return whether a measurement after a fall is as high as any before."""
    fall = estimate_trend(before)
    if fall is None or fall.nanos >= 0:
        return False
    return measurement.available >= max(each.available for each in before)
