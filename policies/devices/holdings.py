"""Which devices are in use once some pods are gone.

A claim is reserved for the pods that use it. When all of them are gone, the resource claim
controller deallocates the claim, or deletes it if it was created for one of them, and its devices
are free. A claim that has another user than pods, or that is reserved for no pod, stays allocated.

Source: syncClaim in pkg/controller/resourceclaim/controller.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from policies.devices.inventory import Same
from policies.kubernetes.devices import UNUSED, PoolId, PoolUse, pool_uses
from policies.kubernetes.storage import ResourceClaim, Storage


class Holdings:
    """The allocated claims by the pods that use them, and by the pools of their devices."""

    def __init__(self, claims: Iterable[ResourceClaim]) -> None:
        self.by_user: dict[str, list[ResourceClaim]] = {}
        self._by_pool: dict[PoolId, list[ResourceClaim]] = {}
        for claim in claims:
            if claim.allocated and not claim.used_by_others:
                for uid in claim.reserved_for:
                    self.by_user.setdefault(uid, []).append(claim)
            for pool in {result.pool for result in claim.results}:
                self._by_pool.setdefault(pool, []).append(claim)

    def freed(self, gone: Collection[str]) -> Mapping[str, ResourceClaim]:
        """Return by key the claims that only pods with the UIDs ``gone`` use."""
        return {
            claim.key: claim
            for uid in gone
            for claim in self.by_user.get(uid, ())
            if claim.reserved_for.issubset(gone)
        }

    def uses_without(self, freed: Mapping[str, ResourceClaim]) -> Mapping[PoolId, PoolUse]:
        """Return the use of each pool that has a device of the claims ``freed``, without these."""
        pools = {result.pool for claim in freed.values() for result in claim.results}
        others = {
            claim.key: claim
            for pool in pools
            for claim in self._by_pool[pool]
            if claim.key not in freed
        }
        uses = pool_uses(result for claim in others.values() for result in claim.results)
        return {pool: uses.get(pool, UNUSED) for pool in pools}


NO_HOLDINGS = Holdings(())
"""No claims: no pod frees devices."""


def holdings(storage: Storage) -> Holdings:
    """Return the holdings of the claims of ``storage``."""
    return _holdings(Same(storage.devices))


@lru_cache(maxsize=4)
def _holdings(claims: Same[Mapping[str, ResourceClaim]]) -> Holdings:
    return Holdings(claims.value.values())
