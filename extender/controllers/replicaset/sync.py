"""One sync of a ReplicaSet, in upstream's order.

Whether the expectations are satisfied is read before the pods are listed. A pod observed in between
is then listed as well, and at worst the sync is postponed. In the opposite order a pod could be
neither expected nor listed, and would be created twice.

At most 500 pods are created or deleted per sync, and not twice for the same difference.
Expectations are set before the requests are sent, because the watch may show the result before the
response arrives. Expectations of failed requests are lowered again. Pods that a terminating
namespace rejects stay expected, so that the ReplicaSet does not retry for five minutes.

Pods are created in batches of doubling size, until a request fails. If all would fail for one
reason (a quota, for example), few are made in vain: 100 pods under a quota of 10 take batches of 1,
2, 4 and 8; in the last one five requests fail, and the other 85 are never made.

An error in claiming ends the sync. An error in scaling is written into the status first. If that
status cannot be written, the write error is raised instead.

Source: replica_set.go (syncReplicaSet, manageReplicas, slowStartBatch, getPodsToDelete,
reportSortingDeletionAgeRatioMetric).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from extender.controllers.context import ControllerContext
from extender.controllers.metrics import ReplicaSetMetrics
from extender.controllers.replicaset.caches import ReplicaSetCaches
from extender.controllers.replicaset.controller_ref_manager import (
    ControllerRefManager,
    terminating_pods,
)
from extender.controllers.replicaset.event_handlers import (
    ReplicaSetEventHandler,
    ReplicaSetPodEventHandler,
)
from extender.controllers.replicaset.pod_control import (
    SYNC_ERRORS,
    PodControl,
    SyncError,
    error_message,
    has_status,
    is_namespace_terminating,
    pod_from_template,
)
from extender.controllers.replicaset.status import (
    calculate_status,
    next_availability_check,
    write_status,
)
from extender.controllers.replicaset.types import OwnedPod, ReplicaSet
from extender.kube.controller_runtime.controller import Controller, RetryError
from extender.kube.controller_runtime.expectations import UIDTrackingControllerExpectations
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.object_meta import format_time
from extender.kube.informers.consistency_store import ConsistencyStore
from extender.kube.informers.shared_informer import cancel_tasks, resync
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.rest.resources import PODS, REPLICA_SETS
from policies.replicaset import (
    RankedPod,
    deletion_age_ratio,
    is_deletion_cost,
    parse_deletion_cost,
    pods_to_delete,
    related_pods_per_node,
)

FIRST_BATCH: Final = 1
BURST: Final = 500
WORKERS: Final = 5
RESYNC_SECONDS: Final = 12 * 3600.0

_COMPONENT: Final = "replicaset-controller"

SlowStartCall = Callable[[], Awaitable[SyncError | None]]


@dataclass(frozen=True, slots=True)
class SlowStartResult:
    """How many calls succeeded, and the first error of the last batch."""

    successes: int
    error: SyncError | None = None


async def slow_start_batch(
    count: int, attempt: SlowStartCall, first_batch: int = FIRST_BATCH
) -> SlowStartResult:
    """Call ``attempt`` up to ``count`` times; each call returns its error, or None."""
    successes, batch = 0, min(count, first_batch)
    while batch > 0:
        outcomes = await asyncio.gather(*(attempt() for _ in range(batch)))
        errors = [error for error in outcomes if error is not None]
        successes += batch - len(errors)
        if errors:
            return SlowStartResult(successes, errors[0])
        batch = min(2 * batch, count - successes)
    return SlowStartResult(successes)


@dataclass(frozen=True, slots=True)
class ReplicaManager:
    """Brings the number of a ReplicaSet's pods to its replicas, at most ``burst`` per sync."""

    caches: ReplicaSetCaches
    pods: PodControl
    expectations: UIDTrackingControllerExpectations
    clock: Clock
    metrics: ReplicaSetMetrics
    log: OnceLog
    burst: int = BURST

    async def manage_replicas(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod]
    ) -> SyncError | None:
        """Create or delete pods; return the first error, or None."""
        surplus = len(active) - replica_set.replicas
        if surplus < 0:
            return await self._create(replica_set, min(-surplus, self.burst))
        if surplus > 0:
            return await self._delete(replica_set, active, min(surplus, self.burst))
        return None

    async def _create(self, replica_set: ReplicaSet, count: int) -> SyncError | None:
        key = replica_set.metadata.key
        self.expectations.expect_creations(key, count)
        try:
            pod = pod_from_template(replica_set)
        except RetryError as error:
            self.log.warning("no_pods_can_be_made", key, why=str(error))
            outcome = SlowStartResult(0, error)
        else:
            outcome = await slow_start_batch(count, lambda: self._try_to_create(replica_set, pod))
        for _ in range(count - outcome.successes):
            self.expectations.creation_observed(key)
        return outcome.error

    async def _try_to_create(self, replica_set: ReplicaSet, pod: bytes) -> SyncError | None:
        try:
            await self.pods.create(replica_set, pod)
        except SYNC_ERRORS as error:
            return None if is_namespace_terminating(error) else error
        return None

    async def _delete(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod], count: int
    ) -> SyncError | None:
        key = replica_set.metadata.key
        victims = self._pods_to_delete(replica_set, active, count)
        self.expectations.expect_deletions(key, (pod.metadata.key for pod in victims))
        outcomes = await asyncio.gather(*(self._try_to_delete(replica_set, pod) for pod in victims))
        return next((error for error in outcomes if error is not None), None)

    async def _try_to_delete(self, replica_set: ReplicaSet, pod: OwnedPod) -> SyncError | None:
        try:
            await self.pods.delete(replica_set, pod.metadata.name)
        except SYNC_ERRORS as error:
            self.expectations.deletion_observed(replica_set.metadata.key, pod.metadata.key)
            return None if has_status(error, 404) else error
        return None

    def _pods_to_delete(
        self, replica_set: ReplicaSet, active: Sequence[OwnedPod], count: int
    ) -> Sequence[OwnedPod]:
        """Return the pods to delete; if all are to be deleted, they are not ranked."""
        if count >= len(active):
            return active
        replicas = [self._ranked_pod(pod) for pod in active]
        crowded = related_pods_per_node(self.caches.related(replica_set))
        chosen = pods_to_delete(replicas, crowded, count, self.clock.now_ns())
        self.metrics.observe_deletion_ages(
            deletion_age_ratio(chosen, replicas, self.clock.now_ns())
        )
        by_uid = {pod.metadata.uid: pod for pod in active}
        return [by_uid[each.uid] for each in chosen]

    def _ranked_pod(self, pod: OwnedPod) -> RankedPod:
        meta = pod.metadata
        if not is_deletion_cost(pod.deletion_cost):
            self.log.warning("deletion_cost_is_no_number", meta.key, given=pod.deletion_cost)
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


class ReplicaSetController:
    """The component ``replicaset``: keeps the number of pods that each ReplicaSet asks for.

    ``burst`` is the largest number of pods created or deleted in one sync, ``workers`` the number
    of ReplicaSets that are synced concurrently. All ReplicaSets are resynced every 12 to 24 hours.
    """

    def __init__(
        self, context: ControllerContext, *, burst: int = BURST, workers: int = WORKERS
    ) -> None:
        clock = context.clock
        self._client = context.client
        self._clock = clock
        self._rng = context.rng
        self._log = OnceLog(controller="replicaset")
        self.metrics = ReplicaSetMetrics(context.registry)
        self.caches = ReplicaSetCaches(context.informers)
        self.expectations = UIDTrackingControllerExpectations(clock)
        self._writes = ConsistencyStore(
            {PODS: self.caches.pods.reflector, REPLICA_SETS: self.caches.replica_sets.reflector}
        )
        self._pods = PodControl(context.client, context.events.recorder(_COMPONENT), self._writes)
        self._scaling = ReplicaManager(
            self.caches, self._pods, self.expectations, clock, self.metrics, self._log, burst
        )
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self.replica_set_handler = ReplicaSetEventHandler(
            self._queue, self.expectations, self._writes
        )
        self.pod_handler = ReplicaSetPodEventHandler(
            self.caches, self._queue, self.expectations, self._log
        )
        self.controller = Controller("replicaset", self._queue, self._sync, workers)

    async def run(self) -> None:
        """Reconcile ReplicaSets until cancelled."""
        await self.caches.wait_synced()
        self.caches.replica_sets.objects.add_handler(self.replica_set_handler)
        self.caches.pods.objects.add_handler(self.pod_handler)
        again = RESYNC_SECONDS * (1 + self._rng.random())
        resyncing = asyncio.create_task(
            resync(self.caches.replica_sets, self.replica_set_handler, self._clock, again)
        )
        try:
            await self.controller.run()
        finally:
            await cancel_tasks((resyncing,))

    async def _sync(self, key: str) -> float | None:
        if stale := self._writes.stale(key):
            self.metrics.count_stale_sync(stale)
            raise RetryError(str(stale))
        replica_set = self.caches.get(key)
        if replica_set is None:
            self._writes.clear(key)
            self.expectations.forget(key)
            return None
        if replica_set.problem:
            self._log.warning("replica_set_ignored", key, why=replica_set.problem)
            return None
        return await self._sync_replica_set(replica_set)

    async def _sync_replica_set(self, replica_set: ReplicaSet) -> float | None:
        satisfied = self.expectations.satisfied(replica_set.metadata.key)
        candidates = self.caches.candidates(replica_set)
        claims: ControllerRefManager[OwnedPod] = ControllerRefManager(
            self._client, replica_set, REPLICA_SETS, "Pod", self._pods.patch
        )
        active = await claims.claim(pod for pod in candidates if pod.active)
        terminating = terminating_pods(replica_set, candidates)
        error = None
        if satisfied and not replica_set.metadata.deleting:
            error = await self._scaling.manage_replicas(replica_set, active)
        now_ns = self._clock.now_ns()
        failure = None if error is None else error_message(error)
        status = calculate_status(
            replica_set, active, terminating, failure, now_ns, format_time(now_ns)
        )
        written = await write_status(self._client, replica_set, status)
        meta = written.metadata
        self._writes.wrote(meta.key, replica_set.metadata.uid, REPLICA_SETS, meta.resource_version)
        if error is not None:
            raise error
        return self._next_sync(written, active, now_ns)

    def _next_sync(
        self, written: ReplicaSet, active: Sequence[OwnedPod], status_ns: int
    ) -> float | None:
        """Return the seconds until a ready pod becomes available; None if no pod waits for it."""
        wait, status = written.min_ready_seconds, written.status
        if wait <= 0 or status.ready_replicas == status.available_replicas:
            return None
        again = next_availability_check(active, wait, status_ns, self._clock.now_ns())
        return float(wait) if again is None else again
