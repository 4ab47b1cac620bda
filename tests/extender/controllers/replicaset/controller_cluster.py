"""A world without sockets, and one controller in it that a test lets sync, one key at a time.

What the controller's watches bring can be held back, so that it acts on old copies.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset import ReplicaSetController
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.resources import PODS, REPLICA_SETS
from extender.kube.rest.transport import Request, Response, Stream, Transport
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault
from tests.builders import Document
from tests.stage import Stage

AGENT = "controller"
WEB = "default/web"


class Valve:
    """A transport whose watch of pods gives no more than is let through, once it is closed."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._may_pass: float = inf
        self._moved = asyncio.Event()

    def close_watch(self) -> None:
        self._may_pass = 0

    def let_through(self, frames: float = inf) -> None:
        """Let so many frames through (all, if nothing is said), and no more."""
        self._may_pass = frames
        self._moved.set()

    async def pass_one(self) -> None:
        """Return when a frame may pass."""
        while self._may_pass < 1:
            self._moved.clear()
            await self._moved.wait()
        self._may_pass -= 1

    async def request(self, request: Request) -> Response:
        return await self._transport.request(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._transport.stream(request) as stream:
            yield _Held(stream, self) if request.path.endswith("/pods") else stream

    async def close(self) -> None:
        await self._transport.close()


class _Held:
    def __init__(self, stream: Stream, valve: Valve) -> None:
        self._stream = stream
        self._valve = valve
        self.status, self.headers = stream.status, stream.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._stream:
            await self._valve.pass_one()
            yield line

    async def read(self) -> bytes:
        return await self._stream.read()


@dataclass(frozen=True)
class Asked:
    """The number of requests of each kind, and of created pods."""

    creates: int
    create_calls: int
    deletes: int
    patches: int
    status_writes: int
    reads: int


class Workshop(Stage):
    """A stage with a controller that only syncs when a test calls it."""

    def __init__(self, cluster: VirtualCluster, burst: int) -> None:
        super().__init__(cluster)
        self.valve = Valve(cluster.local_transport(AGENT))
        self.own_client = Client(self.valve)
        self.informers = SharedInformerFactory(self.own_client, cluster.clock, Random(1))
        self.events = EventWriter(self.own_client, cluster.clock, Random(1))
        context = ControllerContext(
            self.own_client, self.informers, cluster.clock, Random(1), self.events
        )
        self.part = ReplicaSetController(context, burst=burst)
        self._counted = 0

    @property
    def queue(self) -> WorkQueue[str]:
        return self.part.controller.queue

    async def look(self, key: str = WEB) -> Asked:
        """Let the controller sync once, and return its requests meanwhile."""
        while (other := self.queue.take()) is not None:  # what events have asked for
            self.queue.done(other)
        self.queue.add(key)
        self._count()
        looked = asyncio.create_task(self.part.controller.step())
        await self.passes(0)
        assert await looked == key
        return self._count()

    def plan(self, *faults: Fault) -> None:
        """Have the controller's requests meet faults from now on."""
        self.cluster.faults.plan(*(each.by(AGENT) for each in faults))

    async def scaled(self, replicas: int, name: str = "web") -> None:
        await self.patch(REPLICA_SETS, name, {"spec": {"replicas": replicas}})

    async def status(self, name: str = "web") -> Document:
        found = await self.get(REPLICA_SETS, name)
        status: Document = found.get("status", {})
        return status

    async def patch_pod(self, name: str, change: Document) -> None:
        await self.patch(PODS, name, change)

    async def pods(self) -> list[Document]:
        return list(await self.all(PODS))

    def _count(self) -> Asked:
        new = [each for each in self.cluster.requests[self._counted :] if each.user_agent == AGENT]
        self._counted = len(self.cluster.requests)

        def count(method: str, ending: str = "", **fields: Any) -> int:
            return sum(
                each.method == method
                and each.path.endswith(ending)
                and all(getattr(each, name) == value for name, value in fields.items())
                for each in new
            )

        return Asked(
            creates=count("POST", "/pods", status=201),
            create_calls=count("POST", "/pods"),
            deletes=sum(each.method == "DELETE" for each in new),
            patches=sum(each.method == "PATCH" and "/pods/" in each.path for each in new),
            status_writes=count("PUT", "/status"),
            reads=sum(each.method == "GET" and "/replicasets/" in each.path for each in new),
        )


@asynccontextmanager
async def workshop(*objects: Document, burst: int = 500) -> AsyncIterator[Workshop]:
    """Open a workshop with these objects in it, which the controller has seen."""
    async with VirtualCluster(run="none") as cluster:
        cluster.load(objects)
        shop = Workshop(cluster, burst)
        shop.queue.pause()
        running = asyncio.create_task(shop.part.run())
        try:
            await shop.passes()
            yield shop
        finally:
            await cancel_tasks((running,))
            await shop.events.flush()
            await shop.informers.stop()
