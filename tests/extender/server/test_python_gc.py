"""The collector skips frozen objects, and finds garbage among them later."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from extender.secure_serving.connection_limits import ConnectionProtocol, Phase
from extender.server.python_gc import FrozenObjects, limit_collections
from tests.extender.conftest import HandClock
from tests.extender.secure_serving.raw_clients import FILTER, run_listener

MANY = 5_000


class Circle:
    """A reference cycle that only the collector can free."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture(autouse=True)
def in_sight_afterwards() -> Iterator[None]:
    """Show the collector everything again."""
    yield
    gc.unfreeze()


def in_sight() -> int:
    return len(gc.get_objects())


def newcomers(count: int) -> list[list[None]]:
    return [[] for _ in range(count)]


def test_all_live_objects_are_frozen() -> None:
    world, garbage = newcomers(MANY), Circle()
    ended = weakref.ref(garbage)
    del garbage
    FrozenObjects()
    assert in_sight() < MANY == len(world)
    assert ended() is None


def test_a_few_new_objects_stay_collectable() -> None:
    hidden = FrozenObjects(MANY)
    circle = Circle()
    ended = weakref.ref(circle)
    before = gc.get_freeze_count()
    hidden.collect()
    assert gc.get_freeze_count() <= before
    del circle
    hidden.collect()
    assert ended() is None


def test_many_new_objects_are_frozen() -> None:
    hidden = FrozenObjects(MANY)
    world = newcomers(MANY)
    hidden.collect()
    assert in_sight() < MANY == len(world)


@pytest.mark.slow
def test_frozen_garbage_is_collected_after_repeated_relists() -> None:
    FrozenObjects()
    many = gc.get_freeze_count() // 10
    hidden = FrozenObjects(many)
    lost: weakref.WeakSet[Circle] = weakref.WeakSet()
    most = 0
    for _ in range(24):
        world = newcomers(many)
        under_way = Circle()
        lost.add(under_way)
        hidden.collect()
        assert in_sight() < many
        del world, under_way
        most = max(most, len(lost))
    assert 1 < most <= 6


async def test_closed_connections_leave_no_garbage() -> None:
    hidden = FrozenObjects()
    async with run_listener() as server:
        for _ in range(10):
            client = await server.connect()
            await client.send(FILTER[:-1])
            await server.wait_for_phase(Phase.BODY)
            hidden.collect()
            client.writer.transport.abort()
            await server.wait_for_connections(0)
    gc.unfreeze()
    assert sum(type(each) is ConnectionProtocol for each in gc.get_objects()) <= 2


class Glances:
    """Tells as often as given whether all is idle; notes when, and whether anything was hidden."""

    def __init__(self, clock: HandClock, *states: str) -> None:
        self._clock = clock
        self._states = states
        self.times: list[float] = []
        self.hidden: list[bool] = []
        self.over = asyncio.Event()

    def __call__(self) -> bool:
        self.times.append(round(self._clock.seconds, 2))
        self.hidden.append(gc.get_freeze_count() > 0)
        if len(self.times) >= len(self._states):
            self.over.set()
            return True
        return self._states[len(self.times) - 1] == "idle"


async def glanced(clock: HandClock, glances: Glances, synced: asyncio.Event) -> None:
    """Go on until so many glances have been had."""
    sparing = asyncio.create_task(limit_collections(synced.wait, clock, glances))
    await asyncio.sleep(0)
    assert glances.times == []
    synced.set()
    await glances.over.wait()
    sparing.cancel()
    await asyncio.wait((sparing,))


async def test_collections_wait_for_idle_time_after_the_first_lists_and_then_each_minute() -> None:
    gc.unfreeze()
    clock = HandClock()
    glances = Glances(clock, "busy", "busy", "idle", "busy", "idle")
    await glanced(clock, glances, asyncio.Event())
    assert glances.times == [0.0, 0.05, 0.1, 60.1, 60.15]
    assert glances.hidden == [False, False, False, True, True]


@pytest.mark.slow
async def test_collection_runs_even_without_idle_time() -> None:
    gc.unfreeze()
    clock = HandClock()
    glances = Glances(clock, *["busy"] * 300)
    await glanced(clock, glances, asyncio.Event())
    first = glances.hidden.index(True)
    assert 10 <= glances.times[first - 1] < 10.1
    assert 70 <= glances.times[first] < 70.1
