"""The work queue: ordered, without duplicates, one worker for a key, and backoff of failures."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from extender.kube.controller_runtime.workqueue import OVERALL_BURST, ShutDownError, WorkQueue
from fakeapi.apiserver.serving.virtual_clock import VirtualClock


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue[str]:
    return WorkQueue(clock)


def drain(queue: WorkQueue[str]) -> list[str]:
    keys = []
    while (key := queue.take()) is not None:
        keys.append(key)
        queue.done(key)
    return keys


async def test_keys_are_delivered_in_order_and_once(queue: WorkQueue[str]) -> None:
    for key in "abacab":
        queue.add(key)
    assert len(queue) == 3
    assert drain(queue) == ["a", "b", "c"]


async def test_a_key_that_is_added_while_it_is_processed_is_delivered_again(
    queue: WorkQueue[str],
) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    assert (queue.take(), queue.idle) == (None, False)
    queue.done("a")
    assert drain(queue) == ["a"]
    assert queue.idle


async def test_a_waiting_worker_gets_the_next_key(queue: WorkQueue[str]) -> None:
    waiting = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    assert await waiting == "a"


async def test_a_cancelled_worker_leaves_its_key_to_another(queue: WorkQueue[str]) -> None:
    first, second = [asyncio.create_task(queue.get()) for _ in range(2)]
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await second == "a"


async def test_the_earliest_of_several_times_counts(
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


async def test_a_withdrawn_key_is_not_delivered(queue: WorkQueue[str], clock: VirtualClock) -> None:
    queue.add_after("a", 5)
    queue.add_after("b", 6)
    assert (queue.cancel("a"), queue.cancel("a"), queue.due_in("a")) == (True, False, None)
    await clock.advance(60)
    assert drain(queue) == ["b"]


async def test_the_delay_doubles_with_each_failure(
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


async def test_delays_have_a_maximum(clock: VirtualClock) -> None:
    for queue, longest in ((WorkQueue[str](clock), 1000), (WorkQueue[str](clock, 60), 60)):
        for _ in range(25):
            queue.add_rate_limited("a")
            last = queue.due_in("a")
            queue.cancel("a")
        assert last == longest


async def test_all_keys_share_a_rate_limit(queue: WorkQueue[str]) -> None:
    for index in range(OVERALL_BURST + 10):
        queue.add_rate_limited(str(index))
    assert queue.due_in(str(OVERALL_BURST - 1)) == pytest.approx(0.005)
    assert queue.due_in(str(OVERALL_BURST + 9)) == pytest.approx(1)


async def test_a_paused_queue_accepts_keys_and_delivers_none(queue: WorkQueue[str]) -> None:
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


async def test_a_closed_queue_drops_keys_and_accepts_none(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a")
    queue.add_after("b", 5)
    queue.close()
    queue.add("c")
    queue.add_after("d", 5)
    await clock.advance(60)
    assert drain(queue) == []


async def test_delayed_keys_are_delivered_in_the_order_of_their_times(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    for key, seconds in (("a", 1), ("b", 0.5), ("c", 0.25)):
        queue.add_after(key, seconds)
    await clock.advance(2)
    assert drain(queue) == ["c", "b", "a"]


async def test_an_earlier_time_does_not_wait_for_a_later_one(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add_after("a", 1)
    queue.add_after("b", 0.05)
    await clock.advance(0.06)
    assert drain(queue) == ["b"]
    queue.add_after("c", 2)
    await clock.advance(1)
    assert drain(queue) == ["a"]
    await clock.advance(2)
    assert drain(queue) == ["c"]


async def test_a_key_that_is_due_while_it_is_processed_is_delivered_again(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add_after("a", 1)
    await clock.advance(2)
    assert len(queue) == 0
    queue.done("a")
    assert drain(queue) == ["a"]


async def test_adding_a_key_now_does_not_cancel_a_later_time(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add_after("a", 5)
    queue.add("a")
    assert drain(queue) == ["a"]
    await clock.advance(5)
    assert drain(queue) == ["a"]


async def process_keys(queue: WorkQueue[str], clock: VirtualClock, done: list[str]) -> None:
    """Process keys like a worker; each takes 3 ms."""
    with suppress(ShutDownError):
        while True:
            key = await queue.get()
            await clock.sleep(0.003)
            done.append(key)
            queue.done(key)


async def test_a_queue_that_is_shut_down_delivers_pending_keys_and_accepts_none(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    for key in "abc":
        queue.add(key)
    queue.add_after("later", 1)
    queue.pause()
    queue.shut_down()
    queue.add("d")
    queue.add_after("e", 1)
    queue.pause()
    done: list[str] = []
    working = asyncio.create_task(process_keys(queue, clock, done))
    await clock.advance(60)
    assert (done, working.done(), len(queue)) == (["a", "b", "c"], True, 0)


async def test_all_workers_end_on_shutdown(queue: WorkQueue[str], clock: VirtualClock) -> None:
    done: list[str] = []
    workers = [asyncio.create_task(process_keys(queue, clock, done)) for _ in range(5)]
    await clock.advance(1)
    assert not any(worker.done() for worker in workers)
    queue.shut_down()
    await clock.advance(0)
    assert all(worker.done() for worker in workers)


async def test_draining_waits_for_processed_and_added_keys(queue: WorkQueue[str]) -> None:
    queue.add("a")
    queue.add("b")
    first, second = await queue.get(), await queue.get()
    queue.add("a")
    draining = asyncio.create_task(queue.drain())
    await asyncio.sleep(0)
    queue.done(first)
    queue.done(second)
    await asyncio.sleep(0)
    assert not draining.done()
    assert await queue.get() == "a"
    queue.done("a")
    await draining
    with pytest.raises(ShutDownError):
        await queue.get()


async def test_shutting_down_ends_draining(queue: WorkQueue[str]) -> None:
    queue.add("a")
    await queue.get()
    draining = asyncio.create_task(queue.drain())
    await asyncio.sleep(0)
    assert not draining.done()
    queue.shut_down()
    await draining


async def test_an_empty_queue_is_drained_at_once(queue: WorkQueue[str]) -> None:
    await queue.drain()


async def test_many_workers_never_share_a_key(queue: WorkQueue[str], clock: VirtualClock) -> None:
    busy: dict[str, None] = {}
    done: list[str] = []

    async def worker() -> None:
        with suppress(ShutDownError):
            while True:
                key = await queue.get()
                assert key not in busy
                busy[key] = None
                await clock.sleep(0.003)
                del busy[key]
                done.append(key)
                queue.done(key)

    async def producer(key: str) -> None:
        for _ in range(50):
            queue.add(key)
            await clock.sleep(0.001)

    workers = [asyncio.create_task(worker()) for _ in range(10)]
    producers = [asyncio.create_task(producer(str(number))) for number in range(50)]
    await clock.advance(1)
    await asyncio.gather(*producers)
    await queue.drain()
    await asyncio.gather(*workers)
    assert {*done} == {str(number) for number in range(50)}
    assert (len(queue), busy) == (0, {})


async def test_keys_are_delivered_by_rank_and_then_in_order(clock: VirtualClock) -> None:
    queue = WorkQueue[str](clock, rank=lambda key: -int(key[0]))
    for key in ("1a", "9a", "5a", "9b", "1a"):
        queue.add(key)
    assert drain(queue) == ["9a", "9b", "5a", "1a"]


async def test_the_rank_is_computed_when_a_key_is_enqueued(clock: VirtualClock) -> None:
    ranks = {"a": 1, "b": 2}
    queue = WorkQueue[str](clock, rank=ranks.__getitem__)
    queue.add("a")
    ranks["a"] = 3
    queue.add("b")
    assert queue.take() == "a"
    queue.add("a")
    queue.done("a")
    assert drain(queue) == ["b", "a"]


async def test_a_discarded_key_is_never_delivered(
    queue: WorkQueue[str], clock: VirtualClock
) -> None:
    queue.add("now")
    queue.add_after("later", 5)
    for key in ("now", "later", "unknown"):
        queue.discard(key)
    await clock.advance(10)
    assert (queue.take(), len(queue)) == (None, 0)
    queue.add("now")
    assert queue.take() == "now"
    queue.add("now")
    queue.discard("now")
    queue.done("now")
    assert (queue.take(), queue.idle) == (None, True)
