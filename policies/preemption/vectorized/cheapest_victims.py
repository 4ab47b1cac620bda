"""Which rows may have cheaper victims: lower bounds of the cost on all rows at once.

They are those of :func:`policies.preemption.victims.cost_bound.lower_bound`, or less, so that
no row is left out that the reference engine searches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from policies.kubernetes.criteria import Criterion
from policies.preemption.columns.encoded_column import Ints
from policies.preemption.costs.candidate_criteria import BoundCriterion
from policies.preemption.decision import Candidate
from policies.preemption.vectorized.dry_run import DryRunRows
from policies.preemption.vectorized.filtering.framework import Constraint
from policies.preemption.vectorized.filtering.node_resources_fit import ResourcesConstraint
from policies.preemption.vectorized.victim_keys import criterion_keys, prices
from policies.preemption.victims.cheapest_victims import KnownVictims

Floats = NDArray[np.float64]

_ROUNDING = 1 - 1e-9
"""Bounds are sums of quotients of floats, rounded up as costs are whole: a little less is safe."""


def rows_to_search(
    every: DryRunRows,
    run: DryRunRows,
    criterion: Criterion[Candidate],
    constraints: Sequence[Constraint],
) -> tuple[Mapping[str, KnownVictims], int | None]:
    """Return the nodes that may have cheaper victims, and the least cost on any node.

    ``run`` are those of ``every`` candidate that are within the limits. Raise TypeError if the
    criterion has no prices.
    """
    costs = criterion_keys(every, criterion, np.arange(len(every.candidates)))
    if costs is None or not isinstance(criterion, BoundCriterion):
        raise TypeError(f"no prices: {criterion.name}")
    within = np.isin(every.places, run.places)
    least = int(costs[within].min()) if within.any() else None
    bounds = _lower_bounds(every, criterion, constraints)
    searched = ~within | (bounds < costs)
    if least is not None:
        searched &= bounds < least
    names, numbers = every.candidates.columns.names, every.candidates.numbers
    found = {
        names[int(numbers[place])]: KnownVictims(
            int(costs[place]) if within[place] else None, float(bounds[place])
        )
        for place in np.flatnonzero(searched).tolist()
    }
    return found, least


def _lower_bounds(
    run: DryRunRows, criterion: BoundCriterion, constraints: Sequence[Constraint]
) -> Floats:
    if not len(run.candidates):
        return np.zeros(0)
    price = np.where(run.potential, prices(run, criterion), np.inf)
    bounds: Floats = price.min(axis=0)
    groups = _groups_on_rows(run, criterion)
    view = run.candidates.removing(None)
    for each in constraints:
        if isinstance(each, ResourcesConstraint):
            for missing, frees in each.shortages(view):
                if (missing > 0).any():
                    freed = np.where(run.potential, frees, 0).astype(np.float64)
                    whole = freed if groups is None else _sums_of_groups(freed, groups)
                    covering = _covering_costs(price, freed, whole, missing)
                    bounds = np.maximum(bounds, covering)
    return bounds


def _groups_on_rows(run: DryRunRows, criterion: BoundCriterion) -> Ints | None:
    """Return numbers that are equal for pods of the same group and row; None for single pods."""
    grouping = criterion.source.grouping
    if grouping is None:
        return None
    columns = run.candidates.columns.policy
    numbers = run.candidates.policy_channel(columns.group_channel(grouping))
    on_rows = numbers + np.arange(numbers.shape[1]) * len(columns.groups(grouping))
    _, inverse = np.unique(on_rows, return_inverse=True)
    groups: Ints = inverse.reshape(numbers.shape)
    return groups


def _sums_of_groups(freed: Floats, groups: Ints) -> Floats:
    """Return for each pod what the pods of its group on its row free."""
    sums: Floats = np.bincount(groups.ravel(), weights=freed.ravel()).astype(np.float64)
    return sums[groups]


def _covering_costs(price: Floats, freed: Floats, whole: Floats, missing: Ints) -> Floats:
    """Return for each row the least cost of parts of groups that free what is missing.

    All pods of a group have the same price of a unit, that of the ``whole`` group.
    """
    rate = np.divide(price, whole, out=np.full_like(price, np.inf), where=freed > 0)
    order = rate.argsort(axis=0)
    freed = np.take_along_axis(freed, order, axis=0)
    before = freed.cumsum(axis=0) - freed
    parts = np.clip(missing - before, 0, freed)
    rate = np.where(parts > 0, np.take_along_axis(rate, order, axis=0), 0)
    total: Floats = np.ceil((parts * rate).sum(axis=0) * _ROUNDING)
    return total
