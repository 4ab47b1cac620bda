"""The kinds that OpenKruise's configuration currently allows.

The configuration is a ConfigMap in OpenKruise's own namespace. Without it no additional kinds are
allowed; one that cannot be decoded is logged once, and allows none.
"""

from __future__ import annotations

from extender.kube.informers import SharedInformerFactory
from extender.kube.logs import OnceLog
from fakeapi.controllers.spreading.items import (
    CONFIG_MAPS,
    CONFIGURATION_KEY,
    CONFIGURATION_SELECTION,
    decode_configuration,
)
from policies.spreading.workloads import NO_ALLOWED_KINDS, AllowedKinds


class KruiseConfiguration:
    """Caches OpenKruise's configuration."""

    def __init__(self, informers: SharedInformerFactory, log: OnceLog) -> None:
        self._shared = informers.join(CONFIG_MAPS, decode_configuration, CONFIGURATION_SELECTION)
        self._log = log

    @property
    def synced(self) -> bool:
        """Whether the informer of the configuration has synced."""
        return self._shared.reflector.synced

    async def wait_synced(self) -> None:
        """Wait until the informer of the configuration has synced."""
        await self._shared.wait_synced()

    @property
    def allowed_kinds(self) -> AllowedKinds:
        """The kinds that the configuration allows."""
        found = self._shared.objects.get(CONFIGURATION_KEY)
        if found is None:
            return NO_ALLOWED_KINDS
        if found.problem:
            self._log.warning("configuration_ignored", found.metadata.key, why=found.problem)
        return found.value or NO_ALLOWED_KINDS
