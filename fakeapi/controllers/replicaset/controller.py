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
from extender.kube.events import EventWriter, rfc3339
from extender.kube.expectations import TrackedExpectations
from extender.kube.informers import Informers, end, resync
from extender.kube.logs import OnceLog
from extender.kube.resources import PODS, REPLICA_SETS
from extender.kube.workqueue import WorkQueue
from fakeapi.controllers.replicaset.claiming import Claims
from fakeapi.controllers.replicaset.copies import Copies
from fakeapi.controllers.replicaset.handlers import PodEvents, ReplicaSetEvents
from fakeapi.controllers.replicaset.judging import terminating
from fakeapi.controllers.replicaset.metrics import Metrics
from fakeapi.controllers.replicaset.podcontrol import PodControl
from fakeapi.controllers.replicaset.scaling import BURST, Scaling
from fakeapi.controllers.replicaset.shapes import Pod, ReplicaSet
from fakeapi.controllers.replicaset.status import calculate, next_check_seconds
from fakeapi.controllers.replicaset.statuswriter import write_status
from fakeapi.controllers.replicaset.trouble import words

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
        informers: Informers,
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
        self.metrics = Metrics(registry)
        self.copies = Copies(informers)
        self.expectations = TrackedExpectations(clock)
        self._writes = ConsistencyStore(
            {
                PODS: self.copies.pods.informer,
                REPLICA_SETS: self.copies.replica_sets.informer,
            }
        )
        self._pods = PodControl(client, events.recorder(_COMPONENT), self._writes)
        self._scaling = Scaling(
            self.copies, self._pods, self.expectations, clock, self.metrics, self._log, burst
        )
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self.replica_set_events = ReplicaSetEvents(self._queue, self.expectations, self._writes)
        self.pod_events = PodEvents(self.copies, self._queue, self.expectations, self._log)
        self.controller = Controller("replicaset", self._queue, self._sync, workers)

    async def run(self) -> None:
        """Reconcile ReplicaSets until cancelled."""
        await self.copies.wait_synced()
        self.copies.replica_sets.objects.add_handler(self.replica_set_events)
        self.copies.pods.objects.add_handler(self.pod_events)
        again = RESYNC_SECONDS * (1 + self._rng.random())
        told = resync(self.copies.replica_sets, self.replica_set_events, self._clock, again)
        telling = asyncio.create_task(told)
        try:
            await self.controller.run()
        finally:
            await end((telling,))

    async def _sync(self, key: str) -> float | None:
        if stale := self._writes.stale(key):
            self.metrics.skipped(stale)
            raise RetryError(str(stale))
        replica_set = self.copies.get(key)
        if replica_set is None:
            self._writes.clear(key)
            self.expectations.forget(key)
            return None
        if replica_set.problem:
            self._log.warning("replica_set_ignored", key, why=replica_set.problem)
            return None
        return await self._reconcile(replica_set)

    async def _reconcile(self, replica_set: ReplicaSet) -> float | None:
        satisfied = self.expectations.satisfied(replica_set.metadata.key)
        candidates = self.copies.candidates(replica_set)
        claims = Claims(self._client, self._pods, replica_set)
        active = await claims.claim(pod for pod in candidates if pod.active)
        leaving = terminating(replica_set, candidates)
        trouble = None
        if satisfied and not replica_set.metadata.deleting:
            trouble = await self._scaling.scale(replica_set, active)
        now_ns = self._clock.now_ns()
        failure = None if trouble is None else words(trouble)
        status = calculate(replica_set, active, leaving, failure, now_ns, rfc3339(now_ns))
        written = await write_status(self._client, replica_set, status)
        meta = written.metadata
        self._writes.wrote(meta.key, replica_set.metadata.uid, REPLICA_SETS, meta.resource_version)
        if trouble is not None:
            raise trouble
        return self._next_look(written, active, now_ns)

    def _next_look(
        self, written: ReplicaSet, active: Sequence[Pod], status_ns: int
    ) -> float | None:
        """Return the seconds until a ready pod becomes available; None if no pod waits for it."""
        wait, status = written.min_ready_seconds, written.status
        if wait <= 0 or status.ready_replicas == status.available_replicas:
            return None
        again = next_check_seconds(active, wait, status_ns, self._clock.now_ns())
        return float(wait) if again is None else again
