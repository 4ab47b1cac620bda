"""A process pauses after each of its writes if others write the same status, and only then."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from extender.controllers.webhooks.status_writer import (
    LEAST_YIELD_SECONDS,
    LONGEST_YIELD_SECONDS,
    REMEMBERED_SECONDS,
    ConcurrentWriters,
)
from fakeapi.apiserver.serving.virtual_clock import VirtualClock


async def waiting_time(clock: VirtualClock, writers: ConcurrentWriters, uid: str) -> float:
    """Return how long the writer waits for the others."""
    start = clock.monotonic()
    ends: list[float] = []

    async def wait() -> None:
        await writers.wait_for_others(uid)
        ends.append(clock.monotonic())

    waiting = asyncio.create_task(wait())
    await clock.advance(1)
    await waiting
    return round(ends[0] - start, 9)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def writers(clock: VirtualClock) -> ConcurrentWriters:
    return ConcurrentWriters(clock, Random(0))


async def test_a_single_writer_does_not_wait(
    clock: VirtualClock, writers: ConcurrentWriters
) -> None:
    writers.record_own_write("one", 0.1)
    assert await waiting_time(clock, writers, "one") == 0


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [
        (0.0, LEAST_YIELD_SECONDS, LEAST_YIELD_SECONDS),
        (0.02, 0.04, 0.08),
        (10.0, LONGEST_YIELD_SECONDS, LONGEST_YIELD_SECONDS),
    ],
)
async def test_a_writer_among_others_waits_after_each_write(
    clock: VirtualClock, writers: ConcurrentWriters, seconds: float, least: float, most: float
) -> None:
    writers.record_other_write("one")
    assert await waiting_time(clock, writers, "one") == 0
    writers.record_other_write("one")
    writers.record_own_write("one", seconds)
    assert least <= await waiting_time(clock, writers, "one") <= most
    assert await waiting_time(clock, writers, "one") == 0


async def test_others_do_not_wait(clock: VirtualClock, writers: ConcurrentWriters) -> None:
    writers.record_other_write("one")
    writers.record_own_write("one", 0.1)
    writers.record_own_write("other", 0.1)
    assert await waiting_time(clock, writers, "other") == 0


async def test_writers_unseen_for_long_are_forgotten(
    clock: VirtualClock, writers: ConcurrentWriters
) -> None:
    writers.record_other_write("one")
    assert writers.has_other_writers("one")
    await clock.advance(REMEMBERED_SECONDS)
    assert not writers.has_other_writers("one")
    writers.record_own_write("one", 0.1)
    assert await waiting_time(clock, writers, "one") == 0
