"""Worlds that are saved, brought back, reset and forked, in every form of a cluster."""

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
from tests.builders import manifest


def node(name: str) -> dict[str, Any]:
    return manifest("Node", name)


def listed(url: str) -> list[str]:
    with urlopen(f"{url}/api/v1/nodes") as answer:  # noqa: S310 - our own server
        return [item["metadata"]["name"] for item in orjson.loads(answer.read())["items"]]


async def names(cluster: Any) -> list[str]:
    listing = await cluster.client.list(NODES, lambda raw: orjson.loads(bytes(raw)))
    return [item["metadata"]["name"] for item in listing.items]


@pytest.fixture(params=[FakeCluster.in_thread, FakeCluster.as_process], ids=["thread", "process"])
def apart(request: pytest.FixtureRequest) -> Iterator[ThreadedCluster[Any] | ProcessCluster]:
    """A cluster outside of the test's thread."""
    create: Callable[..., AbstractContextManager[Any]] = request.param
    with create(seed=3) as cluster:
        yield cluster


def test_a_cluster_apart_loads_saves_restores_and_resets(apart: Any) -> None:
    assert apart.load([node("a")]) == 1
    name = apart.snapshot()
    apart.load([node("b")])
    assert listed(apart.url) == ["a", "b"]
    apart.restore(name)
    assert listed(apart.url) == ["a"]
    apart.reset()
    assert listed(apart.url) == []


def test_time_passes_in_a_cluster_apart(apart: Any) -> None:
    owned = [{"apiVersion": "v1", "kind": "Node", "name": "nobody", "uid": "nobody"}]
    orphan = {**node("a"), "metadata": {"name": "a", "ownerReferences": owned}}
    apart.load([orphan, node("b")])
    apart.advance(60)
    assert listed(apart.url) == ["b"]


def test_a_cluster_apart_tells_what_has_happened(apart: Any) -> None:
    apart.load([node("a"), node("b")])
    assert listed(apart.url)
    assert [request.path for request in apart.requests] == ["/api/v1/nodes"]
    apart.history("nodes").always(lambda nodes: len(nodes) <= 2)
    assert [change.type for change in apart.history("nodes", name="b")] == ["ADDED"]


def test_a_cluster_apart_tells_what_it_was_sent(apart: Any) -> None:
    body = orjson.dumps({"kind": "Node", "apiVersion": "v1", "metadata": {"name": "a"}})
    headers = {"Content-Type": "application/json"}
    with urlopen(UrlRequest(f"{apart.url}/api/v1/nodes", body, headers)):  # noqa: S310
        pass
    [request] = apart.requests
    assert (request.method, request.status, request.content_type) == ("POST", 201, JSON)
    assert request.decoded_body() == orjson.loads(body)


def test_a_cluster_in_a_thread_forks_into_another() -> None:
    with FakeCluster.in_thread() as cluster:
        cluster.load([node("a")])
        with cluster.fork() as fork:
            fork.load([node("b")])
            assert (listed(cluster.url), listed(fork.url)) == (["a"], ["a", "b"])


def test_a_process_serves_its_forks() -> None:
    with FakeCluster.as_process() as cluster:
        cluster.load([node("a")])
        cluster.snapshot("before")
        cluster.load([node("b")])
        assert listed(cluster.fork("before")) == ["a"]
        assert listed(cluster.fork()) == ["a", "b"]


def test_an_error_in_the_thread_is_raised_in_the_caller() -> None:
    with pytest.raises(ValueError, match="no component 'sorcery'"):
        FakeCluster.in_thread(run="sorcery").__enter__()


async def test_a_fork_goes_on_from_a_snapshot_and_neither_sees_the_other() -> None:
    async with FakeCluster() as cluster:
        cluster.load([node("a")])
        saved = cluster.snapshot()
        cluster.load([node("b")])
        async with cluster.fork(saved) as fork, cluster.fork() as present:
            fork.load([node("c")])
            assert await names(cluster) == ["a", "b"]
            assert await names(fork) == ["a", "c"]
            assert await names(present) == ["a", "b"]


async def test_the_same_acts_in_both_have_the_same_outcome() -> None:
    async with VirtualCluster(seed=5) as cluster, cluster.fork() as fork:
        for world in (cluster, fork):
            world.load([node("a"), node("b")])
        assert list(fork.history("nodes")) == list(cluster.history("nodes"))


async def test_after_a_restore_new_objects_have_new_uids() -> None:
    async with VirtualCluster() as cluster:
        saved = cluster.snapshot()
        uids = []
        for _ in range(2):
            cluster.load([node("a")])
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
        cluster.load([node("a")])
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
        cluster.load([node("a")])
        assert (await post("snapshot?name=one"))["name"] == "one"
        assert (await post("snapshot"))["name"] == "snapshot-1"
        cluster.load([node("b")])
        fork = await post("fork/one")
        async with aiohttp.ClientSession(fork["url"]) as other, other.get("/api/v1/nodes") as nodes:
            assert len((await nodes.json())["items"]) == 1
        await post("restore/one")
        assert await names(cluster) == ["a"]
        refusal = await post("restore/two", 404)
        assert refusal["message"] == "no snapshot 'two'; there are: one, snapshot-1"
        await post("fork/two", 404)
