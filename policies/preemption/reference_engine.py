"""The reference engine: plain loops over nodes. Any faster engine must make equal decisions.

``filter_nodes`` is one filtering pass of a scheduling cycle. ``post_filter`` follows it if no node
fits: eligibility, potential nodes, a dry run on each of them (on all, where kube-scheduler
samples), the choice, and the message of the pod's event.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption import fit_error
from policies.preemption.consequences.simulation import (
    SimulatedCluster,
    Simulation,
    by_free_cpu,
    unchanged,
)
from policies.preemption.costs.candidate_criteria import count_totals
from policies.preemption.decision import (
    Candidate,
    PreemptionDecision,
    VictimSearch,
    find_runner_up,
)
from policies.preemption.departing_pods import (
    affects_other_nodes,
    may_be_simulated,
    possible_victims,
    without_departing,
    without_pods,
)
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import Pipeline, not_evaluated, run_pre_filters
from policies.preemption.filtering.status import (
    FEASIBLE,
    Code,
    FilterDecision,
    Reason,
    Rejection,
    ending_error,
)
from policies.preemption.guards.candidate_limit import within
from policies.preemption.policy import DEFAULT_RULES, SchedulerRules
from policies.preemption.time_limit import HasTimeLeft, in_time, no_deadline
from policies.preemption.victim_units import VictimUnits, victim_units
from policies.preemption.victims.cheapest_victims import CheapestVictims
from policies.preemption.victims.cost_bound import prices_by
from policies.preemption.victims.victim_selection import (
    ineligibility,
    select_victims,
    waits_for_devices,
)

_NO_STATUS = Rejection((Reason(Code.NOT_HELPFUL),), resolvable=False)


def filter_nodes(
    pod: Pod,
    snapshot: Snapshot,
    rules: SchedulerRules = DEFAULT_RULES,
    among: Collection[str] | None = None,
    has_time_left: HasTimeLeft = no_deadline,
) -> FilterDecision:
    """Find the nodes that ``pod`` fits now.

    ``among`` limits the search to nodes with these names, each once; names that are not in the
    snapshot are ignored. Raise DeadlineExceededError if ``has_time_left`` returns false.
    """
    pipeline = _prepared(pod, snapshot, rules, has_time_left)
    nodes = snapshot.nodes if among is None else _known(among, snapshot)
    statuses: dict[str, Rejection | None] = {
        name: pipeline.evaluate(snapshot.nodes[name]) for name in in_time(nodes, has_time_left)
    }
    undecided = {name: r for name, r in statuses.items() if r is not None and r.is_undecided}
    return FilterDecision(
        pod,
        tuple(name for name, r in statuses.items() if r is None or name in undecided),
        {name: r for name, r in statuses.items() if r is not None and name not in undecided},
        pipeline.conflict,
        not_evaluated(pod, snapshot, rules.release, pipeline.ran),
        undecided,
    )


def _prepared(
    pod: Pod, snapshot: Snapshot, rules: SchedulerRules, has_time_left: HasTimeLeft
) -> Pipeline:
    return run_pre_filters(
        pod, snapshot, rules.release, rules.filters, rules.scheduler_names, has_time_left
    )


def _known(names: Iterable[str], snapshot: Snapshot) -> list[str]:
    return [name for name in dict.fromkeys(names) if name in snapshot.nodes]


def filter_with_terminating_pods(
    pod: Pod,
    snapshot: Snapshot,
    rules: SchedulerRules,
    among: Collection[str],
    has_time_left: HasTimeLeft = no_deadline,
) -> FilterDecision:
    """Filter as if the departing pods had left; if that refuses a node, also as if they stayed.

    For a member of a pod group, pods of lower priority count as departing. A node is refused only
    if it is refused both ways, for the reason without the departing pods. Raise
    DeadlineExceededError if ``has_time_left`` returns false.
    """
    among = _known(among, snapshot)
    if may_be_simulated(pod, rules.release):
        victims = possible_victims(pod, snapshot, rules.release)
        remaining = without_pods(snapshot, victims.includes)
    else:
        names = snapshot.nodes if affects_other_nodes(pod, snapshot) else among
        remaining = without_departing(snapshot, in_time(names, has_time_left))
    without = filter_nodes(pod, remaining, rules, among, has_time_left)
    if remaining is snapshot or not without.rejected:
        return without
    with_departing = filter_nodes(pod, snapshot, rules, without.rejected, has_time_left)
    fits = {*without.feasible, *with_departing.feasible}
    return replace(
        without,
        feasible=tuple(name for name in among if name in fits),
        rejected={name: r for name, r in without.rejected.items() if name not in fits},
    )


def preempt(
    pod: Pod,
    snapshot: Snapshot,
    rules: SchedulerRules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
    among: Collection[str] | None = None,
    has_time_left: HasTimeLeft = no_deadline,
) -> PreemptionDecision:
    """Filter, then find the best node for ``pod`` and its victims there (see post_filter).

    ``among`` limits the nodes that are filtered. Raise DeadlineExceededError if ``has_time_left``
    returns false while filtering.
    """
    filtering = filter_nodes(pod, snapshot, rules, among, has_time_left)
    return post_filter(filtering, snapshot, rules, potential, has_time_left)


def post_filter(
    filtering: FilterDecision,
    snapshot: Snapshot,
    rules: SchedulerRules = DEFAULT_RULES,
    potential: Collection[str] | None = None,
    has_time_left: HasTimeLeft = no_deadline,
) -> PreemptionDecision:
    """Find the best node, and the victims there, for a pod that filtering refused.

    ``filtering`` should cover the nodes to try and the pod's nominated node; the message is about
    those that it covers. ``potential`` names the nodes to try, instead of those that filtering
    found resolvable; names that are not in the snapshot are ignored. When ``has_time_left`` returns
    false, no more of them are tried. Raise DeadlineExceededError if it does before the first one.
    """
    pod, statuses = filtering.pod, filtering.rejected
    rules = rules.for_preemptor(pod)
    simulation = _simulation(pod, snapshot, rules, has_time_left)
    snapshot = rules.policy.view_of(snapshot)
    if not snapshot.nodes:
        return PreemptionDecision(
            pod, eligible=True, reason="", chosen=None, message=fit_error.NO_NODES
        )
    reasons = Counter(_reasons(statuses.values()))
    nodes = len(filtering.feasible) + len(statuses)
    failure = fit_error.fit_error(nodes, filtering.conflict, reasons, rules.release)
    error = fit_error.deallocation_error(filtering, rules.release)
    units = victim_units(snapshot, rules.release)
    pipeline = _prepared(pod, snapshot, rules, has_time_left)
    reason = ineligibility(pod, units, nominated_status(pod, statuses, rules))
    reason = reason or ending_error(reasons) or waits_for_devices(pipeline, units, statuses)
    reason = reason or rules.policy.refusal(pod, snapshot)
    if reason is not None:
        first = fit_error.deallocation_prefix(filtering, snapshot, rules.release)
        outcome = error or fit_error.not_eligible(reason, first)
        return _ineligible(filtering, reason, f"{failure} {outcome}")
    tried = _potential(snapshot, statuses, potential)
    candidates, refusals, untried, search = _dry_run(pipeline, units, tried, rules, has_time_left)
    consequences = rules.policy.count_consequences(
        pod,
        snapshot,
        simulation,
        lambda order, *limits: order.leading(candidates.values(), *limits),
    )
    order = rules.policy.order_of_candidates(pod, snapshot, consequences=consequences)
    ranked = order.sort(candidates.values())
    rejected = _rejections_of_others(filtering, candidates, refusals)
    if ranked:
        outcome = fit_error.candidate_found(ranked[0], rules.release)
    else:
        first = fit_error.deallocation_prefix(filtering, snapshot, rules.release)
        as_upstream = {
            name: refusal
            for name, refusal in refusals.items()
            if not statuses.get(name, FEASIBLE).awaits_devices
        }
        outcome = error or _no_candidates(len(rejected), as_upstream, first)
    return PreemptionDecision(
        pod,
        eligible=True,
        reason="",
        chosen=ranked[0] if ranked else None,
        candidates=candidates,
        rejected=rejected,
        decided_by=order.deciding_criterion(*ranked[:2]) if len(ranked) > 1 else None,
        message=" ".join(part for part in (failure, outcome) if part),
        not_evaluated=filtering.not_evaluated,
        untried=untried,
        search=search,
        consequences=consequences,
        runner_up=find_runner_up(ranked, order),
    )


def _simulation(
    pod: Pod, snapshot: Snapshot, rules: SchedulerRules, has_time_left: HasTimeLeft
) -> Simulation:
    rules = replace(rules, policy=rules.policy.without_consequences())

    def find_node(pod: Pod, cluster: SimulatedCluster) -> str | None:
        filtering = filter_nodes(pod, cluster.snapshot, rules, has_time_left=has_time_left)
        return next(iter(by_free_cpu(filtering.feasible, cluster.snapshot.nodes)), None)

    def decide(pod: Pod, cluster: SimulatedCluster) -> PreemptionDecision:
        return preempt(pod, cluster.snapshot, rules, has_time_left=has_time_left)

    return Simulation(pod, unchanged(snapshot), find_node, decide)


def nominated_status(
    pod: Pod, statuses: Mapping[str, Rejection], rules: SchedulerRules
) -> Rejection | None:
    """Return the filter status of the nominated node; from 1.32 on a missing one is unresolvable.

    Filtering has no status of a node that passed kube-scheduler's filters and that an extender then
    dropped.
    """
    if pod.nominated_node is None:
        return None
    absent = None if rules.release.waits_without_status else _NO_STATUS
    return statuses.get(pod.nominated_node, absent)


def _ineligible(filtering: FilterDecision, reason: str, message: str) -> PreemptionDecision:
    return PreemptionDecision(
        filtering.pod,
        eligible=False,
        reason=reason,
        chosen=None,
        rejected=filtering.rejected,
        message=message,
        not_evaluated=filtering.not_evaluated,
    )


def _potential(
    snapshot: Snapshot, statuses: Mapping[str, Rejection], requested: Collection[str] | None
) -> list[str]:
    if requested is not None:
        return [name for name in snapshot.nodes if name in requested]
    # A node without a status (it fits, or was not filtered) is not tried either.
    return [name for name in snapshot.nodes if name in statuses and statuses[name].resolvable]


class DryRun(NamedTuple):
    """The candidates of a dry run, and why other nodes are none; ``untried`` nodes were left out.

    ``search`` is about the cheapest victims.
    """

    candidates: Mapping[str, Candidate]
    refusals: Mapping[str, Rejection]
    untried: int
    search: VictimSearch | None = None


def _dry_run(
    pipeline: Pipeline,
    units: VictimUnits,
    tried: Collection[str],
    rules: SchedulerRules,
    has_time_left: HasTimeLeft,
) -> DryRun:
    snapshot, policy = units.snapshot, rules.policy
    coverage = BudgetCoverage(snapshot.budgets, rules.release)
    allowances = policy.allowances(pipeline.pod, snapshot)
    limits = policy.limits(pipeline.pod, snapshot, allowances)
    candidates: dict[str, Candidate] = {}
    refusals: dict[str, Rejection] = {}
    for name in tried:
        if not has_time_left():
            break
        found = select_victims(pipeline, snapshot.nodes[name], units, coverage, policy, allowances)
        if isinstance(found, Candidate):
            found = within(found, limits)
        if isinstance(found, Candidate):
            candidates[name] = found
        else:
            refusals[name] = found
    untried = len(tried) - len(candidates) - len(refusals)
    if policy.cheapest_by is None:
        return DryRun(candidates, refusals, untried)
    prices = prices_by(policy.cheapest_by, snapshot, partial(count_totals, snapshot))
    search = CheapestVictims(pipeline, units, coverage, rules, allowances, limits, prices)
    limited = (name for name, each in refusals.items() if each.reasons[0].code is Code.POLICY_LIMIT)
    result = search.search({}, None, candidates, limited, has_time_left)
    candidates |= result.cheaper
    refusals = {name: each for name, each in refusals.items() if name not in candidates}
    summary = result.summary(policy.cheapest_by.name, untried)
    return DryRun(candidates, refusals, untried + result.left_out, summary)


def _rejections_of_others(
    filtering: FilterDecision,
    candidates: Mapping[str, Candidate],
    refusals: Mapping[str, Rejection],
) -> dict[str, Rejection]:
    feasible = dict.fromkeys(filtering.feasible, FEASIBLE)
    statuses = feasible | dict(filtering.rejected) | dict(refusals)
    return {name: status for name, status in statuses.items() if name not in candidates}


def _no_candidates(nodes: int, refusals: Mapping[str, Rejection], first: str) -> str:
    errors = [str(r) for r in refusals.values() if r.reasons[0].code is Code.NO_VICTIM_NEEDED]
    reasons = Counter(_reasons(refusals.values()))
    return fit_error.no_candidates(nodes, len(refusals), reasons, errors, first)


def _reasons(rejections: Iterable[Rejection]) -> Iterator[Reason]:
    return (reason for rejection in rejections for reason in rejection.reasons)


@dataclass(frozen=True, slots=True)
class ReferenceEngine:
    """These functions as an engine; it keeps no state between decisions."""

    rules: SchedulerRules = DEFAULT_RULES

    def for_preemptor(self, pod: Pod) -> ReferenceEngine:
        """Return the engine that decides by the policy that applies to a preemptor."""
        return ReferenceEngine(self.rules.for_preemptor(pod))

    def follow(self, snapshot: Snapshot, changed: Collection[str] | None = None) -> None:
        """Do nothing: each decision reads its snapshot."""

    def filter_nodes(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """See :func:`filter_nodes`."""
        return filter_nodes(pod, snapshot, self.rules, among, has_time_left)

    def filter_with_terminating_pods(
        self,
        pod: Pod,
        snapshot: Snapshot,
        among: Collection[str],
        has_time_left: HasTimeLeft = no_deadline,
    ) -> FilterDecision:
        """See :func:`filter_with_terminating_pods`."""
        return filter_with_terminating_pods(pod, snapshot, self.rules, among, has_time_left)

    def preempt(
        self,
        pod: Pod,
        snapshot: Snapshot,
        potential: Collection[str] | None = None,
        among: Collection[str] | None = None,
        has_time_left: HasTimeLeft = no_deadline,
    ) -> PreemptionDecision:
        """See :func:`preempt`."""
        return preempt(pod, snapshot, self.rules, potential, among, has_time_left)
