"""Candidates for one Lease, each as a process: with its own clock, connection and pauses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from random import Random

from extender.kube.controller_runtime.event_recorder import EventWriter
from extender.kube.controller_runtime.leader_election import LeaderElector, LeadershipLostError
from extender.kube.controller_runtime.lease_lock import LeaseLock
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.rest.resources import LEASES
from extender.kube.rest.transport import Request, Response, Transport
from fakeapi import VirtualCluster
from fakeapi.testing.faults import Fault
from tests.builders import Document
from tests.stage import Stage
from tests.transports import TransportWrapper

NAMESPACE = "kube-system"
LEASE = "the-lease"


class CandidateClock:
    """A clock of one process: it may run at another rate, and its wall clock may jump."""

    def __init__(self, clock: Clock, rate: float, running: asyncio.Event) -> None:
        self._clock = clock
        self._rate = rate
        self._running = running
        self.jumped_ns = 0

    def monotonic(self) -> float:
        return self._clock.monotonic() * self._rate

    def now_ns(self) -> int:
        return self._clock.now_ns() + self.jumped_ns

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds / self._rate)
        await self._running.wait()


class UncancelledTransport(TransportWrapper):
    """A transport whose requests are carried out even if their caller is cancelled.

    A paused process receives no responses.
    """

    def __init__(self, transport: Transport, running: asyncio.Event) -> None:
        super().__init__(transport)
        self._running = running
        self._requests: set[asyncio.Task[Response]] = set()

    async def request(self, request: Request) -> Response:
        task = asyncio.ensure_future(super().request(request))
        self._requests.add(task)
        task.add_done_callback(self._finish)
        try:
            return await asyncio.shield(task)
        finally:
            await self._running.wait()

    async def close(self) -> None:
        for task in tuple(self._requests):
            task.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)

    def _finish(self, task: asyncio.Task[Response]) -> None:
        self._requests.discard(task)
        if not task.cancelled():
            task.exception()


class Candidate:
    """A process that leads as long as it can, and is a candidate again when it has lost."""

    def __init__(self, cluster: VirtualCluster, name: str, rate: float = 1.0) -> None:
        self.name = name
        self.running = asyncio.Event()
        self.running.set()
        self.clock = CandidateClock(cluster.clock, rate, self.running)
        self.transport = UncancelledTransport(cluster.local_transport(name), self.running)
        self.events = EventWriter(cluster.client, cluster.clock, Random(name))
        recorder = self.events.recorder("the-component")
        self.lock = LeaseLock(Client(self.transport), NAMESPACE, LEASE, recorder)
        self.elector = LeaderElector(self.lock, name, self.clock, Random(name), log=quiet_log())
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
        self._task = asyncio.create_task(self._run())

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def stop(self) -> None:
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def _run(self) -> None:
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


class Election(Stage):
    """A stage with several candidates, checked whenever time has passed."""

    def __init__(self, cluster: VirtualCluster, candidates: Iterable[Candidate]) -> None:
        super().__init__(cluster)
        self.candidates = tuple(candidates)

    def __getitem__(self, name: str) -> Candidate:
        return next(each for each in self.candidates if each.name == name)

    @property
    def leaders(self) -> list[str]:
        return [each.name for each in self.candidates if each.leading]

    async def lease(self) -> Document:
        return await self.get(LEASES, LEASE, NAMESPACE)

    async def lease_spec(self) -> Document:
        spec: Document = (await self.lease())["spec"]
        return spec

    async def holder(self) -> str:
        return str((await self.lease_spec())["holderIdentity"])

    async def passes(self, seconds: float = 1.0, step: float = 0.25) -> None:
        """Let time pass; at no moment there are two leaders."""
        for _ in range(round(seconds / step)):
            await super().passes(step)
            assert len(self.leaders) <= 1, self.leaders

    async def leaders_after(self, seconds: float) -> list[str]:
        """Let time pass, and return the names of the leaders."""
        await self.passes(seconds)
        return self.leaders

    async def wait_for_leader(self, seconds: float) -> str:
        """Let time pass until there is a leader, and return its name."""
        for _ in range(round(seconds / 0.25)):
            if self.leaders:
                break
            await self.passes(0.25)
        (leader,) = self.leaders
        return leader

    async def end_all(self) -> None:
        """End all candidates, in as much time as it takes."""
        self.cluster.faults.end()
        async with self.cluster.clock.jumping():
            for candidate in self.candidates:
                candidate.running.set()
                await candidate.stop()
                await candidate.events.flush()
                await candidate.transport.close()


@asynccontextmanager
async def election(
    *names: str, lease: Document | None = None, faults: Sequence[Fault] = (), rate: float = 1.0
) -> AsyncIterator[Election]:
    """Open a stage whose candidates have started; the clocks of all but the first run at ``rate``.

    The faults concern the first candidate.
    """
    async with VirtualCluster() as cluster:
        candidates = [Candidate(cluster, name, rate if n else 1.0) for n, name in enumerate(names)]
        stage = Election(cluster, candidates)
        stage.load(*([lease] if lease else []))
        stage.plan_faults(*faults, agent=names[0] if names else "")
        for candidate in candidates:
            candidate.start()
        try:
            yield stage
        finally:
            await stage.end_all()
