"""The stores of PodGroups and CompositePodGroups, and the reflector that fills one.

A server may lack these kinds or forbid them, and releases serve them in different versions. An
object that cannot be decoded, or whose kind is not listed, counts as missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, TypeVar

from extender.cluster.object_stores import ObjectStore
from extender.kube.informers.reflector import OptionalReflector
from extender.kube.rest.api_errors import ApiError
from policies.kubernetes.pod_groups import NO_POD_GROUPS, PodGroup, PodGroups

T = TypeVar("T")

VERSIONS: Final = ("v1", "v1beta1", "v1alpha3", "v1alpha2")
"""The versions of scheduling.k8s.io that have either kind, with a schedulingGroup in pods."""


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


class PodGroupReflector(OptionalReflector[T]):
    """Lists and watches a kind in the first of its versions that the server serves."""

    async def _list(self) -> None:
        for version in VERSIONS:
            self._resource = replace(self._resource, version=version)
            try:
                await super()._list()
            except ApiError as error:
                if error.status != 404 or version == VERSIONS[-1]:
                    raise
            else:
                return
