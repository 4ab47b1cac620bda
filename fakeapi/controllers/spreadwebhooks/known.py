"""The caches that the webhooks read, and how long a review waits for them to sync."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from extender.kube.clock import Clock, within
from fakeapi.controllers.spreading.configuration import KruiseConfiguration
from fakeapi.controllers.spreading.copies import WorkloadSpreadCache
from fakeapi.controllers.spreading.workloads import ControllerFinder

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
