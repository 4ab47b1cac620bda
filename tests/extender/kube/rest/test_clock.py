"""Clocks, and work with a timeout."""

from __future__ import annotations

import asyncio
import time

import pytest

from extender.kube.rest.clock import Clock, SystemClock, within
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.extender.kube.conftest import SteppedClock


def test_the_system_clock_has_the_time_of_the_machine() -> None:
    clock: Clock = SystemClock()
    before = (time.monotonic(), time.time_ns())
    now = (clock.monotonic(), clock.now_ns())
    after = (time.monotonic(), time.time_ns())
    assert before[0] <= now[0] <= after[0]
    assert before[1] <= now[1] <= after[1]


async def test_the_system_clock_does_not_sleep_for_a_negative_time() -> None:
    await SystemClock().sleep(-5)
    await SystemClock().sleep(0)


async def test_the_stepped_clock_does_not_wait() -> None:
    clock: Clock = SteppedClock()
    started = clock.now_ns()
    await clock.sleep(3600)
    assert clock.monotonic() == 3600
    assert clock.now_ns() - started == 3600 * 10**9


async def lasting(clock: Clock, seconds: float, ended: list[float]) -> str:
    try:
        await clock.sleep(seconds)
    finally:
        ended.append(clock.monotonic())
    return "done"


async def test_the_result_of_work_that_ends_in_time_is_returned(clock: VirtualClock) -> None:
    ended: list[float] = []
    working = asyncio.create_task(within(clock, 5, lasting(clock, 3, ended)))
    await clock.advance(10)
    assert (await working, ended) == ("done", [3])


async def test_work_that_ends_at_the_timeout_counts(clock: VirtualClock) -> None:
    working = asyncio.create_task(within(clock, 5, lasting(clock, 5, [])))
    await clock.advance(10)
    assert await working == "done"


async def test_work_is_cancelled_at_the_timeout(clock: VirtualClock) -> None:
    ended: list[float] = []
    working = asyncio.create_task(within(clock, 5, lasting(clock, 60, ended)))
    await clock.advance(10)
    with pytest.raises(TimeoutError, match="not within 5 s"):
        await working
    assert ended == [5]


async def test_an_exception_of_the_work_is_raised() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await within(VirtualClock(), 5, fails())


async def test_cancellation_cancels_the_work(clock: VirtualClock) -> None:
    ended: list[float] = []
    working = asyncio.create_task(within(clock, 5, lasting(clock, 3, ended)))
    await clock.advance(1)
    working.cancel()
    await asyncio.wait((working,))
    assert (working.cancelled(), ended) == (True, [1])
    assert not await clock.jump()
