"""Many changes of pods cause one sync; a changed spec is synced at once."""

from __future__ import annotations

import pytest

from extender.controllers.workloadspread.event_handlers import (
    DELAY_FACTOR,
    LEAST_DELAY_SECONDS,
    EnqueueDelay,
)
from extender.kube.controller_runtime.workqueue import WorkQueue
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from tests.builders.replicas import a_pod
from tests.builders.workloadspread import injected
from tests.extender.controllers.workloadspread.test_writer import two_zones, web_spread


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def queue(clock: VirtualClock) -> WorkQueue[str]:
    return WorkQueue(clock)


@pytest.fixture
def delay(queue: WorkQueue[str], clock: VirtualClock) -> EnqueueDelay:
    return EnqueueDelay(queue, clock)


async def test_a_key_without_a_recent_sync_is_enqueued_at_once(
    clock: VirtualClock, queue: WorkQueue[str], delay: EnqueueDelay
) -> None:
    delay.enqueue("a")
    assert queue.take() == "a"
    delay.record_sync_end("a")
    queue.done("a")
    await clock.advance(LEAST_DELAY_SECONDS)
    delay.enqueue("a")
    assert queue.take() == "a"


async def test_a_recently_synced_key_is_enqueued_with_a_delay(
    clock: VirtualClock, queue: WorkQueue[str], delay: EnqueueDelay
) -> None:
    delay.record_sync_end("a")
    await clock.advance(LEAST_DELAY_SECONDS / 2)
    for key in "aba":
        delay.enqueue(key)
    assert (queue.take(), queue.take()) == ("b", None)
    await clock.advance(LEAST_DELAY_SECONDS / 2)
    assert (queue.take(), queue.take()) == ("a", None)


async def test_a_key_with_slow_syncs_is_synced_less_often(
    clock: VirtualClock, queue: WorkQueue[str], delay: EnqueueDelay
) -> None:
    for seconds in (0.01, 0.03):  # two deletions in one sync
        delay.record_calculation("a", seconds)
    delay.record_sync_end("a")
    delay.enqueue("a")
    await clock.advance(DELAY_FACTOR * 0.04 - 0.001)
    assert queue.take() is None
    await clock.advance(0.002)
    assert queue.take() == "a"
    delay.record_sync_end("a")
    queue.done("a")
    delay.enqueue("a")
    await clock.advance(LEAST_DELAY_SECONDS)
    assert queue.take() == "a"


async def test_a_forgotten_key_has_no_delay(queue: WorkQueue[str], delay: EnqueueDelay) -> None:
    delay.record_sync_end("a")
    delay.forget("a")
    delay.enqueue("a")
    assert queue.take() == "a"


async def test_pods_that_are_created_one_after_the_other_share_syncs() -> None:
    async with two_zones(web_spread(), replicas=50) as stage:
        await stage.passes(10)
        before = len(stage.statuses("PUT", "/status"))
        for number in range(50):
            stage.load(a_pod(f"a{number}", "web", node="node-a", annotations=injected("a")))
            await stage.passes(0.001)
        await stage.passes(10)
        assert 1 <= len(stage.statuses("PUT", "/status")) - before <= 3
        assert len(await stage.annotations()) == 50
