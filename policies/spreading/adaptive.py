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

from policies.spreading.agenda import NORMAL, Agenda, Event
from policies.spreading.conditions import (
    SIMULATION_FAILED,
    schedulable,
    sufficient,
    unschedulable,
    with_condition,
)
from policies.spreading.model import SECOND, Condition, Spread, SpreadPod, SubsetStatus
from policies.spreading.quirks import SIMULATION_MISSING, Quirks

RECOVERY_NS: Final = 300 * SECOND


def given_up(
    pods: Iterable[SpreadPod], critical_seconds: int, agenda: Agenda
) -> tuple[SpreadPod, ...]:
    """Return the pods that have been unschedulable for too long."""
    return tuple(pod for pod in pods if _given_up(pod, critical_seconds, agenda))


def _given_up(pod: SpreadPod, critical_seconds: int, agenda: Agenda) -> bool:
    waiting = pod.unschedulable and pod.phase == "Pending" and not (pod.terminating or pod.node)
    if not waiting:
        return False
    if pod.created_ns is None:  # Go's zero time: long ago
        return True
    deadline = pod.created_ns + critical_seconds * SECOND
    if deadline < agenda.now_ns:
        return True
    agenda.look_again(deadline)
    return False


def judge(
    spread: Spread,
    counted: SubsetStatus,
    old: SubsetStatus | None,
    failed: Iterable[SpreadPod],
    agenda: Agenda,
) -> SubsetStatus:
    """Add the Schedulable condition to the counts of a subset that is not the last one."""
    known = schedulable(old)
    base = counted if known is None else with_condition(counted, known)
    if any(True for _ in failed):
        return with_condition(base, unschedulable(agenda.now_ns))
    if known is None:
        return with_condition(base, sufficient(agenda.now_ns))
    if known.status != "False":
        return base
    recovery = (known.changed_ns or 0) + RECOVERY_NS
    if recovery < agenda.now_ns:
        agenda.tell(_recovered(spread, counted.name))
        return with_condition(base, sufficient(agenda.now_ns))
    agenda.look_again(recovery)
    return base


def judge_last(counted: SubsetStatus, old: SubsetStatus | None, agenda: Agenda) -> SubsetStatus:
    """Add the Schedulable condition, which is always True, to the counts of the last subset."""
    known = schedulable(old)
    base = counted if known is None else with_condition(counted, known)
    return with_condition(base, sufficient(agenda.now_ns))


def unjudged(
    spread: Spread, counted: SubsetStatus, old: SubsetStatus | None, quirks: Quirks
) -> SubsetStatus:
    """Omit the Schedulable condition where pods are not rescheduled.

    The result of a simulation is kept, for display, as long as simulation is enabled.
    """
    known = schedulable(old)
    if known is None or not _told_by_simulation(known) or SIMULATION_MISSING in quirks:
        return counted
    return replace(counted, conditions=(known,)) if spread.strategy.simulates else counted


def _told_by_simulation(condition: Condition) -> bool:
    return condition.reason == SIMULATION_FAILED


def _recovered(spread: Spread, subset: str) -> Event:
    message = (
        f"Subset {subset} of WorkloadSpread {spread.key} is recovered from unschedulable to "
        "schedulable"
    )
    return Event(NORMAL, "RecoverSchedulable", message)
