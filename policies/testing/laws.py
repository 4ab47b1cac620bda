"""Laws of decisions by any policy. Each yields a line for every violation of a case.

They hold for random clusters of :mod:`policies.testing.strategies` without pod groups, whose
members may be victims although their own priority is higher.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.explanation import explain_decision
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.guards.candidate_limit import with_strict_budgets
from policies.preemption.policy import SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.victims.victim_selection import NodeDryRun


@dataclass(frozen=True)
class Case:
    """A decision about ``preemptor``; ``shuffled`` is the snapshot with its nodes reordered."""

    preemptor: Pod
    snapshot: Snapshot
    rules: SchedulerRules
    shuffled: Snapshot

    @cached_property
    def decision(self) -> PreemptionDecision:
        """The decision of the reference engine."""
        return preempt(self.preemptor, self.snapshot, self.rules)


Law = Callable[[Case], Iterator[str]]


def victims_may_be_evicted(case: Case) -> Iterator[str]:
    """Yield the victims that the policy protects, and those whose priority is too high."""
    policy, now_ns = case.rules.policy, case.snapshot.now_ns
    allowances = policy.allowances(case.preemptor, case.snapshot)
    for candidate in case.decision.candidates.values():
        for pod in candidate.victims.pods:
            if pod.priority > case.preemptor.priority - policy.priority_gap:
                yield f"{pod.key} has priority {pod.priority}"
            if (guard := policy.protection_of(pod, now_ns)) is not None:
                yield f"{pod.key} is {guard.explain(pod, now_ns)}"
            for each in allowances:
                if each.protects(pod):
                    yield f"{pod.key} is {each.explain(pod, now_ns)}"


def candidates_are_within_limits(case: Case) -> Iterator[str]:
    """Yield the limits, allowances and strict budgets that a candidate exceeds."""
    policy, strict = case.rules.policy, with_strict_budgets(case.snapshot)
    coverage = BudgetCoverage(strict.budgets, NEWEST)  # as strict budgets in every release
    allowances = policy.allowances(case.preemptor, case.snapshot)
    limits = policy.limits(case.preemptor, strict, ())
    for name, candidate in case.decision.candidates.items():
        yield from (f"{name} exceeds {each.name}" for each in limits if each.refuses(candidate))
        for each in allowances:
            counts = Counter[str]()
            for pod in candidate.victims.pods:
                counts[each.grouping.key(pod)] += each.counted.at(pod, case.snapshot.now_ns)
            for group, count in counts.items():
                if count > each.of(group):
                    yield f"{name} exceeds {each.name} of {group}"
        evicted = Counter(
            budget.key
            for pod in candidate.victims.pods
            for budget in coverage.of(pod)
            if pod.name not in budget.disrupted
        )
        for budget in strict.budgets if policy.strict_budgets else ():
            if evicted[budget.key] > max(0, budget.allowed):
                yield f"{name} exceeds the budget {budget.key}"


def the_best_candidate_is_chosen(case: Case) -> Iterator[str]:
    """Yield the choice or the deciding criterion if another one is expected."""
    decision, policy = case.decision, case.rules.policy
    order = policy.order_of_candidates(
        case.preemptor, policy.view_of(case.snapshot), consequences=decision.consequences
    )
    ranked = order.sort(decision.candidates.values())
    if decision.chosen != (ranked[0] if ranked else None):
        yield f"{_text(decision)}; expected the first of {[each.node for each in ranked]}"
    deciding = order.deciding_criterion(*ranked[:2]) if len(ranked) > 1 else None
    if decision.decided_by != deciding:
        yield f"decided by {decision.decided_by}; expected {deciding}"


def the_order_of_the_input_does_not_matter(case: Case) -> Iterator[str]:
    """Yield the decision on the shuffled snapshot if it is another one."""
    found = preempt(case.preemptor, case.shuffled, case.rules)
    if found != case.decision:
        yield f"{_text(found)} in another order; expected {_text(case.decision)}"


def the_engines_agree(case: Case) -> Iterator[str]:
    """Yield what the vectorized engine decides or explains otherwise than the reference engine."""
    found = VectorizedEngine(case.rules).preempt(case.preemptor, case.snapshot)
    if found != case.decision:
        yield f"{_text(found)} by the vectorized engine; expected {_text(case.decision)}"
    explained, expected = (
        [(each.pod.key, each.because) for each in explanation.protected]
        for explanation in (
            explain_decision(each, case.snapshot, case.rules) for each in (found, case.decision)
        )
    )
    if explained != expected:
        yield f"the vectorized engine explains {explained}; expected {expected}"


def the_pod_does_not_fit_beside_a_victim(case: Case) -> Iterator[str]:
    """Yield the victims beside which the preemptor fits; there are none without constraints."""
    pipeline = run_pre_filters(case.preemptor, case.snapshot, case.rules.release, IN_TREE)
    for name, candidate in case.decision.candidates.items():
        dry_run = NodeDryRun(pipeline, case.snapshot.nodes[name])
        for pod in candidate.victims.pods:
            dry_run = dry_run.removing(pod)
        if dry_run.rejection() is not None:
            yield f"the preemptor does not fit {name} without the victims"
        for pod in candidate.victims.pods:
            if dry_run.adding(pod).rejection() is None:
                yield f"the preemptor fits {name} beside {pod.key}"


LAWS: Final[tuple[Law, ...]] = (
    victims_may_be_evicted,
    candidates_are_within_limits,
    the_best_candidate_is_chosen,
    the_order_of_the_input_does_not_matter,
    the_engines_agree,
)
"""The laws of any cluster."""
PLAIN_LAWS: Final[tuple[Law, ...]] = (*LAWS, the_pod_does_not_fit_beside_a_victim)
"""The laws of clusters without topology spread and inter-pod affinity."""


def _text(decision: PreemptionDecision) -> str:
    """Return the most important of a decision, which are its node and its victims."""
    node = "no node" if decision.chosen is None else decision.chosen.node
    victims = {
        name: ", ".join(pod.key for pod in candidate.victims.pods)
        for name, candidate in decision.candidates.items()
    }
    return f"{node} of {victims} by {decision.decided_by}"
