"""Rescheduling: unschedulable pods are deleted, and their subset is avoided for a while.

A pending pod that kube-scheduler has found unschedulable has ``rescheduleCriticalSeconds`` from its
creation. After that it is deleted, and its subset becomes unschedulable; the workload creates a new
pod, which is put into the next subset. Five minutes after the subset has become unschedulable, it
becomes schedulable again, unless it still has such a pod. The last subset is never unschedulable,
because no other subset follows it.

A subset's condition ``Schedulable`` records this. Only its status False has an effect: new pods
skip the subset. The transition time of a condition is kept when only its reason changes.

Sources: openkruise/kruise pkg/controller/workloadspread, reschedule.go and
workloadspread_controller_utils.go (setWorkloadSpreadSubsetCondition); GetTimeBeforePendingTimeout
in pkg/controller/util/pod_condition_utils.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from policies.workloadspread.model import (
    SECOND,
    SpreadPod,
    SubsetCondition,
    SubsetStatus,
    WorkloadSpread,
)
from policies.workloadspread.quirks import SIMULATION_MISSING, Quirks

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

SCHEDULABLE: Final = "Schedulable"
SUFFICIENT: Final = "Sufficient"
POD_UNSCHEDULABLE: Final = "PodUnschedulable"
SIMULATION_FAILED: Final = "SimulationFailed"
"""Reasons; the last one is not upstream's: a simulated new pod would have fit no node."""

RECOVERY_NS: Final = 300 * SECOND


@dataclass(frozen=True, slots=True)
class Event:
    """An event about a WorkloadSpread; ``type`` is Normal or Warning."""

    type: str
    reason: str
    message: str


@dataclass(slots=True)
class SyncSideEffects:
    """The earliest time to requeue, and the events in order of occurrence, each once."""

    now_ns: int
    requeue_at_ns: int | None = None
    events: dict[Event, None] = field(default_factory=dict)

    def requeue_at(self, at_ns: int) -> None:
        """Record a time to requeue; times that are not in the future are ignored."""
        if at_ns > self.now_ns and (self.requeue_at_ns is None or at_ns < self.requeue_at_ns):
            self.requeue_at_ns = at_ns

    def record_event(self, event: Event) -> None:
        """Record an event."""
        self.events[event] = None


def schedulable_condition(status: SubsetStatus | None) -> SubsetCondition | None:
    """Return the Schedulable condition of a subset, or None."""
    conditions = () if status is None else status.conditions
    return next((each for each in conditions if each.type == SCHEDULABLE), None)


def is_unschedulable(status: SubsetStatus | None) -> bool:
    """Return whether new pods skip a subset."""
    found = schedulable_condition(status)
    return found is not None and found.status == "False"


def with_condition(status: SubsetStatus, new: SubsetCondition) -> SubsetStatus:
    """Return the status with a condition in place of the one of its type.

    A condition with the same status and reason is not replaced; one with the same status keeps its
    transition time.
    """
    present = next((each for each in status.conditions if each.type == new.type), None)
    if present is not None and present.status == new.status:
        if present.reason == new.reason:
            return status
        new = replace(new, changed_ns=present.changed_ns)
    others = [each for each in status.conditions if each.type != new.type]
    return replace(status, conditions=(*others, new))


def sufficient_condition(now_ns: int) -> SubsetCondition:
    """Return the condition of a subset that accepts pods."""
    return SubsetCondition(SCHEDULABLE, "True", SUFFICIENT, changed_ns=now_ns)


def unschedulable_condition(now_ns: int) -> SubsetCondition:
    """Return the condition of a subset where a pod could not be scheduled."""
    return SubsetCondition(SCHEDULABLE, "False", POD_UNSCHEDULABLE, changed_ns=now_ns)


def pods_to_reschedule(
    pods: Iterable[SpreadPod], critical_seconds: int, side_effects: SyncSideEffects
) -> tuple[SpreadPod, ...]:
    """Return the pods that have been unschedulable for too long."""
    return tuple(pod for pod in pods if _must_be_rescheduled(pod, critical_seconds, side_effects))


def _must_be_rescheduled(
    pod: SpreadPod, critical_seconds: int, side_effects: SyncSideEffects
) -> bool:
    if not pod.unschedulable or pod.phase != "Pending" or pod.terminating or pod.node:
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
    if known is None or known.reason != SIMULATION_FAILED or SIMULATION_MISSING in quirks:
        return counts
    return replace(counts, conditions=(known,)) if spread.strategy.simulates else counts


def _recovered_event(spread: WorkloadSpread, subset: str) -> Event:
    message = (
        f"Subset {subset} of WorkloadSpread {spread.key} is recovered from unschedulable to "
        "schedulable"
    )
    return Event(NORMAL, "RecoverSchedulable", message)
