"""The collector skips frozen objects, and finds garbage among them later."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry

from extender.secure_serving.connection_limits import ConnectionProtocol, Phase
from extender.server.python_gc import FrozenObjects, limit_collections, observed_collections
from tests.extender.conftest import HandClock
from tests.extender.secure_serving.raw_clients import FILTER, run_listener

MANY = 5_000


class ReferenceCycle:
    """A reference cycle that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def unfreeze_afterwards() -> Iterator[None]:
    """Unfreeze all objects after each test."""
    yield
    gc.unfreeze()


def collectable_count() -> int:
    return len(gc.get_objects())


def new_objects(count: int) -> list[list[None]]:
    return [[] for _ in range(count)]


def test_all_live_objects_are_frozen() -> None:
    objects, garbage = new_objects(MANY), ReferenceCycle()
    ended = weakref.ref(garbage)
    del garbage
    FrozenObjects()
    assert collectable_count() < MANY == len(objects)
    assert ended() is None


def test_a_few_new_objects_stay_collectable() -> None:
    frozen = FrozenObjects(MANY)
    cycle = ReferenceCycle()
    ended = weakref.ref(cycle)
    before = gc.get_freeze_count()
    frozen.collect()
    assert gc.get_freeze_count() <= before
    del cycle
    frozen.collect()
    assert ended() is None


def test_many_new_objects_are_frozen() -> None:
    frozen = FrozenObjects(MANY)
    objects = new_objects(MANY)
    frozen.collect()
    assert collectable_count() < MANY == len(objects)


@pytest.mark.slow
def test_frozen_garbage_is_collected_after_repeated_relists() -> None:
    FrozenObjects()
    many = gc.get_freeze_count() // 10
    frozen = FrozenObjects(many)
    lost: weakref.WeakSet[ReferenceCycle] = weakref.WeakSet()
    most = 0
    for _ in range(24):
        objects = new_objects(many)
        under_way = ReferenceCycle()
        lost.add(under_way)
        frozen.collect()
        assert collectable_count() < many
        del objects, under_way
        most = max(most, len(lost))
    assert 1 < most <= 6


async def test_closed_connections_leave_no_garbage() -> None:
    frozen = FrozenObjects()
    async with run_listener() as server:
        for _ in range(10):
            client = await server.connect()
            await client.send(FILTER[:-1])
            await server.wait_for_phase(Phase.BODY)
            frozen.collect()
            client.writer.transport.abort()
            await server.wait_for_connections(0)
    gc.unfreeze()
    assert sum(type(each) is ConnectionProtocol for each in gc.get_objects()) <= 2


class IdleChecks:
    """Return the given states as idleness; record the times and whether objects were frozen."""

    def __init__(self, clock: HandClock, *states: str) -> None:
        self._clock = clock
        self._states = states
        self.times: list[float] = []
        self.frozen: list[bool] = []
        self.over = asyncio.Event()

    def __call__(self) -> bool:
        self.times.append(round(self._clock.seconds, 2))
        self.frozen.append(gc.get_freeze_count() > 0)
        if len(self.times) >= len(self._states):
            self.over.set()
            return True
        return self._states[len(self.times) - 1] == "idle"


async def run_checks(clock: HandClock, checks: IdleChecks, synced: asyncio.Event) -> None:
    """Limit collections until all checks have been made."""
    sparing = asyncio.create_task(limit_collections(synced.wait, clock, checks))
    await asyncio.sleep(0)
    assert checks.times == []
    synced.set()
    await checks.over.wait()
    sparing.cancel()
    await asyncio.wait((sparing,))


async def test_pauses_by_collections_are_counted_while_they_are_observed() -> None:
    registry, times = CollectorRegistry(), iter([0.0, 0.03, 5.0, 5.2])

    def seconds(bound: str) -> float | None:
        return registry.get_sample_value("python_gc_pause_seconds_bucket", {"le": bound})

    gc.disable()
    async with observed_collections(registry, lambda: next(times)):
        assert seconds("+Inf") == 0
        gc.collect()
        gc.collect()
    gc.collect()
    gc.enable()
    assert [seconds(bound) for bound in ("0.025", "0.05", "0.1", "0.25", "+Inf")] == [0, 1, 1, 2, 2]
    assert registry.get_sample_value("python_gc_pause_seconds_sum") == pytest.approx(0.23)


async def test_collections_wait_for_idle_time_after_the_first_lists_and_then_each_minute() -> None:
    gc.unfreeze()
    clock = HandClock()
    checks = IdleChecks(clock, "busy", "busy", "idle", "busy", "idle")
    await run_checks(clock, checks, asyncio.Event())
    assert checks.times == [0.0, 0.05, 0.1, 60.1, 60.15]
    assert checks.frozen == [False, False, False, True, True]


@pytest.mark.slow
async def test_collection_runs_even_without_idle_time() -> None:
    gc.unfreeze()
    clock = HandClock()
    checks = IdleChecks(clock, *["busy"] * 300)
    await run_checks(clock, checks, asyncio.Event())
    first = checks.frozen.index(True)
    assert 10 <= checks.times[first - 1] < 10.1
    assert 70 <= checks.times[first] < 70.1
