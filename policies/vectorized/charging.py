"""Which potential victims break a disruption budget, for all rows at once.

As in :func:`policies.preemption.group_by_budget`: down each row, each pod is charged to the budgets
that cover it, in their order, against counters that start from what the budget allows. A counter is
made for each pair of a row and a budget that meet.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from policies.columns.budgets import BudgetColumns
from policies.columns.cells import CLASS
from policies.columns.coded import Bools, Ints
from policies.upstream import BudgetAfterViolation, Release
from policies.vectorized.view import View


def violating(view: View, potential: Bools, release: Release) -> Bools:
    """Tell which of the ``potential`` victims break a budget; both are (depth, rows)."""
    budgets = view.columns.budgets
    breaks = np.zeros(potential.shape, np.bool_)
    charges = _charges(view, potential, budgets)
    if charges is None:
        return breaks
    ends_at_violation = release.budget_after_violation is BudgetAfterViolation.SPARED
    spent = np.zeros(int(charges.counters.max()) + 1, np.int64)
    starts = np.searchsorted(charges.depths, np.arange(potential.shape[0] + 1))
    for depth in range(potential.shape[0]):
        at = slice(starts[depth], starts[depth + 1])
        rows = charges.rows[at]
        broken = breaks[depth]
        for counters, allowed in zip(charges.counters[:, at], charges.allowed[:, at], strict=True):
            charged = counters >= 0
            if ends_at_violation:
                charged &= ~broken[rows]
            spent[counters[charged]] += 1
            over = spent[counters] > allowed
            broken[rows[charged & over]] = True
    return breaks


@dataclass(frozen=True)
class _Charges:
    """Covered pods, by depth: where each stands, and for each of its budgets, in their order.

    ``counters`` and ``allowed`` are (budgets of a pod, pods); a counter of -1 charges nothing.
    """

    depths: Ints
    rows: Ints
    counters: Ints
    allowed: Ints


def _charges(view: View, potential: Bools, budgets: BudgetColumns) -> _Charges | None:
    classes = view.channel(CLASS)
    covered = (budgets.covering[0] >= 0).take(classes) & potential
    depths, rows = np.nonzero(covered)
    if not len(rows):
        return None
    places = budgets.covering[:, classes[depths, rows]].astype(np.int64)
    places = places[(places >= 0).any(axis=1)]
    _spare_disrupted(places, view, depths, rows)
    pairs = rows * max(len(budgets.allowed), 1) + places
    counters = np.unique(pairs, return_inverse=True)[1].reshape(pairs.shape)
    counters[places < 0] = -1
    return _Charges(depths, rows, counters, budgets.allowed[places])


def _spare_disrupted(places: Ints, view: View, depths: Ints, rows: Ints) -> None:
    """Take out the charges for pods whose eviction a budget has been charged with already."""
    disrupted = view.columns.budgets.disrupted
    if not disrupted:
        return
    concerned = np.isin(places, list(disrupted))
    for rank, entry in zip(*map(np.ndarray.tolist, np.nonzero(concerned)), strict=True):
        pods = view.columns.pods[int(view.numbers[rows[entry]])]
        if pods[int(depths[entry])].name in disrupted[int(places[rank, entry])]:
            places[rank, entry] = -1
