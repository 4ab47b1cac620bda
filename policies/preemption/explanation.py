"""What a decision does not hold: protected pods, violated budgets, and which nodes were tried.

They are found afterwards, from the snapshot of the decision, so that a decision costs nothing more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from policies.kubernetes.criteria import Order
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.decision import Candidate, PreemptionDecision
from policies.preemption.disruption_budgets import BudgetCoverage, violated_budgets
from policies.preemption.filtering.status import Code, Reason, Rejection
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.guards.victim_guard import VictimGuard
from policies.preemption.policy import (
    DEFAULT_CANDIDATE_ORDER,
    Policy,
    SchedulerRules,
    unit_order,
)
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
class GuardActions:
    """What the guards of a policy did in a decision; guards and limits are named.

    ``protected`` counts the pods that a guard protects on the chosen node; without one, on the
    first MOST_NODES of the nodes that were tried. ``refused_attempt`` is the guard that refused the
    attempt, "" for none. ``refused_nodes`` counts the nodes that a limit refused. A guard that
    keeps a number of pods of each group is named there only: it counts all pods of the cluster.
    """

    protected: Mapping[str, int] = field(default_factory=dict)
    refused_attempt: str = ""
    refused_nodes: Mapping[str, int] = field(default_factory=dict)


MOST_NODES: Final = 100
"""The bound on the time that a decision without a choice takes afterwards: milliseconds."""
NO_ACTIONS: Final = GuardActions()


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
    violated = violated_budgets_of(decision.candidates.values(), snapshot, rules)
    snapshot = rules.policy.view_of(snapshot)
    units = victim_units(snapshot, rules.release)
    tried = list(_tried(decision, potential))
    now_ns = snapshot.now_ns
    protected = tuple(
        ProtectedPod(pod, guard.name, guard.explain(pod, now_ns))
        for pod, guard in _protected_on(
            sorted(tried),
            decision.pod,
            units,
            rules.policy,
            rules.policy.allowances(decision.pod, snapshot),
        )
    )
    order = rules.policy.order_of_candidates(
        decision.pod, snapshot, consequences=decision.consequences
    )
    return PreemptionExplanation(decision, order, protected, violated, frozenset(tried))


def guard_actions(
    decision: PreemptionDecision,
    reasons: Mapping[Reason, int],
    snapshot: Snapshot,
    rules: SchedulerRules,
) -> GuardActions:
    """Return what the guards did in a decision; ``reasons`` are those of the nodes it rejects."""
    pod, policy = decision.pod, rules.for_preemptor(decision.pod).policy
    if not decision.eligible:
        refusing = (
            each for each in policy.attempt_guards if each.reason(pod, snapshot) == decision.reason
        )
        return GuardActions(refused_attempt=next((each.name for each in refusing), ""))
    limits = {
        reason.detail: count
        for reason, count in reasons.items()
        if reason.code is Code.POLICY_LIMIT
    }
    if not (policy.victim_guards or policy.allowance_guards):
        return GuardActions(refused_nodes=limits)
    tried = islice(_tried(decision, None), MOST_NODES)
    nodes = tried if decision.chosen is None else (decision.chosen.node,)
    allowances = policy.allowances(pod, snapshot)
    cheap = [each for each in allowances if each.allowance.kept is None]
    units = victim_units(snapshot, rules.release)
    protected = _protected_on(nodes, pod, units, policy, cheap)
    counts = Counter(guard.name for _, guard in protected)
    return GuardActions(dict(counts), refused_nodes=limits)


def _tried(decision: PreemptionDecision, potential: Collection[str] | None) -> Iterator[str]:
    yield from decision.candidates
    if not decision.untried:
        for name, rejection in decision.rejected.items():
            if _was_tried(name, rejection, potential):
                yield name


def _was_tried(name: str, rejection: Rejection, potential: Collection[str] | None) -> bool:
    if potential is not None:
        return name in potential
    codes = {reason.code for reason in rejection.reasons}
    return rejection.resolvable or not codes.isdisjoint(_OF_VICTIM_SEARCH)


def _protected_on(
    nodes: Iterable[str],
    preemptor: Pod,
    units: VictimUnits,
    policy: Policy,
    allowances: Sequence[BoundAllowance],
) -> Iterator[tuple[Pod, VictimGuard | BoundAllowance]]:
    """Yield the pods of lower priority on some nodes that a guard protects, with the guard."""
    now_ns, highest = units.snapshot.now_ns, preemptor.priority - policy.priority_gap
    for name in nodes:
        for pod in units.snapshot.nodes[name].pods:
            if pod.uid != preemptor.uid and units.priority_of(pod) <= highest:
                guard = policy.protection_of(pod, now_ns)
                if guard is not None:
                    yield pod, guard
                elif allowance := next((each for each in allowances if each.protects(pod)), None):
                    yield pod, allowance


def violated_budgets_of(
    candidates: Iterable[Candidate], snapshot: Snapshot, rules: SchedulerRules
) -> Mapping[str, tuple[str, ...]]:
    """Return the keys of the budgets that candidates on ``snapshot`` violate, by their node.

    ``rules`` are those of the preemptor. Candidates without violations are left out.
    """
    snapshot = rules.policy.view_of(snapshot)
    units = victim_units(snapshot, rules.release)
    coverage = BudgetCoverage(snapshot.budgets, rules.release)
    return {
        each.node: _violated_on(each, units, coverage, rules)
        for each in candidates
        if each.victims.violations
    }


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
