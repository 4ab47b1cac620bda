"""Create or delete pods: at most 500 per sync, and not twice for the same difference.

Expectations are set before the requests are sent, because the watch may show the result before the
response arrives. Expectations of failed requests are lowered again. Pods that a terminating
namespace rejects stay expected, so that the ReplicaSet does not retry for five minutes.

Source: replica_set.go (manageReplicas, getPodsToDelete, reportSortingDeletionAgeRatioMetric).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from extender.kube.clock import Clock
from extender.kube.controller import RetryError
from extender.kube.expectations import UIDTrackingControllerExpectations
from extender.kube.logs import OnceLog
from fakeapi.controllers.replicaset.copies import ReplicaSetCaches
from fakeapi.controllers.replicaset.metrics import ReplicaSetMetrics
from fakeapi.controllers.replicaset.podcontrol import PodControl, pod_from_template
from fakeapi.controllers.replicaset.shapes import OwnedPod, ReplicaSet
from fakeapi.controllers.replicaset.slowstart import SlowStartResult, slow_start_batch
from fakeapi.controllers.replicaset.trouble import (
    SYNC_ERRORS,
    SyncError,
    has_status,
    is_namespace_terminating,
)
from policies.scaledown import (
    RankedPod,
    deletion_age_ratio,
    is_deletion_cost,
    parse_deletion_cost,
    pods_to_delete,
    related_pods_per_node,
)

BURST: Final = 500


class ReplicaManager:
    """Brings the number of a ReplicaSet's pods to its replicas, at most ``burst`` per sync."""

    def __init__(
        self,
        caches: ReplicaSetCaches,
        pods: PodControl,
        expectations: UIDTrackingControllerExpectations,
        clock: Clock,
        metrics: ReplicaSetMetrics,
        log: OnceLog,
        burst: int = BURST,
    ) -> None:
        self._copies = caches
        self._pods = pods
        self._expectations = expectations
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._burst = burst

    async def manage_replicas(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod]
    ) -> SyncError | None:
        """Create or delete pods; return the first error, or None."""
        surplus = len(active) - replica_set.replicas
        if surplus < 0:
            return await self._create(replica_set, min(-surplus, self._burst))
        if surplus > 0:
            return await self._delete(replica_set, active, min(surplus, self._burst))
        return None

    async def _create(self, replica_set: ReplicaSet, count: int) -> SyncError | None:
        key = replica_set.metadata.key
        self._expectations.expect_creations(key, count)
        try:
            pod = pod_from_template(replica_set)
        except RetryError as trouble:
            self._log.warning("no_pods_can_be_made", key, why=str(trouble))
            outcome = SlowStartResult(0, trouble)
        else:
            outcome = await slow_start_batch(count, lambda: self._try_to_create(replica_set, pod))
        for _ in range(count - outcome.successes):
            self._expectations.creation_observed(key)
        return outcome.error

    async def _try_to_create(self, replica_set: ReplicaSet, pod: bytes) -> SyncError | None:
        try:
            await self._pods.create(replica_set, pod)
        except SYNC_ERRORS as trouble:
            return None if is_namespace_terminating(trouble) else trouble
        return None

    async def _delete(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod], count: int
    ) -> SyncError | None:
        key = replica_set.metadata.key
        victims = self._pods_to_delete(replica_set, active, count)
        self._expectations.expect_deletions(key, (pod.metadata.key for pod in victims))
        outcomes = await asyncio.gather(*(self._try_to_delete(replica_set, pod) for pod in victims))
        return next((trouble for trouble in outcomes if trouble is not None), None)

    async def _try_to_delete(self, replica_set: ReplicaSet, pod: OwnedPod) -> SyncError | None:
        try:
            await self._pods.delete(replica_set, pod.metadata.name)
        except SYNC_ERRORS as trouble:
            self._expectations.deletion_observed(replica_set.metadata.key, pod.metadata.key)
            return None if has_status(trouble, 404) else trouble
        return None

    def _pods_to_delete(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod], count: int
    ) -> Sequence[OwnedPod]:
        """Return the pods to delete; if all are to be deleted, they are not ranked."""
        if count >= len(active):
            return active
        replicas = [self._ranked_pod(pod) for pod in active]
        crowded = related_pods_per_node(self._copies.related(replica_set))
        chosen = pods_to_delete(replicas, crowded, count, self._clock.now_ns())
        self._metrics.observe_deletion_ages(
            deletion_age_ratio(chosen, replicas, self._clock.now_ns())
        )
        by_uid = {pod.metadata.uid: pod for pod in active}
        return [by_uid[each.uid] for each in chosen]

    def _ranked_pod(self, pod: OwnedPod) -> RankedPod:
        meta = pod.metadata
        if not is_deletion_cost(pod.deletion_cost):
            self._log.warning("deletion_cost_is_no_number", meta.key, given=pod.deletion_cost)
        return RankedPod(
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            node=pod.node,
            phase=pod.phase,
            ready=pod.ready,
            ready_since_ns=pod.ready_since_ns,
            deletion_cost=parse_deletion_cost(pod.deletion_cost),
            restarts=pod.restarts,
            sidecar_restarts=pod.sidecar_restarts,
            created_ns=pod.created_ns,
        )
