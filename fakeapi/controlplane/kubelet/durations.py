"""Durations as people write them (``1m30s``, or a number of seconds) and as Go prints them."""

from __future__ import annotations

import re
from typing import Final

SECOND: Final = 10**9
MINUTE: Final = 60 * SECOND

_MOST_SECONDS: Final = 10**9
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": MINUTE,
    "h": 60 * MINUTE,
}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)", re.ASCII)


def parse_duration(text: str | float) -> int:
    """Give a duration in nanoseconds. Raises ValueError if it is none, or negative."""
    if isinstance(text, int | float):
        if not 0 <= text <= _MOST_SECONDS:
            raise ValueError(f"expected 0 to {_MOST_SECONDS} seconds, got {text}")
        return round(text * SECOND)
    total, at = 0, 0
    for part in _PART.finditer(text):
        if part.start() != at:
            break
        total, at = total + round(float(part[1]) * _UNITS[part[2]]), part.end()
    if not text or at != len(text):
        raise ValueError(f"expected a duration such as 1m30s, got {text!r}")
    return total


def spell_seconds(nanoseconds: int) -> str:
    """Write whole seconds as Go does: ``10s``, ``1m20s``, ``5m0s``."""
    minutes, seconds = divmod(nanoseconds // SECOND, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"
