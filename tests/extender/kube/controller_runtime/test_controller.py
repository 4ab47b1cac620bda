"""The loop of a controller: failed keys are retried, and no key is synced twice at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.kube.controller_runtime.controller import Controller, RetryError
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.rest.api_errors import ApiError
from fakeapi.apiserver.serving.virtual_clock import VirtualClock


@asynccontextmanager
async def running(controller: Controller[str]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(controller.run())
    yield task
    task.cancel()
    await asyncio.wait((task,))


class SlowSyncs:
    """Syncs that take ten seconds, with the number that run at the same time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.busy: list[str] = []
        self.most = 0
        self.done: list[tuple[float, str]] = []

    async def sync(self, key: str) -> None:
        assert key not in self.busy
        self.busy.append(key)
        self.most = max(self.most, len(self.busy))
        await self._clock.sleep(10)
        self.busy.remove(key)
        self.done.append((self._clock.monotonic(), key))


@pytest.mark.parametrize(("workers", "seconds"), [(1, 60), (2, 30), (5, 20), (9, 10)])
async def test_several_workers_sync_several_keys_at_a_time(
    clock: VirtualClock, workers: int, seconds: float
) -> None:
    slow, queue = SlowSyncs(clock), WorkQueue[str](clock)
    async with running(Controller("tester", queue, slow.sync, workers)):
        for key in "abcdef":
            queue.add(key)
        await clock.advance(300)
    assert [key for _, key in slow.done] == [*"abcdef"]
    assert slow.done[-1][0] == seconds
    assert slow.most == min(workers, 6)


async def test_no_worker_takes_a_key_that_another_is_syncing(clock: VirtualClock) -> None:
    slow, queue = SlowSyncs(clock), WorkQueue[str](clock)
    async with running(Controller("tester", queue, slow.sync, workers=5)):
        for _ in range(3):
            queue.add("a")
            await clock.advance(4)
        await clock.advance(60)
    assert slow.done == [(10, "a"), (20, "a")]


async def test_a_drained_controller_syncs_pending_keys_and_ends(clock: VirtualClock) -> None:
    slow, queue = SlowSyncs(clock), WorkQueue[str](clock)
    controller = Controller("tester", queue, slow.sync, workers=2)
    async with running(controller) as task:
        for key in "abc":
            queue.add(key)
        await clock.advance(5)
        queue.add("a")
        queue.add_after("later", 1)
        draining = asyncio.create_task(controller.drain())
        await clock.advance(0)
        queue.add("new")
        await clock.advance(14)
        assert not draining.done()
        await clock.advance(1)
        assert (draining.done(), task.done()) == (True, True)
    assert slow.done == [(10, "a"), (10, "b"), (20, "c"), (20, "a")]


async def test_a_cancelled_controller_drops_all_keys(clock: VirtualClock) -> None:
    slow, queue = SlowSyncs(clock), WorkQueue[str](clock)
    async with running(Controller("tester", queue, slow.sync, workers=2)):
        for key in "abc":
            queue.add(key)
        await clock.advance(5)
    await clock.advance(60)
    assert (slow.done, len(queue)) == ([], 0)


async def test_failed_keys_are_retried_and_keys_synced_again_on_request(
    clock: VirtualClock,
) -> None:
    attempts: list[tuple[str, float]] = []

    async def sync(key: str) -> float | None:
        attempts.append((key, round(clock.monotonic(), 3)))
        if len(attempts) == 1:
            raise RetryError("not now")
        if len(attempts) == 2:
            raise ApiError(409, "Conflict", "another client was faster")
        return 60.0 if len(attempts) == 3 else None

    queue: WorkQueue[str] = WorkQueue(clock)
    controller = Controller("tester", queue, sync)
    async with running(controller):
        queue.add("a")
        await clock.advance(300)
    assert attempts == [("a", 0), ("a", 0.005), ("a", 0.015), ("a", 60.015)]


@pytest.mark.parametrize("workers", [1, 3])
async def test_an_unexpected_error_ends_a_controller(clock: VirtualClock, workers: int) -> None:
    ended: list[str] = []

    async def sync(key: str) -> None:
        try:
            await clock.sleep(1 if key == "bad" else 60)
        finally:
            ended.append(key)
        raise ZeroDivisionError

    queue: WorkQueue[str] = WorkQueue(clock)
    task = asyncio.create_task(Controller("tester", queue, sync, workers).run())
    for key in ("bad", "good", "better"):
        queue.add(key)
    await clock.advance(2)
    with pytest.raises(ZeroDivisionError):
        await task
    assert ended == ["bad", "good", "better"][:workers]
