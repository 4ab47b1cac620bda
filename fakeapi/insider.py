"""Reprieve as an extender in the same process: its service and its informers, without sockets.

Enter the cluster, then :meth:`InProcessReprieve.following`:

    reprieve = InProcessReprieve(Search.CLUSTER)
    async with VirtualCluster(run="scheduler", extenders={REPRIEVE_URL: reprieve}) as cluster:
        async with reprieve.following(cluster):
            ...
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from random import Random
from typing import Final

from extender.app import respond
from extender.cluster import LiveCluster
from extender.feeds import informers
from extender.journal import Journal
from extender.kube.client import Client
from extender.kube.informers import end
from extender.kube.logs import quiet_log
from extender.service import Asked, Service
from extender.verdict import Search
from fakeapi.controlplane.scheduler.outfits import Call, Reply
from fakeapi.harness import Cluster
from policies.rules import Rules
from policies.upstream import NEWEST, Release
from policies.vectorized import Vectorized

REPRIEVE: Final = "http://reprieve"
"""URL of the in-process extender in a scheduler's configuration; no server listens there."""


class Reprieve:
    """The service of ``reprieve serve`` in this process; enter :meth:`following` before a call."""

    def __init__(
        self,
        search: Search = Search.OFFERED,
        release: Release = NEWEST,
        journal: Journal | None = None,
    ) -> None:
        self._search = search
        self._rules = Rules(release)
        self._journal = journal or Journal()
        self.service: Service

    async def __call__(self, call: Call) -> Reply:
        """Answer a call as the HTTP server does."""
        arrived = self.service.clock.monotonic()
        response = await respond(self.service, Asked(call.verb, call.body, arrived))
        if not isinstance(response.body, bytes):
            raise TypeError(f"an answer of the service is not bytes: {response.body!r}")
        return Reply(response.status, response.body)

    @asynccontextmanager
    async def following(self, cluster: Cluster) -> AsyncIterator[None]:
        """Run the service and its informers on a cluster until the block ends."""
        transport, clock = cluster.local_transport("reprieve"), cluster.world.clock
        engine = Vectorized(self._rules)
        live = LiveCluster(clock.monotonic, engine.follow)
        rng = Random(1)  # noqa: S311 - jitter
        feeds = informers(live, Client(transport), self._rules, clock, rng, log=quiet_log())
        self.service = Service(
            live, engine, clock, self._search, feeds=feeds, journal=self._journal
        )
        tasks = [asyncio.create_task(feed.run()) for feed in feeds.values()]
        for feed in feeds.values():
            await feed.wait_settled()
        try:
            yield
        finally:
            await end(tasks)
            await transport.close()
