"""The Schedulable condition of a subset.

Only the status False has an effect: new pods skip the subset. The transition time of a condition is
kept when only its reason changes.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller_utils.go
(setWorkloadSpreadSubsetCondition).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from policies.spreading.model import SubsetCondition, SubsetStatus

SCHEDULABLE: Final = "Schedulable"

SUFFICIENT: Final = "Sufficient"
POD_UNSCHEDULABLE: Final = "PodUnschedulable"
SIMULATION_FAILED: Final = "SimulationFailed"
"""Reasons; the last one is not upstream's: a simulated new pod would have fit no node."""


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
