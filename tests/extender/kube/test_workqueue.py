"""The work queue: fair, stingy, one at a time, and patient with what fails."""

from __future__ import annotations

import asyncio

import pytest

from extender.kube.workqueue import OVERALL_BURST, WorkQueue
from fakeapi.clock import VirtualClock


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue[str]:
    return WorkQueue(clock)


def drain(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


async def test_keys_come_in_their_order_and_each_once(queue: WorkQueue[str]) -> None:
    for key in "abacab":
        queue.add(key)
    assert len(queue) == 3
    assert drain(queue) == ["a", "b", "c"]


async def test_a_key_that_is_added_while_it_is_worked_on_comes_again(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert (queue.take(), queue.idle) == (None, False)
    queue.done("a")
    assert drain(queue) == ["a"]
    assert queue.idle


async def test_whoever_waits_gets_what_comes(queue: WorkQueue[str]) -> None:
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await waiting == "a"


async def test_of_several_times_the_earliest_counts(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    for seconds in (30, 10, 20):
        queue.add_after("a", seconds)
    assert queue.due_in("a") == 10
    await clock.advance(9.9)
    assert drain(queue) == []
    await clock.advance(0.1)
    assert drain(queue) == ["a"]
    await clock.advance(60)
    assert drain(queue) == []


async def test_what_is_taken_back_does_not_come(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 5)
    queue.add_after("b", 6)
    assert (queue.cancel("a"), queue.cancel("a"), queue.due_in("a")) == (True, False, None)
    await clock.advance(60)
    assert drain(queue) == ["b"]


async def test_failures_wait_twice_as_long_each_time(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    waited = []
    for _ in range(6):
        queue.add_rate_limited("a")
        waited.append(queue.due_in("a"))
        await clock.advance(1)
        assert drain(queue) == ["a"]
    assert waited == pytest.approx([0.005, 0.01, 0.02, 0.04, 0.08, 0.16])
    queue.forget("a")
    queue.add_rate_limited("a")
    assert queue.due_in("a") == pytest.approx(0.005)


async def test_no_delay_is_longer_than_the_longest(clock: VirtualClock) -> None:
    for queue, longest in ((WorkQueue[str](clock), 1000), (WorkQueue[str](clock, 60), 60)):
        for _ in range(25):
            queue.add_rate_limited("a")
            last = queue.due_in("a")
            queue.cancel("a")
        assert last == longest


async def test_all_keys_together_are_held_to_a_pace(queue: WorkQueue[str]) -> None:
    for index in range(OVERALL_BURST + 10):
        queue.add_rate_limited(str(index))
    assert queue.due_in(str(OVERALL_BURST - 1)) == pytest.approx(0.005)
    assert queue.due_in(str(OVERALL_BURST + 9)) == pytest.approx(1)


async def test_a_paused_queue_takes_and_does_not_give(queue: WorkQueue[str]) -> None:
    queue.pause()
    waiting = asyncio.create_task(queue.get())
    queue.add("a")
    queue.add("b")
    await asyncio.sleep(0)
    assert not waiting.done()
    assert queue.take() == "a"
    queue.done("a")
    queue.resume()
    assert await waiting == "b"


async def test_a_closed_queue_forgets_and_takes_nothing(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a")
    queue.add_after("b", 5)
    queue.close()
    queue.add("c")
    queue.add_after("d", 5)
    await clock.advance(60)
    assert drain(queue) == []
