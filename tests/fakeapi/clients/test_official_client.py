"""``kubernetes``, the official client: its asyncio half, its dynamic client, and its informer."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest
from kubernetes import aio, dynamic
from kubernetes.aio import dynamic as aio_dynamic
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

from fakeapi import FakeCluster
from fakeapi.testing.threaded_cluster import ThreadedCluster
from tests.builders import manifest

WAIT_SECONDS = 20


def labelled_config_map(name: str, **data: str) -> dict[str, Any]:
    return manifest("ConfigMap", name, metadata={"labels": {"app": name}}, data=data)


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
async def session(request: pytest.FixtureRequest) -> AsyncIterator[aio.client.ApiClient]:
    """Open a session of the asyncio half, over HTTP and over HTTPS with a client certificate."""
    async with FakeCluster(tls=request.param) as cluster:
        configuration = aio.client.Configuration()
        await aio.config.load_kube_config(
            str(cluster.kubeconfig_path), client_configuration=configuration
        )
        async with aio.client.ApiClient(configuration) as session:
            yield session


@pytest.fixture
def threaded() -> Iterator[ThreadedCluster[Any]]:
    with FakeCluster.in_thread() as cluster:
        yield cluster


@pytest.fixture
def blocking(threaded: ThreadedCluster[Any]) -> Iterator[kubernetes.client.ApiClient]:
    kubeconfig = str(threaded.kubeconfig_path)
    with kubernetes.config.new_client_from_config(kubeconfig) as session:
        yield session


def _stop(informer: SharedInformer, cluster: ThreadedCluster[Any]) -> None:
    """Stop an informer, which notices it only at the next event of its watch."""
    stopping = threading.Thread(target=informer.stop)
    stopping.start()
    while stopping.is_alive():
        cluster.load([labelled_config_map("news")])
        stopping.join(0.05)


class TestAsyncio:
    async def test_it_creates_lists_patches_and_deletes(self, session: Any) -> None:
        core = aio.client.CoreV1Api(session)
        for name in "ab":
            await core.create_namespaced_config_map("default", labelled_config_map(name, k="v"))
        listed = await core.list_namespaced_config_map("default", label_selector="app=b")
        assert [found.metadata.name for found in listed.items] == ["b"]
        patched = await core.patch_namespaced_config_map("a", "default", {"data": {"x": "y"}})
        assert patched.data == {"k": "v", "x": "y"}
        await core.delete_namespaced_config_map("a", "default")
        with pytest.raises(aio.client.ApiException) as refused:
            await core.read_namespaced_config_map("a", "default")
        assert refused.value.status == 404

    async def test_it_watches(self, session: Any) -> None:
        core = aio.client.CoreV1Api(session)
        listed = await core.list_namespaced_config_map("default")
        await core.create_namespaced_config_map("default", labelled_config_map("a"))
        await core.delete_namespaced_config_map("a", "default")
        seen = []
        async with aio.watch.Watch() as watching:
            stream = watching.stream(
                core.list_namespaced_config_map,
                "default",
                resource_version=listed.metadata.resource_version,
                timeout_seconds=60,
            )
            async for event in stream:
                seen.append((event["type"], event["object"].metadata.name))
                if len(seen) == 2:
                    break
        assert seen == [("ADDED", "a"), ("DELETED", "a")]

    async def test_its_dynamic_client_discovers(self, session: Any, tmp_path: Path) -> None:
        client = await aio_dynamic.DynamicClient(session, cache_file=str(tmp_path / "discovery"))
        maps = await client.resources.get(api_version="v1", kind="ConfigMap")
        await maps.create(body=labelled_config_map("a", k="v"), namespace="default")
        found = await maps.get(name="a", namespace="default")
        assert (found.data.k, found.kind) == ("v", "ConfigMap")


class TestBlocking:
    def test_its_dynamic_client_works_beside_the_thread(
        self, blocking: kubernetes.client.ApiClient, tmp_path: Path
    ) -> None:
        client = dynamic.DynamicClient(blocking, cache_file=str(tmp_path / "discovery"))
        maps = client.resources.get(api_version="v1", kind="ConfigMap")
        maps.create(body=labelled_config_map("a", k="v"), namespace="default")
        assert [item.metadata.name for item in maps.get(namespace="default").items] == ["a"]

    def test_its_informer_follows(
        self, threaded: ThreadedCluster[Any], blocking: kubernetes.client.ApiClient
    ) -> None:
        threaded.load([labelled_config_map("a")])
        core = kubernetes.client.CoreV1Api(blocking)
        informer = SharedInformer(core.list_namespaced_config_map, namespace="default")
        seen: list[tuple[str, str]] = []
        known, gone = threading.Event(), threading.Event()

        def note(kind: str) -> Any:
            return lambda thing: seen.append((kind, thing.metadata.name))

        for kind in (ADDED, MODIFIED, DELETED):
            informer.add_event_handler(kind, note(kind))
        informer.add_event_handler(ADDED, lambda _thing: known.set())
        informer.add_event_handler(DELETED, lambda _thing: gone.set())
        informer.start()
        try:
            assert known.wait(WAIT_SECONDS)
            core.create_namespaced_config_map("default", labelled_config_map("b"))
            core.patch_namespaced_config_map("b", "default", {"data": {"x": "y"}})
            core.delete_namespaced_config_map("b", "default")
            assert gone.wait(WAIT_SECONDS)
        finally:
            _stop(informer, threaded)
        assert seen[:4] == [(ADDED, "a"), (ADDED, "b"), (MODIFIED, "b"), (DELETED, "b")]
