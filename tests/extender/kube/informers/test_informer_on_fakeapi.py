"""Informer and client against a whole API server, behind a socket and without one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import orjson
import pytest

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock, SystemClock
from extender.kube.rest.resources import NODES
from fakeapi.testing.fake_cluster import FakeCluster
from tests.extender.kube.conftest import SteppedClock, Thing, thing


class Copy:
    """A sink that can be awaited until it looks as it should."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._changed = asyncio.Event()

    def replace(self, items: Sequence[Thing]) -> None:
        self.names = {item.name for item in items}
        self._changed.set()

    def upsert(self, item: Thing) -> None:
        self.names.add(item.name)
        self._changed.set()

    def remove(self, item: Thing) -> None:
        self.names.remove(item.name)
        self._changed.set()

    async def becomes(self, *names: str) -> None:
        while self.names != set(names):
            self._changed.clear()
            await self._changed.wait()


def a_node(name: str) -> bytes:
    return orjson.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})


@asynccontextmanager
async def following(client: Client, clock: Clock) -> AsyncIterator[tuple[Copy, Reflector[Thing]]]:
    copy = Copy()
    informer = Reflector(ReflectorContext(client, clock, random.Random(5)), NODES, thing, copy)
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    yield copy, informer
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@pytest.fixture(params=["socket", "memory"])
def a_client(request: pytest.FixtureRequest) -> Callable[[FakeCluster], Client]:
    """Picks the way to the cluster."""
    if request.param == "socket":
        return lambda cluster: cluster.client
    return lambda cluster: Client(cluster.local_transport())


async def test_the_copy_follows_the_cluster(a_client: Callable[[FakeCluster], Client]) -> None:
    async with FakeCluster() as cluster:
        client = a_client(cluster)
        await client.create(NODES.collection(), a_node("n1"), thing)
        async with following(client, SystemClock()) as (copy, informer):
            await copy.becomes("n1")
            await client.create(NODES.collection(), a_node("n2"), thing)
            labels = b'{"metadata":{"labels":{"zone":"a"}}}'
            await client.patch(NODES.object("n2"), PatchType.MERGE, labels, thing)
            await copy.becomes("n1", "n2")
            await client.delete(NODES.object("n1"))
            await copy.becomes("n2")
            newest = (await client.list(NODES, thing)).resource_version
            assert informer.resource_version == newest
            assert informer.watching


async def test_a_history_that_was_forgotten_is_listed_again(
    a_client: Callable[[FakeCluster], Client],
) -> None:
    names = [f"n{number}" for number in range(30)]
    async with (
        FakeCluster(history=3) as cluster,
        following(a_client(cluster), SteppedClock()) as (copy, informer),
    ):
        while not informer.watching:  # noqa: ASYNC110 a turn of the loop opens the watch
            await asyncio.sleep(0)
        cluster.load([orjson.loads(a_node(name)) for name in names])
        await copy.becomes(*names)
        assert informer.relists == 1


async def test_an_hour_of_bookmarks_and_timeouts_passes_in_an_instant() -> None:
    clock = SteppedClock()
    async with FakeCluster(run="none", clock=clock) as cluster:
        client = Client(cluster.local_transport())
        async with following(client, clock) as (copy, informer):
            while clock.elapsed < 3600:  # noqa: ASYNC110 the clock jumps while others take turns
                await asyncio.sleep(0)
            await client.create(NODES.collection(), a_node("late"), thing)
            await copy.becomes("late")
            assert informer.reconnects >= 5
            assert informer.relists == 0


async def test_refusals_carry_the_servers_reason(
    a_client: Callable[[FakeCluster], Client],
) -> None:
    async with FakeCluster() as cluster:
        client = a_client(cluster)
        await client.create(NODES.collection(), a_node("n1"), thing)
        with pytest.raises(ApiError, match="404 NotFound"):
            await client.get(NODES.object("gone"), thing)
        with pytest.raises(ApiError, match="409 AlreadyExists"):
            await client.create(NODES.collection(), a_node("n1"), thing)
        with pytest.raises(ApiError, match="409 Conflict"):
            await client.delete(NODES.object("n1"), uid="another")
