"""A writer with rivals pauses after each of its writes, and only then."""

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


async def waited(clock: VirtualClock, rivals: ConcurrentWriters, uid: str) -> float:
    """Return how long the writer waits for its turn."""
    begun = clock.monotonic()
    ends: list[float] = []

    async def wait() -> None:
        await rivals.wait_for_others(uid)
        ends.append(clock.monotonic())

    waiting = asyncio.create_task(wait())
    await clock.advance(1)
    await waiting
    return round(ends[0] - begun, 9)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def rivals(clock: VirtualClock) -> ConcurrentWriters:
    return ConcurrentWriters(clock, Random(0))


async def test_a_single_writer_does_not_wait(
    clock: VirtualClock, rivals: ConcurrentWriters
) -> None:
    rivals.record_own_write("one", 0.1)
    assert await waited(clock, rivals, "one") == 0


@pytest.mark.parametrize(
    ("seconds", "least", "most"),
    [
        (0.0, LEAST_YIELD_SECONDS, LEAST_YIELD_SECONDS),
        (0.02, 0.04, 0.08),
        (10.0, LONGEST_YIELD_SECONDS, LONGEST_YIELD_SECONDS),
    ],
)
async def test_a_writer_with_rivals_waits_after_each_write(
    clock: VirtualClock, rivals: ConcurrentWriters, seconds: float, least: float, most: float
) -> None:
    rivals.record_other_write("one")
    assert await waited(clock, rivals, "one") == 0
    rivals.record_other_write("one")
    rivals.record_own_write("one", seconds)
    assert least <= await waited(clock, rivals, "one") <= most
    assert await waited(clock, rivals, "one") == 0


async def test_others_do_not_wait(clock: VirtualClock, rivals: ConcurrentWriters) -> None:
    rivals.record_other_write("one")
    rivals.record_own_write("one", 0.1)
    rivals.record_own_write("other", 0.1)
    assert await waited(clock, rivals, "other") == 0


async def test_rivals_unseen_for_long_are_forgotten(
    clock: VirtualClock, rivals: ConcurrentWriters
) -> None:
    rivals.record_other_write("one")
    assert rivals.has_other_writers("one")
    await clock.advance(REMEMBERED_SECONDS)
    assert not rivals.has_other_writers("one")
    rivals.record_own_write("one", 0.1)
    assert await waited(clock, rivals, "one") == 0
