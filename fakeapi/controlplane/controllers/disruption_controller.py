"""The disruption controller: keeps the status of PodDisruptionBudgets.

A budget is synced (:mod:`fakeapi.controlplane.controllers.disruption_status`) when it or one of its
pods changes, and when an eviction charged to it is overdue. A budget that cannot be calculated
allows no disruption, and its condition has the reason. A pod whose DisruptionTarget condition is
true but that is not deleted within two minutes gets the condition set to false.

Source: kubernetes/pkg/controller/disruption/disruption.go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from extender.controllers.context import ControllerContext
from extender.kube.controller_runtime.controller import Controller
from extender.kube.controller_runtime.workqueue import WorkQueue
from extender.kube.decoders.core_v1_types import LabelSelectorV1
from extender.kube.decoders.object_meta import NS_PER_SECOND, format_time, parse_time
from extender.kube.informers.indexer import BY_NAMESPACE, namespace_of
from extender.kube.rest.api_errors import ApiError
from extender.kube.rest.client import PatchType
from extender.kube.rest.resources import POD_DISRUPTION_BUDGETS, PODS
from fakeapi.controlplane.controllers.disruption_status import (
    DELETION_TIMEOUT_SECONDS,
    Budget,
    BudgetError,
    BudgetStatus,
    count_healthy,
    decode_budget,
    expected_and_desired,
    failed_status,
    new_status,
    remaining_disrupted_pods,
    status_patch,
)
from fakeapi.controlplane.controllers.pod_status_writer import PodStatusWriter
from fakeapi.controlplane.controllers.scale_finder import ScaleFinder
from fakeapi.controlplane.controllers.types import Pod, decode_pod

_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a "
    "result, the status of the PDB cannot be calculated correctly, which may result in undefined "
    'behavior. To account for these pods please set ".spec.minAvailable" field of the PDB to an '
    "integer value."
)


@dataclass(frozen=True, slots=True)
class DisruptionWorkItem:
    """A queue item: a budget, a pod whose condition may be stale, or a pod of several budgets.

    ``what`` is ``budget``, ``stale`` or ``several``; ``chosen`` is the budget that is used.
    """

    what: str
    key: str
    chosen: str = ""


class DisruptionController:
    """The component ``disruption``."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._budgets = context.informers.of(POD_DISRUPTION_BUDGETS, decode_budget)
        self._budgets.objects.add_index(BY_NAMESPACE, namespace_of)
        self._pods = context.informers.of(PODS, decode_pod)
        self._pods.objects.add_index(BY_NAMESPACE, namespace_of)
        self._scales = ScaleFinder(context)
        self._writer = PodStatusWriter(context.client, context.clock)
        self._recorder = context.events.recorder("controllermanager")
        self._queue: WorkQueue[DisruptionWorkItem] = WorkQueue(context.clock)
        self.controller = Controller("disruption", self._queue, self._sync)

    async def run(self) -> None:
        """Reconcile PodDisruptionBudgets until cancelled."""
        await asyncio.gather(
            self._budgets.wait_synced(), self._pods.wait_synced(), self._scales.wait_synced()
        )
        self._budgets.objects.add_handler(_DisruptionBudgetEventHandler(self._queue))
        self._pods.objects.add_handler(_DisruptionPodEventHandler(self))
        await self.controller.run()

    def enqueue_budget_of(self, pod: Pod) -> None:
        """Enqueue the budget of a pod."""
        matching = self._budgets_of(pod)
        if matching:
            self._queue.add(DisruptionWorkItem("budget", matching[0].metadata.key))
        if len(matching) > 1:
            self._queue.add(
                DisruptionWorkItem("several", pod.metadata.key, matching[0].metadata.name)
            )

    def enqueue_stale_disruption(self, pod: Pod) -> None:
        """Enqueue a pod for the time when its DisruptionTarget condition becomes stale."""
        left = self._seconds_until_stale(pod)
        if left is not None:
            self._queue.add_after(DisruptionWorkItem("stale", pod.metadata.key), left)

    async def _sync(self, work: DisruptionWorkItem) -> float | None:
        if work.what == "stale":
            return await self._clear_disruption_target(work.key)
        if work.what == "several":
            self._record_multiple_budgets(work)
            return None
        budget = self._budgets.objects.get(work.key)
        return None if budget is None else await self._sync_budget(budget)

    async def _sync_budget(self, budget: Budget) -> float | None:
        try:
            return await self._update_budget(budget)
        except (ApiError, BudgetError) as error:
            if isinstance(error, ApiError) and error.status == 409:
                raise  # a conflict; the other write enqueues the budget
            reason = error.message if isinstance(error, ApiError) else str(error)
            await self._write(budget, failed_status(budget, reason, self._now()))
            return None

    async def _update_budget(self, budget: Budget) -> float | None:
        pods = self._selected(budget)
        expected, desired = await self._expected_and_desired(budget, pods)
        now_ns = self._clock.now_ns()
        promised = remaining_disrupted_pods(budget, pods, now_ns)
        for pod in promised.overdue:
            namespace = budget.metadata.namespace
            message = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
            self._recorder.warning(pod.reference, "NotDeleted", message)
        healthy = count_healthy(pods, promised.pods, now_ns)
        status = new_status(budget, expected, desired, healthy, promised.pods, self._now())
        if status is not None:
            await self._write(budget, status)
        return promised.resync_after

    def _selected(self, budget: Budget) -> Sequence[Pod]:
        try:
            selector = budget.selector()
        except BudgetError as error:
            message = f"Failed to get pods: {error}"
            self._recorder.warning(budget.reference, "NoPods", message)
            raise
        pods = [
            pod
            for pod in self._pods.objects.by(BY_NAMESPACE, budget.metadata.namespace)
            if selector is not None and selector.matches(pod.metadata.labels or {})
        ]
        if not pods:
            self._recorder.normal(budget.reference, "NoPods", "No matching pods found")
        return pods

    async def _expected_and_desired(self, budget: Budget, pods: Sequence[Pod]) -> tuple[int, int]:
        try:
            scale, unmanaged = await self._scales.total(pods) if budget.needs_scale else (0, ())
            desired = expected_and_desired(budget.spec, len(pods), scale)
        except (ApiError, BudgetError) as error:
            why = error.message if isinstance(error, ApiError) else str(error)
            message = f"Failed to calculate the number of expected pods: {why}"
            reason = "CalculateExpectedPodCountFailed"
            self._recorder.warning(budget.reference, reason, message)
            raise
        if unmanaged:
            message = _UNMANAGED.format(format_selector_as_go(budget.spec.selector))
            self._recorder.warning(budget.reference, "UnmanagedPods", message)
        return desired

    async def _write(self, budget: Budget, status: BudgetStatus) -> None:
        meta = budget.metadata
        path = POD_DISRUPTION_BUDGETS.object(meta.name, meta.namespace).subresource("status")
        body = msgspec.json.encode(status_patch(budget, status))
        try:
            await self._client.patch(path, PatchType.MERGE, body, bytes)
        except ApiError as error:
            if error.status != 404:
                raise

    def _record_multiple_budgets(self, work: DisruptionWorkItem) -> None:
        pod = self._pods.objects.get(work.key)
        if pod is not None:
            meta = pod.metadata
            message = (
                f'Pod "{meta.namespace}"/"{meta.name}" matches multiple PodDisruptionBudgets.  '
                f'Chose "{work.chosen}" arbitrarily.'
            )
            self._recorder.warning(pod.reference, "MultiplePodDisruptionBudgets", message)

    async def _clear_disruption_target(self, key: str) -> float | None:
        pod = self._pods.objects.get(key)
        left = None if pod is None else self._seconds_until_stale(pod)
        if pod is None or left is None:
            return None
        if left > 0:
            return left
        await self._writer.set_condition(pod, {"type": "DisruptionTarget", "status": "False"})
        return None

    def _seconds_until_stale(self, pod: Pod) -> float | None:
        """Return the seconds until a pod's condition is stale; None if it cannot become stale."""
        mark = pod.condition("DisruptionTarget")
        if mark is None or mark.status != "True" or pod.metadata.deleting or pod.finished:
            return None
        if mark.reason == "TerminationByKubelet":
            return None
        age = (self._clock.now_ns() - parse_time(mark.last_transition_time)) / NS_PER_SECOND
        return max(0.0, DELETION_TIMEOUT_SECONDS - age)

    def _budgets_of(self, pod: Pod) -> list[Budget]:
        labels = pod.metadata.labels or {}
        return [
            budget
            for budget in self._budgets.objects.by(BY_NAMESPACE, pod.metadata.namespace)
            if _selects(budget, labels)
        ]

    def _now(self) -> str:
        return format_time(self._clock.now_ns())


class _DisruptionBudgetEventHandler:
    """Handles events of budgets."""

    def __init__(self, queue: WorkQueue[DisruptionWorkItem]) -> None:
        self._queue = queue

    def added(self, item: Budget) -> None:
        self._queue.add(DisruptionWorkItem("budget", item.metadata.key))

    def updated(self, _old: Budget, new: Budget) -> None:
        self.added(new)

    def removed(self, item: Budget) -> None:
        """Ignore deletions; a deleted budget has no status."""


class _DisruptionPodEventHandler:
    """Handles events of pods."""

    def __init__(self, controller: DisruptionController) -> None:
        self._of = controller

    def added(self, item: Pod) -> None:
        self._of.enqueue_budget_of(item)
        self._of.enqueue_stale_disruption(item)

    def updated(self, _old: Pod, new: Pod) -> None:
        self.added(new)

    def removed(self, item: Pod) -> None:
        self._of.enqueue_budget_of(item)


def _selects(budget: Budget, labels: dict[str, str]) -> bool:
    try:
        selector = budget.selector()
    except BudgetError:
        return False
    return selector is not None and selector.matches(labels)


def format_selector_as_go(selector: LabelSelectorV1 | None) -> str:
    """Format a label selector as Go's ``%v`` does, for the messages of Events."""
    source = selector or LabelSelectorV1()
    labels = "".join(
        f"{key}: {value}," for key, value in sorted((source.matchLabels or {}).items())
    )
    expressions = "".join(
        f"LabelSelectorRequirement{{Key:{each.key},Operator:{each.operator},"
        f"Values:[{' '.join(each.values or ())}],}},"
        for each in source.matchExpressions or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
