"""Snapshots, restores, resets and forks of every form of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

import aiohttp
import orjson
import pytest

from extender.kube.rest.resources import NODES
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.wire.http_messages import JSON
from fakeapi.testing.process_cluster import ProcessCluster
from fakeapi.testing.threaded_cluster import ThreadedCluster
from tests.builders import manifest, owner
from tests.stage import decode

A, B = (manifest("Node", name) for name in "ab")


def listed(url: str) -> list[str]:
    with urlopen(f"{url}/api/v1/nodes") as answer:  # noqa: S310 - our own server
        return [item["metadata"]["name"] for item in orjson.loads(answer.read())["items"]]


async def names(cluster: Any) -> list[str]:
    listing = await cluster.client.list(NODES, decode)
    return [item["metadata"]["name"] for item in listing.items]


@pytest.fixture(params=[FakeCluster.in_thread, FakeCluster.as_process], ids=["thread", "process"])
def apart(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster[Any] | ProcessCluster]:
    """Run a cluster outside of the test's thread."""
    create: Callable[..., AbstractContextManager[Any]] = request.param
    with create(seed=3) as cluster:
        yield cluster


def test_a_cluster_apart_loads_saves_restores_and_resets(apart: Any) -> None:
    assert apart.load([A]) == 1
    name = apart.snapshot()
    apart.load([B])
    assert listed(apart.url) == ["a", "b"]
    apart.restore(name)
    assert listed(apart.url) == ["a"]
    apart.reset()
    assert listed(apart.url) == []


def test_time_passes_in_a_cluster_apart(apart: Any) -> None:
    owned = [owner("missing", "Node")]
    apart.load([manifest("Node", "a", metadata={"ownerReferences": owned}), B])
    apart.advance(60)
    assert listed(apart.url) == ["b"]


def test_a_cluster_apart_has_a_history_and_a_request_log(apart: Any) -> None:
    apart.load([A, B])
    assert listed(apart.url)
    assert [request.path for request in apart.requests] == ["/api/v1/nodes"]
    apart.history("nodes").always(lambda nodes: len(nodes) <= 2)
    assert [change.type for change in apart.history("nodes", name="b")] == ["ADDED"]


def test_the_request_log_of_a_cluster_apart_has_bodies(apart: Any) -> None:
    body = orjson.dumps(A)
    with urlopen(UrlRequest(f"{apart.url}/api/v1/nodes", body, {"Content-Type": JSON})):  # noqa: S310
        pass
    [request] = apart.requests
    assert (request.method, request.status, request.content_type) == ("POST", 201, JSON)
    assert request.decoded_body() == orjson.loads(body)


def test_a_cluster_in_a_thread_forks_into_another() -> None:
    with FakeCluster.in_thread() as cluster:
        cluster.load([A])
        with cluster.fork() as fork:
            fork.load([B])
            assert (listed(cluster.url), listed(fork.url)) == (["a"], ["a", "b"])


def test_a_process_serves_its_forks() -> None:
    with FakeCluster.as_process() as cluster:
        cluster.load([A])
        cluster.snapshot("before")
        cluster.load([B])
        assert listed(cluster.fork("before").url) == ["a"]
        assert listed(cluster.fork().url) == ["a", "b"]


def test_an_error_in_the_thread_is_raised_in_the_caller() -> None:
    with pytest.raises(ValueError, match="no component 'sorcery'"):
        FakeCluster.in_thread(run="sorcery").__enter__()


async def test_a_fork_of_a_snapshot_is_independent() -> None:
    async with FakeCluster() as cluster:
        cluster.load([A])
        saved = cluster.snapshot()
        cluster.load([B])
        async with cluster.fork(saved) as fork, cluster.fork() as present:
            fork.load([manifest("Node", "c")])
            assert await names(cluster) == ["a", "b"]
            assert await names(fork) == ["a", "c"]
            assert await names(present) == ["a", "b"]


async def test_the_same_writes_have_the_same_result_in_a_fork() -> None:
    async with VirtualCluster(seed=5) as cluster, cluster.fork() as fork:
        for world in (cluster, fork):
            world.load([A, B])
        assert list(fork.history("nodes")) == list(cluster.history("nodes"))


async def test_after_a_restore_new_objects_have_new_uids() -> None:
    async with VirtualCluster() as cluster:
        saved = cluster.snapshot()
        uids = []
        for _ in range(2):
            cluster.load([A])
            uids.append(cluster.history("nodes")[-1].object["metadata"]["uid"])
            cluster.restore(saved)
        assert uids[0] != uids[1]


async def test_a_virtual_fork_has_a_clock_of_its_own() -> None:
    async with VirtualCluster() as cluster:
        await cluster.clock.advance(60)
        async with cluster.fork() as fork:
            assert fork.clock.now_ns() == cluster.clock.now_ns()
            await fork.clock.advance(60)
            assert fork.clock.now_ns() - cluster.clock.now_ns() == 60 * 10**9


async def test_a_watch_expires_with_a_restore(cluster: FakeCluster) -> None:
    saved = cluster.snapshot()
    async with (
        aiohttp.ClientSession(cluster.url) as http,
        http.get("/api/v1/nodes", params={"watch": "1"}) as answer,
    ):
        cluster.load([A])
        assert orjson.loads(await answer.content.readline())["type"] == "ADDED"
        cluster.restore(saved)
        frame = orjson.loads(await answer.content.readline())
    assert (frame["type"], frame["object"]["code"]) == ("ERROR", 410)


async def test_worlds_are_managed_over_http(cluster: FakeCluster) -> None:
    async def post(action: str, status: int = 200) -> Any:
        async with http.post(f"/_fakeapi/{action}") as answer:
            assert answer.status == status
            return await answer.json()

    async with aiohttp.ClientSession(cluster.url) as http:
        cluster.load([A])
        assert (await post("snapshot?name=one"))["name"] == "one"
        assert (await post("snapshot"))["name"] == "snapshot-1"
        cluster.load([B])
        fork = await post("fork/one")
        async with aiohttp.ClientSession(fork["url"]) as other, other.get("/api/v1/nodes") as nodes:
            assert len((await nodes.json())["items"]) == 1
        await post("restore/one")
        assert await names(cluster) == ["a"]
        refusal = await post("restore/two", 404)
        assert refusal["message"] == "no snapshot 'two'; there are: one, snapshot-1"
        await post("fork/two", 404)
