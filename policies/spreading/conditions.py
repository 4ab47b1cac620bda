"""The Schedulable condition of a subset.

Only the status False has an effect: new pods skip the subset. The transition time of a condition is
kept when only its reason changes.

Source: openkruise/kruise pkg/controller/workloadspread/workloadspread_controller_utils.go
(setWorkloadSpreadSubsetCondition).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from policies.spreading.model import Condition, SubsetStatus

SCHEDULABLE: Final = "Schedulable"

SUFFICIENT: Final = "Sufficient"
POD_UNSCHEDULABLE: Final = "PodUnschedulable"
SIMULATION_FAILED: Final = "SimulationFailed"
"""Reasons; the last one is not upstream's: a simulated new pod would have fit no node."""


def schedulable(status: SubsetStatus | None) -> Condition | None:
    """Return the Schedulable condition of a subset, or None."""
    conditions = () if status is None else status.conditions
    return next((each for each in conditions if each.type == SCHEDULABLE), None)


def is_closed(status: SubsetStatus | None) -> bool:
    """Return whether new pods skip a subset."""
    found = schedulable(status)
    return found is not None and found.status == "False"


def with_condition(status: SubsetStatus, coming: Condition) -> SubsetStatus:
    """Return the status with a condition in place of the one of its type.

    A condition with the same status and reason is not replaced; one with the same status keeps its
    transition time.
    """
    present = next((each for each in status.conditions if each.type == coming.type), None)
    if present is not None and present.status == coming.status:
        if present.reason == coming.reason:
            return status
        coming = replace(coming, changed_ns=present.changed_ns)
    others = [each for each in status.conditions if each.type != coming.type]
    return replace(status, conditions=(*others, coming))


def sufficient(now_ns: int) -> Condition:
    """Return the condition of a subset that accepts pods."""
    return Condition(SCHEDULABLE, "True", SUFFICIENT, changed_ns=now_ns)


def unschedulable(now_ns: int) -> Condition:
    """Return the condition of a subset where a pod could not be scheduled."""
    return Condition(SCHEDULABLE, "False", POD_UNSCHEDULABLE, changed_ns=now_ns)
