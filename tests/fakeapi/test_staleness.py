"""Reads from a lagging watch cache, and consistent reads."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson
import pytest

from extender.kube.rest.transport import Request
from fakeapi import VirtualCluster
from fakeapi.apiserver.serving.local_transport import LocalTransport
from fakeapi.apiserver.testing.fault_injection import PlanError
from fakeapi.testing.faults import fault
from tests.builders.definitions import DEFINITIONS, WIDGETS, definition, version, widget
from tests.fakeapi.faulty_clients import MAPS, create, follow, follow_from, names


@pytest.fixture
async def cluster() -> AsyncIterator[VirtualCluster]:
    async with VirtualCluster(run="none") as cluster:
        yield cluster


@pytest.fixture
def transport(cluster: VirtualCluster) -> LocalTransport:
    return cluster.local_transport("tester/1")


async def create_all(transport: LocalTransport, names: str) -> None:
    for name in names:
        await create(transport, name)


class TestStaleness:
    async def test_a_list_from_a_cache_lacks_the_newest_events(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "abc")
        cluster.faults.plan(fault("stale", behind=1).on((), "configmaps"))
        assert await names(transport, resourceVersion="0") == ["a", "b"]
        assert await names(transport, resourceVersion="0", limit="1") == ["a", "b"]
        assert await names(transport) == ["a", "b", "c"]
        assert cluster.faults.injected == (2,)

    async def test_a_list_is_never_older_than_the_requested_version(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "ab")
        seen = str(cluster.api.store.version)
        await create(transport, "c")
        cluster.faults.plan(fault("stale", behind=9))
        assert await names(transport, resourceVersion=seen) == ["a", "b"]

    async def test_a_future_version_stays_a_504(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create(transport, "a")
        cluster.faults.plan(fault("stale"))
        asked = Request("GET", MAPS, (("resourceVersion", "999999"),))
        assert (await transport.request(asked)).status == 504

    async def test_a_list_is_never_older_than_the_history(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create(transport, "a")
        cluster.api.store.compact(cluster.api.store.version)
        cluster.faults.plan(fault("stale", behind=9))
        assert await names(transport, resourceVersion="0") == ["a"]

    async def test_a_stale_list_has_its_own_version(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "ab")
        cluster.faults.plan(fault("stale"))
        answer = await transport.request(Request("GET", MAPS, (("resourceVersion", "0"),)))
        version = orjson.loads(answer.body)["metadata"]["resourceVersion"]
        cluster.faults.end()
        follower = await follow_from(cluster, version)
        assert [frame[1:] for frame in follower.seen] == [("ADDED", "b")]

    async def test_a_watch_from_a_cache_repeats_events(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "abc")
        follower = await follow(cluster, fault("stale", behind=2), resourceVersion="0")
        assert [frame[1:] for frame in follower.seen] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
            ("ADDED", "c"),
        ]
        await transport.request(Request("DELETE", f"{MAPS}/a"))
        late = await follow(cluster, fault("stale", behind=1), resourceVersion="0")
        assert late.seen[0][1:] == ("ADDED", "a")
        assert late.seen[-1][1:] == ("DELETED", "a")

    async def test_a_stale_start_that_is_compacted_before_it_is_read_expires(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "ab")
        rules = fault("stale"), fault("latency", seconds=5, when="after")
        follower = await follow(cluster, *rules, resourceVersion="0")
        cluster.api.store.compact(cluster.api.store.version)
        await cluster.clock.advance(5)
        assert [frame[1:] for frame in follower.seen] == [("ERROR", "Expired")]

    async def test_a_streamed_list_from_a_cache_announces_its_end(
        self, cluster: VirtualCluster, transport: LocalTransport
    ) -> None:
        await create_all(transport, "ab")
        asked = {
            "resourceVersion": "0",
            "resourceVersionMatch": "NotOlderThan",
            "sendInitialEvents": "true",
            "allowWatchBookmarks": "true",
        }
        follower = await follow(cluster, fault("stale"), **asked)
        shown = [("ADDED", "a"), ("BOOKMARK", ""), ("ADDED", "b")]
        assert [frame[1:] for frame in follower.seen] == shown


async def test_custom_resources_can_be_planned_for_once_they_are_defined(
    cluster: VirtualCluster, transport: LocalTransport
) -> None:
    rule = fault("stale").on("list", "example.com/widgets")
    with pytest.raises(PlanError, match="widgets' is not served here"):
        cluster.faults.plan(rule)
    versions = [version("v1"), version("v2", storage=False)]
    body = orjson.dumps(definition(versions=versions))
    assert (await transport.request(Request("POST", DEFINITIONS, body=body))).status == 201
    cluster.faults.plan(rule)
    for name in "ab":
        made = orjson.dumps(widget(name))
        assert (await transport.request(Request("POST", WIDGETS, body=made))).status == 201
    for path in (WIDGETS, WIDGETS.replace("/v1/", "/v2/")):
        answer = await transport.request(Request("GET", path, (("resourceVersion", "0"),)))
        items = orjson.loads(answer.body)["items"]
        assert [item["metadata"]["name"] for item in items] == ["a"]
