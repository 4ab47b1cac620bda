"""Calls in batches of doubling size, until one fails.

The calls of a batch run concurrently; the next batch is twice as large. If all would fail for one
reason (a quota, for example), few are made in vain: 100 pods under a quota of 10 take batches of 1,
2, 4 and 8; in the last one five calls fail, and the other 85 are never made.

Source: replica_set.go (slowStartBatch).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from fakeapi.controllers.replicaset.trouble import SyncError

FIRST_BATCH: Final = 1

SlowStartCall = Callable[[], Awaitable[SyncError | None]]


@dataclass(frozen=True, slots=True)
class SlowStartResult:
    """How many calls succeeded, and the first error of the last batch."""

    successes: int
    error: SyncError | None = None


async def slow_start_batch(
    count: int, attempt: SlowStartCall, first_batch: int = FIRST_BATCH
) -> SlowStartResult:
    """Call ``attempt`` up to ``count`` times; each call returns its error, or None."""
    successes, batch = 0, min(count, first_batch)
    while batch > 0:
        outcomes = await asyncio.gather(*(attempt() for _ in range(batch)))
        troubles = [trouble for trouble in outcomes if trouble is not None]
        successes += batch - len(troubles)
        if troubles:
            return SlowStartResult(successes, troubles[0])
        batch = min(2 * batch, count - successes)
    return SlowStartResult(successes)
