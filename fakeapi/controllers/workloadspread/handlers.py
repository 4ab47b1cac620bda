"""Event handlers: which WorkloadSpreads an event enqueues.

:mod:`policies.workloadspread.predicates` decides which changes matter.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_event_handler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from extender.kube.logs import OnceLog
from extender.kube.workloadspread.spreads import WrittenSpread
from extender.kube.workqueue import WorkQueue
from fakeapi.controllers.spreading.items import Item
from fakeapi.controllers.spreading.written import Written
from fakeapi.controllers.workloadspread.copies import Copies
from fakeapi.controllers.workloadspread.pace import Pace
from fakeapi.controllers.workloadspread.shapes import Kind, WrittenPod
from policies.spreading.model import Spread, SpreadPod
from policies.spreading.reconciling import SpreadRules
from policies.spreading.watching import (
    awaits_adoption,
    pod_change_matters,
    spread_of_pod,
    spread_of_workload,
    watched_kinds,
    workload_arrival_matters,
    workload_change_matters,
)
from policies.spreading.workloads import Whitelist, Workload

Want = Callable[[Iterable[Kind]], None]
"""Requests that workload kinds are followed."""


class SpreadEvents:
    """Handles events of WorkloadSpreads: each is enqueued."""

    def __init__(self, queue: WorkQueue[str], pace: Pace, states: Written, want: Want) -> None:
        self._queue = queue
        self._pace = pace
        self._states = states
        self._want = want

    def added(self, item: Item[WrittenSpread]) -> None:
        """Enqueue the WorkloadSpread, and request its target's kind."""
        self._note(item)
        self._queue.add(item.metadata.key)

    def updated(self, old: Item[WrittenSpread], new: Item[WrittenSpread]) -> None:
        """Enqueue the WorkloadSpread, after its delay if only its status may have changed."""
        self._note(new)
        if old.value is not None and new.value is not None:
            self._states.moved(old.value, new.value)
            if _is_as_wanted(old.value.spread, new.value.spread):
                self._pace.soon(new.metadata.key)
                return
        self._queue.add(new.metadata.key)

    def removed(self, item: Item[WrittenSpread]) -> None:
        """Forget the WorkloadSpread."""
        self._states.forget(item.metadata.uid)
        self._queue.add(item.metadata.key)

    def _note(self, item: Item[WrittenSpread]) -> None:
        if item.value is not None:
            self._states.shown(item.value)
            if item.value.spread.target is not None:
                self._want((item.value.spread.target.presumed[:2],))


class PodEvents:
    """Handles events of pods."""

    def __init__(self, copies: Copies, pace: Pace, rules: SpreadRules, log: OnceLog) -> None:
        self._copies = copies
        self._pace = pace
        self._rules = rules
        self._log = log

    def added(self, item: Item[WrittenPod]) -> None:
        """Enqueue the WorkloadSpread of the pod's subset, or that of its owner."""
        if item.value is None:
            self._log.warning("pod_ignored", item.metadata.key, why=item.problem)
            return
        pod = item.value.pod
        self._enqueue(pod)
        self._offer(None, pod)

    def updated(self, old: Item[WrittenPod], new: Item[WrittenPod]) -> None:
        """Enqueue the WorkloadSpread of the pod's subset, if the change matters."""
        if old.value is None or new.value is None:
            self.removed(old)
            self.added(new)
            return
        before, pod = old.value.pod, new.value.pod
        if pod_change_matters(before, pod, self._rules.versioned_kinds, self._rules.quirks):
            self._enqueue(pod)
        self._offer(before, pod)

    def removed(self, item: Item[WrittenPod]) -> None:
        """Enqueue the WorkloadSpread of the pod's subset."""
        if item.value is not None:
            self._enqueue(item.value.pod)

    def _enqueue(self, pod: SpreadPod) -> None:
        if name := spread_of_pod(pod):
            self._pace.soon(f"{pod.namespace}/{name}")

    def _offer(self, old: SpreadPod | None, pod: SpreadPod) -> None:
        """Enqueue the WorkloadSpread of a pod's owner, if it may adopt the pod now."""
        owner = pod.controller
        if owner is None or not awaits_adoption(old, pod, self._rules.quirks):
            return
        group, kind, name = owner.presumed
        workload = self._copies.workload((group, kind), f"{pod.namespace}/{name}")
        if workload is not None and workload.uid == owner.uid:
            spread = spread_of_workload(workload, self._copies.spreads_of(pod.namespace))
            if spread is not None:
                self._pace.soon(spread.key)


class WorkloadEvents:
    """Handles events of workloads of all kinds."""

    def __init__(
        self, copies: Copies, queue: WorkQueue[str], rules: SpreadRules, log: OnceLog
    ) -> None:
        self._copies = copies
        self._queue = queue
        self._rules = rules
        self._log = log

    def added(self, item: Item[Workload]) -> None:
        """Enqueue the WorkloadSpread that targets the workload."""
        if item.value is None:
            self._log.warning("workload_ignored", item.metadata.key, why=item.problem)
        elif workload_arrival_matters(item.value):
            self._enqueue(item.value)

    def updated(self, old: Item[Workload], new: Item[Workload]) -> None:
        """Enqueue the WorkloadSpread that targets the workload, if the change matters."""
        if old.value is None or new.value is None:
            self.added(new)
        elif workload_change_matters(old.value, new.value, self._copies.whitelist):
            self._enqueue(new.value)

    def removed(self, item: Item[Workload]) -> None:
        """Enqueue the WorkloadSpread that targeted the workload."""
        if item.value is not None and workload_arrival_matters(item.value):
            self._enqueue(item.value)

    def _enqueue(self, workload: Workload) -> None:
        if workload.identity[:2] not in watched_kinds(self._copies.whitelist, self._rules.quirks):
            return  # this kind is read, not watched
        spread = spread_of_workload(workload, self._copies.spreads_of(workload.namespace))
        if spread is not None:
            self._queue.add(spread.key)


class ConfigurationEvents:
    """Handles events of the list of allowed kinds: all WorkloadSpreads are enqueued."""

    def __init__(
        self, copies: Copies, queue: WorkQueue[str], rules: SpreadRules, want: Want, log: OnceLog
    ) -> None:
        self._copies = copies
        self._queue = queue
        self._rules = rules
        self._want = want
        self._log = log

    def added(self, item: Item[Whitelist]) -> None:
        """Follow the allowed kinds, and enqueue all WorkloadSpreads."""
        if item.problem:
            self._log.warning("configuration_ignored", item.metadata.key, why=item.problem)
        self._want(watched_kinds(self._copies.whitelist, self._rules.quirks))
        for spread in self._copies.all_spreads():
            self._queue.add(spread.key)

    def updated(self, _old: Item[Whitelist], new: Item[Whitelist]) -> None:
        """Follow the allowed kinds, and enqueue all WorkloadSpreads."""
        self.added(new)

    def removed(self, item: Item[Whitelist]) -> None:
        """Enqueue all WorkloadSpreads, without the configuration's kinds."""
        self.added(item)


def _is_as_wanted(old: Spread, new: Spread) -> bool:
    """Return whether a WorkloadSpread is unchanged except for its status."""
    return replace(old, status=new.status, resource_version=new.resource_version) == new
