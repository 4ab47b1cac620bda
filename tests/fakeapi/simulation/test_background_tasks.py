"""Events expire an hour after their last write."""

from __future__ import annotations

from extender.kube.controller_runtime.event_recorder import EVENTS
from extender.kube.rest.client import PatchType
from fakeapi import VirtualCluster
from tests.builders import thing

A, B = (
    thing(name, kind="Event", involvedObject={"namespace": "default", "name": "x"}) for name in "ab"
)


async def names(cluster: VirtualCluster) -> list[str]:
    return [c["metadata"]["name"] for c in list(cluster.history("events").states())[-1]]


async def test_an_event_expires_after_an_hour(virtual_cluster: VirtualCluster) -> None:
    await virtual_cluster.clock.advance(1)
    virtual_cluster.load([A])
    await virtual_cluster.clock.advance(1800)
    virtual_cluster.load([B])
    await virtual_cluster.clock.advance(1799)
    assert await names(virtual_cluster) == ["a", "b"]
    await virtual_cluster.clock.advance(1)
    assert await names(virtual_cluster) == ["b"]
    await virtual_cluster.clock.advance(1800)
    assert await names(virtual_cluster) == []


async def test_a_write_prolongs_it_by_an_hour(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([A])
    await virtual_cluster.clock.advance(3000)
    path = EVENTS.object("a", "default")
    await virtual_cluster.client.patch(path, PatchType.MERGE, b'{"count":2}', bytes)
    await virtual_cluster.clock.advance(3599)
    assert await names(virtual_cluster) == ["a"]
    await virtual_cluster.clock.advance(1)
    assert await names(virtual_cluster) == []


async def test_restored_events_expire_too(virtual_cluster: VirtualCluster) -> None:
    virtual_cluster.load([A])
    await virtual_cluster.clock.advance(1)
    saved = virtual_cluster.snapshot()
    await virtual_cluster.clock.advance(3600)
    assert await names(virtual_cluster) == []
    virtual_cluster.restore(saved)
    await virtual_cluster.clock.advance(3599)
    assert await names(virtual_cluster) == ["a"]
    await virtual_cluster.clock.advance(1)
    assert await names(virtual_cluster) == []
