"""The stores of PodGroups and CompositePodGroups.

An object that cannot be decoded, or whose kind is not listed, counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from extender.cluster.object_stores import ObjectStore
from policies.kubernetes.pod_groups import NO_POD_GROUPS, PodGroup, PodGroups


class PodGroupStores:
    """The objects of both kinds; ``on_change`` is called with each changed object."""

    def __init__(self, on_change: Callable[[object], None]) -> None:
        self._on_change = on_change
        self._current: PodGroups | None = NO_POD_GROUPS
        self.groups = ObjectStore[PodGroup](lambda group: group.key, self._changed)
        self.composites = ObjectStore[PodGroup](lambda group: group.key, self._changed)

    def pod_groups(self) -> PodGroups:
        """Return the current objects; the same value as before if none has changed."""
        if self._current is None:
            self._current = PodGroups(dict(self.groups.by_key), dict(self.composites.by_key))
        return self._current

    def object_counts(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {
            "podgroups": len(self.groups.by_key),
            "compositepodgroups": len(self.composites.by_key),
        }

    def _changed(self, group: PodGroup) -> None:
        self._current = None
        self._on_change(group)
