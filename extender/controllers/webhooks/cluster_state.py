"""The caches that the webhooks read, and how long a review waits for them to sync.

The cluster on which new pods are simulated, in adaptive mode.

Its reflectors start with the first simulation. A pod waits a limited time for them to sync; after
that it is admitted without a simulation.
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


SIMULATION_SYNC_TIMEOUT_SECONDS: Final = 5.0
"""How long a pod waits for the reflectors to sync; the API server waits for ten seconds."""


class SchedulingSimulator:
    """Caches nodes, pods and all else that filters read, until :meth:`stop`."""

    def __init__(
        self, client: Client, clock: Clock, rng: Random, rules: SchedulerRules = DEFAULT_RULES
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._cluster = SchedulerCache(clock.monotonic)
        context = ReflectorContext(client, clock, rng, quiet_log())
        self._feeds = build_reflectors(context, self._cluster, rules)
        self._following: list[asyncio.Task[None]] = []

    async def simulation(self) -> SchedulingSimulation | None:
        """Return a simulation on the current cluster; None if it has not synced."""
        if not self._following:
            self._following = [asyncio.create_task(feed.run()) for feed in self._feeds.values()]
        if not all(feed.settled for feed in self._feeds.values()):
            try:
                await within(self._clock, SIMULATION_SYNC_TIMEOUT_SECONDS, self._wait_synced())
            except TimeoutError:
                return None
        return SchedulingSimulation(self._cluster.snapshot(), self._rules)

    async def stop(self) -> None:
        """Stop the reflectors; raises the error that ended one before."""
        following, self._following = self._following, []
        await cancel_tasks(following)

    async def _wait_synced(self) -> None:
        for feed in self._feeds.values():
            await feed.wait_settled()
