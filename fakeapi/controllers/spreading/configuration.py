"""The kinds that OpenKruise's configuration allows, as it is now.

It is a ConfigMap of its own namespace. Where there is none, no further kinds are allowed; one that
cannot be read is named once, and allows none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from extender.kube.client import Selection
from extender.kube.decoding import ObjectError
from extender.kube.informers import Informers
from extender.kube.logs import OnceLog
from extender.kube.metadata import ObjectMeta, decode_partial
from extender.kube.resources import Resource
from extender.kube.workloadspread.workloads import CONFIGURATION, decode_whitelist
from policies.spreading.workloads import NO_WHITELIST, Whitelist

CONFIG_MAPS: Final = Resource("", "v1", "configmaps", namespaced=True)
NAMESPACE: Final = "kruise-system"

_THE_ONE: Final = Selection(NAMESPACE, field_selector=f"metadata.name={CONFIGURATION}")


@dataclass(frozen=True, slots=True)
class Configured:
    """The configuration as it was seen; ``problem`` says why it cannot be read."""

    metadata: ObjectMeta
    whitelist: Whitelist
    problem: str = ""


def decode_configured(raw: bytes) -> Configured:
    """Read the configuration, whatever it is like."""
    whole = bytes(raw)
    metadata = decode_partial(whole).metadata
    try:
        return Configured(metadata, decode_whitelist(whole))
    except ObjectError as error:
        return Configured(metadata, NO_WHITELIST, str(error))


class Configuration:
    """OpenKruise's configuration."""

    def __init__(self, informers: Informers, log: OnceLog) -> None:
        self._shared = informers.of(CONFIG_MAPS, decode_configured, _THE_ONE)
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
        found = self._shared.objects.get(f"{NAMESPACE}/{CONFIGURATION}")
        if found is None:
            return NO_WHITELIST
        if found.problem:
            self._log.warning("configuration_ignored", found.metadata.key, why=found.problem)
        return found.whitelist
