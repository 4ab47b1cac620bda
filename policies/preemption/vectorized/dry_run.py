"""The dry run on all rows at once (DryRunPreemption).

As in :func:`policies.preemption.victim_selection.select_victims`: every pod of lower priority is
removed, the rows that the pod then fits are candidates, and along each of them pods are added back
where the preemptor still fits, first those whose eviction is a PDB violation. One step handles the
pods of one depth on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from policies.preemption.columns.cluster_columns import PROTECTED
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import FLAGS, PRIORITY
from policies.preemption.filtering.status import Code, unresolvable
from policies.preemption.vectorized.disruption_budgets import pdb_violations
from policies.preemption.vectorized.framework import Constraint, ConstraintState, FilterInput
from policies.preemption.vectorized.row_view import RowView, any_by_row
from policies.preemption.vectorized.status import Rejections, RowStatuses

_NO_VICTIMS = unresolvable(Code.NO_VICTIMS)


@dataclass(frozen=True)
class DryRunRows:
    """The result of a dry run on ``view``.

    ``statuses`` holds by row why it is no candidate. ``candidates`` are the other rows of ``view``;
    for these, column by column, ``potential`` and ``victims`` mark pods (depth, candidates), and
    ``violations`` counts the victims that are PDB violations.
    """

    statuses: RowStatuses
    candidates: RowView
    places: Ints
    potential: Bools
    victims: Bools
    violations: Ints


def dry_run(
    filter_input: FilterInput,
    constraints: Sequence[Constraint],
    view: RowView,
    rejections: Rejections,
) -> DryRunRows:
    """Find the victims on each row of ``view``, or why preemption cannot help there."""
    potential = view.channel(PRIORITY) < filter_input.pod.priority
    potential &= view.channel(FLAGS) & PROTECTED == 0
    verdicts = RowStatuses(rejections, len(view))
    verdicts.refuse(~any_by_row(potential), _NO_VICTIMS)
    emptied = replace(view, removed=potential)
    for constraint in constraints:
        constraint.evaluate(emptied, verdicts)
    places = np.flatnonzero(verdicts.fits)
    fitting = emptied.select(places)
    breaking, victims = _reprieve_all(filter_input, constraints, fitting)
    needed = any_by_row(victims)
    if not needed.all():
        verdicts.set_no_victim_needed(places[~needed])
        keep = np.flatnonzero(needed)
        places, fitting = places[keep], fitting.select(keep)
        breaking, victims = breaking[:, keep], victims[:, keep]
    return DryRunRows(
        statuses=verdicts,
        candidates=fitting,
        places=places,
        potential=fitting.removed_marks,
        victims=victims,
        violations=np.count_nonzero(breaking & victims, axis=0),
    )


def _reprieve_all(
    filter_input: FilterInput, constraints: Sequence[Constraint], view: RowView
) -> tuple[Bools, Bools]:
    """Reprieve the pods that the rows can keep; return the PDB violations and the victims."""
    potential = view.removed_marks
    breaking = pdb_violations(view, potential, filter_input.release)
    footings = [f for f in (each.state(view) for each in constraints) if f is not None]
    victims = potential.copy()
    for group in (breaking, potential & ~breaking):
        for depth in np.flatnonzero(group.any(axis=1)).tolist():
            spared = _reprieve_depth(footings, depth, group[depth])
            victims[depth] &= ~spared
    return breaking, victims


def _reprieve_depth(footings: Sequence[ConstraintState], depth: int, pods: Bools) -> Bools:
    """Add back the pods of one depth where the preemptor still fits; return which were added."""
    spared = pods.copy()
    for footing in footings:
        spared &= footing.allows(depth)
    for footing in footings:
        footing.add_back(depth, spared)
    return spared
