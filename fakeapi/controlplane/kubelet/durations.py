"""Durations in scripts: ``1m30s``, or a number of seconds."""

from __future__ import annotations

from typing import Final

from policies.eviction import durations

SECOND: Final = 10**9

_MOST_SECONDS: Final = 10**9


def parse_duration(text: str | float) -> int:
    """Parse a duration to nanoseconds. Raise ValueError if it is malformed or negative."""
    if isinstance(text, int | float):
        if not 0 <= text <= _MOST_SECONDS:
            raise ValueError(f"expected 0 to {_MOST_SECONDS} seconds, got {text}")
        return round(text * SECOND)
    try:
        nanoseconds = durations.parse_duration(text)
    except ValueError:
        nanoseconds = -1
    if nanoseconds < 0:
        raise ValueError(f"expected a duration such as 1m30s, got {text!r}")
    return nanoseconds
