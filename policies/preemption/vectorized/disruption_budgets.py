"""The PDB violations of a dry run, for all rows at once.

As in :func:`policies.preemption.disruption_budgets.split_by_pdb_violation`: along each row, each
pod is counted against the budgets that cover it, in their order, with counters that start at 0 and
may reach what the budget allows. There is a counter for each pair of a row and a budget; if these
are too many, the rows are processed in several groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from policies.kubernetes.releases import PdbViolationCount, Release
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.cluster_columns import DEPARTING, READY
from policies.preemption.columns.disruption_budgets import DisruptionBudgetColumns
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import CLASS, FLAGS
from policies.preemption.vectorized.row_view import RowView

try:
    from policies.preemption.vectorized import _dry_run
except ImportError:
    COMPILED = False
else:
    COMPILED = True

MAX_COUNTERS = 2**21
"""The maximum number of counters at once: 8 MiB of them."""


@dataclass(frozen=True)
class CoveredPods:
    """Covered pods by depth: the position of each, and the budgets that count it.

    ``budgets`` is (budgets of a pod, pods), in the order of counting; -1 means none.
    """

    depths: Ints
    rows: Ints
    budgets: Ints


def pdb_violations(view: RowView, potential: Bools, allowed: Ints, release: Release) -> Bools:
    """Return which of the ``potential`` victims are PDB violations; both are (depth, rows).

    ``allowed`` is what each budget allows.
    """
    violations = np.zeros(potential.shape, np.bool_)
    budgets = view.columns.budgets
    if COMPILED and not budgets.disrupted and len(allowed):
        most = 1 if _ends_at_violation(release) else len(budgets.covering)
        _dry_run.count_violations(
            potential, view.channel(CLASS), budgets.covering, allowed, violations, most
        )
        return violations
    return count_violations(view, potential, allowed, release)


def count_violations(
    view: RowView, potential: Bools, allowed: Ints, release: Release, counters: int = MAX_COUNTERS
) -> Bools:
    """Do the same as :func:`pdb_violations` with NumPy, at most so many counters at a time."""
    violations = np.zeros(potential.shape, np.bool_)
    covered = _covered_pods(view, potential, view.columns.budgets)
    rows_at_once = max(counters // max(len(allowed), 1), 1)
    if len(covered.rows):
        for first in range(0, len(view), rows_at_once):
            group = slice(first, first + rows_at_once)
            _count_group(covered, violations, group, allowed, release)
    return violations


def _ends_at_violation(release: Release) -> bool:
    return release.pdb_violation_count is PdbViolationCount.UNTIL_FIRST_VIOLATION


def _count_group(
    covered: CoveredPods, violations: Bools, group: slice, allowed: Ints, release: Release
) -> None:
    """Count the pods on the rows ``group`` and mark PDB violations in ``violations``."""
    ends_at_violation = _ends_at_violation(release)
    inside = (covered.rows >= group.start) & (covered.rows < group.stop)
    depths, rows, budgets = covered.depths, covered.rows, covered.budgets
    if not inside.all():
        depths, rows, budgets = depths[inside], rows[inside], budgets[:, inside]
    counts = np.zeros((group.stop - group.start) * len(allowed), np.int32)
    starts = np.searchsorted(depths, np.arange(len(violations) + 1)).tolist()
    for depth, (start, stop) in enumerate(pairwise(starts)):
        here, violating = rows[start:stop], violations[depth]
        for budget_of_pod in budgets[:, start:stop]:
            counted = budget_of_pod >= 0
            if ends_at_violation:
                counted &= ~violating[here]
            rows_counted, budget = here[counted], budget_of_pod[counted]
            counters = (rows_counted - group.start) * len(allowed) + budget
            counts[counters] += 1
            violating[rows_counted[counts[counters] > allowed[budget]]] = True


def strictly_allowed(columns: ClusterColumns, strict: DisruptionBudgetColumns) -> Ints:
    """Return what each budget allows; see :func:`with_strict_budgets`."""
    block = columns.pod_block.used()
    healthy = block[FLAGS] & (READY | DEPARTING) == READY
    of_class = np.bincount(block[CLASS][healthy], minlength=1)
    of_budget = np.zeros(len(strict.allowed), np.int64)
    for budgets in strict.covering[:, : len(of_class)]:
        covered = budgets >= 0
        np.add.at(of_budget, budgets[covered], of_class[: len(budgets)][covered])
    spare = of_budget - strict.desired_healthy
    allowed: Ints = np.maximum(np.minimum(strict.allowed, spare), 0)
    return allowed


def exceeded_budgets(
    view: RowView, victims: Bools, allowed: Ints, strict: DisruptionBudgetColumns
) -> Ints:
    """Return for each row how many budgets have more of its ``victims`` than they allow."""
    covered = _covered_pods(view, victims, strict)
    counted = covered.budgets >= 0
    pairs = (covered.rows * len(allowed) + covered.budgets)[counted]
    distinct, counts = np.unique(pairs, return_counts=True)
    exceeded = np.zeros(len(view), np.int64)
    if len(distinct):
        rows, budgets = np.divmod(distinct, len(allowed))
        np.add.at(exceeded, rows[counts > allowed[budgets]], 1)
    return exceeded


def _covered_pods(
    view: RowView, potential: Bools, budget_columns: DisruptionBudgetColumns
) -> CoveredPods:
    covering, classes = budget_columns.covering, view.channel(CLASS)
    covered = (covering[0] >= 0).take(classes)
    covered &= potential
    depths, rows = np.nonzero(covered)
    budgets = covering[:, classes[depths, rows]].astype(np.int64)
    _skip_disrupted(budgets, view, budget_columns.disrupted, depths, rows)
    return CoveredPods(depths, rows, budgets)


def _skip_disrupted(
    budgets: Ints,
    view: RowView,
    disrupted: Mapping[int, frozenset[str]],
    depths: Ints,
    rows: Ints,
) -> None:
    """Remove the pods from ``budgets`` whose eviction a budget has already counted."""
    if not disrupted:
        return
    ranks, entries = np.nonzero(np.isin(budgets, list(disrupted)))
    for rank, entry in zip(ranks.tolist(), entries.tolist(), strict=True):
        pods = view.columns.pods[int(view.numbers[rows[entry]])]
        if pods[int(depths[entry])].name in disrupted[int(budgets[rank, entry])]:
            budgets[rank, entry] = -1
