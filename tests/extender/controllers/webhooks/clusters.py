"""Clusters whose pods pass the webhooks of WorkloadSpreads, and short ways to act in them.

No controller is at work beside them. What the webhooks are to know is there before they begin, so
that no test waits for a copy: they are not registered before they know what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
import orjson
import yaml

from extender.controllers.process.controller_manager import (
    SPREAD_WEBHOOKS,
    ControllerManager,
    ManagerOptions,
)
from extender.controllers.process.webhook_server import WebhookServer, generate_certificate
from extender.controllers.webhooks.registration import MUTATING, NAME, VALIDATING
from extender.controllers.workloadspread.types import DEFINITIONS
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import Client
from extender.kube.rest.http_transport import AiohttpTransport, Endpoint
from fakeapi import FakeCluster
from fakeapi.apiserver.serving.virtual_clock import VirtualClock
from fakeapi.apiserver.validation.object_validation import pod_spec_errors
from tests.builders.definitions import definition
from tests.builders.workloadspread import NOW_NS
from tests.stage import decode

Document = dict[str, Any]

ROOT = Path(__file__).parents[4]
DEFINITION: Document = yaml.safe_load(
    (ROOT / "deploy" / "crds" / "workloadspreads.apps.kruise.io.yaml").read_text()
)
PODS = "/api/v1/namespaces/default/pods"
SPREADS = "/apis/apps.kruise.io/v1beta1/namespaces/default/workloadspreads"
OLD_SPREADS = SPREADS.replace("v1beta1", "v1alpha1")
ANNOTATION = "apps.kruise.io/matched-workloadspread"
PATIENCE_SECONDS = 30


CLONE_SETS = definition("apps.kruise.io/v1alpha1", "CloneSet")


class World:
    """A cluster behind a socket, and what tests do with it."""

    def __init__(self, cluster: FakeCluster, session: aiohttp.ClientSession) -> None:
        self.cluster = cluster
        self._session = session

    async def ask(
        self, method: str, path: str, body: Document | None = None, **query: str
    ) -> tuple[int, Any]:
        """Ask for something; gives the status and the answer."""
        data = None if body is None else orjson.dumps(body)
        kind = "merge-patch+json" if method == "PATCH" else "json"
        headers = {"Content-Type": f"application/{kind}"}
        async with self._session.request(
            method, path, data=data, headers=headers, params=query
        ) as answer:
            return answer.status, await answer.json()

    async def made(self, path: str, document: Document) -> Document:
        """Create an object, and give it as it is stored."""
        status, answer = await self.ask("POST", path, document)
        assert status == 201, answer
        stored: Document = answer
        return stored

    async def refusal(self, path: str, document: Document, method: str = "POST") -> tuple[int, str]:
        """Have something refused, and give the code and why."""
        status, answer = await self.ask(method, path, document)
        assert status >= 400, answer
        return status, answer["message"]

    async def get(self, path: str) -> Document:
        """Return an object."""
        status, answer = await self.ask("GET", path)
        assert status == 200, answer
        found: Document = answer
        return found

    async def status(self, name: str) -> Document:
        """Return the status of a WorkloadSpread."""
        found: Document = (await self.get(f"{SPREADS}/{name}")).get("status") or {}
        return found


def put_into(pod: Mapping[str, Any]) -> Document | None:
    """Return the value of a pod's annotation, None if it has none."""
    written = (pod["metadata"].get("annotations") or {}).get(ANNOTATION)
    return None if written is None else orjson.loads(written)


@asynccontextmanager
async def in_process(*documents: Document) -> AsyncIterator[World]:
    """Return a world that asks webhooks of its own process; its clock stands at NOW."""
    cluster = FakeCluster(run="none", clock=VirtualClock(NOW_NS))
    cluster.load(documents)
    async with cluster, aiohttp.ClientSession(cluster.url) as session:
        cluster.control_plane[SPREAD_WEBHOOKS].start()
        await registered(cluster.client)
        yield World(cluster, session)


@asynccontextmanager
async def over_https(*documents: Document) -> AsyncIterator[World]:
    """Return a world that asks webhooks over HTTPS."""
    async with AsyncExitStack() as stack:
        clock = VirtualClock(NOW_NS)
        cluster = FakeCluster(run="none", clock=clock)
        cluster.load(documents)
        await stack.enter_async_context(cluster)
        await stack.enter_async_context(answering(cluster.url, clock))
        await registered(cluster.client)
        session = await stack.enter_async_context(aiohttp.ClientSession(cluster.url))
        yield World(cluster, session)


@asynccontextmanager
async def answering(url: str, clock: VirtualClock, seed: int = 0) -> AsyncIterator[WebhookServer]:
    """Answer the webhooks of a server over HTTPS."""
    server = WebhookServer(generate_certificate("127.0.0.1"))
    await server.start("127.0.0.1", 0)
    client = Client(AiohttpTransport(Endpoint(url)))
    reception = server.endpoint(pod_spec_errors)
    options = ManagerOptions(webhook_endpoint=reception)
    plane = ControllerManager(client, clock, Random(seed), (), options)
    plane[SPREAD_WEBHOOKS].start()
    try:
        yield server
    finally:
        await plane.stop()
        await server.stop()
        await client.close()


async def registered(client: Client) -> None:
    """Return once the webhooks are registered."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        for resource in (MUTATING, VALIDATING):
            while not await _is_there(client, resource.object(NAME)):
                pass
        while not await _converts(client):
            pass


async def _is_there(client: Client, path: Any) -> bool:
    try:
        await client.get(path, decode)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return True


async def _converts(client: Client) -> bool:
    found = await client.get(DEFINITIONS.object(DEFINITION["metadata"]["name"]), decode)
    config = found["spec"]["conversion"]["webhook"]["clientConfig"]
    return "caBundle" in config or config["service"]["name"] == "reprieve-webhooks"
