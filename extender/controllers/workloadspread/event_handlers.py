"""Event handlers: which WorkloadSpreads an event enqueues, and how soon.

:mod:`policies.workloadspread.predicates` decides which changes matter.

Pods are created and deleted by the hundred, each with an event of its own and one of the status
that counts it, and a sync goes through all pods of the target; meanwhile webhooks of the same
process cannot answer. A WorkloadSpread that has just been synced is therefore delayed, the longer
the more time the sync took, and one sync handles all events until then. Upstream syncs for each
event. Changes of WorkloadSpreads and of their targets, which decide the subsets of new pods, are
enqueued without delay.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_event_handler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from extender.controllers.workloadspread.assumed_statuses import AssumedStatuses
from extender.controllers.workloadspread.caches import WorkloadSpreadCaches
from extender.controllers.workloadspread.types import CachedObject, Kind, SpreadPodDocument
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.rest.clock import Clock
from extender.kube.rest.rate_limited_log import OnceLog
from extender.kube.workloadspread.spreads import StoredWorkloadSpread
from policies.workloadspread.model import SpreadPod, WorkloadSpread
from policies.workloadspread.predicates import (
    has_become_adoptable,
    is_relevant_pod_update,
    is_relevant_workload_event,
    is_relevant_workload_update,
    watched_kinds,
    workloadspread_of_pod,
    workloadspread_of_workload,
)
from policies.workloadspread.reconcile import SpreadRules
from policies.workloadspread.workloads import AllowedKinds, TargetWorkload

LEAST_DELAY_SECONDS: Final = 0.1
"""How long after a sync the next one starts at the earliest."""

DELAY_FACTOR: Final = 9
"""The least delay, as a multiple of the time that the sync spent calculating."""


class EnqueueDelay:
    """Enqueues WorkloadSpreads, by their keys, not before their delay has passed."""

    def __init__(self, queue: WorkQueue[str], clock: Clock) -> None:
        self._queue = queue
        self._clock = clock
        self._due: dict[str, float] = {}
        self._calculated: dict[str, float] = {}

    def enqueue(self, key: str) -> None:
        """Enqueue a WorkloadSpread: at once, or when its delay has passed."""
        due = self._due.get(key)
        self._queue.add_after(key, 0.0 if due is None else due - self._clock.monotonic())

    def record_calculation(self, key: str, seconds: float) -> None:
        """Record for how long a sync has blocked the event loop."""
        self._calculated[key] = self._calculated.get(key, 0.0) + seconds

    def record_sync_end(self, key: str) -> None:
        """Record that a sync has ended."""
        pause = max(LEAST_DELAY_SECONDS, DELAY_FACTOR * self._calculated.pop(key, 0.0))
        self._due[key] = self._clock.monotonic() + pause

    def forget(self, key: str) -> None:
        """Forget a deleted WorkloadSpread."""
        self._due.pop(key, None)
        self._calculated.pop(key, None)


RequestKinds = Callable[[Iterable[Kind]], None]
"""Requests that workload kinds are followed."""


class WorkloadSpreadEventHandler:
    """Handles events of WorkloadSpreads: each is enqueued."""

    def __init__(
        self,
        queue: WorkQueue[str],
        delay: EnqueueDelay,
        assumed_statuses: AssumedStatuses,
        request_kinds: RequestKinds,
    ) -> None:
        self._queue = queue
        self._delay = delay
        self._assumed = assumed_statuses
        self._request_kinds = request_kinds

    def added(self, item: CachedObject[StoredWorkloadSpread]) -> None:
        """Enqueue the WorkloadSpread, and request its target's kind."""
        self._observe(item)
        self._queue.add(item.metadata.key)

    def updated(
        self, old: CachedObject[StoredWorkloadSpread], new: CachedObject[StoredWorkloadSpread]
    ) -> None:
        """Enqueue the WorkloadSpread, after its delay if only its status may have changed."""
        self._observe(new)
        if old.value is not None and new.value is not None:
            self._assumed.observe_update(old.value, new.value)
            if _has_same_spec(old.value.spread, new.value.spread):
                self._delay.enqueue(new.metadata.key)
                return
        self._queue.add(new.metadata.key)

    def removed(self, item: CachedObject[StoredWorkloadSpread]) -> None:
        """Forget the WorkloadSpread."""
        self._assumed.forget(item.metadata.uid)
        self._queue.add(item.metadata.key)

    def _observe(self, item: CachedObject[StoredWorkloadSpread]) -> None:
        if item.value is not None:
            self._assumed.observe(item.value)
            if item.value.spread.target is not None:
                self._request_kinds((item.value.spread.target.lenient_identity[:2],))


class WorkloadSpreadPodEventHandler:
    """Handles events of pods."""

    def __init__(
        self, caches: WorkloadSpreadCaches, delay: EnqueueDelay, rules: SpreadRules, log: OnceLog
    ) -> None:
        self._caches = caches
        self._delay = delay
        self._rules = rules
        self._log = log

    def added(self, item: CachedObject[SpreadPodDocument]) -> None:
        """Enqueue the WorkloadSpread of the pod's subset, or that of its owner."""
        if item.value is None:
            self._log.warning("pod_ignored", item.metadata.key, why=item.problem)
            return
        pod = item.value.pod
        self._enqueue(pod)
        self._enqueue_adopter(None, pod)

    def updated(
        self, old: CachedObject[SpreadPodDocument], new: CachedObject[SpreadPodDocument]
    ) -> None:
        """Enqueue the WorkloadSpread of the pod's subset, if the change matters."""
        if old.value is None or new.value is None:
            self.removed(old)
            self.added(new)
            return
        before, pod = old.value.pod, new.value.pod
        if is_relevant_pod_update(before, pod, self._rules.versioned_kinds, self._rules.quirks):
            self._enqueue(pod)
        self._enqueue_adopter(before, pod)

    def removed(self, item: CachedObject[SpreadPodDocument]) -> None:
        """Enqueue the WorkloadSpread of the pod's subset."""
        if item.value is not None:
            self._enqueue(item.value.pod)

    def _enqueue(self, pod: SpreadPod) -> None:
        if name := workloadspread_of_pod(pod):
            self._delay.enqueue(f"{pod.namespace}/{name}")

    def _enqueue_adopter(self, old: SpreadPod | None, pod: SpreadPod) -> None:
        """Enqueue the WorkloadSpread of a pod's owner, if it may adopt the pod now."""
        owner = pod.controller
        if owner is None or not has_become_adoptable(old, pod, self._rules.quirks):
            return
        group, kind, name = owner.lenient_identity
        workload = self._caches.workload((group, kind), f"{pod.namespace}/{name}")
        if workload is not None and workload.uid == owner.uid:
            spread = workloadspread_of_workload(workload, self._caches.spreads_of(pod.namespace))
            if spread is not None:
                self._delay.enqueue(spread.key)


class WorkloadEventHandler:
    """Handles events of workloads of all kinds."""

    def __init__(
        self, caches: WorkloadSpreadCaches, queue: WorkQueue[str], rules: SpreadRules, log: OnceLog
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._rules = rules
        self._log = log

    def added(self, item: CachedObject[TargetWorkload]) -> None:
        """Enqueue the WorkloadSpread that targets the workload."""
        if item.value is None:
            self._log.warning("workload_ignored", item.metadata.key, why=item.problem)
        elif is_relevant_workload_event(item.value):
            self._enqueue(item.value)

    def updated(self, old: CachedObject[TargetWorkload], new: CachedObject[TargetWorkload]) -> None:
        """Enqueue the WorkloadSpread that targets the workload, if the change matters."""
        if old.value is None or new.value is None:
            self.added(new)
        elif is_relevant_workload_update(old.value, new.value, self._caches.allowed_kinds):
            self._enqueue(new.value)

    def removed(self, item: CachedObject[TargetWorkload]) -> None:
        """Enqueue the WorkloadSpread that targeted the workload."""
        if item.value is not None and is_relevant_workload_event(item.value):
            self._enqueue(item.value)

    def _enqueue(self, workload: TargetWorkload) -> None:
        if workload.identity[:2] not in watched_kinds(
            self._caches.allowed_kinds, self._rules.quirks
        ):
            return  # this kind is read, not watched
        spread = workloadspread_of_workload(workload, self._caches.spreads_of(workload.namespace))
        if spread is not None:
            self._queue.add(spread.key)


class KruiseConfigurationEventHandler:
    """Handles events of the list of allowed kinds: all WorkloadSpreads are enqueued."""

    def __init__(
        self,
        caches: WorkloadSpreadCaches,
        queue: WorkQueue[str],
        rules: SpreadRules,
        request_kinds: RequestKinds,
        log: OnceLog,
    ) -> None:
        self._caches = caches
        self._queue = queue
        self._rules = rules
        self._request_kinds = request_kinds
        self._log = log

    def added(self, item: CachedObject[AllowedKinds]) -> None:
        """Follow the allowed kinds, and enqueue all WorkloadSpreads."""
        if item.problem:
            self._log.warning("configuration_ignored", item.metadata.key, why=item.problem)
        self._request_kinds(watched_kinds(self._caches.allowed_kinds, self._rules.quirks))
        for spread in self._caches.all_spreads():
            self._queue.add(spread.key)

    def updated(self, _old: CachedObject[AllowedKinds], new: CachedObject[AllowedKinds]) -> None:
        """Follow the allowed kinds, and enqueue all WorkloadSpreads."""
        self.added(new)

    def removed(self, item: CachedObject[AllowedKinds]) -> None:
        """Enqueue all WorkloadSpreads, without the configuration's kinds."""
        self.added(item)


def _has_same_spec(old: WorkloadSpread, new: WorkloadSpread) -> bool:
    """Return whether a WorkloadSpread is unchanged except for its status."""
    return replace(old, status=new.status, resource_version=new.resource_version) == new
