"""Event handlers: which ReplicaSets an event enqueues, and which expectations it fulfils.

A pod with a controller enqueues only that controller, whatever its labels are. An orphan enqueues
every ReplicaSet that selects it. A pod with a deletion timestamp counts as deleted from then on, so
that its replacement is created at once.

Source: replica_set.go (addRS, updateRS, deleteRS, addPod, updatePod, deletePod).
"""

from __future__ import annotations

from extender.controllers.replicaset.caches import ReplicaSetCaches
from extender.controllers.replicaset.types import OwnedPod, ReplicaSet
from extender.kube.controller_runtime.expectations import UIDTrackingControllerExpectations
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import OwnerReference
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.rest.rate_limited_log import OnceLog


class ReplicaSetEventHandler:
    """Handles events of ReplicaSets."""

    def __init__(
        self,
        queue: WorkQueue[str],
        expectations: UIDTrackingControllerExpectations,
        writes: ConsistencyStore,
    ) -> None:
        self._queue = queue
        self._expectations = expectations
        self._writes = writes

    def added(self, item: ReplicaSet) -> None:
        """Enqueue the ReplicaSet."""
        self._queue.add(item.metadata.key)

    def updated(self, old: ReplicaSet, new: ReplicaSet) -> None:
        """Enqueue the ReplicaSet, changed or not; a new UID means that the old one was deleted."""
        if old.metadata.uid != new.metadata.uid:
            self.removed(old)
        self._queue.add(new.metadata.key)

    def removed(self, item: ReplicaSet) -> None:
        """Delete the expectations, so that a new ReplicaSet of this name starts without them."""
        meta = item.metadata
        self._writes.clear(meta.key, meta.uid)
        self._expectations.forget(meta.key)
        self._queue.add(meta.key)


class ReplicaSetPodEventHandler:
    """Handles events of pods."""

    def __init__(
        self,
        caches: ReplicaSetCaches,
        queue: WorkQueue[str],
        expectations: UIDTrackingControllerExpectations,
        log: OnceLog,
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._expectations = expectations
        self._log = log

    def added(self, item: OwnedPod) -> None:
        """Observe a creation; a pod that is already terminating (after a restart) is a deletion."""
        meta = item.metadata
        if meta.deleting:
            self.removed(item)
        elif controller := self._controller(item):
            if owner := self._caches.resolve_controller_ref(meta.namespace, controller):
                self._expectations.creation_observed(owner.metadata.key)
                self._queue.add(owner.metadata.key)
        else:
            self._enqueue_matching(item)

    def updated(self, old: OwnedPod, new: OwnedPod) -> None:
        """Enqueue the ReplicaSets that the change affects."""
        if old.metadata.resource_version == new.metadata.resource_version:
            return  # a resync
        relabelled = old.labels != new.labels
        if new.metadata.deleting:
            self.removed(new)
            if relabelled:
                self.removed(old)
            return
        before, controller = old.metadata.controller, self._controller(new)
        if before is not None and before != controller:
            self._enqueue(self._caches.resolve_controller_ref(old.metadata.namespace, before))
        if controller is not None:
            self._changed(old, new, controller)
        elif relabelled or before is not None:
            self._enqueue_matching(new)

    def removed(self, item: OwnedPod) -> None:
        """Observe a deletion or a deletion timestamp; an orphan's deletion enqueues nothing."""
        meta = item.metadata
        if meta.controller is None:
            return
        owner = self._caches.resolve_controller_ref(meta.namespace, meta.controller)
        if owner is not None:
            self._expectations.deletion_observed(owner.metadata.key, meta.key)
            self._queue.add(owner.metadata.key)

    def _changed(self, old: OwnedPod, new: OwnedPod, controller: OwnerReference) -> None:
        owner = self._caches.resolve_controller_ref(new.metadata.namespace, controller)
        self._enqueue(owner)
        if owner is not None and owner.min_ready_seconds > 0 and new.ready and not old.ready:
            self._queue.add_after(owner.metadata.key, owner.min_ready_seconds)

    def _enqueue(self, owner: ReplicaSet | None) -> None:
        if owner is not None:
            self._queue.add(owner.metadata.key)

    def _enqueue_matching(self, orphan: OwnedPod) -> None:
        matching = self._caches.replica_sets_of_orphan(orphan)
        for each in matching:
            self._queue.add(each.metadata.key)
        if len(matching) > 1:
            names = [each.metadata.name for each in matching]
            self._log.warning("several_replica_sets_select_a_pod", orphan.metadata.key, names=names)

    def _controller(self, pod: OwnedPod) -> OwnerReference | None:
        """Return a pod's controller; of several, which no API server accepts, the first."""
        owners = pod.metadata.owner_references or ()
        if len(owners) > 1 and sum(owner.controller is True for owner in owners) > 1:
            self._log.warning("pod_has_several_controllers", pod.metadata.key)
        return pod.metadata.controller
