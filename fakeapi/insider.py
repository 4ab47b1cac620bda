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

from extender.app import handle_verb
from extender.cluster import SchedulerCache
from extender.feeds import build_reflectors
from extender.journal import DecisionLog
from extender.kube.client import Client
from extender.kube.informers import cancel_tasks
from extender.kube.logs import quiet_log
from extender.service import Service, VerbCall
from extender.verdict import Search
from fakeapi.controlplane.scheduler.outfits import Call, Reply
from fakeapi.harness import Cluster
from policies.rules import SchedulerRules
from policies.upstream import NEWEST, Release
from policies.vectorized import VectorizedEngine

REPRIEVE_URL: Final = "http://reprieve"
"""URL of the in-process extender in a scheduler's configuration; no server listens there."""


class InProcessReprieve:
    """The service of ``reprieve serve`` in this process; enter :meth:`following` before a call."""

    def __init__(
        self,
        search: Search = Search.OFFERED,
        release: Release = NEWEST,
        journal: DecisionLog | None = None,
    ) -> None:
        self._search = search
        self._rules = SchedulerRules(release)
        self._journal = journal or DecisionLog()
        self.service: Service

    async def __call__(self, call: Call) -> Reply:
        """Answer a call as the HTTP server does."""
        arrived = self.service.clock.monotonic()
        response = await handle_verb(self.service, VerbCall(call.verb, call.body, arrived))
        if not isinstance(response.body, bytes):
            raise TypeError(f"an answer of the service is not bytes: {response.body!r}")
        return Reply(response.status, response.body)

    @asynccontextmanager
    async def following(self, cluster: Cluster) -> AsyncIterator[None]:
        """Run the service and its informers on a cluster until the block ends."""
        transport, clock = cluster.local_transport("reprieve"), cluster.world.clock
        engine = VectorizedEngine(self._rules)
        live = SchedulerCache(clock.monotonic, engine.follow)
        rng = Random(1)  # noqa: S311 - jitter
        feeds = build_reflectors(live, Client(transport), self._rules, clock, rng, log=quiet_log())
        self.service = Service(
            live, engine, clock, self._search, informers=feeds, decision_log=self._journal
        )
        tasks = [asyncio.create_task(feed.run()) for feed in feeds.values()]
        for feed in feeds.values():
            await feed.wait_settled()
        try:
            yield
        finally:
            await cancel_tasks(tasks)
            await transport.close()
