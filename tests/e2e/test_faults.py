"""Faults in front of lightkube and kr8s: what reaches them, and what their watches survive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import kr8s.asyncio
import pytest
from lightkube import ApiError, AsyncClient, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap
from lightkube.types import on_error_retry

from fakeapi import FakeCluster
from fakeapi.testing.faults import Fault, fault
from tests.builders import manifest


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster(run="none", release="v1.35.0") as running:  # the newest that kr8s knows
        yield running


@pytest.fixture
async def client(cluster: FakeCluster) -> AsyncIterator[AsyncClient]:
    config = KubeConfig.from_file(cluster.kubeconfig_path)
    connected = AsyncClient(config=config, namespace="default")
    yield connected
    await connected.close()


def settings(name: str) -> ConfigMap:
    return ConfigMap(metadata=ObjectMeta(name=name, namespace="default"), data={"k": "v"})


def load(cluster: FakeCluster, *names: str) -> None:
    cluster.load(manifest("ConfigMap", name) for name in names)


async def first(events: Any, count: int) -> list[str]:
    """The names of the first objects that a watch shows."""
    seen: list[str] = []
    async with asyncio.timeout(20):
        async for _, found in events:
            seen.append(found.metadata.name)
            if len(seen) == count:
                break
    await events.aclose()
    return seen


class TestLightkube:
    @pytest.mark.parametrize("code", [429, 500, 503, 504])
    async def test_it_gets_a_status(self, cluster: FakeCluster, client: Any, code: int) -> None:
        cluster.faults.plan(fault(code).on("create").once())
        with pytest.raises(ApiError) as refused:
            await client.create(settings("a"))
        assert refused.value.status.code == code
        await client.create(settings("a"))

    async def test_a_create_that_was_dropped_after_its_commit_has_happened(
        self, cluster: FakeCluster, client: Any
    ) -> None:
        cluster.faults.plan(fault("drop", when="after").on("create").once())
        with pytest.raises(httpx2.ReadError):
            await client.create(settings("a"))
        assert (await client.get(ConfigMap, "a")).data == {"k": "v"}

    async def test_half_a_list_is_no_list(self, cluster: FakeCluster, client: Any) -> None:
        load(cluster, "a")
        cluster.faults.plan(fault("cut").on("list"))
        with pytest.raises(httpx2.RemoteProtocolError):
            [found async for found in client.list(ConfigMap)]

    @pytest.mark.parametrize(
        "rule",
        [
            fault("drop", when="after", after_frames=1),
            fault("cut", after_frames=1),
            fault(503),
            fault("lag", seconds=0.1),
            fault("silence", seconds=0.1, after_frames=1),
        ],
        ids=lambda rule: str(rule.fields["fault"]),
    )
    async def test_its_watch_comes_back(
        self, cluster: FakeCluster, client: Any, rule: Fault
    ) -> None:
        load(cluster, "a", "b", "c")
        cluster.faults.plan(rule.on("watch").once())
        seen = await first(client.watch(ConfigMap, on_error=on_error_retry), 3)
        assert (seen[0], seen[-1]) == ("a", "c")
        assert cluster.faults.injected == (1,)


class TestKr8s:
    async def test_its_watch_goes_on_after_a_410(self, cluster: FakeCluster) -> None:
        load(cluster, "a", "b", "c")
        cluster.faults.plan(fault("expire", after_frames=1).on("watch").once())
        api = await kr8s.asyncio.api(kubeconfig=str(cluster.kubeconfig_path))
        seen = await first(api.watch("configmaps", namespace="default"), 3)
        assert seen == ["a", "b", "c"]
        watches = [each.fault for each in cluster.requests if "watch=" in each.query]
        assert watches == ["expire", ""]

    async def test_it_tells_of_an_error(self, cluster: FakeCluster) -> None:
        cluster.faults.plan(fault(503).on("list", "configmaps"))
        api = await kr8s.asyncio.api(kubeconfig=str(cluster.kubeconfig_path))
        with pytest.raises(kr8s.ServerError, match="503 Service Unavailable"):
            [found async for found in api.get("configmaps", namespace="default")]
