"""Many changes of pods make one look; what is wanted is heeded at once."""

from __future__ import annotations

from extender.kube.workqueue import WorkQueue
from fakeapi.clock import VirtualClock
from fakeapi.controllers.workloadspread.pace import PAUSE_FACTOR, PAUSE_SECONDS, Pace
from tests.fakeapi.controllers.replicaset.table import a_pod, a_replica_set
from tests.fakeapi.controllers.workloadspread.test_writing import IN_A, web, world


async def test_who_has_not_been_looked_at_lately_is_looked_at_at_once() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = Pace(queue, clock)
    pace.soon("a")
    assert queue.take() == "a"
    pace.looked("a")
    queue.done("a")
    await clock.advance(PAUSE_SECONDS)
    pace.soon("a")
    assert queue.take() == "a"


async def test_who_has_been_looked_at_is_left_alone_for_a_moment() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = Pace(queue, clock)
    pace.looked("a")
    await clock.advance(PAUSE_SECONDS / 2)
    for key in "aba":
        pace.soon(key)
    assert (queue.take(), queue.take()) == ("b", None)
    await clock.advance(PAUSE_SECONDS / 2)
    assert (queue.take(), queue.take()) == ("a", None)


async def test_whose_looks_take_long_is_looked_at_less_often() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = Pace(queue, clock)
    for seconds in (0.01, 0.03):  # two goes at one look
        pace.reckoned("a", seconds)
    pace.looked("a")
    pace.soon("a")
    await clock.advance(PAUSE_FACTOR * 0.04 - 0.001)
    assert queue.take() is None
    await clock.advance(0.002)
    assert queue.take() == "a"
    pace.looked("a")
    queue.done("a")
    pace.soon("a")
    await clock.advance(PAUSE_SECONDS)
    assert queue.take() == "a"


async def test_who_is_forgotten_has_no_pause() -> None:
    clock = VirtualClock()
    queue: WorkQueue[str] = WorkQueue(clock)
    pace = Pace(queue, clock)
    pace.looked("a")
    pace.forget("a")
    pace.soon("a")
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
