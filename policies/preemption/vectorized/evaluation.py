"""The evaluation of one pod on the columns: filtering and a dry run (preemption.Evaluator).

A row that the columns cannot represent is a *reference row*: the reference engine's own functions
evaluate it, one row at a time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from policies.kubernetes.criteria import Order
from policies.kubernetes.releases import Release
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.columns.encoded_column import Bools, Ints
from policies.preemption.columns.node_columns import is_regular
from policies.preemption.consequences.criteria import Consequences
from policies.preemption.consequences.simulation import Simulation
from policies.preemption.decision import Candidate, VictimSearch
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import (
    DynamicResources,
    FilterPlugin,
    InterPodAffinity,
    NodeAffinity,
    NodeName,
    Pipeline,
    PodTopologySpread,
    PreFilter,
    in_default_order,
    run_pre_filters,
)
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.guards.candidate_limit import Limit, within
from policies.preemption.policy import NO_CONSEQUENCES, SchedulerRules
from policies.preemption.time_limit import HasTimeLeft, in_time
from policies.preemption.vectorized.candidate_selection import RankedCandidates, within_limits
from policies.preemption.vectorized.cheapest_victims import rows_to_search
from policies.preemption.vectorized.disruption_budgets import strictly_allowed
from policies.preemption.vectorized.dry_run import AllowedVictims, PolicyInput, dry_run
from policies.preemption.vectorized.filtering import static_node_filters
from policies.preemption.vectorized.filtering.framework import (
    Constraint,
    CountedConstraint,
    FilterInput,
)
from policies.preemption.vectorized.filtering.registry import vectorized_filter
from policies.preemption.vectorized.row_results import KnownResults, RowResults, inputs_of_rows
from policies.preemption.vectorized.row_view import Rows, RowView, rows_where
from policies.preemption.vectorized.status import FITS, Codes, Rejections, RowStatuses
from policies.preemption.vectorized.victim_keys import group_totals
from policies.preemption.victim_units import VictimUnits, victim_units
from policies.preemption.victims.cheapest_victims import CheapestVictims
from policies.preemption.victims.cost_bound import prices_by
from policies.preemption.victims.victim_selection import select_victims, waits_for_devices

_MANY = 4
_COUNTING = (PodTopologySpread, InterPodAffinity)


@dataclass(frozen=True)
class PreparedFilter:
    """A filter that was prepared already."""

    name: str
    filter_plugin: FilterPlugin | None

    def pre_filter(self, pod: Pod, snapshot: Snapshot, release: Release) -> PreFilter:  # noqa: ARG002
        """Return the prepared filter plugin."""
        return PreFilter(self.filter_plugin)


@dataclass(frozen=True)
class DryRunResult:
    """The result of a dry run, by row of the columns: status codes (0: none), and candidates.

    ``best`` are the best two of these by ``order``, or as many as there are; ``untried`` rows were
    left out.
    """

    codes: Codes
    candidates: RankedCandidates
    best: Sequence[Candidate]
    order: Order[Candidate]
    found: Bools
    untried: int
    search: VictimSearch | None
    consequences: Consequences


@dataclass(frozen=True)
class SearchLimits:
    """The only rows to evaluate (None: all), and the filters that limit them."""

    rows: Bools | None = None
    by: tuple[str, ...] = ()


@dataclass(frozen=True)
class PodEvaluation:
    """A pod and its constraints; ``reference_rows`` marks rows of the columns.

    ``holder_rows`` have pods that free devices when they are removed.
    """

    filter_input: FilterInput
    rules: SchedulerRules
    constraints: tuple[Constraint, ...]
    limits: SearchLimits
    reference_rows: Bools
    results: RowResults
    holder_rows: frozenset[int] = frozenset()

    @property
    def rejections(self) -> Rejections:
        """The rejections by code."""
        return self.results.rejections

    @property
    def has_independent_rows(self) -> bool:
        """Whether the status of a row depends on no pod of another row."""
        counted = any(isinstance(each, CountedConstraint) for each in self.constraints)
        return self.filter_input.pod.storage is None and not counted

    def filter_rows(self, rows: Rows, has_time_left: HasTimeLeft) -> Codes:
        """Return for each of ``rows`` the status code of the pod, or FITS.

        Rows that could not be evaluated have codes of their own. Raise DeadlineExceededError if
        ``has_time_left`` returns false.
        """
        results = self.results
        unknown = np.zeros(len(results.filtered), np.bool_)
        unknown[rows] = True
        unknown &= ~results.is_filtered
        if np.count_nonzero(unknown) * _MANY > len(unknown):  # all of them: no copies
            unknown = ~results.is_filtered
        if unknown.any():
            view = self.filter_input.view(rows_where(unknown))
            results.record_filtered(view.rows, self._filter(view, has_time_left))
        return results.filtered[rows].copy()

    def _filter(self, view: RowView, has_time_left: HasTimeLeft) -> Codes:
        statuses = RowStatuses(self.rejections, len(view))
        if self.limits.rows is not None:
            unexamined = unresolvable(Code.NOT_EXAMINED, " ".join(self.limits.by))
            nominated = (self.filter_input.pod.nominated_node or "",)
            examined = self.limits.rows | static_node_filters.rows_named(
                self.filter_input.columns, nominated
            )
            statuses.refuse(~view.of_nodes(examined), unexamined)
        for constraint in self.constraints:
            constraint.evaluate(view, statuses)
        places = np.flatnonzero(view.of_nodes(self.reference_rows)).tolist()
        for place in in_time(places, has_time_left):
            statuses.set_status(
                place, self._pipeline.evaluate(self._state(int(view.numbers[place])))
            )
        return statuses.codes

    def dry_run_rows(
        self, rows: Bools, has_time_left: HasTimeLeft, simulation: Simulation | None = None
    ) -> DryRunResult:
        """Find the victims on the marked rows of the columns, or why preemption cannot help there.

        When ``has_time_left`` returns false, no more reference rows are evaluated. A policy with
        criteria over consequences has a ``simulation``.
        """
        unknown = rows & ~self.results.is_tried
        view = self.filter_input.view(rows_where(unknown & ~self._rows_by_hand))
        pod, policy, allowed = self.filter_input.pod, self.rules.policy, self._allowed
        totals = group_totals(view.columns, self.snapshot.now_ns)
        allowances = policy.allowances(pod, self.snapshot, totals)
        now_ns, columns = self.snapshot.now_ns, view.columns.policy
        allowing = [AllowedVictims(each, columns.allowed(each, now_ns)) for each in allowances]
        reading = PolicyInput(now_ns, policy.priority_gap, allowed, allowing)
        every = dry_run(self.filter_input, self.constraints, view, reading, self.rejections)
        limits = policy.limits(pod, self.snapshot, allowances, totals)
        run = within_limits(every, limits, reading)
        by_hand = np.flatnonzero(unknown & self._rows_by_hand).tolist()
        tried, refused = self._try_rows(by_hand, allowances, limits, has_time_left)
        untried = len(by_hand) - tried
        order = policy.order_of_candidates(pod, self.snapshot, totals)
        summary = None
        cheaper: Mapping[str, Candidate] = {}
        if policy.cheapest_by is not None:
            prices = prices_by(policy.cheapest_by, self.snapshot, totals)
            search = CheapestVictims(
                *(self._pipeline, self.units, self._coverage, self.rules),
                *(allowances, limits, prices),
            )
            waiting, least = rows_to_search(every, run, order.criteria[0], self.constraints)
            others = {each.node: each for each in self.results.others.values()}
            result = search.search(waiting, least, others, refused, has_time_left)
            summary = result.summary(policy.cheapest_by.name, untried)
            untried += result.left_out
            run, cheaper = run.without(result.cheaper), result.cheaper
        self.results.record_run(run, view.rows, policy)
        for name, candidate in cheaper.items():
            self.results.record_tried(view.columns.index[name], candidate)
        found = self.results.candidates(rows)
        candidates = RankedCandidates(self.results, found, self.snapshot, view.columns)
        shortlist, consequences = partial(candidates.leading, run), NO_CONSEQUENCES
        if simulation is not None:
            consequences = policy.count_consequences(
                pod, self.snapshot, simulation, shortlist, totals
            )
            order = policy.order_of_candidates(pod, self.snapshot, totals, consequences)
        best = candidates.best(run, order)
        codes = np.where(rows & self.results.is_tried, self.results.tried, FITS)
        return DryRunResult(codes, candidates, best, order, found, untried, summary, consequences)

    def _try_rows(
        self,
        rows: Sequence[int],
        allowances: Sequence[BoundAllowance],
        limits: Sequence[Limit],
        has_time_left: HasTimeLeft,
    ) -> tuple[int, list[str]]:
        """Find the victims on rows one by one, while there is time left.

        Return the number of these rows, and the names of those that a limit refuses.
        """
        refused: list[str] = []
        for count, row in enumerate(rows):
            if not has_time_left():
                return count, refused
            outcome = self._select_victims(row, allowances)
            if isinstance(outcome, Candidate):
                outcome = within(outcome, limits)
                if isinstance(outcome, Rejection):
                    refused.append(self.filter_input.columns.names[row])
            if isinstance(outcome, Rejection):
                self.results.record_tried(row, self.rejections.code(outcome))
            else:
                self.results.record_tried(row, outcome)
        return len(rows), refused

    def _select_victims(
        self, row: int, allowances: Sequence[BoundAllowance]
    ) -> Candidate | Rejection:
        state, policy = self._state(row), self.rules.policy
        return select_victims(self._pipeline, state, self.units, self._coverage, policy, allowances)

    @cached_property
    def units(self) -> VictimUnits:
        """The units that the pod may evict."""
        return victim_units(self.snapshot, self.rules.release)

    @cached_property
    def _rows_by_hand(self) -> Bools:
        """The rows whose victims the reference engine finds.

        Units of pod groups may span nodes, and victims may free devices.
        """
        marks = self.reference_rows.copy()
        marks[list(self.holder_rows)] = True
        if self.units.grouped:
            columns = self.filter_input.columns
            marks[[columns.index[name] for name in columns.with_grouped]] = True
        return marks

    def waits_for_devices(self, rejected: Mapping[str, Rejection]) -> str | None:
        """See :func:`policies.preemption.victims.victim_selection.waits_for_devices`."""
        filters = self.rules.filters
        if not any(isinstance(each, DynamicResources) and each.frees_victims for each in filters):
            return None
        return waits_for_devices(self._pipeline, self.units, rejected)

    def _state(self, row: int) -> NodeState:
        return self.filter_input.snapshot.nodes[self.filter_input.columns.names[row]]

    @cached_property
    def _pipeline(self) -> Pipeline:
        """The reference engine's filters, with the counts that the columns already have."""
        pod, snapshot, release = (
            self.filter_input.pod,
            self.filter_input.snapshot,
            self.rules.release,
        )
        counted = {
            each.name: each.filter_plugin()
            for each in self.constraints
            if isinstance(each, CountedConstraint)
        }
        filters = [
            PreparedFilter(each.name, counted.get(each.name))
            if isinstance(each, _COUNTING)
            else each
            for each in self.rules.filters
        ]
        return run_pre_filters(pod, snapshot, release, filters, self.rules.scheduler_names)

    @cached_property
    def _coverage(self) -> BudgetCoverage:
        return BudgetCoverage(self.snapshot.budgets, self.rules.release)

    @cached_property
    def snapshot(self) -> Snapshot:
        """The snapshot as the policy reads it; see :meth:`Policy.view_of`."""
        snapshot = self.filter_input.snapshot
        if not self.rules.policy.strict_budgets:
            return snapshot
        pairs = zip(snapshot.budgets, self._allowed.tolist(), strict=True)
        return replace(
            snapshot, budgets=tuple(replace(each, allowed=allowed) for each, allowed in pairs)
        )

    @cached_property
    def _allowed(self) -> Ints:
        """What each budget allows."""
        columns = self.filter_input.columns
        strict = columns.strict_budgets
        return columns.budgets.allowed if strict is None else strictly_allowed(columns, strict)


def build_evaluation(
    filter_input: FilterInput, rules: SchedulerRules, known: KnownResults
) -> PodEvaluation | None:
    """Return the evaluation of a pod on the columns; None if that is left to the reference engine.

    That is a pod whose amounts do not fit 64 bits, that contradicts itself, that a filter without a
    vectorized implementation applies to, or whose in-place resize is deferred: it has one node.
    """
    if filter_input.pod.resize_deferred:
        return None
    limits = _search_limits(filter_input, rules) if is_regular(filter_input.pod.requests) else None
    if limits is None:
        return None
    constraints: list[Constraint] = []
    without_nominated: list[Constraint] = []
    reference_rows = {filter_input.columns.index[name] for name in filter_input.columns.irregular}
    holder_rows: frozenset[int] = frozenset()
    for each in in_default_order(rules.filters, rules.release):
        found = vectorized_filter(each, filter_input)
        if found is None:
            return None
        constraints += found.constraints
        without_nominated += found.without_nominated
        reference_rows |= found.reference_rows
        holder_rows |= found.holder_rows
    marks = np.zeros(len(filter_input.columns.names), np.bool_)
    marks[list(reference_rows)] = True
    constraints += without_nominated
    is_limited = limits.rows is not None
    inputs = None if is_limited else inputs_of_rows(filter_input, rules.policy, constraints)
    results = known.results(filter_input, constraints, inputs)
    return PodEvaluation(
        filter_input, rules, tuple(constraints), limits, marks, results, holder_rows
    )


def _search_limits(filter_input: FilterInput, rules: SchedulerRules) -> SearchLimits | None:
    """Return the limits of the filters on node names; None if they contradict the pod."""
    limits = SearchLimits()
    for each in rules.filters:
        if not isinstance(each, NodeName | NodeAffinity):
            continue
        prepared = each.pre_filter(filter_input.pod, filter_input.snapshot, filter_input.release)
        if prepared.conflict is not None:
            return None
        if prepared.only is not None:
            named = static_node_filters.rows_named(filter_input.columns, prepared.only)
            rows = named if limits.rows is None else limits.rows & named
            limits = SearchLimits(rows, tuple(sorted((*limits.by, each.name))))
    return limits
