"""The virtual clock: it stands still until it is moved, and wakes sleepers in order."""

from __future__ import annotations

import asyncio

import pytest

from fakeapi.clock import START_NS, VirtualClock


async def test_time_passes_only_by_advancing() -> None:
    clock = VirtualClock()
    assert (clock.monotonic(), clock.now_ns()) == (0.0, START_NS)
    await clock.advance(1.5)
    assert (clock.monotonic(), clock.now_ns()) == (1.5, START_NS + 1_500_000_000)


async def test_sleepers_wake_in_the_order_of_their_time_and_then_of_their_going_to_sleep() -> None:
    clock, woken = VirtualClock(), []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("a", 3), ("b", 1), ("c", 3), ("d", 0), ("e", -1)):
            group.create_task(sleeper(name, seconds))
        await clock.advance(2)
        assert woken == [("d", 0), ("e", 0), ("b", 1)]
        await clock.advance(2)
    assert woken[3:] == [("a", 3), ("c", 3)]


async def test_who_sleeps_again_wakes_within_the_same_advance() -> None:
    clock, ticks = VirtualClock(), []

    async def ticker() -> None:
        for _ in range(3):
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(30)
    await task
    assert ticks == [10, 20, 30]


async def test_a_cancelled_sleeper_is_passed_over() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.advance(0)
    task.cancel()
    await clock.advance(2)
    assert task.cancelled()


async def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="does not go back"):
        await VirtualClock().advance(-1)
