"""Controllers as processes: begun, killed without a farewell, and begun anew.

Several of them elect a leader; who has lost the Lease begins anew as a candidate, as a process
that is started again does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from random import Random
from typing import Final

from extender.controllers.replicaset import ReplicaSetController
from extender.kube.controller_runtime.event_recorder import FLUSH_SECONDS, EventWriter
from extender.kube.controller_runtime.leader_election import (
    LeaderElectionConfig,
    LeaderElector,
    LeadershipLostError,
)
from extender.kube.controller_runtime.lease_lock import LeaseLock
from extender.kube.informers.shared_informer import SharedInformerFactory, cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import quiet_log
from fakeapi import VirtualCluster
from tests.extender.controllers.replicaset.observing import Ledger
from tests.extender.controllers.replicaset.trials import Trial

LEASE: Final = ("kube-system", "replicaset-controller")
TERMS: Final = LeaderElectionConfig(lease_seconds=30, renew_deadline=20, retry_period=5)


class JumpingClock:
    """Another clock's time, but that the time of day may jump."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ahead_ns = 0

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def now_ns(self) -> int:
        return self._clock.now_ns() + self.ahead_ns

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)


class Process:
    """One controller, from its beginning to its sudden end."""

    def __init__(self, name: str, trial: Trial, cluster: VirtualCluster, clock: Clock) -> None:
        self._trial = trial
        self._clock = clock
        self._rng = Random(f"{trial.seed} {name}")
        self.ledger = Ledger(cluster.local_transport(name), cluster.clock)
        self._client = Client(self.ledger)
        self._events = EventWriter(self._client, clock, self._rng)
        self._elector = LeaderElector(
            LeaseLock(self._client, *LEASE), name, clock, self._rng, TERMS, log=quiet_log()
        )
        self._running = asyncio.create_task(self._run())

    async def kill(self) -> None:
        """End it: it gets no word out any more."""
        await self._client.close()
        await cancel_tasks([self._running])

    async def forget_events(self) -> None:
        """Let what it had to tell be forgotten; that may take some seconds."""
        await self._events.flush()

    async def _run(self) -> None:
        if self._trial.controllers == 1:
            await self._work()
        while True:
            with suppress(LeadershipLostError):
                await self._elector.run(self._work)

    async def _work(self) -> None:
        informers = SharedInformerFactory(self._client, self._clock, self._rng)
        given = self._client, informers, self._clock, self._rng, self._events
        part = ReplicaSetController(*given, burst=self._trial.burst)
        self.ledger.follow(part)
        try:
            await part.run()
        finally:
            await informers.stop()


class Processes:
    """All controllers of a trial, ``excess`` being the most of their ledgers'."""

    def __init__(self, trial: Trial, cluster: VirtualCluster) -> None:
        self._trial = trial
        self._cluster = cluster
        self._names = _names()
        self._running: list[Process] = []
        self._killed: list[asyncio.Task[None]] = []
        self.clock = JumpingClock(cluster.clock)
        self.excess = 0

    def begin(self) -> None:
        """Begin as many as there are to be."""
        while len(self._running) < self._trial.controllers:
            name = next(self._names)
            self._running.append(Process(name, self._trial, self._cluster, self.clock))

    async def kill(self, which: int) -> None:
        """Kill one of them."""
        process = self._running.pop(which % len(self._running))
        await process.kill()
        self._killed.append(asyncio.create_task(process.forget_events()))
        self.excess = max(self.excess, process.ledger.excess)

    async def end(self) -> None:
        """Kill them all."""
        while self._running:
            await self.kill(0)
        await self._cluster.clock.advance(FLUSH_SECONDS)
        await asyncio.gather(*self._killed)


def _names() -> Iterator[str]:
    return (f"controller-{number}" for number in count(1))
