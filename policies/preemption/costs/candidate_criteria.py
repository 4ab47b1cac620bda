"""Criteria that compare candidates by the costs of their victims, and by the groups that they hit.

A criterion of this module is bound to the snapshot of a decision, which has the time, and the other
pods of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.costs.groupings import Grouping
from policies.preemption.costs.pod_cost import PodCost
from policies.preemption.decision import Candidate

GroupTotals = Callable[[PodCost, Grouping], Callable[[str], int]]
"""Return the function from the key of a group to the cost of all its pods in the cluster."""


@dataclass(frozen=True, slots=True)
class BoundCriterion(Criterion[Candidate]):
    """A criterion at the time of a decision; ``source`` is the one that was bound."""

    source: CostCriterion | GroupCriterion
    now_ns: int


@dataclass(frozen=True, slots=True)
class CostCriterion:
    """Prefers the candidate whose victims cost least.

    With a ``grouping``, each group that has a victim counts once, with the cost of all its pods in
    the cluster: the rest of a gang is of no use without the victim.
    """

    name: str
    cost: PodCost
    grouping: Grouping | None = None

    def bind(self, now_ns: int, totals: GroupTotals) -> BoundCriterion:
        """Return the criterion for a decision at a time."""
        cost, grouping = self.cost, self.grouping
        if grouping is None:

            def key(candidate: Candidate) -> int:
                return sum([cost.at(pod, now_ns) for pod in candidate.victims.pods])

        else:
            total, group_of = totals(cost, grouping), grouping.key

            def key(candidate: Candidate) -> int:
                return sum(map(total, {group_of(pod) for pod in candidate.victims.pods}))

        return BoundCriterion(self.name, key, self, now_ns)


@dataclass(frozen=True, slots=True)
class GroupCriterion:
    """Prefers the candidate whose victims are of the fewest groups."""

    name: str
    grouping: Grouping

    def bind(self, now_ns: int) -> BoundCriterion:
        """Return the criterion for a decision at a time."""
        group_of = self.grouping.key
        return BoundCriterion(
            self.name, lambda of: len({group_of(pod) for pod in of.victims.pods}), self, now_ns
        )


CandidateCriterion = Criterion[Candidate] | CostCriterion | GroupCriterion


def bound(
    criterion: CandidateCriterion, snapshot: Snapshot, totals: GroupTotals | None = None
) -> Criterion[Candidate]:
    """Return a criterion for a decision on ``snapshot``; its totals are counted unless given."""
    match criterion:
        case CostCriterion():
            return criterion.bind(snapshot.now_ns, totals or partial(count_totals, snapshot))
        case GroupCriterion():
            return criterion.bind(snapshot.now_ns)
    return criterion


def count_totals(snapshot: Snapshot, cost: PodCost, grouping: Grouping) -> Callable[[str], int]:
    """Return the function from a group to the cost of its pods in a snapshot, counted on use."""
    found = Counter[str]()

    def total(group: str) -> int:
        if not found:
            for state in snapshot.nodes.values():
                for pod in state.pods:
                    found[grouping.key(pod)] += cost.at(pod, snapshot.now_ns)
        return found[group]

    return total
