"""Distributions of durations that can be merged: counts in buckets of equal ratio.

A quantile is at most 1 % off, independent of the number of durations. The merged distribution of
two parts is that of the whole, in any order, since buckets are counted by integers.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, exp, log
from typing import Final

from msgspec import Struct, field

_SECOND_NS: Final = 10**9
_LOG_RATIO: Final = log(1.02)
_ZERO: Final = -(10**6)
"""The bucket of durations of less than a millisecond."""
_LEAST_SECONDS: Final = 0.001


class Distribution(Struct, rename="camel"):
    """Durations; ``buckets`` are their numbers by the bucket's index."""

    buckets: dict[int, int] = field(default_factory=dict)

    def add(self, duration_ns: int) -> None:
        """Add a duration in nanoseconds."""
        bucket = _bucket(duration_ns / _SECOND_NS)
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    @property
    def count(self) -> int:
        """The number of durations."""
        return sum(self.buckets.values())

    def quantile(self, fraction: float) -> float | None:
        """Return a quantile in seconds (0.5: the median); None without durations."""
        needed = max(1, ceil(fraction * self.count))
        for bucket in sorted(self.buckets):
            needed -= self.buckets[bucket]
            if needed <= 0:
                return _middle(bucket)
        return None


def merge_distributions(parts: Iterable[Distribution]) -> Distribution:
    """Return the distribution of the durations of all parts."""
    merged: dict[int, int] = {}
    for part in parts:
        for bucket, count in part.buckets.items():
            merged[bucket] = merged.get(bucket, 0) + count
    return Distribution(dict(sorted(merged.items())))


def _bucket(seconds: float) -> int:
    return _ZERO if seconds < _LEAST_SECONDS else round(log(seconds) / _LOG_RATIO)


def _middle(bucket: int) -> float:
    return 0.0 if bucket == _ZERO else exp(bucket * _LOG_RATIO)
