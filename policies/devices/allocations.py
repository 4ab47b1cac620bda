"""The devices that claims use, by pool, derived from those of an earlier state of the claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from policies.devices.changes import changed_keys
from policies.kubernetes.devices import AllocatedDevice, PoolId, PoolUse, pool_uses
from policies.kubernetes.storage import ResourceClaim

Results = tuple[AllocatedDevice, ...]


@dataclass(frozen=True, slots=True)
class DevicesInUse:
    """What ``claims`` use of each pool. ``results`` are by pool and by the key of the claim."""

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    results: Mapping[PoolId, Mapping[str, Results]] = field(default_factory=dict)
    uses: Mapping[PoolId, PoolUse] = field(default_factory=dict)

    def updated(self, claims: Mapping[str, ResourceClaim]) -> DevicesInUse:
        """Return the same for other claims; the uses of unchanged pools are the same objects."""
        if claims is self.claims:
            return self
        stale: dict[PoolId, dict[str, Results]] = {}
        for key in changed_keys(self.claims, claims):
            before, after = _results_of(self.claims.get(key)), _results_of(claims.get(key))
            if before == after:
                continue
            for pool in {each.pool for each in (*before, *after)}:
                if pool not in stale:
                    stale[pool] = dict(self.results.get(pool, {}))
                stale[pool].pop(key, None)
            for pool in {each.pool for each in after}:
                stale[pool][key] = tuple(each for each in after if each.pool == pool)
        results, uses = dict(self.results), dict(self.uses)
        for pool, known in stale.items():
            results.pop(pool, None)
            uses.pop(pool, None)
            if known:
                results[pool] = known
                uses |= pool_uses(each for of_claim in known.values() for each in of_claim)
        return DevicesInUse(claims, results, uses)


def _results_of(claim: ResourceClaim | None) -> Results:
    return () if claim is None else claim.results
