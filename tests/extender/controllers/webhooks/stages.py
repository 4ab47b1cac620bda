"""Clusters whose pods pass the webhooks of WorkloadSpreads, and processes that answer reviews.

Objects are loaded before the webhooks start. The webhooks are registered only when their caches
have synced, so tests need not wait for the caches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import orjson
import yaml

from extender.controllers.context import ControllerContext
from extender.controllers.process.controller_manager import (
    SPREAD_WEBHOOKS,
    ControllerManager,
    ManagerOptions,
)
from extender.controllers.process.webhook_server import WebhookServer, generate_certificate
from extender.controllers.webhooks.handlers import WorkloadSpreadWebhooks
from extender.controllers.webhooks.registration import MUTATE_POD, MUTATING, NAME, VALIDATING
from extender.controllers.webhooks.webhook_endpoint import Detach, Handlers, WebhookEndpoint
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.types import DEFINITIONS
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.http_transport import AiohttpTransport, Endpoint
from extender.kube.rest.resources import PODS
from extender.kube.workloadspread.spread_pods import MATCHED_WORKLOADSPREAD
from fakeapi import FakeCluster, VirtualCluster
from fakeapi.apiserver.serving.virtual_clock import START_NS, VirtualClock
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from fakeapi.testing.faults import Fault
from tests.builders import SECOND
from tests.builders.definitions import definition
from tests.builders.workloadspread import NOW_NS, Document, pod_of
from tests.stage import SPREADS, ApiAccess, Stage

ROOT = Path(__file__).parents[4]
DEFINITION: Document = yaml.safe_load(
    (ROOT / "deploy" / "crds" / "workloadspreads.apps.kruise.io.yaml").read_text()
)
TIMEOUT_SECONDS = 30


KRUISE = (DEFINITION, definition("apps.kruise.io/v1alpha1", "CloneSet"))


def injection(pod: Mapping[str, Any]) -> Document | None:
    """Return the value of a pod's annotation, None if it has none."""
    written = (pod["metadata"].get("annotations") or {}).get(MATCHED_WORKLOADSPREAD)
    return None if written is None else orjson.loads(written)


class WebhookProcess:
    """A process with the webhooks, which tests can call directly."""

    def __init__(self, cluster: VirtualCluster, name: str, seed: int = 0) -> None:
        self.handlers: Handlers = {}
        self._clock, self._rng = cluster.clock, Random(seed)
        self.client = Client(cluster.local_transport(name))
        self.informers = SharedInformerFactory(self.client, self._clock, self._rng)
        endpoint = WebhookEndpoint(_client_config, self._serve, pod_spec_errors)
        events = EventWriter(self.client, self._clock, self._rng)
        context = ControllerContext(self.client, self.informers, self._clock, self._rng, events)
        self.component = WorkloadSpreadWebhooks(context, AssumedStatuses(), endpoint)

    @property
    def conflicts(self) -> float:
        """The number of conflicts that the process has met."""
        [metric] = self.component.metrics.conflicts.collect()
        return metric.samples[0].value

    def _serve(self, handlers: Handlers) -> Detach:
        self.handlers = handlers
        return lambda: None

    async def admit(self, pod: Document, **request: Any) -> Document:
        """Return the response to the review of a new pod."""
        resource = {"group": "", "version": "v1", "resource": "pods"}
        about = {"operation": "CREATE", "resource": resource, "object": pod, **request}
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "review", "namespace": "default", **about},
        }
        answer = orjson.loads(await self.handlers[MUTATE_POD](orjson.dumps(review)))
        response: Document = answer["response"]
        assert response["uid"] == "review"
        return response


def _client_config(path: str) -> Document:
    return {"url": f"https://127.0.0.1:1{path}"}


class WebhookStage(Stage):
    """A stage with webhooks; ``processes`` answer reviews, if there are any."""

    def __init__(self, cluster: VirtualCluster, processes: Sequence[WebhookProcess] = ()) -> None:
        super().__init__(cluster)
        self.processes = processes

    def admit(self, name: str, process: int = 0) -> asyncio.Task[Document]:
        """Send a process the review of a new pod of the CloneSet web."""
        return asyncio.create_task(self.processes[process].admit(pod_of(name)))

    async def subset(self, name: str, **parts: Document) -> str | None:
        """Create a pod of the CloneSet web, and return its subset."""
        made = await self.create(PODS, pod_of(name, None, **parts))
        return (injection(made) or {}).get("subset")

    async def missing(self, name: str = "web") -> dict[str, dict[str, int]]:
        """Return the missing replicas of each subset, by version."""
        versions = (await self.status_of(SPREADS, name)).get("versionedSubsetStatuses") or {}
        return {
            version: {each["name"]: each["missingReplicas"] for each in subsets}
            for version, subsets in versions.items()
        }


@asynccontextmanager
async def webhook_stage(
    *documents: Document,
    definitions: Sequence[Document] = KRUISE,
    run: str = "none",
    start_ns: int = START_NS,
) -> AsyncIterator[WebhookStage]:
    """Open a stage that runs the webhooks beside the components of ``run``."""
    async with VirtualCluster(run=run, start_ns=start_ns) as cluster:
        cluster.world.put_all([*definitions, *documents])
        cluster.control_plane[SPREAD_WEBHOOKS].start()
        await cluster.clock.advance(1)
        yield WebhookStage(cluster)


@asynccontextmanager
async def process_stage(
    *documents: Document, count: int = 1, seed: int = 0, faults: Sequence[Fault] = ()
) -> AsyncIterator[WebhookStage]:
    """Open a stage in which processes of their own answer reviews."""
    async with VirtualCluster(run="none", seed=seed) as cluster:
        cluster.load([*KRUISE, *documents])
        Stage(cluster).plan_faults(*faults)
        async with processes(cluster, count, seed) as running:
            yield WebhookStage(cluster, running)


@asynccontextmanager
async def processes(
    cluster: VirtualCluster, count: int = 1, seed: int = 0
) -> AsyncIterator[list[WebhookProcess]]:
    """Run processes, each with a client and caches of its own."""
    running = [WebhookProcess(cluster, f"hooks-{n}", seed + n) for n in range(count)]
    tasks = [asyncio.create_task(each.component.run()) for each in running]
    await cluster.clock.advance(1)
    try:
        yield running
    finally:
        await cancel_tasks(tasks)
        for each in running:
            await each.informers.stop()
            await each.client.close()


@asynccontextmanager
async def in_process(*documents: Document) -> AsyncIterator[ApiAccess]:
    """Open a cluster that calls webhooks of its own process; its clock stands at NOW."""
    async with webhook_stage(*documents, start_ns=NOW_NS - SECOND) as stage:
        yield stage


@asynccontextmanager
async def over_https(*documents: Document) -> AsyncIterator[ApiAccess]:
    """Open a cluster behind a socket that calls webhooks over HTTPS; its clock stands at NOW."""
    async with AsyncExitStack() as stack:
        clock = VirtualClock(NOW_NS)
        cluster = await stack.enter_async_context(FakeCluster(run="none", clock=clock))
        cluster.load([*KRUISE, *documents])
        await stack.enter_async_context(_https_webhooks(cluster.url, clock))
        await registered(cluster.client)
        yield ApiAccess(cluster.client)


@asynccontextmanager
async def _https_webhooks(url: str, clock: VirtualClock) -> AsyncIterator[None]:
    server = WebhookServer(generate_certificate("127.0.0.1"))
    await server.start("127.0.0.1", 0)
    client = Client(AiohttpTransport(Endpoint(url)))
    options = ManagerOptions(webhook_endpoint=server.endpoint(pod_spec_errors))
    manager = ControllerManager(client, clock, Random(0), (), options)
    manager[SPREAD_WEBHOOKS].start()
    try:
        yield
    finally:
        await manager.stop()
        await server.stop()
        await client.close()


async def registered(client: Client) -> None:
    """Return when the webhooks are registered, and conversions go to them."""
    access = ApiAccess(client)
    async with asyncio.timeout(TIMEOUT_SECONDS):
        for resource in (MUTATING, VALIDATING):
            while await access.find(resource, NAME) is None:
                pass
        while not await _is_converting(access):
            pass


async def _is_converting(access: ApiAccess) -> bool:
    found = await access.get(DEFINITIONS, DEFINITION["metadata"]["name"])
    config = found["spec"]["conversion"]["webhook"]["clientConfig"]
    return "caBundle" in config or config["service"]["name"] == "reprieve-webhooks"
