"""Many changes of pods make one look; what is wanted is heeded at once."""

from __future__ import annotations

from extender.controllers.workloadspread.event_handlers import (
    DELAY_FACTOR,
    LEAST_DELAY_SECONDS,
    EnqueueDelay,
)
from extender.kube.controller_runtime.workqueue import WorkQueue
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.extender.controllers.replicaset.table import a_pod, a_replica_set
from tests.extender.controllers.workloadspread.test_writer import IN_A, web, world


async def test_who_has_not_been_looked_at_lately_is_looked_at_at_once() -> None:
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


async def test_who_has_been_looked_at_is_left_alone_for_a_moment() -> None:
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


async def test_whose_looks_take_long_is_looked_at_less_often() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = EnqueueDelay(queue, clock)
    for seconds in (0.01, 0.03):  # two goes at one look
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


async def test_who_is_forgotten_has_no_pause() -> None:
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
