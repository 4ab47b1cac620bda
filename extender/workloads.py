"""The index of Services and controllers, which select pods, by namespace."""

from __future__ import annotations

from collections.abc import Mapping

from policies.workloads import PodSelectingObject


class WorkloadIndex:
    """Services and controllers by namespace; unchanged namespaces are shared with the last view."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[tuple[str, str], PodSelectingObject]] = {}
        self._stale: set[str] = set()
        self._view: Mapping[str, tuple[PodSelectingObject, ...]] = {}

    def put(self, workload: PodSelectingObject) -> None:
        """Add or update a workload."""
        there = self._by_namespace.setdefault(workload.namespace, {})
        there[workload.kind, workload.name] = workload
        self._stale.add(workload.namespace)

    def drop(self, workload: PodSelectingObject) -> None:
        """Remove a workload."""
        there = self._by_namespace.get(workload.namespace, {})
        there.pop((workload.kind, workload.name), None)
        self._stale.add(workload.namespace)

    def view(self) -> Mapping[str, tuple[PodSelectingObject, ...]]:
        """Return the workloads by namespace; the same mapping as before if none has changed."""
        if self._stale:
            view = dict(self._view)
            for namespace in self._stale:
                view[namespace] = tuple(self._by_namespace.get(namespace, {}).values())
            self._view = {namespace: them for namespace, them in view.items() if them}
            self._stale.clear()
        return self._view
