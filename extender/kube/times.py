"""Times as Kubernetes writes them (RFC 3339), as nanoseconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

NS_PER_SECOND: Final = 10**9

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


@lru_cache(maxsize=8192)
def parse_time(timestamp: str | None) -> int:
    """Parse an RFC 3339 timestamp to nanoseconds since the epoch; 0 if absent or malformed."""
    if not timestamp:
        return 0
    try:
        found = datetime.fromisoformat(timestamp)
    except ValueError:
        return 0
    if found.tzinfo is None:
        return 0
    return (found - _EPOCH) // _MICROSECOND * 1000
