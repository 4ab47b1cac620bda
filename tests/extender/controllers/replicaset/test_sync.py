"""Slow start: upstream's table of batches."""

from __future__ import annotations

import asyncio

from extender.controllers.replicaset.pod_control import SyncError
from extender.controllers.replicaset.sync import slow_start_batch
from extender.kube.controller_runtime.controller import RetryError
from tests.extender.controllers.replicaset.upstream_tables import (
    Case,
    cases,
)


class Limited:
    """Calls that succeed up to a limit; those that are under way together make a batch."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.calls = 0
        self.batches: list[int] = []

    async def __call__(self) -> SyncError | None:
        self.calls += 1
        number = self.calls
        await asyncio.sleep(0)  # all of a batch have begun by now
        if not self.batches or sum(self.batches) < self.calls:
            self.batches.append(self.calls - sum(self.batches))
        return None if number <= self._limit else RetryError(f"call {number}")


@cases("slow_start")
async def test_upstreams_table(case: Case) -> None:
    attempt = Limited(case["call_limit"])
    outcome = await slow_start_batch(case["count"], attempt, case["initial_batch_size"])
    assert attempt.calls == case["expect_calls"]
    assert attempt.batches == case["expect_batches"]
    assert outcome.successes == case["expect_successes"]
    assert (outcome.error is not None) == case["expect_error"]


async def test_the_first_error_of_a_batch_is_reported() -> None:
    outcome = await slow_start_batch(100, Limited(10))
    assert str(outcome.error) == "call 11"
