"""Many changes of pods cause one sync; a changed spec is synced at once."""

from __future__ import annotations

from extender.controllers.workloadspread.event_handlers import (
    DELAY_FACTOR,
    LEAST_DELAY_SECONDS,
    EnqueueDelay,
)
from extender.kube.controller_runtime.workqueue import WorkQueue
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.builders.replicas import a_pod, a_replica_set
from tests.extender.controllers.workloadspread.test_writer import IN_A, web, world


async def test_a_key_without_a_recent_sync_is_enqueued_at_once() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = EnqueueDelay(queue, clock)
    pace.enqueue("a")
    assert queue.take() == "a"
    pace.record_sync_end("a")
    queue.done("a")
    await clock.advance(LEAST_DELAY_SECONDS)
    pace.enqueue("a")
    assert queue.take() == "a"


async def test_a_recently_synced_key_is_enqueued_with_a_delay() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = EnqueueDelay(queue, clock)
    pace.record_sync_end("a")
    await clock.advance(LEAST_DELAY_SECONDS / 2)
    for key in "aba":
        pace.enqueue(key)
    assert (queue.take(), queue.take()) == ("b", None)
    await clock.advance(LEAST_DELAY_SECONDS / 2)
    assert (queue.take(), queue.take()) == ("a", None)


async def test_a_key_with_slow_syncs_is_synced_less_often() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = EnqueueDelay(queue, clock)
    for seconds in (0.01, 0.03):  # two deletions in one sync
        pace.record_calculation("a", seconds)
    pace.record_sync_end("a")
    pace.enqueue("a")
    await clock.advance(DELAY_FACTOR * 0.04 - 0.001)
    assert queue.take() is None
    await clock.advance(0.002)
    assert queue.take() == "a"
    pace.record_sync_end("a")
    queue.done("a")
    pace.enqueue("a")
    await clock.advance(LEAST_DELAY_SECONDS)
    assert queue.take() == "a"


async def test_a_forgotten_key_has_no_delay() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = EnqueueDelay(queue, clock)
    pace.record_sync_end("a")
    pace.forget("a")
    pace.enqueue("a")
    assert queue.take() == "a"


async def test_pods_that_come_one_after_the_other_share_looks() -> None:
    async with world(web(), a_replica_set(replicas=50)) as stage:
        await stage.passes(10)
        before = len(stage.writes())
        for number in range(50):
            stage.load(a_pod(f"a{number}", "web", node="node-a", annotations=IN_A))
            await stage.passes(0.001)
        await stage.passes(10)
        statuses = [path for _, path, _ in stage.writes()[before:] if path.endswith("/status")]
        assert 1 <= len(statuses) <= 3
        assert len(await stage.annotations()) == 50
