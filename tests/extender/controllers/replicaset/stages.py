"""A cluster without sockets, and a controller in it that syncs one key at a time, on request.

The events of the controller's watches can be held back, so that it acts on stale caches.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from random import Random

import pytest

from extender.controllers.context import ControllerContext
from extender.controllers.replicaset import ReplicaSetController
from extender.controllers.replicaset.caches import ReplicaSetCaches
from extender.controllers.replicaset.types import ReplicaSet
from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.expectations import UIDTrackingControllerExpectations
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.resources import REPLICA_SETS
from extender.kube.rest.transport import Request, Stream, Transport
from fakeapi import VirtualCluster
from fakeapi.apiserver.testing.request_log import RequestRecord
from fakeapi.testing.faults import Fault
from tests.builders import Document
from tests.stage import Stage
from tests.transports import TransportWrapper

AGENT = "controller"
WEB = "default/web"


class HeldWatchTransport(TransportWrapper):
    """A transport whose watch of pods lets no more events through than it may, once it is held."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport)
        self._allowed: float = inf
        self._changed = asyncio.Event()

    def hold(self) -> None:
        """Let no event through until some are released."""
        self._allowed = 0

    def release(self, events: float = inf) -> None:
        """Let so many events through (by default all), and no more."""
        self._allowed = events
        self._changed.set()

    async def wait(self) -> None:
        """Return when an event may pass."""
        while self._allowed < 1:
            self._changed.clear()
            await self._changed.wait()
        self._allowed -= 1

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with super().stream(request) as stream:
            yield _HeldStream(stream, self) if request.path.endswith("/pods") else stream


class _HeldStream:
    def __init__(self, stream: Stream, transport: HeldWatchTransport) -> None:
        self._stream = stream
        self._transport = transport
        self.status, self.headers = stream.status, stream.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._stream:
            await self._transport.wait()
            yield line

    async def read(self) -> bytes:
        return await self._stream.read()


@dataclass(frozen=True)
class RequestCounts:
    """The number of requests of each kind, and of created pods."""

    creates: int
    create_calls: int
    deletes: int
    patches: int
    status_writes: int
    reads: int


def count_requests(requests: Sequence[RequestRecord]) -> RequestCounts:
    def count(method: str, part: str = "", status: int | None = None) -> int:
        paths = [
            f"{each.path}/"
            for each in requests
            if each.method == method and status in (None, each.status)
        ]
        return sum(part in path for path in paths)

    return RequestCounts(
        creates=count("POST", "/pods/", 201),
        create_calls=count("POST", "/pods/"),
        deletes=count("DELETE"),
        patches=count("PATCH", "/pods/"),
        status_writes=count("PUT", "/status/"),
        reads=count("GET", "/replicasets/"),
    )


class SteppedStage(Stage):
    """A stage with a controller that syncs only when a test calls it."""

    def __init__(self, cluster: VirtualCluster, burst: int) -> None:
        super().__init__(cluster)
        self.watch = HeldWatchTransport(cluster.local_transport(AGENT))
        client = Client(self.watch)
        self.informers = SharedInformerFactory(client, cluster.clock, Random(1))
        self.events = EventWriter(client, cluster.clock, Random(1))
        context = ControllerContext(client, self.informers, cluster.clock, Random(1), self.events)
        self.component = ReplicaSetController(context, burst=burst)
        self._counted = 0

    @property
    def queue(self) -> WorkQueue[str]:
        return self.component.controller.queue

    @property
    def caches(self) -> ReplicaSetCaches:
        return self.component.caches

    @property
    def expectations(self) -> UIDTrackingControllerExpectations:
        return self.component.expectations

    def cached(self, key: str = WEB) -> ReplicaSet:
        """Return a ReplicaSet that is in the cache."""
        found = self.caches.get(key)
        assert found is not None
        return found

    async def sync(self, key: str = WEB) -> RequestCounts:
        """Let the controller sync once, and return its requests meanwhile."""
        while (other := self.queue.take()) is not None:  # keys that events have enqueued
            self.queue.done(other)
        self.queue.add(key)
        self._count()
        synced = asyncio.create_task(self.component.controller.step())
        await self.passes(0)
        assert await synced == key
        return self._count()

    def requeued(self, key: str = WEB) -> str | None:
        """Return how a key was enqueued again: rate limited, after a time, or not (None)."""
        due = self.queue.due_in(key)
        if due is None:
            return None
        return "rate_limited" if due == pytest.approx(0.005) else "after"

    def plan_faults(self, *faults: Fault, agent: str = AGENT) -> None:
        """Have the controller's requests meet faults from now on."""
        super().plan_faults(*faults, agent=agent)

    async def status(self, name: str = "web") -> Document:
        return await self.status_of(REPLICA_SETS, name)

    def _count(self) -> RequestCounts:
        new = [each for each in self.cluster.requests[self._counted :] if each.user_agent == AGENT]
        self._counted = len(self.cluster.requests)
        return count_requests(new)


@asynccontextmanager
async def stepped_stage(*objects: Document, burst: int = 500) -> AsyncIterator[SteppedStage]:
    """Open a stage whose controller has cached these objects."""
    async with VirtualCluster(run="none") as cluster:
        cluster.load(objects)
        stage = SteppedStage(cluster, burst)
        stage.queue.pause()
        running = asyncio.create_task(stage.component.run())
        try:
            await stage.passes()
            yield stage
        finally:
            await cancel_tasks((running,))
            await stage.events.flush()
            await stage.informers.stop()
