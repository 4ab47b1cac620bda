"""The stores of the kinds that only policies read."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extender.cluster.object_stores import ObjectStore
from policies.kubernetes.policy_objects import NO_POLICY_OBJECTS, PolicyObjects, ResourceQuota


class PolicyObjectStores:
    """The objects of these kinds; ``on_change`` is called with each changed object."""

    def __init__(self, on_change: Callable[[object], None]) -> None:
        self._on_change = on_change
        self._current: PolicyObjects | None = NO_POLICY_OBJECTS
        self.quotas = ObjectStore[ResourceQuota](lambda quota: quota.key, self._changed)

    def policy_objects(self) -> PolicyObjects:
        """Return the current objects; the same value as before if none has changed."""
        if self._current is None:
            quotas: dict[str, tuple[ResourceQuota, ...]] = {}
            for each in self.quotas.view():
                quotas[each.namespace] = (*quotas.get(each.namespace, ()), each)
            self._current = PolicyObjects(quotas)
        return self._current

    def object_counts(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {"resourcequotas": len(self.quotas.by_key)}

    def _changed(self, changed: object) -> None:
        self._current = None
        self._on_change(changed)
