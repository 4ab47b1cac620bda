"""The cluster on which new pods are simulated, in adaptive mode.

Its reflectors start with the first simulation. A pod waits a limited time for them to sync; after
that it is admitted without a simulation.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

from extender.cluster import LiveCluster
from extender.feeds import informers
from extender.kube.client import Client
from extender.kube.clock import Clock, within
from extender.kube.informers import end
from extender.kube.logs import quiet_log
from extender.spreadanswers import Trial
from policies.rules import DEFAULT_RULES, Rules

PATIENCE_SECONDS: Final = 5.0
"""How long a pod waits for the reflectors to sync; the API server waits for ten seconds."""


class TryingGround:
    """Caches nodes, pods and all else that filters read, until :meth:`stop`."""

    def __init__(
        self, client: Client, clock: Clock, rng: Random, rules: Rules = DEFAULT_RULES
    ) -> None:
        self._clock = clock
        self._rules = rules
        self._cluster = LiveCluster(clock.monotonic)
        self._feeds = informers(self._cluster, client, rules, clock, rng, log=quiet_log())
        self._following: list[asyncio.Task[None]] = []

    async def trial(self) -> Trial | None:
        """Return a simulation on the current cluster; None if it has not synced."""
        if not self._following:
            self._following = [asyncio.create_task(feed.run()) for feed in self._feeds.values()]
        if not all(feed.settled for feed in self._feeds.values()):
            try:
                await within(self._clock, PATIENCE_SECONDS, self._settled())
            except TimeoutError:
                return None
        return Trial(self._cluster.snapshot(), self._rules)

    async def stop(self) -> None:
        """Stop the reflectors; raises the error that ended one before."""
        following, self._following = self._following, []
        await end(following)

    async def _settled(self) -> None:
        for feed in self._feeds.values():
            await feed.wait_settled()
