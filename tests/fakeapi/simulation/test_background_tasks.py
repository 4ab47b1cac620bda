"""Events expire an hour after their last write, and lists at old states after five minutes."""

from __future__ import annotations

from typing import Any

import orjson

from extender.kube.controller_runtime.event_recorder import EVENTS
from extender.kube.rest.client import PatchType
from fakeapi import VirtualCluster
from fakeapi.apiserver.endpoints import Request, Response, Watch
from tests.builders import manifest, thing
from tests.fakeapi.api_requests import NODES

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


async def test_lists_at_old_states_expire_after_five_minutes(
    virtual_cluster: VirtualCluster,
) -> None:
    async def pages(**query: str) -> tuple[int, Any]:
        answer = virtual_cluster.api.handle(Request("GET", NODES, {"limit": "1", **query}))
        assert isinstance(answer, Response)
        return answer.status, orjson.loads(answer.body)["metadata"]

    watch = virtual_cluster.api.handle(Request("GET", NODES, {"watch": "1"}))
    assert isinstance(watch, Watch)
    virtual_cluster.load([manifest("Node", "a"), manifest("Node", "b")])
    _, first = await pages()
    virtual_cluster.load([manifest("Node", "c")])
    old = {"resourceVersion": first["resourceVersion"], "resourceVersionMatch": "Exact"}
    await virtual_cluster.clock.advance(299)
    assert (await pages(**old))[0] == 200
    await virtual_cluster.clock.advance(2)
    assert (await pages(**old))[0] == 410
    status, gone = await pages(**{"continue": first["continue"]})
    assert status == 410
    assert (await pages(**{"continue": gone["continue"]}))[0] == 200
    assert len(watch.read(10)) == 3
    assert len(virtual_cluster.history("nodes")) == 3
