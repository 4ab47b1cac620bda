"""The kinds that OpenKruise's configuration allows, as it is now.

It is a ConfigMap of its own namespace. Where there is none, no further kinds are allowed; one that
cannot be read is named once, and allows none.
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
    """OpenKruise's configuration."""

    def __init__(self, informers: Informers, log: OnceLog) -> None:
        self._shared = informers.join(CONFIG_MAPS, decode_configuration, THE_CONFIGURATION)
        self._log = log

    @property
    def synced(self) -> bool:
        """Whether it is known whether there is any."""
        return self._shared.informer.synced

    async def wait_synced(self) -> None:
        """Return once it is known whether there is any."""
        await self._shared.wait_synced()

    @property
    def whitelist(self) -> Whitelist:
        """The kinds that it allows."""
        found = self._shared.objects.get(THE_KEY)
        if found is None:
            return NO_WHITELIST
        if found.problem:
            self._log.warning("configuration_ignored", found.metadata.key, why=found.problem)
        return found.value or NO_WHITELIST
