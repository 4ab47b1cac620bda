"""Guards of candidates: limits on what the victims of one node amount to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import DisruptionBudget, Pod, Snapshot
from policies.preemption.costs.candidate_criteria import CandidateCriterion, GroupTotals, bound
from policies.preemption.decision import Candidate
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering.status import Code, Rejection, unresolvable
from policies.preemption.guards.allowance import BoundAllowance


@dataclass(frozen=True, slots=True)
class CandidateLimit:
    """Refuses a candidate whose key of a criterion is above ``at_most``."""

    name: str
    criterion: CandidateCriterion
    at_most: int

    def bind(self, preemptor: Pod, snapshot: Snapshot, totals: GroupTotals | None) -> BoundLimit:
        """Return the limit for a decision on ``snapshot``; see ``bound``."""
        criterion = bound(self.criterion, preemptor, snapshot, totals)
        return BoundLimit(self.name, criterion, self.at_most)


@dataclass(frozen=True, slots=True)
class BoundLimit:
    """A limit at the time of a decision."""

    name: str
    criterion: Criterion[Candidate]
    at_most: int

    def refuses(self, candidate: Candidate) -> bool:
        """Return whether a candidate is above the limit."""
        return self.criterion.key(candidate) > self.at_most


Limit = BoundLimit | BoundAllowance


def within(candidate: Candidate, limits: Iterable[Limit]) -> Candidate | Rejection:
    """Return a candidate that is within all limits, or the status of its node."""
    return next((refused_by(each) for each in limits if each.refuses(candidate)), candidate)


def refused_by(limit: Limit) -> Rejection:
    """Return the status of a node whose candidate is above a limit."""
    return unresolvable(Code.POLICY_LIMIT, limit.name)


STRICT_BUDGETS: Final = "pdb: strict"


def with_strict_budgets(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with budgets that count what their status may not show yet.

    The disruption controller updates a status after the fact. So a budget allows no more than the
    ready pods that it covers exceed those that have to stay: pods that terminate, and victims of
    assumed preemptions, are gone. Selectors match as in the newest release.
    """
    coverage = BudgetCoverage(snapshot.budgets, NEWEST)
    healthy: Counter[str] = Counter()
    for state in snapshot.nodes.values():
        for pod in state.pods:
            if pod.ready and not pod.departing:
                healthy.update(budget.key for budget in coverage.of(pod))
    return replace(
        snapshot,
        budgets=tuple(
            replace(each, allowed=strictly_allowed(each, healthy[each.key]))
            for each in snapshot.budgets
        ),
    )


def strictly_allowed(budget: DisruptionBudget, healthy: int) -> int:
    """Return how many of ``healthy`` pods may be evicted."""
    return max(0, min(budget.allowed, healthy - budget.desired_healthy))


def strict_limit(snapshot: Snapshot) -> BoundLimit:
    """Return the limit that refuses a candidate with more victims than a budget allows.

    Unlike PDB violations, which depend on the order of counting, reprieved pods do not count.
    """
    coverage = BudgetCoverage(snapshot.budgets, NEWEST)

    def key(candidate: Candidate) -> int:
        counts = Counter(
            budget.key
            for pod in candidate.victims.pods
            for budget in coverage.of(pod)
            if pod.name not in budget.disrupted
        )
        return sum(counts[each.key] > each.allowed for each in snapshot.budgets)

    return BoundLimit(STRICT_BUDGETS, Criterion(STRICT_BUDGETS, key), at_most=0)
