"""The devices that claims use, by pool, and the claims by the pods that use them.

Each state is derived from the one before. A claim is reserved for the pods that use it. When all of
them are gone, the resource claim controller deallocates the claim, or deletes it if it was created
for one of them, and its devices are free. A claim that has another user than pods, or that is
reserved for no pod, stays allocated.

Source: syncClaim in pkg/controller/resourceclaim/controller.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from policies.devices.changes import changed_keys
from policies.kubernetes.devices import UNUSED, AllocatedDevice, PoolId, PoolUse, pool_uses
from policies.kubernetes.storage import ResourceClaim

Results = tuple[AllocatedDevice, ...]


@dataclass(frozen=True, slots=True)
class DevicesInUse:
    """What ``claims`` use of each pool. ``results`` are by pool and by the key of the claim.

    ``by_user`` are the keys of the claims that only pods use, by the UID of each of these pods.
    """

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    results: Mapping[PoolId, Mapping[str, Results]] = field(default_factory=dict)
    uses: Mapping[PoolId, PoolUse] = field(default_factory=dict)
    by_user: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def freed(self, gone: Collection[str]) -> Mapping[str, ResourceClaim]:
        """Return by key the claims that only pods with the UIDs ``gone`` use."""
        keys = {key for uid in gone for key in self.by_user.get(uid, ())}
        claims = {key: self.claims[key] for key in keys}
        return {key: it for key, it in claims.items() if it.reserved_for.issubset(gone)}

    def uses_without(self, freed: Mapping[str, ResourceClaim]) -> Mapping[PoolId, PoolUse]:
        """Return the use of each pool that has a device of the claims ``freed``, without these."""
        pools = {result.pool for claim in freed.values() for result in claim.results}
        uses = pool_uses(
            each
            for pool in pools
            for key, results in self.results[pool].items()
            for each in results
            if key not in freed
        )
        return {pool: uses.get(pool, UNUSED) for pool in pools}

    def updated(self, claims: Mapping[str, ResourceClaim]) -> DevicesInUse:
        """Return the same for other claims; the uses of unchanged pools are the same objects."""
        if claims is self.claims:
            return self
        keys = changed_keys(self.claims, claims)
        stale: dict[PoolId, dict[str, Results]] = {}
        for key in keys:
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
        return DevicesInUse(claims, results, uses, self._by_user(keys, claims))

    def _by_user(
        self, keys: Iterable[str], claims: Mapping[str, ResourceClaim]
    ) -> Mapping[str, frozenset[str]]:
        by_user = dict(self.by_user)
        for key in keys:
            before, after = _users_of(self.claims.get(key)), _users_of(claims.get(key))
            for uid in before - after:
                by_user[uid] -= {key}
                if not by_user[uid]:
                    del by_user[uid]
            for uid in after - before:
                by_user[uid] = by_user.get(uid, frozenset()) | {key}
        return by_user


def _results_of(claim: ResourceClaim | None) -> Results:
    return () if claim is None else claim.results


def _users_of(claim: ResourceClaim | None) -> frozenset[str]:
    if claim is None or not claim.allocated or claim.used_by_others:
        return frozenset()
    return claim.reserved_for
