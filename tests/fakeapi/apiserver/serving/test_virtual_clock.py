"""The virtual clock: it stops until it is advanced, and wakes sleepers in order."""

from __future__ import annotations

import asyncio

import pytest

from fakeapi.apiserver.serving.virtual_clock import START_NS, VirtualClock
from tests.fakeapi.apiserver.manual_clock import ManualClock


async def test_time_passes_only_by_advancing() -> None:
    clock = VirtualClock()
    assert (clock.monotonic(), clock.now_ns()) == (0.0, START_NS)
    await clock.advance(1.5)
    assert (clock.monotonic(), clock.now_ns()) == (1.5, START_NS + 1_500_000_000)


async def test_sleepers_wake_in_the_order_of_their_times_and_calls() -> None:
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


async def test_a_second_sleep_wakes_within_the_same_advance() -> None:
    clock, ticks = VirtualClock(), []

    async def ticker() -> None:
        for _ in range(3):
            await clock.sleep(10)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await clock.advance(30)
    await task
    assert ticks == [10, 20, 30]


async def test_a_cancelled_sleeper_is_skipped() -> None:
    clock = VirtualClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.advance(0)
    task.cancel()
    await clock.advance(2)
    assert task.cancelled()


async def test_time_does_not_go_back() -> None:
    with pytest.raises(ValueError, match="cannot move back"):
        await VirtualClock().advance(-1)


@pytest.mark.parametrize("seconds", [1e300, 7.5e9])
async def test_time_does_not_pass_the_last_time_of_a_timestamp(seconds: float) -> None:
    clock = VirtualClock()
    with pytest.raises(ValueError, match="up to the year 2262"):
        await clock.advance(seconds)
    assert clock.now_ns() == START_NS


async def test_a_long_chain_of_tasks_ends_before_time_advances() -> None:
    clock, passed = VirtualClock(), []

    async def link(left: int) -> None:
        if left:
            await asyncio.create_task(link(left - 1))
        else:
            passed.append(clock.monotonic())

    async def starter() -> None:
        await clock.sleep(1)
        await link(500)

    task = asyncio.create_task(starter())
    await clock.advance(10)
    await task
    assert passed == [1]


async def test_a_jump_advances_to_the_next_timer() -> None:
    clock, woken = VirtualClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    async with asyncio.TaskGroup() as group:
        for seconds in (7200, 3, 3):
            group.create_task(sleeper(seconds))
        assert await clock.jump()
        assert (clock.monotonic(), woken) == (3, [3, 3])
        assert await clock.jump()
        assert clock.monotonic() == 7200
        assert not await clock.jump()


async def test_a_jumping_clock_advances_when_all_tasks_are_idle() -> None:
    clock = VirtualClock()
    async with clock.jumping():
        for hours in range(1, 4):
            await clock.sleep(3600)
            assert clock.monotonic() == 3600 * hours
    assert not await clock.jump()


async def test_a_clock_runs_at_any_pace_and_stops() -> None:
    host = ManualClock(100.0)
    clock = VirtualClock(0, 60, host)
    host.seconds += 2
    assert (clock.monotonic(), clock.now_ns(), clock.factor) == (120, 120 * 10**9, 60)
    clock.run(0.5)
    host.seconds += 2
    assert clock.monotonic() == 121
    clock.run(0)
    host.seconds += 100
    assert clock.monotonic() == 121
    with pytest.raises(ValueError, match="cannot move back"):
        clock.run(-1)


async def test_a_running_clock_wakes_sleepers_by_the_hosts_timers() -> None:
    clock = VirtualClock(0, 1e6)
    await asyncio.gather(clock.sleep(3600), clock.sleep(60))
    assert clock.monotonic() >= 3600


async def test_advancing_a_running_clock_is_exact_and_it_runs_on() -> None:
    host = ManualClock(100.0)
    clock, woken = VirtualClock(0, 1, host), []

    async def sleeper() -> None:
        await clock.sleep(30)
        woken.append(clock.monotonic())

    task = asyncio.create_task(sleeper())
    await clock.advance(60)
    await task
    assert (woken, clock.factor) == ([30], 1)
    host.seconds += 5
    assert clock.monotonic() == 65


async def test_concurrent_advances_add_up() -> None:
    clock = VirtualClock()
    await asyncio.gather(clock.advance(10), clock.advance(20))
    assert clock.monotonic() == 30


def test_a_paused_clock_stops_until_the_last_pause_ends() -> None:
    host = ManualClock(100.0)
    clock, read = VirtualClock(0, 2, host), []
    with clock.paused():
        with clock.paused():
            host.seconds += 5
        host.seconds += 5
        read.append(clock.monotonic())
    host.seconds += 5
    assert [*read, clock.monotonic(), clock.factor] == [0, 10, 2]
