"""Candidates for one Lease, each as a process: with its own clock, connection and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from random import Random
from typing import Any

import orjson

from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.leader_election import (
    LeaderElectionConfig,
    LeaderElector,
    LeadershipLostError,
)
from extender.kube.controller_runtime.lease_lock import LeaseLock
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import LEASES
from extender.kube.rest.transport import Request, Response, Stream, Transport
from fakeapi import VirtualCluster

NAMESPACE = "kube-system"
LEASE = "the-lease"
HERE = LEASES.object(LEASE, NAMESPACE)


async def the_lease(cluster: VirtualCluster) -> dict[str, Any]:
    lease: dict[str, Any] = await cluster.client.get(HERE, lambda raw: orjson.loads(bytes(raw)))
    return lease


async def spec_of(cluster: VirtualCluster) -> dict[str, Any]:
    spec: dict[str, Any] = (await the_lease(cluster))["spec"]
    return spec


class Watch:
    """A clock of one process: it may go at another rate, and its wall clock may jump."""

    def __init__(self, world: Clock, rate: float, running: asyncio.Event) -> None:
        self._world = world
        self._rate = rate
        self._running = running
        self.jumped_ns = 0

    def monotonic(self) -> float:
        return self._world.monotonic() * self._rate

    def now_ns(self) -> int:
        return self._world.now_ns() + self.jumped_ns

    async def sleep(self, seconds: float) -> None:
        await self._world.sleep(seconds / self._rate)
        await self._running.wait()


class Wire:
    """A way to the server on which a request goes on, whether anybody waits for its answer or not.

    A process that stands still takes no answers.
    """

    def __init__(self, inner: Transport, running: asyncio.Event) -> None:
        self._inner = inner
        self._running = running
        self._under_way: set[asyncio.Task[Response]] = set()

    async def request(self, request: Request) -> Response:
        task = asyncio.create_task(self._inner.request(request))
        self._under_way.add(task)
        task.add_done_callback(self._arrived)
        try:
            return await asyncio.shield(task)
        finally:
            await self._running.wait()

    def stream(self, request: Request) -> AbstractAsyncContextManager[Stream]:
        return self._inner.stream(request)

    async def close(self) -> None:
        for task in tuple(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _arrived(self, task: asyncio.Task[Response]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()


class Candidate:
    """A process that wants to lead for ever, and stands again when it has lost."""

    def __init__(
        self,
        cluster: VirtualCluster,
        name: str,
        rate: float = 1.0,
        terms: LeaderElectionConfig | None = None,
    ) -> None:
        self.name = name
        self.running = asyncio.Event()
        self.running.set()
        self.clock = Watch(cluster.clock, rate, self.running)
        self.wire = Wire(cluster.local_transport(name), self.running)
        self.events = EventWriter(cluster.client, cluster.clock, Random(name))
        recorder = self.events.recorder("the-component")
        self.lock = LeaseLock(Client(self.wire), NAMESPACE, LEASE, recorder)
        self.elector = LeaderElector(self.lock, name, self.clock, Random(name), terms, quiet_log())
        self.elections = 0
        self.losses = 0
        self.working = False
        self._task: asyncio.Task[None] | None = None

    @property
    def leading(self) -> bool:
        return self.elector.is_leader

    @property
    def up(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        self._task = asyncio.create_task(self._stand())

    def order_to_stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def _stand(self) -> None:
        while True:
            try:
                await self.elector.run(self._work)
            except LeadershipLostError:
                self.losses += 1

    async def _work(self) -> None:
        self.elections += 1
        self.working = True
        try:
            await asyncio.Event().wait()
        finally:
            self.working = False


class Race:
    """Several candidates, checked whenever time has passed."""

    def __init__(self, cluster: VirtualCluster, candidates: Iterable[Candidate]) -> None:
        self.cluster = cluster
        self.candidates = tuple(candidates)

    def __getitem__(self, name: str) -> Candidate:
        return next(each for each in self.candidates if each.name == name)

    @property
    def leaders(self) -> list[str]:
        return [each.name for each in self.candidates if each.leading]

    async def passes(self, seconds: float, step: float = 0.25) -> None:
        """Let time pass; at no moment do two believe that they lead."""
        for _ in range(round(seconds / step)):
            await self.cluster.clock.advance(step)
            assert len(self.leaders) <= 1, self.leaders

    async def until_somebody_leads(self, seconds: float) -> str:
        """Let time pass until there is a leader, and give its name."""
        for _ in range(round(seconds / 0.25)):
            if self.leaders:
                break
            await self.passes(0.25)
        (leader,) = self.leaders
        return leader

    async def end(self) -> None:
        """End all candidates, in as much time as it takes."""
        self.cluster.faults.end()
        async with self.cluster.clock.jumping():
            for candidate in self.candidates:
                candidate.running.set()
                await candidate.stop()
                await candidate.events.flush()
                await candidate.wire.close()


@asynccontextmanager
async def racing(
    cluster: VirtualCluster,
    *names: str,
    terms: LeaderElectionConfig | None = None,
    rate: float = 1.0,
) -> AsyncIterator[Race]:
    """Return a race of candidates that have started; all but the first go at ``rate``."""
    candidates = [
        Candidate(cluster, name, rate if index else 1.0, terms) for index, name in enumerate(names)
    ]
    race = Race(cluster, candidates)
    for candidate in candidates:
        candidate.start()
    try:
        yield race
    finally:
        await race.end()
