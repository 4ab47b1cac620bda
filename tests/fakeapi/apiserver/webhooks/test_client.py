"""Time limits by a clock: each expires at its own time, and no timer is left once all ended."""

from __future__ import annotations

import asyncio

import pytest

from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.webhooks.client import TimeoutScheduler


class TimedTasks:
    """Run tasks with time limits, and record their outcomes and times."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.ended: dict[str, tuple[str, float]] = {}
        self._deadlines = TimeoutScheduler(self.clock)

    async def run(self, name: str, *, sleeps: float, has: float, begins: float = 0) -> None:
        await self.clock.sleep(begins)
        outcome = "done"
        limit = self._deadlines.timeout(has)
        try:
            async with limit:
                await self.clock.sleep(sleeps)
        except TimeoutError:
            outcome = "late"
        assert limit.has_expired is (outcome == "late")
        self.ended[name] = outcome, self.clock.monotonic()


async def test_each_ends_at_its_own_time() -> None:
    tasks = TimedTasks()
    async with asyncio.TaskGroup() as group:
        group.create_task(tasks.run("long", sleeps=60, has=30))
        group.create_task(tasks.run("short", sleeps=60, has=10))
        group.create_task(tasks.run("quick", sleeps=5, has=10))
        group.create_task(tasks.run("as short", sleeps=60, has=10))
        group.create_task(tasks.run("later, but shorter", sleeps=60, has=2, begins=12))
        group.create_task(tasks.run("after all others", sleeps=60, has=10, begins=100))
        await tasks.clock.advance(200)
    assert tasks.ended == {
        "long": ("late", 30),
        "short": ("late", 10),
        "quick": ("done", 5),
        "as short": ("late", 10),
        "later, but shorter": ("late", 14),
        "after all others": ("late", 110),
    }


async def test_no_timer_is_left_once_all_have_ended() -> None:
    tasks = TimedTasks()
    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(tasks.run(f"{number}", sleeps=number, has=100))
        await tasks.clock.advance(3)
    assert await tasks.clock.jump() is False
    assert tasks.clock.monotonic() == 3


async def test_a_cancelled_call_does_not_time_out() -> None:
    clock = VirtualClock()
    limit = TimeoutScheduler(clock).timeout(10)

    async def wait() -> None:
        async with limit:
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await clock.advance(1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not limit.has_expired
    assert await clock.jump() is False


async def test_an_exception_of_the_block_is_raised() -> None:
    with pytest.raises(TimeoutError, match="its own"):
        async with TimeoutScheduler(VirtualClock()).timeout(10) as limit:
            raise TimeoutError("its own")
    assert not limit.has_expired
