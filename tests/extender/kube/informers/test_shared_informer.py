"""Informers that several share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import pytest

from extender.kube.decoders.object_meta import PartialObject, decode_partial
from extender.kube.informers.shared_informer import SharedInformerFactory, resync
from extender.kube.rest.resources import NODES
from fakeapi import VirtualCluster
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.testing.faults import fault


def a_node(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}


@pytest.fixture
async def informers(virtual_cluster: VirtualCluster) -> AsyncIterator[SharedInformerFactory]:
    shared = SharedInformerFactory(virtual_cluster.client, virtual_cluster.clock, Random(1))
    yield shared
    await shared.stop()


async def test_informers_of_one_resource_share_a_cache(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    one, other = (informers.of(NODES, decode_partial) for _ in range(2))
    assert one is other
    virtual_cluster.load([a_node("a")])
    await virtual_cluster.clock.advance(1)
    assert [item.metadata.name for item in one.objects.values()] == ["a"]
    assert sum("watch" in request.query for request in virtual_cluster.requests) == 1


async def test_dropped_objects_are_reported_as_deleted(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("a")])
    shared = informers.of(NODES, decode_partial)
    await virtual_cluster.clock.advance(1)
    informers.drop(NODES, decode_partial)
    assert len(shared.objects) == 0
    assert informers.of(NODES, decode_partial) is not shared


class Heard:
    """A handler that records its events with their times."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.all: list[tuple[float, str]] = []

    def added(self, item: PartialObject) -> None:
        self._note(f"+{item.metadata.name}")

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        self._note(f"={new.metadata.name}" if old is new else f"~{new.metadata.name}")

    def removed(self, item: PartialObject) -> None:
        self._note(f"-{item.metadata.name}")

    def removed_tombstone(self, item: PartialObject) -> None:
        self._note(f"?{item.metadata.name}")

    def _note(self, what: str) -> None:
        self.all.append((self._clock.monotonic(), what))


async def test_a_copy_is_kept_until_the_last_one_leaves_it(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("a")])
    one, other = (Heard(virtual_cluster.clock) for _ in range(2))
    for heard in (one, other):
        informers.join(NODES, decode_partial).objects.add_handler(heard)
    await virtual_cluster.clock.advance(1)
    informers.leave(NODES, decode_partial, handlers=(one,))
    virtual_cluster.load([a_node("b")])
    await virtual_cluster.clock.advance(1)
    assert [what for _, what in one.all] == ["+a", "-a"]
    assert [what for _, what in other.all] == ["+a", "+b"]
    informers.leave(NODES, decode_partial, handlers=(other,))
    virtual_cluster.load([a_node("c")])
    await virtual_cluster.clock.advance(1)
    assert [what for _, what in other.all][2:] == ["?a", "?b"]


async def test_a_copy_is_kept_by_one_stream(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("a")])
    shared = informers.of(NODES, decode_partial)
    heard = Heard(virtual_cluster.clock)
    shared.objects.add_handler(heard)
    await virtual_cluster.clock.advance(1)
    virtual_cluster.load([a_node("b")])
    await virtual_cluster.client.delete(NODES.object("a"))
    await virtual_cluster.clock.advance(1)
    assert [what for _, what in heard.all] == ["+a", "+b", "-a"]
    asked = [request for request in virtual_cluster.requests if request.method == "GET"]
    assert ["sendInitialEvents=true" in request.query for request in asked] == [True]


async def test_where_streams_fail_a_copy_is_kept_all_the_same(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("a")])
    virtual_cluster.faults.plan(fault(503).on("watch", "nodes").once())
    shared = informers.of(NODES, decode_partial)
    await virtual_cluster.clock.advance(0)
    virtual_cluster.load([a_node("b")])
    await virtual_cluster.clock.advance(0)
    assert [item.metadata.name for item in shared.objects.values()] == ["a", "b"]


async def test_deletions_during_a_lost_history_are_delivered(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    virtual_cluster.load([a_node("stays")])
    saved = virtual_cluster.snapshot()
    virtual_cluster.load([a_node("goes")])
    heard = Heard(virtual_cluster.clock)
    informers.of(NODES, decode_partial).objects.add_handler(heard)
    await virtual_cluster.clock.advance(10)
    virtual_cluster.restore(saved)  # every watch expires
    await virtual_cluster.clock.advance(10)
    assert [what for _, what in heard.all] == ["+goes", "+stays", "?goes"]


async def test_a_resync_delivers_all_objects_again(
    informers: SharedInformerFactory, virtual_cluster: VirtualCluster
) -> None:
    clock = virtual_cluster.clock
    shared = informers.of(NODES, decode_partial)
    quiet, insistent = Heard(clock), Heard(clock)
    again = asyncio.create_task(resync(shared, insistent, clock, 600))
    for heard in (quiet, insistent):
        shared.objects.add_handler(heard)
    virtual_cluster.load([a_node("a")])
    await clock.advance(1000)
    virtual_cluster.load([a_node("b")])
    await clock.advance(1000)
    assert quiet.all == [(0, "+a"), (1000, "+b")]
    told = [(0, "+a"), (600, "=a"), (1000, "+b")]
    assert insistent.all == [*told, *((at, f"={name}") for at in (1200, 1800) for name in "ab")]
    again.cancel()
    await asyncio.wait((again,))


class Faulty:
    """A handler that cannot bear anything new."""

    def added(self, item: PartialObject) -> None:
        raise ZeroDivisionError(item.metadata.name)

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing."""

    def removed(self, item: PartialObject) -> None:
        """Nothing."""


async def test_a_fault_in_a_handler_is_raised_in_the_end(virtual_cluster: VirtualCluster) -> None:
    shared = SharedInformerFactory(virtual_cluster.client, virtual_cluster.clock, Random(1))
    shared.of(NODES, decode_partial).objects.add_handler(Faulty())
    virtual_cluster.load([a_node("a")])
    await virtual_cluster.clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await shared.stop()
