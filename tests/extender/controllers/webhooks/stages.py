"""Worlds without sockets whose pods pass the webhooks, and processes that answer reviews."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import orjson

from extender.controllers.context import ControllerContext
from extender.controllers.process.controller_manager import SPREAD_WEBHOOKS
from extender.controllers.webhooks import WorkloadSpreadWebhooks
from extender.controllers.webhooks.registration import MUTATE_POD
from extender.controllers.webhooks.webhook_endpoint import Detach, Handlers, WebhookEndpoint
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.spread_cache import WORKLOAD_SPREADS
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS
from fakeapi import VirtualCluster
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from tests.builders.workloadspread import Document, pod_of
from tests.extender.controllers.webhooks.clusters import CLONE_SETS, DEFINITION
from tests.stage import Stage

KRUISE = (DEFINITION, CLONE_SETS)


@asynccontextmanager
async def stage(*documents: Document, run: str = "none") -> AsyncIterator[Stage]:
    """Return a world that runs the webhooks beside other parts; they know what there is."""
    cluster = VirtualCluster(run=run)
    cluster.load(documents)
    async with cluster:
        cluster.control_plane[SPREAD_WEBHOOKS].start()
        await cluster.clock.advance(1)
        yield Stage(cluster)


class Process:
    """A process with the webhooks, which may be asked directly."""

    def __init__(self, cluster: VirtualCluster, name: str, seed: int = 0) -> None:
        self.handlers: Handlers = {}
        self._clock, self._rng = cluster.clock, Random(seed)
        self.client = Client(cluster.local_transport(name))
        self.informers = SharedInformerFactory(self.client, self._clock, self._rng)
        self.written = AssumedStatuses()
        reception = WebhookEndpoint(_leads_to, self._attend, pod_spec_errors)
        events = EventWriter(self.client, self._clock, self._rng)
        context = ControllerContext(self.client, self.informers, self._clock, self._rng, events)
        self.part = WorkloadSpreadWebhooks(context, self.written, reception)

    def _attend(self, handlers: Handlers) -> Detach:
        self.handlers = handlers
        return lambda: None

    async def ask(self, path: str, **request: Any) -> Document:
        """Have a review answered; gives the response."""
        review = {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "asked", "namespace": "default", **request},
        }
        answer = orjson.loads(await self.handlers[path](orjson.dumps(review)))
        response: Document = answer["response"]
        assert response["uid"] == "asked"
        return response

    async def admit(self, pod: Document, **request: Any) -> Document:
        """Have a new pod reviewed."""
        resource = {"group": "", "version": "v1", "resource": "pods"}
        about = {"operation": "CREATE", "resource": resource, "object": pod}
        return await self.ask(MUTATE_POD, **{**about, **request})


def _leads_to(path: str) -> Document:
    return {"url": f"https://127.0.0.1:1{path}"}


@asynccontextmanager
async def processes(
    cluster: VirtualCluster, count: int = 1, seed: int = 0
) -> AsyncIterator[list[Process]]:
    """Run processes of their own, each with a client and copies of its own."""
    running = [Process(cluster, f"hooks-{n}", seed + n) for n in range(count)]
    tasks = [asyncio.create_task(each.part.run()) for each in running]
    await cluster.clock.advance(1)
    try:
        yield running
    finally:
        await cancel_tasks(tasks)
        for each in running:
            await each.informers.stop()
            await each.client.close()


async def pod(stage: Stage, name: str, **parts: Document) -> Mapping[str, Any]:
    """Create a pod of the CloneSet web, and give it as it is stored."""
    return await stage.create(PODS, pod_of(name, None, **parts))


async def counts(stage: Stage, name: str = "web") -> dict[str, dict[str, int]]:
    """Return the missing replicas of each subset, by version."""
    found = await stage.get(WORKLOAD_SPREADS, name)
    versions = (found.get("status") or {}).get("versionedSubsetStatuses") or {}
    return {
        version: {each["name"]: each["missingReplicas"] for each in subsets}
        for version, subsets in versions.items()
    }
