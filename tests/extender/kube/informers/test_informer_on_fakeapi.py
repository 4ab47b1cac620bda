"""Informer and client against a whole API server, behind a socket and without one."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec
import pytest

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.clock import Clock, SystemClock
from extender.kube.rest.resources import NODES
from fakeapi.testing.fake_cluster import FakeCluster
from tests.builders import encoded, manifest
from tests.extender.conftest import GatedTransport
from tests.extender.kube.conftest import SteppedClock, Thing, thing


class NameStore:
    """A store of names; tests can wait for its contents."""

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


def in_capitals(raw: msgspec.Raw) -> Thing:
    found = thing(raw)
    return replace(found, name=found.name.upper())


def a_node(name: str) -> bytes:
    return encoded(manifest("Node", name))


@asynccontextmanager
async def following(
    client: Client, clock: Clock
) -> AsyncIterator[tuple[NameStore, Reflector[Thing]]]:
    store = NameStore()
    informer = Reflector(ReflectorContext(client, clock, random.Random(5)), NODES, thing, store)
    running = asyncio.create_task(informer.run())
    await informer.wait_synced()
    yield store, informer
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@pytest.fixture(params=["socket", "memory"])
def a_client(request: pytest.FixtureRequest) -> Callable[[FakeCluster], Client]:
    """Return a function that connects a client, over a socket or without one."""
    if request.param == "socket":
        return lambda cluster: cluster.client
    return lambda cluster: Client(cluster.local_transport())


async def test_the_cache_follows_the_cluster(a_client: Callable[[FakeCluster], Client]) -> None:
    async with FakeCluster() as cluster:
        client = a_client(cluster)
        await client.create(NODES.collection(), a_node("n1"), thing)
        async with following(client, SystemClock()) as (store, informer):
            await store.becomes("n1")
            await client.create(NODES.collection(), a_node("n2"), thing)
            labels = b'{"metadata":{"labels":{"zone":"a"}}}'
            await client.patch(NODES.object("n2"), PatchType.MERGE, labels, thing)
            await store.becomes("n1", "n2")
            await client.delete(NODES.object("n1"))
            await store.becomes("n2")
            newest = (await client.list(NODES, thing)).resource_version
            assert informer.resource_version == newest
            assert informer.watching


async def test_a_relist_decodes_all_objects_anew(
    a_client: Callable[[FakeCluster], Client],
) -> None:
    async with FakeCluster() as cluster:
        client = a_client(cluster)
        await client.create(NODES.collection(), a_node("n1"), thing)
        async with following(client, SystemClock()) as (store, informer):
            for decode, first, both in (
                (in_capitals, {"N1"}, {"N1", "N2"}),
                (thing, {"n1", "n2"}, {"n1", "n2"}),
            ):
                await informer.relist(decode)
                assert store.names == first
                with contextlib.suppress(ApiError):  # it exists the second time
                    await client.create(NODES.collection(), a_node("n2"), thing)
                await store.becomes(*both)
            assert informer.relists == 2


async def test_a_list_that_is_decoded_the_old_way_is_not_used() -> None:
    async with FakeCluster() as cluster:
        await cluster.client.create(NODES.collection(), a_node("n1"), thing)
        transport, store = GatedTransport(cluster.local_transport()), NameStore()
        context = ReflectorContext(Client(transport), SystemClock(), random.Random(5))
        informer = Reflector(context, NODES, thing, store)
        running = asyncio.create_task(informer.run())
        relisting = asyncio.create_task(informer.relist(in_capitals))
        await asyncio.sleep(0)  # the first list waits for the gate
        transport.gate.set()
        await relisting
        assert (store.names, informer.relists) == ({"N1"}, 0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_objects_are_listed_again_after_a_lost_history(
    a_client: Callable[[FakeCluster], Client],
) -> None:
    names = [f"n{number}" for number in range(30)]
    async with (
        FakeCluster(history=3) as cluster,
        following(a_client(cluster), SteppedClock()) as (store, informer),
    ):
        while not informer.watching:  # noqa: ASYNC110 the watch is opened by the event loop
            await asyncio.sleep(0)
        cluster.load([manifest("Node", name) for name in names])
        await store.becomes(*names)
        assert informer.relists == 1


async def test_bookmarks_and_timeouts_of_an_hour_cause_no_list() -> None:
    clock = SteppedClock()
    async with FakeCluster(run="none", clock=clock) as cluster:
        client = Client(cluster.local_transport())
        async with following(client, clock) as (store, informer):
            while clock.elapsed < 3600:  # noqa: ASYNC110 the clock jumps while other tasks run
                await asyncio.sleep(0)
            await client.create(NODES.collection(), a_node("late"), thing)
            await store.becomes("late")
            assert informer.reconnects >= 5
            assert informer.relists == 0


async def test_refusals_have_the_reason_of_the_server(
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
