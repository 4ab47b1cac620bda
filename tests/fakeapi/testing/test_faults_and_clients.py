"""Faults of each kind with real clients: their effect, and the recovery of the clients."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import pytest
from kubernetes_asyncio import client, config, watch

from extender.kube.informers.reflector import Reflector, ReflectorContext
from extender.kube.informers.watch_list import WatchListReflector
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock, SystemClock
from extender.kube.rest.resources import PODS
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.testing.cluster import Cluster
from fakeapi.testing.faults import Fault, fault
from tests.fakeapi.clients.kubectl import Kubectl, kubectl_for
from tests.fakeapi.clients.test_real_clients import Cache, labelled_pod, name_and_version

OURS = "reprieve/*"

FAULTS: dict[str, Fault] = {
    **{f"{code} to lists": fault(code).on("list").times(2) for code in (429, 500, 503, 504)},
    **{f"{code} to watches": fault(code).on("watch").times(2) for code in (429, 500, 503, 504)},
    "latency": fault("latency", least=0.01, most=0.05).probability(0.7),
    "a late answer": fault("latency", seconds=0.02, when="after"),
    "lists that never arrive": fault("drop").on("list").times(3),
    "lists that are lost": fault("drop", when="after").on("list").times(3),
    "watches that never arrive": fault("drop").on("watch").times(3),
    "watches that are reset": fault("drop", when="after", after_frames=1).on("watch").times(3),
    "half a list": fault("cut").on("list").times(2),
    "half a list, ended cleanly": fault("cut", end="clean").on("list").times(2),
    "half a frame": fault("cut", after_frames=1).on("watch").times(3),
    "half a frame, ended cleanly": fault("cut", end="clean", after_frames=1).on("watch").times(3),
    "a lag": fault("lag", seconds=0.1),
    "a silence": fault("silence", seconds=0.2, after_frames=1),
    "an expiry": fault("expire", after_frames=1).times(2),
    "a lagging cache": fault("stale", behind=2).on("list"),
    "bookmarks twice": fault("duplicate"),
}


PLANS = {name: (rule,) for name, rule in FAULTS.items()} | {
    "a compaction": (
        fault("compact").on("watch").after(1),
        fault("drop", when="after", after_frames=1).on("watch").times(3),
    )
}


NO_STREAM = fault(503).on("watch").once()


class FastClock(SystemClock):
    """The system clock, with sleeps that are fifty times shorter."""

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / 50)


def stored(cluster: Cluster) -> dict[str, str]:
    kind = cluster.api.kinds.of("v1", "Pod")
    assert kind is not None
    entries = cluster.api.store.entries(kind)
    return {entry.key.partition("/")[2]: str(entry.version) for entry in entries}


@asynccontextmanager
async def informed(
    asking: Client, clock: Clock, kind: type[Reflector[Any]] = Reflector[Any]
) -> AsyncIterator[tuple[Reflector[Any], Cache]]:
    cache = Cache()
    informer = kind(ReflectorContext(asking, clock, Random(1)), PODS, name_and_version, cache)
    running = asyncio.create_task(informer.run())
    try:
        yield informer, cache
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def write(cluster: Cluster, step: int) -> None:
    """Create a pod, change one, and delete one."""
    cluster.load([labelled_pod(f"p{step}"), labelled_pod("same", step=str(step))])
    kind = cluster.api.kinds.of("v1", "Pod")
    assert kind is not None
    gone = cluster.api.store.get(kind, f"default/p{step - 2}")
    if gone is not None:
        cluster.api.store.delete(kind, gone.key, gone.document(), gone.version)


class TestOurInformer:
    """Its cache equals the store after every fault."""

    @pytest.mark.parametrize("kind", [Reflector[Any], WatchListReflector[Any]])
    @pytest.mark.parametrize("name", PLANS)
    async def test_without_sockets(self, name: str, kind: type[Reflector[Any]]) -> None:
        plan = PLANS[name]
        if kind is not Reflector[Any] and plan[0].match.get("verbs") == ["list"]:
            plan = (NO_STREAM, *plan)
        async with VirtualCluster(run="none", seed=5) as cluster:
            write(cluster, 0)
            cluster.faults.plan(*(rule.by(OURS) for rule in plan))
            async with informed(cluster.client, cluster.clock, kind) as (_, cache):
                for step in range(1, 12):
                    await cluster.clock.advance(30)
                    write(cluster, step)
                await cluster.clock.advance(120)
                assert all(cluster.faults.injected)
                assert cache.pods == stored(cluster)

    @pytest.mark.parametrize("name", PLANS)
    async def test_over_a_socket(self, cluster: FakeCluster, name: str) -> None:
        write(cluster, 0)
        cluster.faults.plan(*(rule.by(OURS) for rule in PLANS[name]))
        async with informed(cluster.client, FastClock()) as (informer, cache):
            async with asyncio.timeout(20):
                await informer.wait_synced()
            for step in range(1, 6):
                write(cluster, step)
                async with asyncio.timeout(20):
                    while cache.pods != stored(cluster):
                        cache.changed.clear()
                        await cache.changed.wait()
        assert all(cluster.faults.injected)

    async def test_a_silent_watch_is_detected_and_resumed(self) -> None:
        async with VirtualCluster(run="none") as cluster:
            cluster.faults.plan(fault("silence").by(OURS).once())
            async with informed(cluster.client, cluster.clock) as (_, cache):
                await cluster.clock.advance(1)
                write(cluster, 0)
                await cluster.clock.advance(290)
                assert cache.pods == {}
                await cluster.clock.advance(400)
                assert cache.pods == stored(cluster)


@pytest.fixture
async def core(cluster: FakeCluster) -> AsyncIterator[client.CoreV1Api]:
    configuration = client.Configuration()
    configuration.retries = None
    await config.load_kube_config(str(cluster.kubeconfig_path), client_configuration=configuration)
    async with client.ApiClient(configuration) as session:
        yield client.CoreV1Api(session)


THEIRS = "OpenAPI-Generator/*"


class TestKubernetesAsyncio:
    @pytest.mark.parametrize("code", [429, 500, 503, 504])
    async def test_it_gets_a_status(self, cluster: FakeCluster, core: Any, code: int) -> None:
        cluster.faults.plan(fault(code, retry_after=2).by(THEIRS).on("create", "pods").once())
        with pytest.raises(client.ApiException) as refused:
            await core.create_namespaced_pod("default", labelled_pod("a"))
        headers: Mapping[str, str] = refused.value.headers or {}
        assert (refused.value.status, headers["Retry-After"]) == (code, "2")
        assert '"kind":"Status"' in str(refused.value.body)
        await core.create_namespaced_pod("default", labelled_pod("a"))

    @pytest.mark.parametrize(("when", "there"), [("before", {}), ("after", {"a"})])
    async def test_a_dropped_create_may_have_happened(
        self, cluster: FakeCluster, core: Any, when: str, there: Any
    ) -> None:
        cluster.faults.plan(fault("drop", when=when).by(THEIRS).on("create", "pods", names="a"))
        with pytest.raises(aiohttp.ClientOSError):
            await core.create_namespaced_pod("default", labelled_pod("a"))
        assert set(stored(cluster)) == set(there)

    async def test_half_a_list_is_no_list(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod("a")])
        cluster.faults.plan(fault("cut").by(THEIRS).on("list"))
        with pytest.raises(aiohttp.ClientPayloadError):
            await core.list_namespaced_pod("default")

    async def test_a_list_from_the_cache_is_stale_and_a_consistent_one_is_not(
        self, cluster: FakeCluster, core: Any
    ) -> None:
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        cluster.faults.plan(fault("stale").by(THEIRS))
        for version, seen in (("0", ["a"]), ("", ["a", "b"])):
            listed = await core.list_namespaced_pod("default", resource_version=version)
            assert [found.metadata.name for found in listed.items] == seen

    async def test_latency_causes_a_timeout(self, cluster: FakeCluster, core: Any) -> None:
        cluster.faults.plan(fault("latency", seconds=600, when="after").by(THEIRS).on("create"))
        with pytest.raises(asyncio.TimeoutError):
            await core.create_namespaced_pod("default", labelled_pod("a"), _request_timeout=0.2)
        assert set(stored(cluster)) == {"a"}

    @pytest.mark.parametrize(
        ("rule", "end"),
        [
            (fault("cut", after_frames=1), aiohttp.ClientPayloadError),
            (fault("drop", when="after", after_frames=1), aiohttp.ClientError),
        ],
    )
    async def test_its_watch_breaks(
        self, cluster: FakeCluster, core: Any, rule: Fault, end: type[Exception]
    ) -> None:
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        cluster.faults.plan(rule.by(THEIRS).on("watch"))
        seen: list[str] = []
        with pytest.raises(end):
            await follow(core, seen, 2)
        assert seen == ["ADDED a"]

    async def test_its_watch_expires_and_lists_again(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        cluster.faults.plan(fault("expire", after_frames=1).by(THEIRS).times(2))
        seen: list[str] = []
        with pytest.raises(client.ApiException) as expired:
            await follow(core, seen, 9)
        assert expired.value.status == 410
        assert seen[0] == "ADDED a"

    async def test_its_watch_lags(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        for seconds, seen in ((600, []), (0.1, ["ADDED a", "ADDED b"])):
            cluster.faults.plan(fault("lag", seconds=seconds).by(THEIRS))
            found: list[str] = []
            await follow(core, found, 2, timeout_seconds=1)
            assert found == seen

    async def test_its_watch_goes_silent(self, cluster: FakeCluster, core: Any) -> None:
        cluster.load([labelled_pod("a"), labelled_pod("b")])
        cluster.faults.plan(fault("silence", after_frames=1).by(THEIRS))
        seen: list[str] = []
        await follow(core, seen, 2, timeout_seconds=1)
        assert seen == ["ADDED a"]

    async def test_its_bookmarks_come_twice(self, cluster: FakeCluster, core: Any) -> None:
        cluster.faults.plan(fault("duplicate").by(THEIRS))
        seen: list[str] = []
        async with asyncio.timeout(20), watch.Watch() as watching:
            asked = {"allow_watch_bookmarks": True, "timeout_seconds": 3}
            async for event in watching.stream(core.list_namespaced_pod, "default", **asked):
                seen.append(event["type"])
                if len(seen) == 2:
                    break
        assert seen == ["BOOKMARK", "BOOKMARK"]

    async def test_compaction_expires_its_watch(self, cluster: FakeCluster, core: Any) -> None:
        version = str(cluster.api.store.version)
        cluster.load([labelled_pod("a")])
        cluster.faults.plan(fault("compact").by(THEIRS).on("watch"))
        with pytest.raises(client.ApiException) as expired:
            await follow(core, [], 1, resource_version=version)
        assert expired.value.status == 410


async def follow(core: Any, seen: list[str], most: int, **query: Any) -> None:
    """Watch pods until ``most`` events were seen, or the watch ends."""
    async with watch.Watch() as watching:
        stream = watching.stream(
            core.list_namespaced_pod, "default", **{"timeout_seconds": 30, **query}
        )
        async for event in stream:
            seen.append(f"{event['type']} {event['object'].metadata.name}")
            if len(seen) == most:
                return


@pytest.fixture
def kubectl(cluster: FakeCluster, tmp_path: Path) -> Kubectl:
    return kubectl_for(cluster, tmp_path)


def statuses(cluster: FakeCluster, method: str, end: str) -> list[int]:
    found = [each for each in cluster.requests if each.method == method and each.path.endswith(end)]
    return [each.status for each in found]


async def wait_injected(url: str) -> None:
    """Poll until the plan's first fault has been injected."""
    async with asyncio.timeout(20), aiohttp.ClientSession(url) as session:
        while True:
            async with session.get("/_fakeapi/faults") as answer:
                if (await answer.json())["faults"][0]["injected"]:
                    return


@pytest.mark.slow
class TestKubectl:
    """A Go client: client-go's retries and reflectors."""

    async def test_it_retries_after_429(self, cluster: FakeCluster, kubectl: Kubectl) -> None:
        cluster.faults.plan(fault(429, retry_after=1).by("kubectl/*").on("create").times(2))
        done = await kubectl("create", "configmap", "a")
        assert done == (0, "configmap/a created\n")
        assert statuses(cluster, "POST", "/configmaps") == [429, 429, 201]

    async def test_it_prints_an_error(self, cluster: FakeCluster, kubectl: Kubectl) -> None:
        cluster.faults.plan(fault(500).by("kubectl/*").on("create").once())
        code, output = await kubectl("create", "configmap", "a")
        assert (code, "Internal error occurred: injected fault" in output) == (1, True)

    async def test_it_reads_again_after_a_reset_but_does_not_write_again(
        self, cluster: FakeCluster, kubectl: Kubectl
    ) -> None:
        cluster.load([labelled_pod("a")])
        cluster.faults.plan(
            fault("drop").on("get", "pods").once(), fault("drop", when="after").on("create").once()
        )
        assert await kubectl("get", "pod", "a", "-o", "name") == (0, "pod/a\n")
        assert statuses(cluster, "GET", "/pods/a") == [0, 200]
        code, output = await kubectl("create", "configmap", "a")
        assert (code, "connection reset by peer" in output) == (1, True)
        assert statuses(cluster, "POST", "/configmaps") == [201]

    async def test_half_a_list_is_an_error(self, cluster: FakeCluster, kubectl: Kubectl) -> None:
        cluster.load([labelled_pod("a")])
        cluster.faults.plan(fault("cut").on("list", "pods"))
        code, output = await kubectl("get", "pods")
        assert (code, "unexpected EOF" in output) == (1, True)

    @pytest.mark.parametrize(
        "rule",
        [
            fault("cut", after_frames=1),
            fault("cut", end="clean", after_frames=1),
            fault("drop", when="after", after_frames=1),
            fault("expire", after_frames=2),
            fault("lag", seconds=0.5),
            fault("silence", seconds=0.5, after_frames=1),
            fault(503, retry_after=1),
            fault("duplicate"),
        ],
        ids=lambda rule: str(rule.fields["fault"]),
    )
    async def test_wait_survives(self, cluster: FakeCluster, kubectl: Kubectl, rule: Fault) -> None:
        waiting = {**labelled_pod("a"), "status": {"phase": "Pending"}}
        cluster.load([waiting])
        cluster.faults.plan(rule.by("kubectl/*").on("watch", "pods").once())
        wait = asyncio.create_task(
            kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=30s")
        )
        await wait_injected(cluster.url)
        cluster.load([labelled_pod("a", changed="yes")])
        assert await wait == (0, "pod/a condition met\n")
