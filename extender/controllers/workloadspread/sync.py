"""One sync of a WorkloadSpread, in upstream's order.

Pods are adopted, deletion costs are written, then the status, then unschedulable pods are deleted.
Events are recorded last, so that a status write that fails does not repeat them. Any error ends the
sync, and the queue retries it.

Nothing is decided without a synced cache: until the target's kind has been listed, which includes
that the server does not serve it, a sync does nothing. When the kind has synced, all
WorkloadSpreads that target it are enqueued.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller.go.
"""

from __future__ import annotations

import asyncio
from typing import Final

from extender.controllers.context import ControllerContext
from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses, is_older
from extender.controllers.workloadspread.caches import WorkloadSpreadCaches
from extender.controllers.workloadspread.event_handlers import (
    EnqueueDelay,
    KruiseConfigurationEventHandler,
    WorkloadEventHandler,
    WorkloadSpreadEventHandler,
    WorkloadSpreadPodEventHandler,
)
from extender.controllers.workloadspread.served_kinds import ServedKinds
from extender.controllers.workloadspread.types import REPLICA_SET, WORKLOAD_SPREAD, Kind
from extender.controllers.workloadspread.writer import ResultWriter
from extender.kube.controller_runtime.controller import Controller, RetryError
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.informers.consistency_store import ConsistencyStore, ObjectVersion
from extender.kube.informers.shared_informer import cancel_tasks
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.rest.resources import PODS, Resource
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from extender.kube.workloadspread.workloads import ScaledKind
from policies.workloadspread.model import SECOND, WorkloadSpread
from policies.workloadspread.object_references import DEPLOYMENT
from policies.workloadspread.predicates import watched_kinds
from policies.workloadspread.reconcile import (
    DEFAULT_SPREAD_RULES,
    ReconcileResult,
    SpreadRules,
    reconcile,
)
from policies.workloadspread.workloads import NO_ALLOWED_KINDS

WORKERS: Final = 3
RESYNC_SECONDS: Final = 10 * 3600.0

_COMPONENT: Final = "workloadspread-controller"
_DEADLINE_MARGIN_SECONDS: Final = 0.001
"""Deadlines are exclusive, so the next sync runs this long after them."""
STALE_SECONDS: Final = 0.1
"""How long to wait for caches to show our own writes."""


class WorkloadSpreadController:
    """The component ``workloadspread``: keeps deletion costs and status of WorkloadSpreads.

    ``rules`` select the upstream quirks that are followed, ``workers`` is the number of
    WorkloadSpreads that are synced concurrently. All WorkloadSpreads are resynced every 9 to 11
    hours.
    """

    def __init__(
        self,
        context: ControllerContext,
        assumed_statuses: AssumedStatuses,
        *,
        rules: SpreadRules = DEFAULT_SPREAD_RULES,
        workers: int = WORKERS,
    ) -> None:
        client, informers, clock = context.client, context.informers, context.clock
        self._clock = clock
        self._rng = context.rng
        self._rules = rules
        self._assumed = assumed_statuses
        self._log = OnceLog(controller="workloadspread")
        self._queue: WorkQueue[str] = WorkQueue(clock)
        self.caches = WorkloadSpreadCaches(informers)
        self._missing: set[Kind] = set()
        self._waits: dict[Kind, asyncio.Task[None]] = {}
        self._versions: dict[Resource, ObjectVersion] = {PODS: self.caches.pods.reflector}
        self._writes = ConsistencyStore(self._versions)
        self._writer = ResultWriter(
            client, context.events.recorder(_COMPONENT), self._writes, assumed_statuses
        )
        self._served = ServedKinds(client, informers, clock, self)
        self._delay = EnqueueDelay(self._queue, clock)
        common = self.caches, self._queue, rules
        self.workload_spread_handler = WorkloadSpreadEventHandler(
            self._queue, self._delay, assumed_statuses, self._served.request
        )
        self.pod_handler = WorkloadSpreadPodEventHandler(self.caches, self._delay, rules, self._log)
        self.workload_handler = WorkloadEventHandler(*common, self._log)
        self._configuration_events = KruiseConfigurationEventHandler(
            *common, self._served.request, self._log
        )
        self.controller = Controller("workloadspread", self._queue, self._sync, workers)

    async def run(self) -> None:
        """Reconcile WorkloadSpreads until cancelled."""
        self._served.request(
            (WORKLOAD_SPREAD, *watched_kinds(NO_ALLOWED_KINDS, self._rules.quirks))
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._served.run())
                group.create_task(self._resync_periodically())
                group.create_task(self._work())
        finally:
            self._queue.close()
            await cancel_tasks(self._waits.values())
            self.caches.stop()

    def kind_served(self, kind: Kind, resource: Resource, scaled: tuple[ScaledKind, ...]) -> None:
        """Follow a kind that the server serves; WorkloadSpreads that target it are enqueued."""
        self._missing.discard(kind)
        if kind == WORKLOAD_SPREAD:
            if self.caches.follow_spreads(resource, self.workload_spread_handler):
                assert self.caches.spreads is not None
                self._versions[resource] = self.caches.spreads.reflector
        elif self.caches.follow(kind, resource, scaled, self.workload_handler):
            self._cancel_wait(kind)
            self._waits[kind] = asyncio.create_task(self._enqueue_when_synced(kind))

    def kind_not_served(self, kind: Kind) -> None:
        """Stop following a kind that the server does not serve."""
        self._missing.add(kind)
        self._cancel_wait(kind)
        self.caches.unfollow(kind)
        if kind == WORKLOAD_SPREAD:
            self._log.warning("kind_not_served", _kind_name(kind))

    async def _enqueue_when_synced(self, kind: Kind) -> None:
        """Wait until a kind has synced, and enqueue the WorkloadSpreads that need it."""
        await self.caches.wait_kind_synced(kind)
        for spread in self.caches.all_spreads():
            if kind in _needed_kinds(spread):
                self._queue.add(spread.key)

    def _cancel_wait(self, kind: Kind) -> None:
        if waiting := self._waits.pop(kind, None):
            waiting.cancel()

    async def _work(self) -> None:
        await self.caches.wait_synced()
        self.caches.watch_configuration(self._configuration_events)
        self.caches.pods.objects.add_handler(self.pod_handler)
        await self.controller.run()

    async def _resync_periodically(self) -> None:
        while True:
            await self._clock.sleep(RESYNC_SECONDS * (0.9 + 0.2 * self._rng.random()))
            for spread in self.caches.all_spreads():
                self._queue.add(spread.key)

    async def _sync(self, key: str) -> float | None:
        item = self.caches.spread(key)
        if item is None:
            self._writes.clear(key)
            self._delay.forget(key)
            return None
        if item.value is None:
            self._log.warning("workload_spread_ignored", key, why=item.problem)
            return None
        if self._writes.stale(key):
            return STALE_SECONDS
        newest = self._assumed.newest(item.value)
        if not self._has_synced_target(newest.spread):
            return None
        try:
            return await self._sync_workload_spread(newest)
        finally:
            self._delay.record_sync_end(key)

    def _has_synced_target(self, spread: WorkloadSpread) -> bool:
        """Return whether the caches of a WorkloadSpread's target have synced."""
        needed = _needed_kinds(spread)
        for kind in needed:
            if kind in self._missing:
                self._log.warning("target_kind_not_served", spread.key, kind=_kind_name(kind))
        return bool(needed) and all(map(self.caches.has_kind_synced, needed))

    async def _sync_workload_spread(self, written: StoredWorkloadSpread) -> float | None:
        spread, outcome = written.spread, self._reconcile(written)
        await self._writer.adopt(written, outcome)
        await self._writer.set_costs(spread, outcome)
        self._check_result(spread, outcome)
        outcome = await self._write_status(written, outcome)
        try:
            await self._writer.delete(spread, outcome.pods_to_delete)
        finally:  # the status already has them, so no retry would record them
            self._writer.record_events(spread, outcome.events)
        due = outcome.requeue_after_ns
        return None if due is None else due / SECOND + _DEADLINE_MARGIN_SECONDS

    def _reconcile(self, written: StoredWorkloadSpread) -> ReconcileResult:
        spread, begun = written.spread, self._clock.monotonic()
        target, context = self.caches.target(spread), self.caches.grouping_context(written)
        outcome = reconcile(spread, target, context, self._clock.now_ns(), self._rules)
        self._delay.record_calculation(spread.key, self._clock.monotonic() - begun)
        return outcome

    def _check_result(self, spread: WorkloadSpread, outcome: ReconcileResult) -> None:
        if outcome.failure:
            self._log.warning("look_ended_early", spread.key, why=outcome.failure)
            raise RetryError(outcome.failure)

    async def _write_status(
        self, written: StoredWorkloadSpread, outcome: ReconcileResult
    ) -> ReconcileResult:
        """Write the status, recalculated if a webhook of this process has written in between.

        Return the result that was written. Without recalculation, while many pods are created,
        hardly any status would be based on the newest version.
        """
        resource = self.caches.spread_resource
        if not outcome.writes_status or resource is None:
            return outcome
        async with self._assumed.write_lock(written.spread.uid):
            newest = self._newest(written)
            if newest is not written:
                outcome = self._reconcile(newest)
                self._check_result(newest.spread, outcome)
            if outcome.writes_status:
                await self._writer.write_status(resource, newest, outcome.status)
        return outcome

    def _newest(self, written: StoredWorkloadSpread) -> StoredWorkloadSpread:
        """Return the newest known version, of the current cache and of our own writes."""
        item = self.caches.spread(written.spread.key)
        shown = None if item is None else item.value
        if shown is None or shown.spread.uid != written.spread.uid or not is_older(written, shown):
            return self._assumed.newest(written)
        return self._assumed.newest(shown)


def _needed_kinds(spread: WorkloadSpread) -> tuple[Kind, ...]:
    """Return the kinds whose caches a sync needs; none without a target."""
    if spread.target is None:
        return ()
    kind = spread.target.lenient_identity[:2]
    return (kind, REPLICA_SET) if kind[1] == DEPLOYMENT else (kind,)


def _kind_name(kind: Kind) -> str:
    return ".".join(part for part in reversed(kind) if part)
