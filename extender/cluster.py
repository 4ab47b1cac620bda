"""The scheduler cache: watched objects and assumed preemptions as the current snapshot.

Each kind has an object store that a reflector fills. A change marks the nodes that it concerns as
stale; :meth:`SchedulerCache.snapshot` rebuilds only those and shares all else with the previous
snapshot, which stays valid for its holders. No method awaits, so a decision never sees a partial
change.

An object that cannot be decoded is skipped with one warning. If it is a pod that occupies a node,
the node is marked (``NodeState.unreadable``), because its free resources are no longer known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from extender.kube.objects import Namespace
from extender.overlay import Overlay, Promise
from extender.sinks import PodTable, Table
from extender.storage_sinks import StorageTables
from extender.workloads import WorkloadIndex
from policies.model import DisruptionBudget, Node, NodeState, Pod, Snapshot
from policies.selectors import Labels
from policies.workloads import WORKLOAD_KINDS, Workload

Follow = Callable[[Snapshot, Collection[str]], None]


def _heed_nothing(_snapshot: Snapshot, _changed: Collection[str]) -> None:
    """Ignore a new snapshot."""


def _do_nothing() -> None:
    """Ignore a change of storage objects."""


class LiveCluster:
    """The state of the cluster by its watches and by our own answers, like upstream's cache.

    ``monotonic`` returns seconds; assumed preemptions expire by it. ``on_snapshot`` is called with
    each new snapshot and the names of the nodes that differ from the previous one.
    ``on_storage_change`` is called at once when an object behind a volume or a device claim
    changes.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        follow: Follow = _heed_nothing,
        storage_changed: Callable[[], None] = _do_nothing,
    ) -> None:
        self._monotonic = monotonic
        self._follow = follow
        self._storage_changed = storage_changed
        self._overlay = Overlay()
        self._stale: set[str] = set()
        self._changed = True
        self._states: Mapping[str, NodeState] = {}
        self._current = Snapshot()
        self._repelling_seen: tuple[Pod, ...] = ()
        self._labelled: tuple[Namespace, ...] = ()
        self._namespace_labels: Mapping[str, Labels] = {}
        self.pods = PodTable(self._touch, self._overlay)
        self.nodes = Table[Node](lambda node: node.name, self._touch_node)
        self.budgets = Table[DisruptionBudget](_budget_key, self._touch_any)
        self.namespaces = Table[Namespace](lambda namespace: namespace.name, self._touch_any)
        self._selecting = WorkloadIndex()
        self.workloads = {
            kind: Table[Workload](lambda workload: workload.key, self._touch_workload)
            for kind in WORKLOAD_KINDS
        }
        self.storage = StorageTables(self._touch_storage)

    @property
    def promises(self) -> int:
        """The number of assumed preemptions that the watch has not confirmed yet."""
        return len(self._overlay)

    def sizes(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {
            "nodes": len(self.nodes.by_key),
            "pods": len(self.pods.by_key),
            "poddisruptionbudgets": len(self.budgets.by_key),
            "namespaces": len(self.namespaces.by_key),
            **self.storage.sizes(),
        }

    def promise(self, promise: Promise) -> None:
        """Assume a preemption until the watch confirms it or its deadline passes."""
        self._touch(self._overlay.promise(promise))

    def snapshot(self) -> Snapshot:
        """Return the current snapshot; the same object as before if nothing has changed."""
        self._touch(self._overlay.expire(self._monotonic()))
        if self._changed:
            changed = frozenset(self._stale)
            self._current = self._rebuilt()
            self._changed = False
            self._follow(self._current, changed)
        return self._current

    def _rebuilt(self) -> Snapshot:
        states = dict(self._states)
        for name in self._stale:
            node = self.nodes.by_key.get(name)
            if node is None:
                states.pop(name, None)
            else:
                states[name] = self._overlay.over(self.pods.occupying(node))
        repelling = self._repelling(states)
        self._stale.clear()
        self._states = states
        return Snapshot(
            nodes=states,
            budgets=self.budgets.view(),
            namespaces=self._labels(),
            repelling=repelling,
            workloads=self._selecting.view(),
            storage=self.storage.storage(),
            generation=self._current.generation + 1,
        )

    def _repelling(self, states: Mapping[str, NodeState]) -> tuple[Pod, ...]:
        """Return the pods with required anti-affinity on known nodes.

        It is the same tuple as before if neither these pods nor the set of nodes has changed.
        """
        view, before = self.pods.repelling(), self._states
        same_nodes = all((name in states) == (name in before) for name in self._stale)
        if view is self._repelling_seen and same_nodes:
            return self._current.repelling
        self._repelling_seen = view
        return tuple([pod for pod in view if pod.node_name in states])

    def _labels(self) -> Mapping[str, Labels]:
        view = self.namespaces.view()
        if view is not self._labelled:
            self._labelled = view
            self._namespace_labels = {namespace.name: namespace.labels for namespace in view}
        return self._namespace_labels

    def _touch(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            self._stale.add(name)
            self._changed = True

    def _touch_node(self, node: Node) -> None:
        self._touch((node.name,))

    def _touch_workload(self, workload: Workload) -> None:
        current = self.workloads[workload.kind].by_key.get(workload.key)
        if current is None:
            self._selecting.drop(workload)
        else:
            self._selecting.put(current)
        self._changed = True

    def _touch_any(self, _: object) -> None:
        self._changed = True

    def _touch_storage(self, thing: object) -> None:
        self._touch_any(thing)
        self._storage_changed()


def _budget_key(budget: DisruptionBudget) -> str:
    return f"{budget.namespace}/{budget.name}"
