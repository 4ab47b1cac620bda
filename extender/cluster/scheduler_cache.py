"""The scheduler cache: watched objects and assumed preemptions as the current snapshot.

Each kind has an object store that a reflector fills. A change marks the nodes that it concerns as
stale; :meth:`SchedulerCache.snapshot` rebuilds only those and shares all else with the previous
snapshot, which stays valid for its holders. No method awaits. While a decision is in progress, the
cache is locked: nothing changes it, and reflectors wait.

An object that cannot be decoded is skipped with one warning. If it is a pod that occupies a node,
the node is marked (``NodeState.unreadable``), because its free resources are no longer known.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from msgspec.structs import replace

from extender.cluster.assumed_preemptions import AssumedPreemption, AssumedPreemptions
from extender.cluster.object_stores import ObjectStore, PodStore, WorkloadIndex
from extender.cluster.pod_groups import PodGroupStores
from extender.cluster.policy_objects import PolicyObjectStores
from extender.cluster.preemption_history import PreemptionHistory
from extender.cluster.storage_stores import StorageStores
from extender.kube.decoders.cluster_objects import Namespace
from policies.kubernetes.default_selector import WORKLOAD_KINDS, PodSelectingObject
from policies.kubernetes.selectors import Labels
from policies.kubernetes.shared_mapping import with_entries
from policies.kubernetes.snapshot import DisruptionBudget, Node, NodeState, Pod, Snapshot
from policies.preemption.costs.pod_cost import SECOND_NS

_MOST_REPLACED = 128
"""How many nodes change until the mapping of all nodes is copied."""

SnapshotObserver = Callable[[Snapshot, Collection[str]], None]
AssumedObserver = Callable[[str, AssumedPreemption | None], None]


def _ignore(_snapshot: Snapshot, _changed: Collection[str]) -> None:
    """Ignore a new snapshot."""


def _ignore_assumed(_preemptor: str, _assumed: AssumedPreemption | None) -> None:
    """Ignore a change of an assumed preemption."""


def _ignore_storage_change() -> None:
    """Ignore a change of storage objects."""


class SchedulerCache:
    """The state of the cluster by its watches and by our own answers, like upstream's cache.

    ``monotonic`` returns seconds; assumed preemptions expire by it. ``on_snapshot`` is called with
    each new snapshot and the names of the nodes that differ from the previous one.
    ``on_storage_change`` is called at once when an object behind a volume or a device claim, or a
    pod group, changes. ``on_assume`` is called with the UID of a preemptor and its assumed
    preemption from then on when an answer, not the watch, changes it.
    """

    def __init__(
        self,
        monotonic: Callable[[], float],
        on_snapshot: SnapshotObserver = _ignore,
        on_storage_change: Callable[[], None] = _ignore_storage_change,
    ) -> None:
        self._monotonic = monotonic
        self._follow = on_snapshot
        self._storage_changed = on_storage_change
        self._assumed = AssumedPreemptions()
        self.on_assume: AssumedObserver = _ignore_assumed
        self._stale: dict[str, None] = {}
        self._changed = True
        self._is_locked = False
        self._current = Snapshot()
        self._repelling_seen: tuple[Pod, ...] = ()
        self._labelled: tuple[Namespace, ...] = ()
        self._namespace_labels: Mapping[str, Labels] = {}
        self.preemptions = PreemptionHistory()
        self.pods = PodStore(self._mark_nodes, self._assumed, self.preemptions)
        self.nodes = ObjectStore[Node](lambda node: node.name, self._mark_node)
        self.budgets = ObjectStore[DisruptionBudget](_budget_key, self._mark_changed)
        self.namespaces = ObjectStore[Namespace](
            lambda namespace: namespace.name, self._mark_changed
        )
        self._selecting = WorkloadIndex()
        self.workloads = {
            kind: ObjectStore[PodSelectingObject](
                lambda workload: workload.key, self._update_workload
            )
            for kind in WORKLOAD_KINDS
        }
        self.storage = StorageStores(self._mark_storage)
        self.pod_groups = PodGroupStores(self._mark_storage)
        self.policy_objects = PolicyObjectStores(self._mark_changed)

    @property
    def assumed_count(self) -> int:
        """The number of assumed preemptions that the watch has not confirmed yet."""
        return len(self._assumed)

    def object_counts(self) -> Mapping[str, int]:
        """Return the number of known objects by kind."""
        return {
            "nodes": len(self.nodes.by_key),
            "pods": len(self.pods.by_key),
            "poddisruptionbudgets": len(self.budgets.by_key),
            "namespaces": len(self.namespaces.by_key),
            **self.storage.object_counts(),
            **self.pod_groups.object_counts(),
            **self.policy_objects.object_counts(),
        }

    def known_preemptor(self, sent: Pod) -> Pod | None:
        """Return the preemptor of a call as the API server has it.

        Return None if the API server has no pod of its name with its UID, priority and node.
        """
        known = self.pods.by_key.get(sent.key)
        identity = sent.uid, sent.priority, sent.node_name
        if not isinstance(known, Pod) or (known.uid, known.priority, known.node_name) != identity:
            return None
        return replace(known, nominated_node=sent.nominated_node)

    def assume(self, assumed: AssumedPreemption) -> None:
        """Assume a preemption until the watch confirms it or its deadline passes."""
        self._mark_nodes(self._assumed.assume(assumed))
        self.on_assume(assumed.preemptor.uid, assumed)

    def assume_answer(
        self, sent: Pod, node: str, victims: tuple[Pod, ...], now_ns: int, seconds: float
    ) -> None:
        """Assume the preemption of an answer to the preemptor of a call, for at most ``seconds``.

        It is not assumed if it has no victims, or the preemptor is not known.
        """
        preemptor = self.known_preemptor(sent)
        if preemptor is None or not victims:
            return
        expires_ns = now_ns + int(seconds * SECOND_NS)
        self.preemptions.assume(preemptor, victims, now_ns, expires_ns)
        uids, deadline = frozenset(pod.uid for pod in victims), self._monotonic() + seconds
        # A pod that is to be resized is on its node already, and never nominated.
        nominates = not sent.resize_deferred
        self.assume(AssumedPreemption(preemptor, node, uids, deadline, nominates=nominates))

    def replace_assumed(self, preemptor: str, assumed: AssumedPreemption | None) -> None:
        """Replace the assumed preemption of a preemptor, by its UID."""
        older = self._assumed.withdraw(preemptor)
        if older is not None:
            self._mark_nodes((older.node,))
        if assumed is not None:
            self.assume(assumed)

    @contextmanager
    def deciding_anew(self, preemptor: str) -> Iterator[None]:
        """End the assumed preemption of a pod, by its UID, before a new decision about the pod.

        If the decision fails, the assumed preemption holds again.
        """
        older = self._assumed.withdraw(preemptor)
        if older is None:
            yield
            return
        self._mark_nodes((older.node,))
        self.on_assume(preemptor, None)
        with ExitStack() as on_failure:
            on_failure.callback(self.assume, older)
            yield
            on_failure.pop_all()

    @property
    def is_locked(self) -> bool:
        """Whether a decision is in progress."""
        return self._is_locked

    @contextmanager
    def locked_snapshot(self) -> Iterator[Snapshot]:
        """Lock the cache until the block ends. The value is the snapshot of that time."""
        current = self.snapshot()
        self._is_locked = True
        try:
            yield current
        finally:
            self._is_locked = False

    def snapshot(self) -> Snapshot:
        """Return the current snapshot; the same object as before if nothing has changed."""
        if self._is_locked:
            return self._current
        self._mark_nodes(self._assumed.expire(self._monotonic()))
        # A pending pod of a pod group concerns no node.
        same_members = self.pods.unplaced_members.view() is self._current.unplaced_members
        if self._changed or not same_members:
            changed = tuple(self._stale)
            self._current = self._rebuilt()
            self._changed = False
            self._follow(self._current, changed)
        return self._current

    def _rebuilt(self) -> Snapshot:
        states = self._changed_states()
        repelling = self._repelling(states)
        self._stale.clear()
        return Snapshot(
            nodes=states,
            budgets=self.budgets.view(),
            namespaces=self._labels(),
            pods_with_anti_affinity=repelling,
            workloads=self._selecting.view(),
            storage=self.storage.storage(),
            pod_groups=self.pod_groups.pod_groups(),
            group_members=self.pods.members.view(),
            unplaced_members=self.pods.unplaced_members.view(),
            policy_objects=self.policy_objects.policy_objects(),
            generation=self._current.generation + 1,
        )

    def _changed_states(self) -> Mapping[str, NodeState]:
        known, before = self.nodes.by_key, self._current.nodes
        if any(name in before and name not in known for name in self._stale):
            before = {name: state for name, state in before.items() if name in known}
        changed = [known[name] for name in self._stale if name in known]
        states = with_entries(
            before, {node.name: self._assumed.apply(self.pods.node_state(node)) for node in changed}
        )
        if len(states.replaced) <= _MOST_REPLACED:
            return states
        return dict(states.items())

    def _repelling(self, states: Mapping[str, NodeState]) -> tuple[Pod, ...]:
        """Return the pods with required anti-affinity on known nodes.

        It is the same tuple as before if neither these pods nor the set of nodes has changed.
        """
        view, before = self.pods.repelling(), self._current.nodes
        same_nodes = all((name in states) == (name in before) for name in self._stale)
        if view is self._repelling_seen and same_nodes:
            return self._current.pods_with_anti_affinity
        self._repelling_seen = view
        known = self.nodes.by_key.keys()
        if self.pods.occupied_nodes <= known:
            return view
        return tuple([pod for pod in view if pod.node_name in known])

    def _labels(self) -> Mapping[str, Labels]:
        view = self.namespaces.view()
        if view is not self._labelled:
            self._labelled = view
            self._namespace_labels = {namespace.name: namespace.labels for namespace in view}
        return self._namespace_labels

    def _mark_nodes(self, nodes: Iterable[str]) -> None:
        for name in nodes:
            self._stale[name] = None
            self._changed = True

    def _mark_node(self, node: Node) -> None:
        self._mark_nodes((node.name,))

    def _update_workload(self, workload: PodSelectingObject) -> None:
        current = self.workloads[workload.kind].by_key.get(workload.key)
        if current is None:
            self._selecting.drop(workload)
        else:
            self._selecting.put(current)
        self._changed = True

    def _mark_changed(self, _: object) -> None:
        self._changed = True

    def _mark_storage(self, changed: object) -> None:
        self._mark_changed(changed)
        self._storage_changed()


def _budget_key(budget: DisruptionBudget) -> str:
    return f"{budget.namespace}/{budget.name}"
