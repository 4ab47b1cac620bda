"""Informers that several components share."""

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
from tests.builders import manifest
from tests.stage import Stage


class InformerStage(Stage):
    """A stage with informers."""

    informers: SharedInformerFactory

    def load_nodes(self, *names: str) -> None:
        self.load(*(manifest("Node", name) for name in names))


@pytest.fixture
async def stage(virtual_cluster: VirtualCluster) -> AsyncIterator[InformerStage]:
    stage = InformerStage(virtual_cluster)
    stage.informers = SharedInformerFactory(stage.client, virtual_cluster.clock, Random(1))
    yield stage
    await stage.informers.stop()


async def test_informers_of_one_resource_share_a_cache(stage: InformerStage) -> None:
    one, other = (stage.informers.of(NODES, decode_partial) for _ in range(2))
    assert one is other
    stage.load_nodes("a")
    await stage.passes(1)
    assert [item.metadata.name for item in one.objects.values()] == ["a"]
    assert sum("watch" in request.query for request in stage.cluster.requests) == 1


async def test_dropped_objects_are_reported_as_deleted(stage: InformerStage) -> None:
    stage.load_nodes("a")
    shared = stage.informers.of(NODES, decode_partial)
    await stage.passes(1)
    stage.informers.drop(NODES, decode_partial)
    assert len(shared.objects) == 0
    assert stage.informers.of(NODES, decode_partial) is not shared


class RecordingHandler:
    """A handler that records its events with their times."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.all: list[tuple[float, str]] = []

    def added(self, item: PartialObject) -> None:
        self._record(f"+{item.metadata.name}")

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        self._record(f"={new.metadata.name}" if old is new else f"~{new.metadata.name}")

    def removed(self, item: PartialObject) -> None:
        self._record(f"-{item.metadata.name}")

    def removed_tombstone(self, item: PartialObject) -> None:
        self._record(f"?{item.metadata.name}")

    def _record(self, change: str) -> None:
        self.all.append((self._clock.monotonic(), change))


async def test_an_informer_runs_until_the_last_handler_leaves(stage: InformerStage) -> None:
    stage.load_nodes("a")
    one, other = (RecordingHandler(stage.cluster.clock) for _ in range(2))
    for handler in (one, other):
        stage.informers.join(NODES, decode_partial).objects.add_handler(handler)
    await stage.passes(1)
    stage.informers.leave(NODES, decode_partial, handlers=(one,))
    stage.load_nodes("b")
    await stage.passes(1)
    assert [change for _, change in one.all] == ["+a", "-a"]
    assert [change for _, change in other.all] == ["+a", "+b"]
    stage.informers.leave(NODES, decode_partial, handlers=(other,))
    stage.load_nodes("c")
    await stage.passes(1)
    assert [change for _, change in other.all][2:] == ["?a", "?b"]


async def test_one_stream_feeds_a_cache(stage: InformerStage) -> None:
    stage.load_nodes("a")
    shared = stage.informers.of(NODES, decode_partial)
    handler = RecordingHandler(stage.cluster.clock)
    shared.objects.add_handler(handler)
    await stage.passes(1)
    stage.load_nodes("b")
    await stage.delete(NODES, "a")
    await stage.passes(1)
    assert [change for _, change in handler.all] == ["+a", "+b", "-a"]
    reads = [request for request in stage.cluster.requests if request.method == "GET"]
    assert ["sendInitialEvents=true" in request.query for request in reads] == [True]


async def test_a_cache_is_fed_by_list_and_watch_if_the_stream_fails(stage: InformerStage) -> None:
    stage.load_nodes("a")
    stage.plan_faults(fault(503).on("watch", "nodes").once())
    shared = stage.informers.of(NODES, decode_partial)
    await stage.passes(0)
    stage.load_nodes("b")
    await stage.passes(0)
    assert [item.metadata.name for item in shared.objects.values()] == ["a", "b"]


async def test_deletions_during_a_lost_history_are_delivered(stage: InformerStage) -> None:
    stage.load_nodes("stays")
    saved = stage.cluster.snapshot()
    stage.load_nodes("removed")
    handler = RecordingHandler(stage.cluster.clock)
    stage.informers.of(NODES, decode_partial).objects.add_handler(handler)
    await stage.passes(10)
    stage.cluster.restore(saved)  # every watch expires
    await stage.passes(10)
    assert [change for _, change in handler.all] == ["+removed", "+stays", "?removed"]


async def test_a_resync_delivers_all_objects_again(stage: InformerStage) -> None:
    clock = stage.cluster.clock
    shared = stage.informers.of(NODES, decode_partial)
    once, again = RecordingHandler(clock), RecordingHandler(clock)
    resyncing = asyncio.create_task(resync(shared, again, clock, 600))
    for handler in (once, again):
        shared.objects.add_handler(handler)
    stage.load_nodes("a")
    await clock.advance(1000)
    stage.load_nodes("b")
    await clock.advance(1000)
    assert once.all == [(0, "+a"), (1000, "+b")]
    changes = [(0, "+a"), (600, "=a"), (1000, "+b")]
    assert again.all == [*changes, *((at, f"={name}") for at in (1200, 1800) for name in "ab")]
    resyncing.cancel()
    await asyncio.wait((resyncing,))


class FailingHandler:
    """A handler that fails for new objects."""

    def added(self, item: PartialObject) -> None:
        raise ZeroDivisionError(item.metadata.name)

    def updated(self, old: PartialObject, new: PartialObject) -> None:
        """Nothing."""

    def removed(self, item: PartialObject) -> None:
        """Nothing."""


async def test_an_error_of_a_handler_is_raised_by_stop(virtual_cluster: VirtualCluster) -> None:
    shared = SharedInformerFactory(virtual_cluster.client, virtual_cluster.clock, Random(1))
    shared.of(NODES, decode_partial).objects.add_handler(FailingHandler())
    virtual_cluster.load([manifest("Node", "a")])
    await virtual_cluster.clock.advance(1)
    with pytest.raises(ZeroDivisionError):
        await shared.stop()
