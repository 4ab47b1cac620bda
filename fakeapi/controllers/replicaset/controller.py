"""One sync of a ReplicaSet, in upstream's order.

Whether the expectations are satisfied is read before the pods are listed. A pod observed in between
is then listed as well, and at worst the sync is postponed. In the opposite order a pod could be
neither expected nor listed, and would be created twice.

An error in claiming ends the sync. An error in scaling is written into the status first. If that
status cannot be written, the write error is raised instead.

Source: replica_set.go (syncReplicaSet).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Final

from prometheus_client import CollectorRegistry

from extender.kube.client import Client
from extender.kube.clock import Clock
from extender.kube.consistency import ConsistencyStore
from extender.kube.controller import Controller, RetryError
from extender.kube.events import EventWriter, format_time
from extender.kube.expectations import UIDTrackingControllerExpectations
from extender.kube.informers import SharedInformerFactory, cancel_tasks, resync
from extender.kube.logs import OnceLog
from extender.kube.resources import PODS, REPLICA_SETS
from extender.kube.workqueue import WorkQueue
from fakeapi.controllers.replicaset.claiming import PodControllerRefManager
from fakeapi.controllers.replicaset.copies import ReplicaSetCaches
from fakeapi.controllers.replicaset.handlers import (
    ReplicaSetEventHandler,
    ReplicaSetPodEventHandler,
)
from fakeapi.controllers.replicaset.judging import terminating_pods
from fakeapi.controllers.replicaset.metrics import ReplicaSetMetrics
from fakeapi.controllers.replicaset.podcontrol import PodControl
from fakeapi.controllers.replicaset.scaling import BURST, ReplicaManager
from fakeapi.controllers.replicaset.shapes import OwnedPod, ReplicaSet
from fakeapi.controllers.replicaset.status import calculate_status, next_availability_check
from fakeapi.controllers.replicaset.statuswriter import write_status
from fakeapi.controllers.replicaset.trouble import error_message

WORKERS: Final = 5
RESYNC_SECONDS: Final = 12 * 3600.0

_COMPONENT: Final = "replicaset-controller"


class ReplicaSetController:
    """The component ``replicaset``: keeps the number of pods that each ReplicaSet asks for.

    ``burst`` is the largest number of pods created or deleted in one sync, ``workers`` the number
    of ReplicaSets that are synced concurrently. All ReplicaSets are resynced every 12 to 24 hours.
    Metrics are registered in ``registry``, if given.
    """

    def __init__(
        self,
        client: Client,
        informers: SharedInformerFactory,
        clock: Clock,
        rng: Random,
        events: EventWriter,
        *,
        burst: int = BURST,
        workers: int = WORKERS,
        registry: CollectorRegistry | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._rng = rng
        self._log = OnceLog(controller="replicaset")
        self.metrics = ReplicaSetMetrics(registry)
        self.caches = ReplicaSetCaches(informers)
        self.expectations = UIDTrackingControllerExpectations(clock)
        self._writes = ConsistencyStore(
            {
                PODS: self.caches.pods.reflector,
                REPLICA_SETS: self.caches.replica_sets.reflector,
            }
        )
        self._pods = PodControl(client, events.recorder(_COMPONENT), self._writes)
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
        told = resync(self.caches.replica_sets, self.replica_set_handler, self._clock, again)
        telling = asyncio.create_task(told)
        try:
            await self.controller.run()
        finally:
            await cancel_tasks((telling,))

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
        claims = PodControllerRefManager(self._client, self._pods, replica_set)
        active = await claims.claim_pods(pod for pod in candidates if pod.active)
        leaving = terminating_pods(replica_set, candidates)
        trouble = None
        if satisfied and not replica_set.metadata.deleting:
            trouble = await self._scaling.manage_replicas(replica_set, active)
        now_ns = self._clock.now_ns()
        failure = None if trouble is None else error_message(trouble)
        status = calculate_status(
            replica_set, active, leaving, failure, now_ns, format_time(now_ns)
        )
        written = await write_status(self._client, replica_set, status)
        meta = written.metadata
        self._writes.wrote(meta.key, replica_set.metadata.uid, REPLICA_SETS, meta.resource_version)
        if trouble is not None:
            raise trouble
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
