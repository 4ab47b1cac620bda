"""An operator written with kopf, with fakeapi as its API server.

The operator keeps a config map for each widget. kopf watches the definition and the widgets, adds
its finalizer and annotations to them, and patches the results of handlers into their status.

kopf's own end-to-end tests are in its repository only, not in its package.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import kopf
import lightkube
import msgspec
import pytest
from lightkube import KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client, PatchType
from extender.kube.rest.resources import Resource
from fakeapi import FakeCluster
from tests.builders import encoded
from tests.builders.definitions import ANYTHING, INTEGER, definition, record, version, widget

PATIENCE_SECONDS = 30.0
WIDGETS = Resource("example.com", "v1", "widgets", namespaced=True)
CONFIG_MAPS = Resource("", "v1", "configmaps", namespaced=True)
ONE = WIDGETS.object("one", "default")
CHILD = CONFIG_MAPS.object("one", "default")
FINALIZER = "example.com/tidy"
SCHEMA = record(spec=record(size=INTEGER), status=ANYTHING)
DEFINITION = definition(versions=[version(schema=SCHEMA, subresources={"status": {}})])


def decode(body: msgspec.Raw) -> Any:
    return msgspec.json.decode(body)


def operator(client: lightkube.Client, url: str) -> kopf.OperatorRegistry:
    """Return the operator's handlers."""
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return kopf.ConnectionInfo(server=url)

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.persistence.finalizer = FINALIZER
        settings.posting.enabled = False

    @kopf.on.create("example.com", "v1", "widgets", registry=registry, id="create")
    def create(**of: Any) -> dict[str, Any]:
        size = of["spec"]["size"]
        metadata = ObjectMeta(name=of["name"], namespace=of["namespace"])
        client.create(ConfigMap(metadata=metadata, data={"size": str(size)}))
        return {"size": size}

    @kopf.on.update("example.com", "v1", "widgets", registry=registry, field="spec.size")
    def resize(**of: Any) -> None:
        change = {"data": {"size": str(of["new"])}}
        client.patch(ConfigMap, of["name"], change, namespace=of["namespace"])
        of["patch"].status["resized"] = of["new"]

    @kopf.on.delete("example.com", "v1", "widgets", registry=registry)
    def delete(**of: Any) -> None:
        client.delete(ConfigMap, of["name"], namespace=of["namespace"])

    return registry


@asynccontextmanager
async def running(registry: kopf.OperatorRegistry) -> AsyncIterator[None]:
    """Run an operator until the block ends, in a thread, since it stops its event loop."""
    ready, stop = threading.Event(), threading.Event()

    def work() -> None:
        operating = kopf.operator(
            registry=registry, clusterwide=True, ready_flag=ready, stop_flag=stop
        )
        asyncio.run(operating)

    thread = asyncio.create_task(asyncio.to_thread(work))
    try:
        assert await asyncio.to_thread(ready.wait, PATIENCE_SECONDS)
        yield
    finally:
        stop.set()
        await thread


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    """Return the client of a cluster that the operator works in."""
    async with FakeCluster() as cluster:
        cluster.load([DEFINITION])
        config = KubeConfig.from_file(cluster.kubeconfig_path)
        with lightkube.Client(config=config) as writer:
            async with running(operator(writer, cluster.url)):
                yield cluster.client


async def until(client: Client, holds: Callable[[Any], bool]) -> Any:
    """Return the widget once a condition holds for it."""
    listing = await client.list(WIDGETS, decode)
    found = [thing for thing in listing.items if holds(thing)]
    if found:
        return found[0]
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        client.watch(
            WIDGETS, resource_version=listing.resource_version, timeout_seconds=60
        ) as events,
    ):
        async for event in events:
            if holds(seen := decode(event.object)):
                return seen
    raise AssertionError("the watch ended")


async def create_one(client: Client, size: int = 3) -> Any:
    """Create the widget, and wait until the operator has handled it."""
    await client.create(WIDGETS.collection("default"), encoded(widget(size=size)), decode)
    return await until(client, lambda thing: "create" in thing.get("status", {}))


async def test_it_creates_the_child_of_a_new_object(client: Client) -> None:
    one = await create_one(client)
    assert (await client.get(CHILD, decode))["data"] == {"size": "3"}
    assert one["status"]["create"] == {"size": 3}
    assert one["metadata"]["finalizers"] == [FINALIZER]
    assert one["metadata"]["generation"] == 1


async def test_it_follows_a_change(client: Client) -> None:
    await create_one(client)
    await client.patch(ONE, PatchType.MERGE, b'{"spec":{"size":7}}', decode)
    one = await until(client, lambda thing: thing.get("status", {}).get("resized") == 7)
    assert (await client.get(CHILD, decode))["data"] == {"size": "7"}
    assert one["metadata"]["generation"] == 2


async def test_it_cleans_up_before_an_object_is_deleted(client: Client) -> None:
    await create_one(client)
    await client.delete(ONE)
    await until(client, lambda thing: "finalizers" not in thing["metadata"])
    for path in (CHILD, ONE):
        with pytest.raises(ApiError) as refused:
            await client.get(path, decode)
        assert refused.value.status == 404
