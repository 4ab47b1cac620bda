"""Clients of real API servers with a fake one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
from kubernetes_asyncio import client, config, watch

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.rest.clock import SystemClock
from extender.kube.rest.resources import PODS
from fakeapi import FakeCluster
from tests.builders import Document, container_json, manifest, running_pod
from tests.fakeapi.clients.kubectl import Kubectl, kubectl_for


def labelled_pod(name: str, **labels: str) -> Document:
    """Build a ready pod on the node n."""
    return running_pod(name, "n", metadata={"labels": labels}, containers=[container_json("c")])


NODE = manifest("Node", "n")


@pytest.fixture
async def core(cluster: FakeCluster) -> AsyncIterator[client.CoreV1Api]:
    configuration = client.Configuration()
    await config.load_kube_config(str(cluster.kubeconfig_path), client_configuration=configuration)
    async with client.ApiClient(configuration) as session:
        yield client.CoreV1Api(session)


class TestKubernetesAsyncio:
    async def test_it_creates_lists_and_reads(self, core: Any) -> None:
        await core.create_namespaced_pod("default", labelled_pod("a", app="web"))
        await core.create_namespaced_pod("default", labelled_pod("b", app="db"))
        listed = await core.list_namespaced_pod("default", label_selector="app=web")
        assert [found.metadata.name for found in listed.items] == ["a"]
        read = await core.read_namespaced_pod("b", "default")
        assert (read.kind, read.status.phase) == ("Pod", "Pending")

    async def test_it_pages(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod(f"p{number}") for number in range(5)])
        names, token = [], None
        while token != "":
            page = await core.list_pod_for_all_namespaces(limit=2, _continue=token)
            names += [found.metadata.name for found in page.items]
            token = page.metadata._continue or ""
        assert names == ["p0", "p1", "p2", "p3", "p4"]

    @pytest.mark.parametrize(
        "patch",
        [
            {"metadata": {"labels": {"app": "api"}}},
            [{"op": "replace", "path": "/metadata/labels/app", "value": "api"}],
        ],
        ids=["strategic", "json"],
    )
    async def test_it_patches(self, cluster: FakeCluster, core: Any, patch: Any) -> None:
        cluster.load([labelled_pod("a", app="web", tier="front")])
        patched = await core.patch_namespaced_pod("a", "default", patch)
        assert patched.metadata.labels == {"app": "api", "tier": "front"}

    async def test_it_watches_from_a_list_on(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod("a")])
        version = (await core.list_namespaced_pod("default")).metadata.resource_version
        await core.create_namespaced_pod("default", labelled_pod("b"))
        await core.patch_namespaced_pod("a", "default", {"metadata": {"labels": {"x": "y"}}})
        await core.delete_namespaced_pod("b", "default", grace_period_seconds=0)
        seen = []
        async with watch.Watch() as watching:
            stream = watching.stream(
                core.list_namespaced_pod, "default", resource_version=version, timeout_seconds=60
            )
            async for event in stream:
                seen.append((event["type"], event["object"].metadata.name))
                if event["type"] == "DELETED":
                    break
        assert seen == [("ADDED", "b"), ("MODIFIED", "a"), ("MODIFIED", "b"), ("DELETED", "b")]

    async def test_it_gets_an_error(self, core: Any) -> None:
        with pytest.raises(client.ApiException) as refused:
            await core.read_namespaced_pod("nope", "default")
        assert refused.value.status == 404
        assert '"reason":"NotFound"' in str(refused.value.body)

    async def test_a_replace_with_an_old_version_is_a_conflict(self, core: Any) -> None:
        made = await core.create_namespaced_pod("default", labelled_pod("a"))
        made.metadata.labels = {"first": "yes"}
        await core.replace_namespaced_pod("a", "default", made)
        with pytest.raises(client.ApiException) as refused:
            await core.replace_namespaced_pod("a", "default", made)
        assert refused.value.status == 409


class Cache:
    """A sink of a reflector that stores names and versions."""

    def __init__(self) -> None:
        self.pods: dict[str, str] = {}
        self.changed = asyncio.Event()

    def replace(self, items: Any) -> None:
        self.pods = dict(items)
        self.changed.set()

    def upsert(self, item: tuple[str, str]) -> None:
        self.pods[item[0]] = item[1]
        self.changed.set()

    def remove(self, item: tuple[str, str]) -> None:
        del self.pods[item[0]]
        self.changed.set()

    async def holds(self, *names: str) -> None:
        """Wait until exactly these are cached."""
        async with asyncio.timeout(20):
            while tuple(sorted(self.pods)) != names:
                self.changed.clear()
                await self.changed.wait()


def name_and_version(raw: Any) -> tuple[str, str]:
    metadata = orjson.loads(bytes(raw))["metadata"]
    return metadata["name"], metadata["resourceVersion"]


@pytest.fixture
def kubectl(cluster: FakeCluster, tmp_path: Path) -> Kubectl:
    return kubectl_for(cluster, tmp_path)


class TestKubectl:
    @pytest.mark.parametrize(
        ("command", "output"),
        [
            ("get nodes -o name", "node/n\n"),
            ("get pods -A --no-headers -o custom-columns=N:.metadata.name", "a\nb\n"),
            ("get pods -l app=web -o name", "pod/a\n"),
            ("get pods --chunk-size=1 -o name", "pod/a\npod/b\n"),
            ("get po a -o jsonpath={.status.phase}", "Running"),
            ("label pod a team=red", "pod/a labeled\n"),
            ("cordon n", "node/n cordoned\n"),
            ("wait --for=condition=Ready pod/a --timeout=20s", "pod/a condition met\n"),
            ("delete pod a --wait=false", 'pod "a" deleted'),
            ("get --raw /readyz", "ok"),
        ],
    )
    async def test_everyday_commands(
        self, cluster: FakeCluster, kubectl: Kubectl, command: str, output: str
    ) -> None:
        cluster.load([NODE, labelled_pod("a", app="web"), labelled_pod("b", app="db")])
        status, printed = await kubectl(*command.split())
        assert (status, printed[: len(output)]) == (0, output)

    async def test_a_strategic_patch_merges(self, cluster: FakeCluster, kubectl: Kubectl) -> None:
        cluster.load([labelled_pod("a")])
        patch = '{"spec":{"containers":[{"name":"c","image":"new"}]}}'
        assert (await kubectl("patch", "pod", "a", "-p", patch))[0] == 0
        _, image = await kubectl("get", "pod", "a", "-o", "jsonpath={.spec.containers[*].image}")
        assert image == "new"

    async def test_a_budget_is_applied_and_replaced(self, kubectl: Kubectl, tmp_path: Path) -> None:
        path = tmp_path / "budget.yaml"
        path.write_text(
            "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: web}\n"
            "spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}\n"
        )
        arguments = ("apply", "--validate=false", "-f", str(path))
        assert "created" in (await kubectl(*arguments))[1]
        path.write_text(path.read_text().replace("minAvailable: 1", "minAvailable: 2"))
        assert "configured" in (await kubectl(*arguments))[1]
        _, least = await kubectl("get", "pdb", "web", "-o", "jsonpath={.spec.minAvailable}")
        assert least == "2"


class TestOurInformer:
    async def test_it_survives_compaction_and_reset(self, cluster: FakeCluster) -> None:
        cache = Cache()
        context = ReflectorContext(cluster.client, SystemClock(), Random(1))
        informer = Reflector(context, PODS, name_and_version, cache)
        running = asyncio.create_task(informer.run())
        await informer.wait_synced()
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        await cache.holds("a", "b")
        cluster.api.store.compact(cluster.api.store.version)
        cluster.load([labelled_pod("c")])
        await cache.holds("a", "b", "c")
        cluster.api.reset()
        cluster.load([labelled_pod("d")])
        await cache.holds("d")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
