"""The kinds that OpenKruise's configuration currently allows.

The configuration is a ConfigMap in OpenKruise's own namespace. Without it no additional kinds are
allowed; one that cannot be decoded is logged once, and allows none.
"""

from __future__ import annotations

from extender.kube.informers import Informers
from extender.kube.logs import OnceLog
from fakeapi.controllers.spreading.items import (
    CONFIG_MAPS,
    THE_CONFIGURATION,
    THE_KEY,
    decode_configuration,
)
from policies.spreading.workloads import NO_WHITELIST, Whitelist


class Configuration:
    """Caches OpenKruise's configuration."""

    def __init__(self, informers: Informers, log: OnceLog) -> None:
        self._shared = informers.join(CONFIG_MAPS, decode_configuration, THE_CONFIGURATION)
        self._log = log

    @property
    def synced(self) -> bool:
        """Whether the informer of the configuration has synced."""
        return self._shared.informer.synced

    async def wait_synced(self) -> None:
        """Wait until the informer of the configuration has synced."""
        await self._shared.wait_synced()

    @property
    def whitelist(self) -> Whitelist:
        """The kinds that the configuration allows."""
        found = self._shared.objects.get(THE_KEY)
        if found is None:
            return NO_WHITELIST
        if found.problem:
            self._log.warning("configuration_ignored", found.metadata.key, why=found.problem)
        return found.value or NO_WHITELIST
