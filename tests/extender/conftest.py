"""Extenders of tests: over a cache that the test fills, or following a fake cluster."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from extender.cluster.scheduler_cache import SchedulerCache
from extender.cluster.storage_stores import StorageStore
from extender.config.component_config import Config
from extender.kube.decoders.typed_decoder import Unreadable
from extender.kube.rest.clock import Clock, SystemClock
from extender.kube.rest.transport import Request, Response, Stream, Transport
from extender.server.http_handlers import build_app
from extender.server.process import run_server, serving_rules
from extender.server.service import Service
from fakeapi.demo.scenarios import scenario
from fakeapi.testing.fake_cluster import FakeCluster
from policies.kubernetes.snapshot import DisruptionBudget, Node, Pod
from policies.kubernetes.storage import StorageKind
from policies.preemption.engine import Engine
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import ReferenceEngine
from policies.testing.storage import StorageObject
from tests.builders import encoded, pod_json


class HandClock:
    """A clock that only the test and, by ``step``, its readings advance.

    Its next ``breaks`` readings fail.
    """

    def __init__(self, step: float = 0.0) -> None:
        self.seconds = 0.0
        self.step = step
        self.breaks = 0

    def monotonic(self) -> float:
        if self.breaks:
            self.breaks -= 1
            raise RuntimeError("the clock is broken")
        self.seconds += self.step
        return self.seconds

    def now_ns(self) -> int:
        return int(self.seconds * 1e9)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        await asyncio.sleep(0)


@dataclass
class InformerState:
    """An informer in a given state, by default synced and with its last event at second 0."""

    synced: bool = True
    settled: bool = True
    refusal: str = ""
    resource_version: str = "1"
    last_heard: float = 0.0
    last_error: str = ""
    retry_at: float = 0.0

    async def run(self) -> None: ...

    async def wait_settled(self) -> None: ...


def broken(name: str, on: str | None = None, kind: str = "Pod", problem: str = "why") -> Unreadable:
    """Return an object that could not be read."""
    namespace = "default" if kind == "Pod" else ""
    return Unreadable(kind, namespace, name, name, on, problem)


def storage_stores(cluster: SchedulerCache) -> Mapping[str, StorageStore[Any]]:
    """Return the stores of storage objects by their types' names."""
    return {
        "PersistentVolumeClaim": cluster.storage.claims,
        "PersistentVolume": cluster.storage.volumes,
        "StorageClass": cluster.storage.classes,
        "CsiNode": cluster.storage.csi_nodes,
        "CsiDriver": cluster.storage.drivers,
        "CsiStorageCapacity": cluster.storage.capacities,
        "VolumeAttachment": cluster.storage.attachments,
        "ResourceClaim": cluster.storage.devices,
        "ResourceSlice": cluster.storage.slices,
        "DeviceClass": cluster.storage.device_classes,
        "DeviceTaintRule": cluster.storage.taint_rules,
    }


def live_cluster(
    *things: Node | Pod | DisruptionBudget | StorageObject | Unreadable,
    clock: HandClock | None = None,
    unlisted: Collection[StorageKind] = (),
    engine: Engine | None = None,
) -> SchedulerCache:
    """Build a cache with these objects; all kinds of storage but ``unlisted`` have been listed.

    ``engine`` follows its snapshots.
    """
    follow = (engine or ReferenceEngine()).follow
    cluster = SchedulerCache((clock or HandClock()).monotonic, follow)
    for table in storage_stores(cluster).values():
        if table.kind not in unlisted:
            table.replace([])
    tables: Mapping[str, Any] = {
        "Node": cluster.nodes,
        "Pod": cluster.pods,
        "DisruptionBudget": cluster.budgets,
        **storage_stores(cluster),
    }
    for thing in things:
        kind = thing.kind if isinstance(thing, Unreadable) else type(thing).__name__
        tables[kind].upsert(thing)
    return cluster


def filter_body(preemptor: dict[str, Any] | None, *names: str) -> bytes:
    """Build a filter call with names of nodes, by default for a pod without requests."""
    return encoded({"Pod": preemptor or pod_json(), "Nodes": None, "NodeNames": names})


def preempt_body(preemptor: dict[str, Any], **offers: list[str]) -> bytes:
    """Build a preempt call with victims by UID; ``node_1`` is the node ``node-1``."""
    entries = {
        name.replace("_", "-"): {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 0}
        for name, uids in offers.items()
    }
    return encoded({"Pod": preemptor, "NodeNameToVictims": None, "NodeNameToMetaVictims": entries})


@dataclass(frozen=True)
class Reply:
    """An HTTP answer."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def body(self) -> bytes:
        return self.text.encode()


@dataclass(frozen=True)
class Extender:
    """A served extender, how to call it, and the service behind it."""

    url: str
    service: Service
    session: aiohttp.ClientSession

    async def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> Reply:
        async with self.session.post(f"{self.url}{path}", data=body, headers=headers) as response:
            return Reply(response.status, await response.text(), response.headers)

    async def get(self, path: str) -> Reply:
        async with self.session.get(f"{self.url}{path}") as response:
            return Reply(response.status, await response.text(), response.headers)


@asynccontextmanager
async def served(
    cluster: SchedulerCache,
    clock: HandClock | None = None,
    path_prefixes: Iterable[str] = (),
    body_limit: int = 2**20,
) -> AsyncIterator[Extender]:
    """Serve an extender over a cache that the test has filled."""
    service = Service(cluster, ReferenceEngine(), clock or HandClock())
    server = TestServer(build_app(service, path_prefixes, body_limit))
    async with server, aiohttp.ClientSession() as session:
        yield Extender(str(server.make_url("")).rstrip("/"), service, session)


@dataclass
class GatedTransport:
    """A transport that sends no request before its gate is open."""

    inner: Transport
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def request(self, request: Request) -> Response:
        await self.gate.wait()
        return await self.inner.request(request)

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class RefusingTransport:
    """A transport to a server that refuses some resources."""

    inner: Transport
    refused: Mapping[str, int]

    async def request(self, request: Request) -> Response:
        status = self.refused.get(request.path.rpartition("/")[2])
        if status is None:
            return await self.inner.request(request)
        return Response(status, encoded({"kind": "Status", "code": status, "reason": "No"}))

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self.inner.stream(request)

    async def close(self) -> None:
        await self.inner.close()


@dataclass(frozen=True)
class Following:
    """An extender that follows a fake cluster from ``let_it_sync`` on."""

    extender: Extender
    cluster: FakeCluster
    let_it_sync: Callable[[], Awaitable[None]]


@asynccontextmanager
async def following(
    objects: Iterable[Mapping[str, Any]],
    config: Config | None = None,
    refused: Mapping[str, int] | None = None,
    clock: Clock | None = None,
    load_rules: Callable[[Config], SchedulerRules] = serving_rules,
) -> AsyncIterator[Following]:
    """Serve an extender as a process does, on a cluster with these objects.

    ``refused`` has the plurals of resources that the server refuses, with the status.
    """
    async with FakeCluster() as cluster:
        cluster.load(objects)
        transport = GatedTransport(RefusingTransport(cluster.local_transport(), refused or {}))
        settings = config or Config(port=0)
        async with (
            run_server(
                settings,
                transport,
                clock or SystemClock(),
                random.Random(0),
                load_rules=load_rules,
            ) as extender,
            aiohttp.ClientSession() as session,
        ):

            async def let_it_sync() -> None:
                transport.gate.set()
                await extender.wait_synced()

            served_extender = Extender(extender.url, extender.service, session)
            yield Following(served_extender, cluster, let_it_sync)


@pytest.fixture
async def demo_extender() -> AsyncIterator[Extender]:
    """Return an extender that has synced the demo cluster."""
    async with following(scenario("demo"), Config(port=0, path_prefixes=("/scheduler",))) as it:
        await it.let_it_sync()
        yield it.extender
