"""The values by which a policy compares candidates, beyond those of kube-scheduler's criteria."""

from __future__ import annotations

from collections.abc import Sequence

from policies.kubernetes.criteria import Criterion, Order
from policies.kubernetes.duration import format_duration
from policies.preemption.consequences.criteria import CountedCriterion
from policies.preemption.costs.candidate_criteria import (
    BoundCriterion,
    BoundGroupValue,
    CostCriterion,
)
from policies.preemption.costs.catalog import (
    HIGHEST_QUOTA_USAGE,
    LOST_WORK_UNIT,
    RESTARTS_UNIT,
    RUN_TIME_UNIT,
)
from policies.preemption.costs.fragmentation import BoundFragmentation
from policies.preemption.costs.pod_cost import SECOND_NS
from policies.preemption.decision import Candidate
from policies.preemption.policy import CANDIDATE_CRITERIA

_SHOWN = (BoundCriterion, BoundFragmentation, BoundGroupValue, CountedCriterion)
_HOUR_OF_WORK = 3600 * 1000


def shown_criteria(order: Order[Candidate]) -> Sequence[Criterion[Candidate]]:
    """Return the criteria whose values explain a choice."""
    return [
        each
        for each in order.criteria
        if isinstance(each, _SHOWN)
        and each.name not in CANDIDATE_CRITERIA  # that of the cheapest victims by number
        and not (isinstance(each, CountedCriterion) and not each.counts)
    ]


def heading(criterion: Criterion[Candidate]) -> str:
    """Return the heading of the values: what they count."""
    if isinstance(criterion, CountedCriterion):
        return criterion.counted
    if isinstance(criterion, BoundFragmentation):
        return f"{criterion.resource} left"
    _, _, counted = criterion.name.partition(" ")
    return counted or criterion.name


def value_of(criterion: Criterion[Candidate], candidate: Candidate) -> int | None:
    """Return the value of a candidate; None for one that is not counted."""
    if isinstance(criterion, CountedCriterion):
        return criterion.counts.get(candidate.node)
    value = criterion.key(candidate)
    return -value if _is_highest_first(criterion) else value


def shown_value(criterion: Criterion[Candidate], candidate: Candidate) -> str:
    """Return the value of a candidate with its unit: lost work in weighted hours, usage in %."""
    value = value_of(criterion, candidate)
    if value is None:
        return ""
    match _unit(criterion):
        case unit if unit == LOST_WORK_UNIT:
            hours = value / _HOUR_OF_WORK
            return f"{hours:.4g} h" if hours < 1000 else f"{hours:.0f} h"
        case unit if unit == RUN_TIME_UNIT:
            return format_duration(value * SECOND_NS)
    if criterion.name == HIGHEST_QUOTA_USAGE:
        return f"{value / 10:g}%"
    return str(value)


def _is_highest_first(criterion: Criterion[Candidate]) -> bool:
    return criterion.name == HIGHEST_QUOTA_USAGE or _unit(criterion) == RESTARTS_UNIT


def _unit(criterion: Criterion[Candidate]) -> str:
    source = criterion.source if isinstance(criterion, BoundCriterion) else None
    return source.cost.unit if isinstance(source, CostCriterion) else ""
