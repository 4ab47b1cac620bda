"""The informer of the official Python client, in its threads, against this server."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from kubernetes import client
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

from fakeapi import FakeCluster
from tests.builders import manifest, owner

PATIENCE_SECONDS = 20.0


class InformerEvents:
    """The events of an informer, across threads."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()
        self._changed = threading.Condition()

    def add(self, event: str, name: str) -> None:
        with self._changed:
            self._seen.add((event, name))
            self._changed.notify_all()

    async def wait_for(self, event: str, name: str) -> bool:
        """Wait for this event, and return whether it came."""
        return await asyncio.to_thread(self._wait, (event, name))

    def _wait(self, note: tuple[str, str]) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: note in self._seen, PATIENCE_SECONDS)


@asynccontextmanager
async def informer(core: Any, events: InformerEvents) -> AsyncIterator[Any]:
    """Follow the pods of a namespace until the block ends; each watch lasts a second."""
    start: Any = SharedInformer  # it has no annotations
    running = start(core.list_namespaced_pod, namespace="default", resync_period=1)
    for event in (ADDED, MODIFIED, DELETED):
        running.add_event_handler(
            event, lambda thing, event=event: events.add(event, thing.metadata.name)
        )
    running.start()
    try:
        yield running
    finally:
        await asyncio.to_thread(running.stop)


def pod_of_nginx(name: str, **metadata: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "nginx"}
    return manifest("Pod", name, metadata=metadata, spec={"containers": [container]})


@pytest.fixture
def core(cluster: FakeCluster) -> Iterator[client.CoreV1Api]:
    configuration = client.Configuration()
    configuration.host = cluster.url
    with client.ApiClient(configuration) as session:
        yield client.CoreV1Api(session)


async def test_its_informer_follows_the_server(core: Any) -> None:
    events = InformerEvents()
    await asyncio.to_thread(core.create_namespaced_pod, "default", pod_of_nginx("one"))
    async with informer(core, events) as following:
        assert await events.wait_for(ADDED, "one")
        await asyncio.to_thread(core.create_namespaced_pod, "default", pod_of_nginx("two"))
        assert await events.wait_for(ADDED, "two")
        label = {"metadata": {"labels": {"a": "b"}}}
        await asyncio.to_thread(core.patch_namespaced_pod, "two", "default", label)
        assert await events.wait_for(MODIFIED, "two")
        await asyncio.to_thread(core.delete_namespaced_pod, "one", "default")
        assert await events.wait_for(DELETED, "one")
        assert following.cache.list_keys() == ["default/two"]


async def test_its_informer_survives_compaction(cluster: FakeCluster, core: Any) -> None:
    events = InformerEvents()
    async with informer(core, events):
        await asyncio.to_thread(core.create_namespaced_pod, "default", pod_of_nginx("one"))
        assert await events.wait_for(ADDED, "one")
        cluster.load(map(pod_of_nginx, ("two", "three")))
        cluster.api.store.compact(cluster.api.store.version)
        assert await events.wait_for(ADDED, "three")


def owned(name: str, parent: Any, *, blocks: bool = False) -> dict[str, Any]:
    """Build a pod that belongs to another one."""
    meta = parent.metadata
    reference = owner(meta.name, "Pod", uid=meta.uid, blockOwnerDeletion=blocks)
    return pod_of_nginx(name, ownerReferences=[reference])


@pytest.mark.parametrize(
    ("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["child"])]
)
async def test_its_deletes_cascade_to_dependents(
    policy: str, left: list[str], cluster: FakeCluster, core: Any
) -> None:
    parent = await asyncio.to_thread(core.create_namespaced_pod, "default", pod_of_nginx("parent"))
    child = owned("child", parent, blocks=True)
    await asyncio.to_thread(core.create_namespaced_pod, "default", child)
    options = client.V1DeleteOptions(propagation_policy=policy)
    await asyncio.to_thread(core.delete_namespaced_pod, "parent", "default", body=options)
    await cluster.clock.advance(1)
    listed = await asyncio.to_thread(core.list_namespaced_pod, "default")
    assert [each.metadata.name for each in listed.items] == left


async def test_a_namespace_that_it_deletes_is_gone_with_its_content(
    cluster: FakeCluster, core: Any
) -> None:
    body = client.V1Namespace(metadata=client.V1ObjectMeta(name="shop"))
    await asyncio.to_thread(core.create_namespace, body)
    content = pod_of_nginx("p", namespace="shop")
    await asyncio.to_thread(core.create_namespaced_pod, "shop", content)
    await asyncio.to_thread(core.delete_namespace, "shop")
    await cluster.clock.advance(60)
    namespaces = await asyncio.to_thread(core.list_namespace)
    assert "shop" not in [each.metadata.name for each in namespaces.items]
    pods = await asyncio.to_thread(core.list_pod_for_all_namespaces)
    assert pods.items == []
