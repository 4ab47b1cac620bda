"""Bounds of a period as users write them: a time, or how long before now."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from policies.kubernetes.duration import parse_duration
from policies.kubernetes.integers import parse_integer

TIME_BOUND: Final = "a time before now such as 24h or 7d, or 2026-01-02T15:04:05Z"
_DAY_NS: Final = 24 * 3600 * 10**9
_MICROSECOND_NS: Final = 1000
_LONGEST_NS: Final = 100 * 366 * _DAY_NS


@dataclass(frozen=True, slots=True)
class TimeBound:
    """A time of an option: ``ago_ns`` before now, or ``at_ns`` since the epoch."""

    ago_ns: int | None = None
    at_ns: int = 0

    def resolve(self, now_ns: int) -> int:
        """Return the time in nanoseconds since the epoch."""
        return self.at_ns if self.ago_ns is None else max(0, now_ns - self.ago_ns)


def read_time_bound(text: str) -> TimeBound | None:
    """Return the bound 90m, 24h or 7d before now, or an RFC 3339 time; None if it is neither."""
    ago_ns = _parse_ago(text)
    if ago_ns is not None:
        return TimeBound(ago_ns)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or found.year < 1970:
        return None
    return TimeBound(at_ns=max(0, round(found.timestamp() * 10**6)) * _MICROSECOND_NS)


def _parse_ago(text: str) -> int | None:
    days = parse_integer(text.removesuffix("d")) if text.endswith("d") else None
    if days is None:
        try:
            found = parse_duration(text)
        except ValueError:
            return None
    else:
        found = days * _DAY_NS
    return found if 0 <= found <= _LONGEST_NS else None
