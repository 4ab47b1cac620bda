"""The values by which a policy compares candidates, beyond those of kube-scheduler's criteria."""

from __future__ import annotations

from collections.abc import Sequence

from policies.kubernetes.criteria import Criterion, Order
from policies.kubernetes.duration import format_duration
from policies.preemption.consequences.criteria import CountedCriterion
from policies.preemption.costs.candidate_criteria import BoundCriterion, CostCriterion
from policies.preemption.costs.catalog import LOST_WORK_UNIT, RESTARTS_UNIT, RUN_TIME_UNIT
from policies.preemption.costs.fragmentation import BoundFragmentation
from policies.preemption.costs.pod_cost import SECOND_NS
from policies.preemption.decision import Candidate

_SHOWN = (BoundCriterion, BoundFragmentation, CountedCriterion)
_HOUR_OF_WORK = 3600 * 1000


def shown_criteria(order: Order[Candidate]) -> Sequence[Criterion[Candidate]]:
    """Return the criteria whose values explain a choice."""
    return [
        each
        for each in order.criteria
        if isinstance(each, _SHOWN) and not (isinstance(each, CountedCriterion) and not each.counts)
    ]


def heading(criterion: Criterion[Candidate]) -> str:
    """Return the heading of the values: what they count."""
    if isinstance(criterion, CountedCriterion):
        return criterion.counted
    _, _, counted = criterion.name.partition(" ")
    return counted or criterion.name


def value_of(criterion: Criterion[Candidate], candidate: Candidate) -> int | None:
    """Return the value of a candidate; None for one that is not counted."""
    if isinstance(criterion, CountedCriterion):
        return criterion.counts.get(candidate.node)
    value = criterion.key(candidate)
    return -value if _unit(criterion) == RESTARTS_UNIT else value


def shown_value(criterion: Criterion[Candidate], candidate: Candidate) -> str:
    """Return the value of a candidate with its unit: lost work in weighted hours."""
    value = value_of(criterion, candidate)
    if value is None:
        return ""
    match _unit(criterion):
        case unit if unit == LOST_WORK_UNIT:
            return f"{value / _HOUR_OF_WORK:.4g} h"
        case unit if unit == RUN_TIME_UNIT:
            return format_duration(value * SECOND_NS)
    return str(value)


def _unit(criterion: Criterion[Candidate]) -> str:
    source = criterion.source if isinstance(criterion, BoundCriterion) else None
    return source.cost.unit if isinstance(source, CostCriterion) else ""
