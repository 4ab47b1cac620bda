"""Clusters in one `async with`."""

from __future__ import annotations

import pytest

from extender.kube.rest.kubeconfig import kubeconfig_endpoint
from extender.kube.rest.resources import NODES, PODS
from fakeapi import FakeCluster
from fakeapi.apiserver.endpoints import StatusError
from tests.builders import container_json, encoded, manifest
from tests.stage import decode

NODE = manifest("Node", "n")


async def test_a_cluster_serves_loaded_objects() -> None:
    async with FakeCluster() as cluster:
        assert cluster.load([NODE]) == 1
        node = await cluster.client.get(NODES.object("n"), decode)
    assert node["metadata"]["name"] == "n"
    assert manifest("Node", "n") == NODE


async def test_lists_are_loaded_item_by_item() -> None:
    async with FakeCluster() as cluster:
        assert cluster.load([{"kind": "List", "apiVersion": "v1", "items": [NODE, NODE]}]) == 2


async def test_an_error_in_a_loaded_manifest_is_reported() -> None:
    async with FakeCluster() as cluster:
        with pytest.raises(StatusError, match="no kind 'Widget'"):
            cluster.load([{"kind": "Widget", "apiVersion": "v1"}])


async def test_the_kubeconfig_is_removed_with_the_server() -> None:
    async with FakeCluster() as cluster:
        endpoint = await kubeconfig_endpoint(cluster.kubeconfig_path, None, {})
        assert endpoint.url == cluster.url
    assert not cluster.kubeconfig_path.exists()


async def test_the_same_seed_gives_the_same_uids() -> None:
    async def uid(seed: int) -> str:
        async with FakeCluster(seed=seed) as cluster:
            spec = {"containers": [container_json()]}
            body = encoded({"metadata": {"generateName": "p-"}, "spec": spec})
            pod = await cluster.client.create(PODS.collection("default"), body, decode)
            return f"{pod['metadata']['name']} {pod['metadata']['uid']}"

    assert await uid(1) == await uid(1)
    assert await uid(1) != await uid(2)


async def test_clusters_are_independent() -> None:
    async with FakeCluster() as one, FakeCluster() as other:
        one.load([NODE])
        assert one.url != other.url
        assert (await other.client.list(NODES, decode)).items == []


async def test_the_local_transport_reads_the_same_objects() -> None:
    async with FakeCluster() as cluster:
        cluster.load([NODE])
        local = cluster.local_transport()
        over_http = await cluster.client.list(NODES, decode)
        without = await type(cluster.client)(local).list(NODES, decode)
        await local.close()
    assert over_http == without
