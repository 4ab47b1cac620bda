"""The cluster state that the webhooks read, and how long a review waits for its caches to sync.

In adaptive mode, the scheduling of new pods is simulated on a cache of the whole cluster. Its
reflectors start with the first simulation. A pod waits a limited time for them to sync; after that
it is admitted without a simulation.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from random import Random
from typing import Final

from extender.cluster.event_handlers import build_reflectors
from extender.cluster.scheduler_cache import SchedulerCache
from extender.controllers.workloadspread.controller_finder import (
    ControllerFinder,
    KruiseConfiguration,
)
from extender.controllers.workloadspread.spread_cache import WorkloadSpreadCache
from extender.kube.informers.reflector import ReflectorContext
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.client import Client
from extender.kube.rest.clock import Clock, within
from extender.kube.rest.rate_limited_log import quiet_log
from extender.kube.workloadspread.pod_injection import SchedulingSimulation
from policies.preemption.policy import DEFAULT_RULES, SchedulerRules

CACHE_SYNC_TIMEOUT_SECONDS: Final = 5.0
"""How long a review waits; the API server waits for ten seconds."""
SIMULATION_SYNC_TIMEOUT_SECONDS: Final = 5.0
"""How long a pod waits for the reflectors of the simulation to sync."""


class CachesNotSyncedError(Exception):
    """The caches have not synced; the text names what is missing."""


@dataclass(frozen=True, slots=True)
class WebhookCaches:
    """The caches that the webhooks read."""

    spreads: WorkloadSpreadCache
    configuration: KruiseConfiguration
    workloads: ControllerFinder
    clock: Clock

    async def wait_synced(self) -> None:
        """Wait until the caches have synced. Raises CachesNotSyncedError."""
        if self.spreads.synced and self.configuration.synced:
            return
        try:
            await within(self.clock, CACHE_SYNC_TIMEOUT_SECONDS, self._synced())
        except TimeoutError:
            raise CachesNotSyncedError(
                "WorkloadSpreads have not been listed yet; try again"
            ) from None

    async def _synced(self) -> None:
        await self.spreads.wait_synced()
        await self.configuration.wait_synced()


class SchedulingSimulator:
    """Caches nodes, pods and all else that filters read, until :meth:`stop`."""

    def __init__(
        self, client: Client, clock: Clock, rng: Random, rules: SchedulerRules = DEFAULT_RULES
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._cluster = SchedulerCache(clock.monotonic)
        context = ReflectorContext(client, clock, rng, quiet_log())
        self._reflectors = build_reflectors(context, self._cluster, rules)
        self._running: list[asyncio.Task[None]] = []

    async def simulation(self) -> SchedulingSimulation | None:
        """Return a simulation on the current cluster; None if it has not synced."""
        if not self._running:
            self._running = [
                asyncio.create_task(reflector.run()) for reflector in self._reflectors.values()
            ]
        if not all(reflector.settled for reflector in self._reflectors.values()):
            try:
                await within(self._clock, SIMULATION_SYNC_TIMEOUT_SECONDS, self._wait_synced())
            except TimeoutError:
                return None
        return SchedulingSimulation(self._cluster.snapshot(), self._rules)

    async def stop(self) -> None:
        """Stop the reflectors; raises the error that ended one before."""
        running, self._running = self._running, []
        await cancel_tasks(running)

    async def _wait_synced(self) -> None:
        for reflector in self._reflectors.values():
            await reflector.wait_settled()
