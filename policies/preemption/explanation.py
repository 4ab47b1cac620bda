"""What a decision does not hold: protected pods, violated budgets, and which nodes were tried.

They are found afterwards, from the snapshot of the decision, so that a decision costs nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.kubernetes.criteria import Order
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage, violated_budgets
from policies.preemption.filtering.status import Code, Rejection
from policies.preemption.policy import DEFAULT_CANDIDATE_ORDER, SchedulerRules, unit_order
from policies.preemption.victim_units import VictimUnits, victim_units

_OF_VICTIM_SEARCH: Final = (
    Code.NO_VICTIMS,
    Code.NO_VICTIM_NEEDED,
    Code.NO_NODE_OF_MEMBER,
    Code.POLICY_LIMIT,
)


@dataclass(frozen=True, slots=True)
class ProtectedPod:
    """A pod on a node that was tried, the guard that protects it from being a victim, and why."""

    pod: Pod
    guard: str
    because: str


@dataclass(frozen=True, slots=True)
class PreemptionExplanation:
    """A decision, and what explains it; ``order`` is that of its candidates.

    ``protected`` are the pods of lower priority that the policy protects. ``violated`` has the keys
    of the violated budgets of each candidate that violates some. ``tried`` names the nodes for
    which victims were searched.
    """

    decision: PreemptionDecision
    order: Order[Candidate] = DEFAULT_CANDIDATE_ORDER
    protected: tuple[ProtectedPod, ...] = ()
    violated: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tried: frozenset[str] = frozenset()


def explain_decision(
    decision: PreemptionDecision,
    snapshot: Snapshot,
    rules: SchedulerRules,
    potential: Collection[str] | None = None,
) -> PreemptionExplanation:
    """Return the explanation of a decision on ``snapshot`` with the ``potential`` nodes given."""
    if not decision.eligible or decision.reason:
        return PreemptionExplanation(decision)
    rules = rules.for_preemptor(decision.pod)
    snapshot = rules.policy.view_of(snapshot)
    units = victim_units(snapshot, rules.release)
    refused = {} if decision.untried else decision.rejected
    tried = [
        *decision.candidates,
        *(name for name, each in refused.items() if _was_tried(name, each, potential)),
    ]
    coverage = BudgetCoverage(snapshot.budgets, rules.release)
    violated = {
        name: _violated_on(candidate, units, coverage, rules)
        for name, candidate in decision.candidates.items()
        if candidate.victims.violations
    }
    protected = tuple(_protected_on(tried, decision.pod, units, rules))
    order = rules.policy.order_of_candidates(snapshot)
    return PreemptionExplanation(decision, order, protected, violated, frozenset(tried))


def _was_tried(name: str, rejection: Rejection, potential: Collection[str] | None) -> bool:
    if potential is not None:
        return name in potential
    codes = {reason.code for reason in rejection.reasons}
    return rejection.resolvable or not codes.isdisjoint(_OF_VICTIM_SEARCH)


def _protected_on(
    nodes: Collection[str], preemptor: Pod, units: VictimUnits, rules: SchedulerRules
) -> Iterator[ProtectedPod]:
    allowances = rules.policy.allowances(preemptor, units.snapshot)
    now_ns, highest = units.snapshot.now_ns, preemptor.priority - rules.policy.priority_gap
    for name in sorted(nodes):
        for pod in units.snapshot.nodes[name].pods:
            if pod.uid != preemptor.uid and units.priority_of(pod) <= highest:
                guard = rules.policy.protection_of(pod, now_ns)
                if guard is not None:
                    yield ProtectedPod(pod, guard.name, guard.explain(pod, now_ns))
                    continue
                allowance = next((each for each in allowances if each.protects(pod)), None)
                if allowance is not None:
                    group = allowance.grouping.key(pod)
                    yield ProtectedPod(
                        pod, allowance.name, f"protected by {allowance.name} of {group}"
                    )


def _violated_on(
    candidate: Candidate, units: VictimUnits, coverage: BudgetCoverage, rules: SchedulerRules
) -> tuple[str, ...]:
    """Count the budgets again, in the order of the dry run."""
    evicted = {pod.uid for pod in candidate.victims.pods}
    potential = evicted.union(pod.uid for pod in candidate.spared)
    node = units.snapshot.nodes[candidate.node]
    present = (unit for unit in units.of(node.pods) if unit.pods[0].uid in potential)
    counts: Counter[str] = Counter()
    found: dict[str, None] = {}
    for unit in unit_order(rules.policy.victims).sort(present):
        for pod in unit.pods:
            violated = violated_budgets(pod, counts, coverage)
            if pod.uid in evicted:
                found.update(dict.fromkeys(violated))
    return tuple(found)
