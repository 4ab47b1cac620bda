"""Rescheduling: unschedulable pods are deleted, and their subset is avoided for a while.

A pending pod that kube-scheduler has found unschedulable has ``rescheduleCriticalSeconds`` from its
creation. After that it is deleted, and its subset becomes unschedulable; the workload creates a new
pod, which is put into the next subset. Five minutes after the subset has become unschedulable, it
becomes schedulable again, unless it still has such a pod. The last subset is never unschedulable,
because no other subset follows it.

Source: openkruise/kruise pkg/controller/workloadspread/reschedule.go, and
GetTimeBeforePendingTimeout in pkg/controller/util/pod_condition_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from policies.spreading.agenda import NORMAL, Event, SyncSideEffects
from policies.spreading.conditions import (
    SIMULATION_FAILED,
    schedulable_condition,
    sufficient_condition,
    unschedulable_condition,
    with_condition,
)
from policies.spreading.model import (
    SECOND,
    SpreadPod,
    SubsetCondition,
    SubsetStatus,
    WorkloadSpread,
)
from policies.spreading.quirks import SIMULATION_MISSING, Quirks

RECOVERY_NS: Final = 300 * SECOND


def pods_to_reschedule(
    pods: Iterable[SpreadPod], critical_seconds: int, side_effects: SyncSideEffects
) -> tuple[SpreadPod, ...]:
    """Return the pods that have been unschedulable for too long."""
    return tuple(pod for pod in pods if _must_be_rescheduled(pod, critical_seconds, side_effects))


def _must_be_rescheduled(
    pod: SpreadPod, critical_seconds: int, side_effects: SyncSideEffects
) -> bool:
    waiting = pod.unschedulable and pod.phase == "Pending" and not (pod.terminating or pod.node)
    if not waiting:
        return False
    if pod.created_ns is None:  # Go's zero time: long ago
        return True
    deadline = pod.created_ns + critical_seconds * SECOND
    if deadline < side_effects.now_ns:
        return True
    side_effects.requeue_at(deadline)
    return False


def evaluate_subset(
    spread: WorkloadSpread,
    counts: SubsetStatus,
    old: SubsetStatus | None,
    failed: Iterable[SpreadPod],
    side_effects: SyncSideEffects,
) -> SubsetStatus:
    """Add the Schedulable condition to the counts of a subset that is not the last one."""
    known = schedulable_condition(old)
    base = counts if known is None else with_condition(counts, known)
    if any(True for _ in failed):
        return with_condition(base, unschedulable_condition(side_effects.now_ns))
    if known is None:
        return with_condition(base, sufficient_condition(side_effects.now_ns))
    if known.status != "False":
        return base
    recovery = (known.changed_ns or 0) + RECOVERY_NS
    if recovery < side_effects.now_ns:
        side_effects.record_event(_recovered_event(spread, counts.name))
        return with_condition(base, sufficient_condition(side_effects.now_ns))
    side_effects.requeue_at(recovery)
    return base


def evaluate_last_subset(
    counts: SubsetStatus, old: SubsetStatus | None, side_effects: SyncSideEffects
) -> SubsetStatus:
    """Add the Schedulable condition, which is always True, to the counts of the last subset."""
    known = schedulable_condition(old)
    base = counts if known is None else with_condition(counts, known)
    return with_condition(base, sufficient_condition(side_effects.now_ns))


def not_evaluated(
    spread: WorkloadSpread, counts: SubsetStatus, old: SubsetStatus | None, quirks: Quirks
) -> SubsetStatus:
    """Omit the Schedulable condition where pods are not rescheduled.

    The result of a simulation is kept, for display, as long as simulation is enabled.
    """
    known = schedulable_condition(old)
    if known is None or not _is_from_simulation(known) or SIMULATION_MISSING in quirks:
        return counts
    return replace(counts, conditions=(known,)) if spread.strategy.simulates else counts


def _is_from_simulation(condition: SubsetCondition) -> bool:
    return condition.reason == SIMULATION_FAILED


def _recovered_event(spread: WorkloadSpread, subset: str) -> Event:
    message = (
        f"Subset {subset} of WorkloadSpread {spread.key} is recovered from unschedulable to "
        "schedulable"
    )
    return Event(NORMAL, "RecoverSchedulable", message)
