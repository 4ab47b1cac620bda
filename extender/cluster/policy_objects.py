"""The stores of the kinds that only policies read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain

from extender.cluster.object_stores import ObjectStore
from extender.kube.rest.client import Selection
from policies.kubernetes.policy_objects import (
    AUTOSCALER_REASONS,
    NO_POLICY_OBJECTS,
    AutoscalerEvent,
    PolicyObjects,
    ResourceQuota,
    announcements,
)


def events_of_pods(reason: str) -> Selection:
    """Return the selection of the events of pods with a reason."""
    return Selection(field_selector=f"involvedObject.kind=Pod,reason={reason}")


class PolicyObjectStores:
    """The objects of these kinds; ``on_change`` is called with each changed object.

    ``events`` are the stores of the events of autoscalers, by their reason.
    """

    def __init__(self, on_change: Callable[[object], None]) -> None:
        self._on_change = on_change
        self._current: PolicyObjects | None = NO_POLICY_OBJECTS
        self.quotas = ObjectStore[ResourceQuota](lambda quota: quota.key, self._changed)
        self.events = {
            reason: ObjectStore[AutoscalerEvent](lambda event: event.key, self._changed)
            for reason in AUTOSCALER_REASONS
        }

    def policy_objects(self) -> PolicyObjects:
        """Return the current objects; the same value as before if none has changed."""
        if self._current is None:
            quotas: dict[str, tuple[ResourceQuota, ...]] = {}
            for each in self.quotas.view():
                quotas[each.namespace] = (*quotas.get(each.namespace, ()), each)
            events = chain.from_iterable(store.view() for store in self.events.values())
            self._current = PolicyObjects(quotas, announcements(events))
        return self._current

    def object_counts(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {"resourcequotas": len(self.quotas.by_key)}

    def _changed(self, changed: object) -> None:
        self._current = None
        self._on_change(changed)
