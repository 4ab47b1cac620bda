"""The one condition of a subset: whether its nodes have room for the workload's pods.

Only False has consequences: new pods pass the subset over. How long a condition has had its status
is kept when its reason changes.

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
"""Reasons; the last one is not upstream's: a new pod was tried and would have fit no node."""


def schedulable(status: SubsetStatus | None) -> Condition | None:
    """Return the condition of a subset, or None."""
    conditions = () if status is None else status.conditions
    return next((each for each in conditions if each.type == SCHEDULABLE), None)


def is_closed(status: SubsetStatus | None) -> bool:
    """Return whether new pods pass a subset over."""
    found = schedulable(status)
    return found is not None and found.status == "False"


def with_condition(status: SubsetStatus, coming: Condition) -> SubsetStatus:
    """Return the status with a condition in place of the one of its type.

    One of the same status and reason stays as it is; one of the same status keeps its time.
    """
    present = next((each for each in status.conditions if each.type == coming.type), None)
    if present is not None and present.status == coming.status:
        if present.reason == coming.reason:
            return status
        coming = replace(coming, changed_ns=present.changed_ns)
    others = [each for each in status.conditions if each.type != coming.type]
    return replace(status, conditions=(*others, coming))


def sufficient(now_ns: int) -> Condition:
    """Return the condition of a subset that pods may be put into."""
    return Condition(SCHEDULABLE, "True", SUFFICIENT, changed_ns=now_ns)


def unschedulable(now_ns: int) -> Condition:
    """Return the condition of a subset where a pod could not be scheduled."""
    return Condition(SCHEDULABLE, "False", POD_UNSCHEDULABLE, changed_ns=now_ns)
