"""Criteria that compare candidates by the costs of their victims, and by the groups that they hit.

A criterion of this module is bound to a decision: to its preemptor, and to its snapshot, which has
the time, and the other pods of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from policies.kubernetes.criteria import Criterion
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.fragmentation import FragmentationCriterion
from policies.preemption.costs.groupings import Grouping
from policies.preemption.costs.pod_cost import PodCost
from policies.preemption.decision import Candidate

GroupTotals = Callable[[PodCost, Grouping], Callable[[str], int]]
"""Return the function from the key of a group to the cost of all its pods in the cluster."""
GroupValue = Callable[[str], int]
"""Return the value of a group by its key."""


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


@dataclass(frozen=True, slots=True)
class BoundGroupValue(Criterion[Candidate]):
    """A criterion with the values of groups in a decision; ``source`` is the one that was bound."""

    source: GroupValueCriterion
    value: GroupValue


@dataclass(frozen=True, slots=True)
class GroupValueCriterion:
    """Prefers the candidate whose victims are of groups with low values.

    ``values`` returns the value of a group for a preemptor, in a snapshot. ``combine`` is ``sum``
    or ``max`` of the values of all victims. ``reads`` is the kind of objects that it reads, if only
    policies do.
    """

    name: str
    grouping: Grouping
    values: Callable[[Pod, Snapshot, GroupTotals], GroupValue]
    combine: Callable[[Iterable[int]], int]
    reads: str = ""

    def bind(self, preemptor: Pod, snapshot: Snapshot, totals: GroupTotals) -> BoundGroupValue:
        """Return the criterion for a decision about ``preemptor``."""
        value, group_of = self.values(preemptor, snapshot, totals), self.grouping.key
        return BoundGroupValue(
            self.name,
            lambda of: self.combine([value(group_of(pod)) for pod in of.victims.pods]),
            self,
            value,
        )


CandidateCriterion = (
    Criterion[Candidate]
    | CostCriterion
    | GroupCriterion
    | GroupValueCriterion
    | FragmentationCriterion
)


def bound(
    criterion: CandidateCriterion,
    preemptor: Pod,
    snapshot: Snapshot,
    totals: GroupTotals | None = None,
) -> Criterion[Candidate]:
    """Return a criterion for a decision; totals of ``snapshot`` are counted unless given."""
    totals = totals or partial(count_totals, snapshot)
    match criterion:
        case CostCriterion():
            return criterion.bind(snapshot.now_ns, totals)
        case GroupCriterion():
            return criterion.bind(snapshot.now_ns)
        case GroupValueCriterion():
            return criterion.bind(preemptor, snapshot, totals)
        case FragmentationCriterion():
            return criterion.bind(preemptor, snapshot)
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
