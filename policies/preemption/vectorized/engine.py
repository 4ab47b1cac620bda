"""The vectorized engine: decisions equal to the reference engine's, on columns of all nodes.

Most rows are evaluated together. A row that the columns cannot represent (see
:class:`policies.preemption.columns.ClusterColumns`), or that needs two passes because of nominated
pods, is evaluated by the reference engine's own functions, and its result is merged with the
others. A pod or a filter without a vectorized implementation is left to the reference engine
altogether.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption import fit_error, reference_engine
from policies.preemption.columns import ClusterColumns
from policies.preemption.columns.encoded_column import Bools
from policies.preemption.consequences.simulation import by_free_cpu
from policies.preemption.decision import PreemptionDecision, find_runner_up
from policies.preemption.departing_pods import (
    affects_other_nodes,
    may_be_simulated,
    possible_victims,
    without_pods,
)
from policies.preemption.filtering import not_evaluated
from policies.preemption.filtering.status import FEASIBLE, FilterDecision, ending_error
from policies.preemption.policy import DEFAULT_RULES, SchedulerRules
from policies.preemption.reference_engine import nominated_status
from policies.preemption.time_limit import HasTimeLeft, no_deadline
from policies.preemption.vectorized.departing_pods import (
    departing_marks,
    names_with_departing,
    possible_victim_marks,
    rows_that_differ,
)
from policies.preemption.vectorized.evaluation import DryRunResult, PodEvaluation, build_evaluation
from policies.preemption.vectorized.filtering.framework import FilterInput
from policies.preemption.vectorized.row_results import KnownResults
from policies.preemption.vectorized.row_view import Rows
from policies.preemption.vectorized.simulation import ColumnSimulations, most_free_row
from policies.preemption.vectorized.status import (
    FITS,
    Codes,
    RejectionsByNode,
    count_reasons,
    fits_without_preemption,
    names_at,
)
from policies.preemption.victims.victim_selection import ineligibility

_EVERY_ROW: Rows = slice(None)


@dataclass(frozen=True)
class RequestedRows:
    """The requested names and their rows; ``order`` has the same names in the order of results."""

    names: Sequence[str]
    rows: Rows
    order: Collection[str]


@dataclass(frozen=True)
class FilteredRows:
    """The result of filtering ``rows``."""

    rows: Rows
    codes: Codes
    decision: FilterDecision


class VectorizedEngine:
    """An engine that keeps the columns of one cluster."""

    def __init__(self, rules: SchedulerRules = DEFAULT_RULES) -> None:
        self.rules: Final = rules
        self._columns = ClusterColumns(rules.policy, rules.release)
        self._followed = self._columns.snapshot
        self._known = KnownResults()
        # Each policy has columns of its own: it may order and protect other pods.
        self._by_policy = {
            id(rule.policy): VectorizedEngine(replace(rules, policy=rule.policy, policy_rules=()))
            for rule in rules.policy_rules
        }
        policy = rules.policy.without_consequences()
        self._simulations = (
            None
            if policy == rules.policy
            else ColumnSimulations(VectorizedEngine(replace(rules, policy=policy, policy_rules=())))
        )

    def for_preemptor(self, pod: Pod) -> VectorizedEngine:
        """Return the engine that decides by the policy that applies to a preemptor."""
        policy = self.rules.for_preemptor(pod).policy
        return self._by_policy.get(id(policy), self)

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Update the columns to ``snapshot``.

        See :meth:`policies.preemption.engine.Engine.follow`.
        """
        previous, self._followed = self._followed, snapshot
        # A decision about other nodes has updated the columns to these.
        unchanged = self._columns.snapshot.nodes is previous.nodes
        self._columns.follow(snapshot, changed if unchanged else None)
        for engine in self._by_policy.values():
            engine.follow(snapshot, changed)
        if self._simulations is not None:
            self._simulations.follow(snapshot, changed)

    def find_node(
        self, pod: Pod, snapshot: Snapshot, has_time_left: HasTimeLeft = no_deadline
    ) -> str | None:
        """See :class:`policies.preemption.vectorized.simulation.SimulationEngine`."""
        evaluation, columns = self._evaluation(pod, snapshot, has_time_left), self._columns
        if evaluation is None:
            found = self.filter_nodes(pod, snapshot, None, has_time_left).feasible
        else:
            codes, _ = evaluation.rejections.split(
                evaluation.filter_rows(_EVERY_ROW, has_time_left)
            )
            rows = most_free_row(columns, codes == FITS)
            found = [columns.names[row] for row in rows.tolist()]
        return next(iter(by_free_cpu(found, snapshot.nodes)), None)

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """Do the same as :func:`policies.preemption.reference_engine.filter_nodes`."""
        return self._filter(pod, snapshot, self._requested_rows(snapshot, among), has_time_left)

    def filter_with_terminating_pods(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """Do the same as the function of this name of the reference engine."""
        requested = self._requested_rows(snapshot, among)
        if may_be_simulated(pod, self.rules.release):
            victims = possible_victims(pod, snapshot, self.rules.release)
            leaves, absent = victims.includes, possible_victim_marks(victims, self._columns)
        else:
            affected = _EVERY_ROW if affects_other_nodes(pod, snapshot) else requested.rows
            departing = names_with_departing(self._columns, affected)
            if not departing:
                return self._filter(pod, snapshot, requested, has_time_left)
            absent = departing_marks(self._columns, departing)

            def leaves(each: Pod) -> bool:
                return each.departing and each.node_name in departing

        staying = self._build_evaluation(pod, snapshot, has_time_left)
        without = self._build_evaluation(pod, without_pods(snapshot, leaves), has_time_left, absent)
        if without is None or staying is None:
            return reference_engine.filter_with_terminating_pods(
                pod, snapshot, self.rules, among, has_time_left
            )
        without.results.rejections = staying.rejections
        codes = staying.filter_rows(requested.rows, has_time_left)
        fits = staying.rejections.split(codes)[0] == FITS
        differs = rows_that_differ(staying, without, absent)
        rows = np.arange(len(differs))[requested.rows]
        places = np.flatnonzero(differs[rows])
        codes[places] = without.filter_rows(rows[places], has_time_left)
        refused, undecided = without.rejections.split(codes)
        refused[fits] = FITS
        return self._filter_decision(without, requested, refused, undecided)

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> PreemptionDecision:
        """Do the same as :func:`policies.preemption.reference_engine.preempt`."""
        engine = self.for_preemptor(pod)
        if engine is not self:
            return engine.preempt(pod, snapshot, potential, among, has_time_left)
        requested = self._requested_rows(snapshot, among)
        evaluation = self._evaluation(pod, snapshot, has_time_left) if snapshot.nodes else None
        if evaluation is None:
            return reference_engine.preempt(
                pod, snapshot, self.rules, potential, among, has_time_left
            )
        filtered = self._filtered(evaluation, requested, has_time_left)
        status = nominated_status(pod, filtered.decision.rejected, self.rules)
        reason = ineligibility(pod, evaluation.units, status)
        reason = reason or ending_error(count_reasons(filtered.codes, evaluation.rejections))
        reason = reason or evaluation.waits_for_devices(filtered.decision.rejected)
        reason = reason or self.rules.policy.refusal(pod, evaluation.snapshot)
        if reason is not None:
            return self._ineligible(evaluation, filtered, reason)
        rows = _potential(evaluation, filtered, potential)
        simulations = self._simulations
        result = evaluation.dry_run_rows(
            rows,
            has_time_left,
            simulations.simulate(evaluation.filter_input) if simulations else None,
        )
        return self._decision(evaluation, filtered, result)

    def _requested_rows(self, snapshot: Snapshot, among: Collection[str] | None) -> RequestedRows:
        """Return the rows of the names that are known; all rows for None."""
        self._columns.follow(snapshot)
        if among is None:
            return RequestedRows(self._columns.row_names.listed(), _EVERY_ROW, snapshot.nodes)
        names, rows = self._columns.row_names.known(among)
        return RequestedRows(names, rows, names)

    def _evaluation(
        self, pod: Pod, snapshot: Snapshot, has_time_left: HasTimeLeft
    ) -> PodEvaluation | None:
        self._columns.follow(snapshot)
        return self._build_evaluation(pod, snapshot, has_time_left)

    def _build_evaluation(
        self,
        pod: Pod,
        snapshot: Snapshot,
        has_time_left: HasTimeLeft,
        absent: Bools | None = None,
    ) -> PodEvaluation | None:
        rules = self.rules
        filter_input = FilterInput(
            pod,
            self._columns,
            snapshot,
            rules.release,
            rules.scheduler_names,
            absent,
            has_time_left,
        )
        return build_evaluation(filter_input, rules, self._known)

    def _filter(
        self, pod: Pod, snapshot: Snapshot, requested: RequestedRows, has_time_left: HasTimeLeft
    ) -> FilterDecision:
        evaluation = self._evaluation(pod, snapshot, has_time_left)
        if evaluation is None:
            return reference_engine.filter_nodes(
                pod, snapshot, self.rules, requested.order, has_time_left
            )
        return self._filtered(evaluation, requested, has_time_left).decision

    def _filtered(
        self, evaluation: PodEvaluation, requested: RequestedRows, has_time_left: HasTimeLeft
    ) -> FilteredRows:
        found = evaluation.filter_rows(requested.rows, has_time_left)
        codes, undecided = evaluation.rejections.split(found)
        decision = self._filter_decision(evaluation, requested, codes, undecided)
        return FilteredRows(requested.rows, codes, decision)

    def _filter_decision(
        self, evaluation: PodEvaluation, requested: RequestedRows, codes: Codes, undecided: Codes
    ) -> FilterDecision:
        """Return the decision by the codes of the refused rows, and of those not evaluated."""
        pod, rules = evaluation.filter_input.pod, self.rules
        return FilterDecision(
            pod,
            _feasible(requested, codes),
            RejectionsByNode(requested.names, codes, evaluation.rejections),
            not_evaluated=not_evaluated(
                pod, evaluation.filter_input.snapshot, rules.release, rules.filters
            ),
            undecided=RejectionsByNode(requested.names, undecided, evaluation.rejections),
        )

    def _failure(self, evaluation: PodEvaluation, filtered: FilteredRows) -> str:
        """Return the event's first sentence, which counts the reasons of filtering."""
        counts = count_reasons(filtered.codes, evaluation.rejections)
        return fit_error.fit_error(len(filtered.codes), None, counts, self.rules.release)

    def _ineligible(
        self, evaluation: PodEvaluation, filtered: FilteredRows, reason: str
    ) -> PreemptionDecision:
        sentence = fit_error.not_eligible(reason, self._prefix(filtered))
        return PreemptionDecision(
            filtered.decision.pod,
            eligible=False,
            reason=reason,
            chosen=None,
            rejected=filtered.decision.rejected,
            message=f"{self._failure(evaluation, filtered)} {sentence}",
            not_evaluated=filtered.decision.not_evaluated,
        )

    def _decision(
        self, evaluation: PodEvaluation, filtered: FilteredRows, result: DryRunResult
    ) -> PreemptionDecision:
        order, best = result.order, result.best
        names = self._columns.row_names.listed()
        rejected = RejectionsByNode(
            names, _rejection_codes(evaluation, filtered, result), evaluation.rejections
        )
        if best:
            outcome = fit_error.candidate_found(best[0], self.rules.release)
        else:
            first = self._prefix(filtered)
            outcome = _no_candidates(evaluation, filtered, len(rejected), result, first)
        return PreemptionDecision(
            filtered.decision.pod,
            eligible=True,
            reason="",
            chosen=best[0] if best else None,
            candidates=result.candidates,
            rejected=rejected,
            decided_by=order.deciding_criterion(*best) if len(best) > 1 else None,
            message=" ".join(
                part for part in (self._failure(evaluation, filtered), outcome) if part
            ),
            not_evaluated=filtered.decision.not_evaluated,
            untried=result.untried,
            search=result.search,
            consequences=result.consequences,
            runner_up=find_runner_up(best, order),
        )

    def _prefix(self, filtered: FilteredRows) -> str:
        snapshot, release = self._columns.snapshot, self.rules.release
        return fit_error.deallocation_prefix(filtered.decision, snapshot, release)


def _no_candidates(
    evaluation: PodEvaluation,
    filtered: FilteredRows,
    nodes: int,
    result: DryRunResult,
    first: str,
) -> str:
    rejections, names = evaluation.rejections, evaluation.filter_input.columns.names
    codes, awaiting = result.codes.copy(), rejections.await_devices()[filtered.codes]
    codes[filtered.rows] = np.where(awaiting, FITS, codes[filtered.rows])
    fitting = np.flatnonzero(fits_without_preemption(codes)).tolist()
    errors = [str(rejections.of(int(codes[row]), names[row])) for row in fitting]
    reasons = count_reasons(codes, rejections)
    return fit_error.no_candidates(nodes, int(np.count_nonzero(codes)), reasons, errors, first)


def _feasible(requested: RequestedRows, codes: Codes) -> Sequence[str]:
    """Return the names that fit, in the order of results."""
    fits = codes == FITS
    if not fits.any():  # before each preemption
        return ()
    is_ordered = requested.order is requested.names or requested.names == tuple(requested.order)
    if fits.all():
        return requested.names if is_ordered else tuple(requested.order)
    if is_ordered:
        return names_at(requested.names, fits)
    feasible = frozenset(names_at(requested.names, fits))
    return tuple(filter(feasible.__contains__, requested.order))


def _potential(
    evaluation: PodEvaluation, filtered: FilteredRows, names: Collection[str] | None
) -> Bools:
    """Mark the rows to try: those with these ``names``, or those that evicting pods might help."""
    columns = evaluation.filter_input.columns
    rows = np.zeros(len(columns.names), np.bool_)
    if names is None:
        rows[filtered.rows] = evaluation.rejections.resolvable()[filtered.codes]
    else:
        rows[[columns.index[name] for name in names if name in columns.index]] = True
    return rows


def _rejection_codes(
    evaluation: PodEvaluation, filtered: FilteredRows, result: DryRunResult
) -> Codes:
    """Return the status of each row that is no candidate: of the dry run, or else of filtering."""
    feasible = evaluation.rejections.code(FEASIBLE)
    codes = np.zeros(len(result.codes), np.int32)
    codes[filtered.rows] = np.where(filtered.codes == FITS, feasible, filtered.codes)
    codes = np.where(result.codes == FITS, codes, result.codes)
    codes[result.found] = FITS
    return codes
