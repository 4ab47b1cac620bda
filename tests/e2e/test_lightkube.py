"""lightkube with fakeapi as its API server: everyday operations, and its models of objects."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.apiextensions_v1 import (
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
    CustomResourceSubresources,
    CustomResourceSubresourceScale,
    CustomResourceValidation,
    JSONSchemaProps,
)
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.apiextensions_v1 import CustomResourceDefinition
from lightkube.resources.apps_v1 import Deployment
from lightkube.resources.core_v1 import ConfigMap, Node, Pod
from lightkube.types import PatchType

from fakeapi import FakeCluster
from tests.builders import manifest, workload_json


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as running:
        running.load([manifest("Node", "node")])
        yield running


@pytest.fixture
async def client(cluster: FakeCluster) -> AsyncIterator[AsyncClient]:
    connected = AsyncClient(
        config=KubeConfig.from_file(cluster.kubeconfig_path),
        namespace="default",
        field_manager="tests",
    )
    yield connected
    await connected.close()


JSON_PATCH = [
    {"op": "replace", "path": "/data/a", "value": "2"},
    {"op": "remove", "path": "/data/b"},
]


def pod_of_web(name: str) -> Pod:
    spec = PodSpec(containers=[Container(name="main", image="nginx")])
    return Pod(metadata=ObjectMeta(name=name, labels={"app": "web"}), spec=spec)


def settings(**data: str) -> ConfigMap:
    metadata = ObjectMeta(name="settings", namespace="default")
    return ConfigMap(apiVersion="v1", kind="ConfigMap", metadata=metadata, data=data)


async def test_it_creates_reads_lists_and_deletes(client: Any) -> None:
    created = await client.create(pod_of_web("one"))
    assert created.status.phase == "Pending"
    assert [found.metadata.name async for found in client.list(Pod, labels={"app": "web"})] == [
        "one"
    ]
    await client.delete(Pod, "one", grace_period=0)
    with pytest.raises(ApiError) as refused:
        await client.get(Pod, "one")
    assert refused.value.status.code == 404


async def test_it_waits_until_a_pod_runs(cluster: FakeCluster, client: Any) -> None:
    for part in ("scheduler", "kubelet"):
        cluster.control_plane[part].start()
    async with asyncio.timeout(20):
        await client.create(pod_of_web("one"))
        ready = await client.wait(Pod, "one", for_conditions=["Ready"])
    assert ready.spec.nodeName == "node"


async def test_it_watches(client: Any) -> None:
    await client.create(settings(a="1"))
    seen = []
    async for operation, found in client.watch(ConfigMap):
        seen.append((operation, found.metadata.name))
        if len(seen) == 1:
            await client.patch(ConfigMap, "settings", {"data": {"a": "2"}})
        elif len(seen) == 2:
            await client.delete(ConfigMap, "settings")
        else:
            break
    assert seen == [("ADDED", "settings"), ("MODIFIED", "settings"), ("DELETED", "settings")]


@pytest.mark.parametrize(
    ("kind", "patch"),
    [
        (PatchType.STRATEGIC, {"data": {"a": "2", "b": None}}),
        (PatchType.MERGE, {"data": {"a": "2", "b": None}}),
        (PatchType.JSON, JSON_PATCH),
    ],
    ids=lambda value: value.name.lower() if isinstance(value, PatchType) else "",
)
async def test_it_patches(client: Any, kind: PatchType, patch: Any) -> None:
    await client.create(settings(a="1", b="1"))
    patched = await client.patch(ConfigMap, "settings", patch, patch_type=kind)
    assert patched.data == {"a": "2"}


async def test_applying_less_removes_what_was_applied(client: Any) -> None:
    await client.apply(settings(a="1", b="1"))
    applied = await client.apply(settings(a="1"))
    assert applied.data == {"a": "1"}


async def test_an_applied_field_of_another_is_a_conflict(client: Any) -> None:
    await client.apply(settings(a="1"))
    with pytest.raises(ApiError, match=r'conflict with "tests": \.data\.a'):
        await client.apply(settings(a="2"), field_manager="other")
    forced = await client.apply(settings(a="2"), field_manager="other", force=True)
    assert forced.data == {"a": "2"}


async def test_it_scales(client: Any) -> None:
    await client.create(Deployment.from_dict(workload_json("Deployment", "web")))
    scale = await client.get(Deployment.Scale, "web")
    scale.spec.replicas = 3
    await client.replace(scale, "web")
    assert (await client.get(Deployment, "web")).spec.replicas == 3


async def test_it_deletes_a_collection(client: Any) -> None:
    for name in ("a", "b"):
        await client.create(ConfigMap(metadata=ObjectMeta(name=name, labels={"app": "web"})))
    await client.deletecollection(ConfigMap)
    assert [found async for found in client.list(ConfigMap)] == []


async def test_it_patches_a_node(client: Any) -> None:
    patched = await client.patch(Node, "node", {"spec": {"unschedulable": True}})
    assert patched.spec.unschedulable


def widgets() -> CustomResourceDefinition:
    size = JSONSchemaProps(type="object", properties={"size": JSONSchemaProps(type="integer")})
    schema = JSONSchemaProps(type="object", properties={"spec": size, "status": size})
    scale = CustomResourceSubresourceScale(
        specReplicasPath=".spec.size", statusReplicasPath=".status.size"
    )
    version = CustomResourceDefinitionVersion(
        name="v1",
        served=True,
        storage=True,
        schema=CustomResourceValidation(openAPIV3Schema=schema),
        subresources=CustomResourceSubresources(status={}, scale=scale),
    )
    spec = CustomResourceDefinitionSpec(
        group="example.com",
        names=CustomResourceDefinitionNames(kind="Widget", plural="widgets"),
        scope="Namespaced",
        versions=[version],
    )
    metadata = ObjectMeta(name="widgets.example.com")
    return CustomResourceDefinition(metadata=metadata, spec=spec)


async def test_it_works_with_resources_that_it_defines(client: Any) -> None:
    await client.create(widgets())
    async with asyncio.timeout(20):
        await client.wait(
            CustomResourceDefinition, "widgets.example.com", for_conditions=["Established"]
        )
    kind: Any = create_namespaced_resource("example.com", "v1", "Widget", "widgets")
    await client.create(kind(metadata=ObjectMeta(name="one"), spec={"size": 1, "colour": "red"}))
    await client.patch(kind.Status, "one", {"status": {"size": 1}}, patch_type=PatchType.MERGE)
    await client.patch(kind.Scale, "one", {"spec": {"replicas": 3}}, patch_type=PatchType.MERGE)
    applied = kind(metadata=ObjectMeta(name="one"), spec={"size": 4})
    with pytest.raises(ApiError) as refused:
        await client.apply(applied)
    assert refused.value.status.code == 409
    await client.apply(applied, force=True)
    one = await client.get(kind, "one")
    assert (one.spec, one.status) == ({"size": 4}, {"size": 1})
    with pytest.raises(ApiError) as refused:
        await client.replace(kind(metadata=one.metadata, spec={"size": "four"}))
    assert refused.value.status.code == 422
    assert [found.metadata.name async for found in client.list(kind)] == ["one"]


async def test_a_model_is_loaded() -> None:
    metadata = ObjectMeta(name="web", labels={"a": "b"})
    spec = PodSpec(containers=[Container(name="c", image="i")], nodeName="n")
    async with FakeCluster() as cluster:
        cluster.load(Pod(metadata=metadata, spec=spec))
        loaded = await cluster.get("pods", "web")
    assert (loaded["metadata"]["labels"], loaded["spec"]["nodeName"]) == ({"a": "b"}, "n")
