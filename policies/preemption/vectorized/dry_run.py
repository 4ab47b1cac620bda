"""The dry run on all rows at once (DryRunPreemption).

As in :func:`policies.preemption.victims.victim_selection.select_victims`: every pod of lower
priority is removed, the rows that the pod then fits are candidates, and along each of them pods are
added back where the preemptor still fits, first those whose eviction is a PDB violation. One step
handles the pods of one depth on all rows. ``_dry_run.c`` does the same, where it was compiled at
installation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.pod_block import PRIORITY, START_TIME
from policies.preemption.columns.policy_columns import PROTECTED_UNTIL
from policies.preemption.filtering.status import Code, unresolvable
from policies.preemption.guards.allowance import VICTIMS, BoundAllowance
from policies.preemption.policy import DEFAULT_VICTIM_ORDER
from policies.preemption.vectorized.disruption_budgets import COMPILED, pdb_violations
from policies.preemption.vectorized.filtering.framework import Capacity, Constraint, FilterInput
from policies.preemption.vectorized.row_view import RowView, any_by_row, masked, sum_by_row
from policies.preemption.vectorized.status import Rejections, RowStatuses

if COMPILED:
    from policies.preemption.vectorized import _dry_run

_HIGHEST, _LOWEST = 2**63 - 1, -(2**63)
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

    def of_first_victims(self, values: Ints) -> Ints:
        """Return what ``values`` (depth, candidates) hold for each one's most important victim."""
        found: Ints = values[self._first_victims, np.arange(len(self.candidates))]
        return found

    @cached_property
    def _first_victims(self) -> Ints:
        """The depth of the most important victim of each candidate."""
        victims, view = self.victims, self.candidates
        first: Ints
        if view.columns.order.criteria == DEFAULT_VICTIM_ORDER.criteria:
            first = victims.argmax(axis=0)
        else:
            priorities = np.where(victims, view.channel(PRIORITY), _LOWEST)
            top = victims & (priorities == priorities.max(axis=0))
            first = np.where(top, view.channel(START_TIME), _HIGHEST).argmin(axis=0)
        return first

    def keep(self, kept: Ints) -> DryRunRows:
        """Return the dry run with some of the candidates only."""
        return replace(
            self,
            candidates=self.candidates.select(kept),
            places=self.places[kept],
            potential=self.potential[:, kept],
            victims=self.victims[:, kept],
            violations=self.violations[kept],
        )

    def without(self, nodes: Collection[str]) -> DryRunRows:
        """Return the dry run without the candidates on some nodes."""
        if not nodes:
            return self
        names = self.candidates.columns.names
        numbers = self.candidates.numbers.tolist()
        kept = [place for place, row in enumerate(numbers) if names[row] not in nodes]
        return self.keep(np.array(kept, np.int64))


@dataclass(frozen=True)
class AllowedVictims:
    """An allowance, and how much it allows of each group, by the group's number."""

    bound: BoundAllowance
    of_group: Ints

    def counted(self, view: RowView) -> Ints:
        """Return what each pod counts for, (depth, rows), or (1, 1) if that is the same for all."""
        if self.bound.counted is VICTIMS:
            return np.ones((1, 1), np.int64)
        return view.costs(self.bound.counted, self.bound.now_ns)


@dataclass(frozen=True)
class PolicyInput:
    """What a dry run reads of the policy: the time, the gap, what budgets and groups allow."""

    now_ns: int
    priority_gap: int
    allowed: Ints
    allowances: Sequence[AllowedVictims] = ()


def dry_run(
    filter_input: FilterInput,
    constraints: Sequence[Constraint],
    view: RowView,
    policy: PolicyInput,
    rejections: Rejections,
) -> DryRunRows:
    """Find the victims on each row of ``view``, or why preemption cannot help there."""
    potential = view.channel(PRIORITY) <= filter_input.pod.priority - policy.priority_gap
    if view.columns.policy.is_read:
        potential &= view.policy_channel(PROTECTED_UNTIL) <= policy.now_ns
    for each in policy.allowances:
        counted = each.counted(view)
        if counted.max(initial=0) > each.of_group.min():
            channel = view.columns.policy.group_channel(each.bound.grouping)
            potential &= counted <= each.of_group[view.policy_channel(channel)]
    statuses = RowStatuses(rejections, len(view))
    statuses.refuse(~any_by_row(potential), _NO_VICTIMS)
    emptied = view.removing(potential)
    for constraint in constraints:
        constraint.evaluate(emptied, statuses)
    places = np.flatnonzero(statuses.fits)
    fitting = emptied.select(places)
    violations, victims = _reprieve_all(filter_input, constraints, fitting, policy.allowed)
    needed = any_by_row(victims)
    if not needed.all():
        statuses.set_no_victim_needed(places[~needed])
        keep = np.flatnonzero(needed)
        places, fitting = places[keep], fitting.select(keep)
        violations, victims = violations[:, keep], victims[:, keep]
    return DryRunRows(
        statuses=statuses,
        candidates=fitting,
        places=places,
        potential=fitting.removed_marks,
        victims=victims,
        violations=sum_by_row(violations & victims),
    )


def _reprieve_all(
    filter_input: FilterInput, constraints: Sequence[Constraint], view: RowView, allowed: Ints
) -> tuple[Bools, Bools]:
    """Reprieve the pods that the rows can keep; return the PDB violations and the victims."""
    potential = view.removed_marks
    violations = pdb_violations(view, potential, allowed, filter_input.release)
    capacities = [
        replace(found, left=found.left.copy())
        for each in constraints
        for found in each.capacities(view)
    ]
    victims = potential.copy()
    for group in (violations, potential & ~violations):
        reprieve(group, victims, capacities)
    return violations, victims


def reprieve(pods: Bools, victims: Bools, capacities: Sequence[Capacity]) -> None:
    """Take the marked ``pods`` out of ``victims`` where all capacities suffice.

    Both are (depth, rows). What the reprieved pods take is subtracted from the capacities.
    """
    if COMPILED:
        _dry_run.reprieve(pods, victims, tuple((each.left, each.taken) for each in capacities))
    else:
        reprieve_by_depth(pods, victims, capacities)


def reprieve_by_depth(pods: Bools, victims: Bools, capacities: Sequence[Capacity]) -> None:
    """Do the same as :func:`reprieve` with NumPy, one depth of all rows at a time."""
    for depth in np.flatnonzero(pods.any(axis=1)).tolist():
        reprieved = pods[depth].copy()
        for each in capacities:
            reprieved &= each.left >= each.taken[depth]
        for each in capacities:
            each.left[:] -= masked(each.taken[depth], reprieved)
        victims[depth] &= ~reprieved
