"""Reads from a lagging watch cache, and consistent reads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest

from extender.kube.rest.transport import Request
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.testing.faults import fault
from tests.builders.definitions import DEFINITIONS, WIDGETS, definition, version, widget
from tests.fakeapi.clients.faulty_clients import MAPS, create, follow, follow_from, names


class CacheReader:
    """A client of a cluster."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.transport = cluster.local_transport("tester/1")

    async def create(self, names: str) -> None:
        for name in names:
            await create(self.transport, name)

    async def names(self, **query: str) -> list[str]:
        return await names(self.transport, **query)


@pytest.fixture
async def client() -> AsyncIterator[CacheReader]:
    async with VirtualCluster(run="none") as cluster:
        yield CacheReader(cluster)


async def test_a_list_from_a_cache_lacks_the_newest_events(client: CacheReader) -> None:
    await client.create("abc")
    client.cluster.faults.plan(fault("stale", behind=1).on((), "configmaps"))
    assert await client.names(resourceVersion="0") == ["a", "b"]
    assert await client.names(resourceVersion="0", limit="1") == ["a", "b"]
    assert await client.names() == ["a", "b", "c"]
    assert client.cluster.faults.injected == (2,)


async def test_a_list_is_never_older_than_the_requested_version(client: CacheReader) -> None:
    await client.create("ab")
    seen = str(client.cluster.api.store.version)
    await client.create("c")
    client.cluster.faults.plan(fault("stale", behind=9))
    assert await client.names(resourceVersion=seen) == ["a", "b"]


async def test_a_future_version_stays_a_504(client: CacheReader) -> None:
    await client.create("a")
    client.cluster.faults.plan(fault("stale"))
    asked = Request("GET", MAPS, (("resourceVersion", "999999"),))
    assert (await client.transport.request(asked)).status == 504


async def test_a_list_is_never_older_than_the_history(client: CacheReader) -> None:
    await client.create("a")
    client.cluster.api.store.compact(client.cluster.api.store.version)
    client.cluster.faults.plan(fault("stale", behind=9))
    assert await client.names(resourceVersion="0") == ["a"]


async def test_a_stale_list_has_its_own_version(client: CacheReader) -> None:
    await client.create("ab")
    client.cluster.faults.plan(fault("stale"))
    answer = await client.transport.request(Request("GET", MAPS, (("resourceVersion", "0"),)))
    version = orjson.loads(answer.body)["metadata"]["resourceVersion"]
    client.cluster.faults.end()
    follower = await follow_from(client.cluster, version)
    assert [frame[1:] for frame in follower.seen] == [("ADDED", "b")]


async def test_a_watch_from_a_cache_repeats_events(client: CacheReader) -> None:
    await client.create("abc")
    follower = await follow(client.cluster, fault("stale", behind=2), resourceVersion="0")
    assert [frame[1:] for frame in follower.seen] == [
        ("ADDED", "a"),
        ("ADDED", "b"),
        ("ADDED", "c"),
    ]
    await client.transport.request(Request("DELETE", f"{MAPS}/a"))
    late = await follow(client.cluster, fault("stale", behind=1), resourceVersion="0")
    assert late.seen[0][1:] == ("ADDED", "a")
    assert late.seen[-1][1:] == ("DELETED", "a")


async def test_a_stale_start_that_is_compacted_before_it_is_read_expires(
    client: CacheReader,
) -> None:
    await client.create("ab")
    rules = fault("stale"), fault("latency", seconds=5, when="after")
    follower = await follow(client.cluster, *rules, resourceVersion="0")
    client.cluster.api.store.compact(client.cluster.api.store.version)
    await client.cluster.clock.advance(5)
    assert [frame[1:] for frame in follower.seen] == [("ERROR", "Expired")]


async def test_a_streamed_list_from_a_cache_announces_its_end(client: CacheReader) -> None:
    await client.create("ab")
    asked = {
        "resourceVersion": "0",
        "resourceVersionMatch": "NotOlderThan",
        "sendInitialEvents": "true",
        "allowWatchBookmarks": "true",
    }
    follower = await follow(client.cluster, fault("stale"), **asked)
    shown = [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")]
    assert [frame[1:] for frame in follower.seen] == shown


async def test_custom_resources_can_be_planned_for_once_they_are_defined(
    client: CacheReader,
) -> None:
    rule = fault("stale").on("list", "example.com/widgets")
    with pytest.raises(PlanError, match="widgets' is not served here"):
        client.cluster.faults.plan(rule)
    versions = [version("v1"), version("v2", storage=False)]
    body = orjson.dumps(definition(versions=versions))
    assert (await client.transport.request(Request("POST", DEFINITIONS, body=body))).status == 201
    client.cluster.faults.plan(rule)
    for name in "ab":
        made = orjson.dumps(widget(name))
        assert (await client.transport.request(Request("POST", WIDGETS, body=made))).status == 201
    for path in (WIDGETS, WIDGETS.replace("/v1/", "/v2/")):
        answer = await client.transport.request(Request("GET", path, (("resourceVersion", "0"),)))
        items = orjson.loads(answer.body)["items"]
        assert [item["metadata"]["name"] for item in items] == ["a"]
