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
from tests.builders import manifest

PATIENCE_SECONDS = 20.0


class Notes:
    """The events of an informer, across threads."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        self._changed = threading.Condition()

    def take(self, event: str, name: str) -> None:
        with self._changed:
            self._told.add((event, name))
            self._changed.notify_all()

    async def holds(self, event: str, name: str) -> bool:
        """Wait for this event, and return whether it came."""
        return await asyncio.to_thread(self._wait, (event, name))

    def _wait(self, note: tuple[str, str]) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: note in self._told, PATIENCE_SECONDS)


@asynccontextmanager
async def informer(core: Any, notes: Notes) -> AsyncIterator[Any]:
    """Follow the pods of a namespace until the block ends; each watch lasts a second."""
    start: Any = SharedInformer  # it has no annotations
    running = start(core.list_namespaced_pod, namespace="default", resync_period=1)
    for event in (ADDED, MODIFIED, DELETED):
        running.add_event_handler(
            event, lambda thing, event=event: notes.take(event, thing.metadata.name)
        )
    running.start()
    try:
        yield running
    finally:
        await asyncio.to_thread(running.stop)


def pod(name: str) -> dict[str, Any]:
    return manifest("Pod", name, spec={"containers": [{"name": "main", "image": "nginx"}]})


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as running:
        yield running


@pytest.fixture
def core(cluster: FakeCluster) -> Iterator[client.CoreV1Api]:
    configuration = client.Configuration()
    configuration.host = cluster.url
    with client.ApiClient(configuration) as session:
        yield client.CoreV1Api(session)


async def test_its_informer_follows_the_server(
    core: Any,
) -> None:
    notes = Notes()
    await asyncio.to_thread(core.create_namespaced_pod, "default", pod("one"))
    async with informer(core, notes) as following:
        assert await notes.holds(ADDED, "one")
        await asyncio.to_thread(core.create_namespaced_pod, "default", pod("two"))
        assert await notes.holds(ADDED, "two")
        label = {"metadata": {"labels": {"a": "b"}}}
        await asyncio.to_thread(core.patch_namespaced_pod, "two", "default", label)
        assert await notes.holds(MODIFIED, "two")
        await asyncio.to_thread(core.delete_namespaced_pod, "one", "default")
        assert await notes.holds(DELETED, "one")
        assert following.cache.list_keys() == ["default/two"]


async def test_its_informer_survives_compaction(cluster: FakeCluster, core: Any) -> None:
    notes = Notes()
    async with informer(core, notes):
        await asyncio.to_thread(core.create_namespaced_pod, "default", pod("one"))
        assert await notes.holds(ADDED, "one")
        cluster.load([{**pod(name)} for name in ("two", "three")])
        cluster.api.store.compact(cluster.api.store.version)
        assert await notes.holds(ADDED, "three")


def owned(name: str, owner: Any, *, blocks: bool = False) -> dict[str, Any]:
    """Build a pod that belongs to another one."""
    reference = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "blockOwnerDeletion": blocks,
    }
    metadata = {"name": name, "namespace": "default", "ownerReferences": [reference]}
    return {**pod(name), "metadata": metadata}


@pytest.mark.parametrize(
    ("policy", "left"), [("Background", []), ("Foreground", []), ("Orphan", ["child"])]
)
async def test_its_deletes_cascade_to_dependents(
    policy: str, left: list[str], cluster: FakeCluster, core: Any
) -> None:
    parent = await asyncio.to_thread(core.create_namespaced_pod, "default", pod("parent"))
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
    content = {**pod("p"), "metadata": {"name": "p"}}
    await asyncio.to_thread(core.create_namespaced_pod, "shop", content)
    await asyncio.to_thread(core.delete_namespace, "shop")
    await cluster.clock.advance(60)
    namespaces = await asyncio.to_thread(core.list_namespace)
    assert "shop" not in [each.metadata.name for each in namespaces.items]
    pods = await asyncio.to_thread(core.list_pod_for_all_namespaces)
    assert pods.items == []
