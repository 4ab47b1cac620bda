"""Rescheduling: pods that cannot be scheduled go, and their subset is passed over for a while.

A pod that is pending and that kube-scheduler has found unschedulable is given
``rescheduleCriticalSeconds`` from its creation. After that it is deleted, and its subset becomes
unschedulable; its workload makes a new pod, which goes to the next subset. Five minutes after the
subset has become unschedulable, if it has no such pod any more, it may be tried again. The last
subset is never unschedulable, for there is no other one to go to.

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
    """Add to the counts of a subset, not the last one, whether it is schedulable."""
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
    """Add to the counts of the last subset that it is schedulable."""
    known = schedulable(old)
    base = counted if known is None else with_condition(counted, known)
    return with_condition(base, sufficient(agenda.now_ns))


def unjudged(
    spread: Spread, counted: SubsetStatus, old: SubsetStatus | None, quirks: Quirks
) -> SubsetStatus:
    """Leave out the condition where pods are not rescheduled.

    What a simulation said stays for people to read, as long as there are simulations.
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
