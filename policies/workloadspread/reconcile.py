"""Reconciliation of a WorkloadSpread: from the observed state to the writes that it requires.

The caller collects a :class:`~policies.workloadspread.targets.Target`, calls :func:`reconcile`, and
then, in this order, adopts pods, writes costs, writes the status and deletes pods. It requeues the
WorkloadSpread a moment after ``requeue_after_ns``, because deadlines are strict, and immediately,
with backoff, if ``failure`` reports an error.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller.go
(syncWorkloadSpread, calculateWorkloadSpreadStatus).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from policies.workloadspread.deletion_costs import DELETION_COST_KINDS, Cost, deletion_costs
from policies.workloadspread.model import (
    SpreadPod,
    Subset,
    SubsetStatus,
    WorkloadSpread,
    WorkloadSpreadStatus,
)
from policies.workloadspread.pod_groups import BySubset, GroupingContext, PodGroups, group_pods
from policies.workloadspread.quirks import CONDITION_LOST, FIXED, WRITES_WITHOUT_CHANGE, Quirks
from policies.workloadspread.reschedule import (
    WARNING,
    Event,
    SyncSideEffects,
    evaluate_last_subset,
    evaluate_subset,
    is_unschedulable,
    not_evaluated,
    pods_to_reschedule,
)
from policies.workloadspread.subset_counts import MaxReplicasError, SubsetCounter
from policies.workloadspread.targets import Target, TargetError, TargetPods, find_target_pods
from policies.workloadspread.workload_versions import (
    DEFAULT_VERSIONED_KINDS,
    CurrentRevisionUnknownError,
    newest_version,
)

_NO_PODS: BySubset = {}


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """The kinds that are distinguished by version, and the enabled quirks."""

    versioned_kinds: frozenset[str] = DEFAULT_VERSIONED_KINDS
    quirks: Quirks = FIXED


DEFAULT_SPREAD_RULES = SpreadRules()


@dataclass(frozen=True, slots=True)
class PodToDelete:
    """A pod to delete, and the subset in which it could not be scheduled."""

    pod: SpreadPod
    subset: str


@dataclass(frozen=True, slots=True)
class ReconcileResult:
    """The result of one reconciliation.

    ``groups`` are the pods by version and subset; adopted pods are to be annotated. ``costs`` are
    by pod name, for active pods of kinds that support them. ``newest`` is the newest version, None
    if it was not needed. ``status`` is the whole new status, or the old one if nothing is to be
    written. ``requeue_after_ns`` is the delay until the next reconciliation, None without one.
    ``failure`` is the error that ended the reconciliation before the status; the results up to it
    are still to be written.
    """

    replicas: int = 0
    groups: PodGroups = field(default_factory=lambda: PodGroups({}, {}, {}))
    newest: str | None = None
    costs: Mapping[str, Cost] = field(default_factory=dict)
    status: WorkloadSpreadStatus = field(default_factory=WorkloadSpreadStatus)
    writes_status: bool = False
    pods_to_delete: tuple[PodToDelete, ...] = ()
    requeue_after_ns: int | None = None
    events: tuple[Event, ...] = ()
    failure: str = ""

    @property
    def cost_changes(self) -> Mapping[str, str]:
        """The costs that differ from pods' annotations, as the new annotation values."""
        return {
            pod.name: str(self.costs[pod.name].value)
            for pods in self.groups.subsets.values()
            for pod in pods
            if pod.name in self.costs and pod.deletion_cost != str(self.costs[pod.name].value)
        }


def reconcile(
    spread: WorkloadSpread,
    target: Target,
    context: GroupingContext,
    now_ns: int,
    rules: SpreadRules = DEFAULT_SPREAD_RULES,
) -> ReconcileResult:
    """Reconcile a WorkloadSpread."""
    result = ReconcileResult(status=spread.status)
    if spread.target is None or spread.terminating:
        return result
    try:
        pods = find_target_pods(spread, target, rules.quirks)
    except TargetError as error:
        return replace(result, failure=str(error))
    groups = group_pods(spread, pods, context, rules.versioned_kinds, rules.quirks)
    result = replace(result, replicas=pods.replicas, groups=groups)
    try:
        newest = _newest(spread, target, rules)
    except CurrentRevisionUnknownError as error:
        return replace(result, failure=str(error))
    costs = deletion_costs(spread, groups.versions, newest or "", pods.replicas, rules.quirks)
    side_effects = SyncSideEffects(now_ns)
    status, to_delete = _StatusComputation(spread, pods, side_effects, rules).status(groups)
    requeue_at_ns = side_effects.requeue_at_ns
    return replace(
        result,
        newest=newest,
        costs=costs,
        status=status,
        writes_status=status != spread.status or WRITES_WITHOUT_CHANGE in rules.quirks,
        pods_to_delete=to_delete,
        requeue_after_ns=None if requeue_at_ns is None else requeue_at_ns - now_ns,
        events=tuple(side_effects.events),
    )


def delete_failed_event(spread: WorkloadSpread, pod_to_delete: PodToDelete) -> Event:
    """Return the event for a pod that could not be deleted."""
    pod = pod_to_delete.pod
    message = (
        f"Failed to delete unschedulabe Pod {pod.namespace}/{pod.name} in Subset "
        f"{pod_to_delete.subset} of WorkloadSpread {spread.key}"
    )
    return Event(WARNING, "DeletePodFailed", message)


def _newest(spread: WorkloadSpread, target: Target, rules: SpreadRules) -> str | None:
    """Return the newest version, which is only determined if there are costs to compute."""
    if spread.target is None or spread.target.kind not in DELETION_COST_KINDS:
        return None
    sets = sorted(target.replica_sets, key=lambda each: each.identity.name)
    return newest_version(target.workload, sets, rules.versioned_kinds, rules.quirks)


@dataclass(frozen=True, slots=True)
class _StatusComputation:
    """The computation of one status."""

    spread: WorkloadSpread
    target_pods: TargetPods
    side_effects: SyncSideEffects
    rules: SpreadRules

    def status(self, groups: PodGroups) -> tuple[WorkloadSpreadStatus, tuple[PodToDelete, ...]]:
        """Return the whole status, and the pods to delete."""
        spread = self.spread
        old = spread.status
        to_delete: list[PodToDelete] = []
        subsets = self._subsets(groups.subsets, old.subsets, to_delete)
        versions: dict[str, tuple[SubsetStatus, ...]] = {}
        for version, pods in groups.versions.items():
            versions[version] = self._subsets(pods, old.versions.get(version, ()), [])
        for version, known in old.versions.items():
            if version not in versions:
                subsets_without_pods = self._subsets(_NO_PODS, known, [])
                if self._is_kept(subsets_without_pods):
                    versions[version] = subsets_without_pods
        return WorkloadSpreadStatus(spread.generation, subsets, versions), tuple(to_delete)

    def _is_kept(self, subsets: Iterable[SubsetStatus]) -> bool:
        """Return whether a version without pods is kept."""
        keeps_condition = CONDITION_LOST not in self.rules.quirks
        return any(
            each.creating or each.deleting or (keeps_condition and is_unschedulable(each))
            for each in subsets
        )

    def _subsets(
        self, pods: BySubset, old: Iterable[SubsetStatus], to_delete: list[PodToDelete]
    ) -> tuple[SubsetStatus, ...]:
        """Return the statuses of all subsets; empty if the limit of a subset is invalid."""
        known = {each.name: each for each in old}
        try:
            counted = [self._count(subset, pods, known) for subset in self.spread.subsets]
        except MaxReplicasError:
            return ()
        if self.spread.strategy.reschedule_critical_seconds <= 0:
            return tuple(
                not_evaluated(self.spread, each, known.get(each.name), self.rules.quirks)
                for each in counted
            )
        evaluated = [self._evaluate(each, pods, known, to_delete) for each in counted[:-1]]
        last = [
            evaluate_last_subset(each, known.get(each.name), self.side_effects)
            for each in counted[-1:]
        ]
        return (*evaluated, *last)

    def _count(
        self, subset: Subset, pods: BySubset, known: Mapping[str, SubsetStatus]
    ) -> SubsetStatus:
        counter = SubsetCounter(
            self.spread, self.target_pods.replicas, self.side_effects, self.rules.quirks
        )
        return counter.count(subset, pods.get(subset.name, ()), known.get(subset.name))

    def _evaluate(
        self,
        counted: SubsetStatus,
        pods: BySubset,
        known: Mapping[str, SubsetStatus],
        to_delete: list[PodToDelete],
    ) -> SubsetStatus:
        seconds = self.spread.strategy.reschedule_critical_seconds
        failed = pods_to_reschedule(pods.get(counted.name, ()), seconds, self.side_effects)
        to_delete.extend(PodToDelete(pod, counted.name) for pod in failed)
        return evaluate_subset(
            self.spread, counted, known.get(counted.name), failed, self.side_effects
        )
