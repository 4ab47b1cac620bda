"""Guards of groups: how many victims of an owner, a namespace or a class one preemption may have.

An allowance is a number of victims, or an amount of their cost. A pod that counts for more than is
allowed of its group is protected. Allowances that depend on the past read the recent preemptions of
the snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from policies.kubernetes.snapshot import PastPreemption, Pod, Snapshot
from policies.preemption.costs.candidate_criteria import GroupTotals
from policies.preemption.costs.groupings import OWNERS, Grouping, owner_of
from policies.preemption.costs.pod_cost import NO_COST, Cost, PodCost
from policies.preemption.decision import Candidate

UNLIMITED: Final = 2**31 - 1
ANY_GROUP: Final = ""
"""The group of the pods that an allowance is not about."""
VICTIMS: Final = PodCost("victims", "pods", lambda _: Cost(1))
"""What most allowances count: the pods."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The victims that are allowed of each group, or the sum of their cost.

    ``of`` has groups by key, ``others`` is that of all other groups. With ``kept``, a group is also
    allowed no more than its total of a cost exceeds a number.
    """

    of: Mapping[str, int] = field(default_factory=dict)
    others: int = UNLIMITED
    kept: tuple[PodCost, int] | None = None


@dataclass(frozen=True, slots=True)
class AllowanceGuard:
    """Limits the victims of each group; ``allowance`` reads the preemptor and the snapshot.

    ``counted`` is the cost of a victim that counts, which is never negative. ``annotations`` are
    the keys that the grouping reads.
    """

    name: str
    grouping: Grouping
    allowance: Callable[[Pod, Snapshot], Allowance]
    annotations: frozenset[str] = frozenset()
    counted: PodCost = VICTIMS

    def bind(self, preemptor: Pod, snapshot: Snapshot, totals: GroupTotals) -> BoundAllowance:
        """Return the allowances of a decision."""
        allowance = self.allowance(preemptor, snapshot)
        return BoundAllowance(
            self.name, self.grouping, allowance, totals, self.counted, snapshot.now_ns
        )


@dataclass(frozen=True, slots=True)
class BoundAllowance:
    """The allowances of a decision."""

    name: str
    grouping: Grouping
    allowance: Allowance
    totals: GroupTotals
    counted: PodCost
    now_ns: int

    def of(self, group: str) -> int:
        """Return how much is allowed of a group."""
        if group == ANY_GROUP:
            return UNLIMITED
        allowed = self.allowance.of.get(group, self.allowance.others)
        if self.allowance.kept is not None:
            cost, least = self.allowance.kept
            allowed = min(allowed, self.totals(cost, self.grouping)(group) - least)
        return max(0, allowed)

    def protects(self, pod: Pod) -> bool:
        """Return whether ``pod`` alone is more than what is allowed of its group."""
        return self.counted.at(pod, self.now_ns) > self.of(self.grouping.key(pod))

    def explain(self, pod: Pod, _now_ns: int) -> str:
        """Return why a pod is protected."""
        return f"protected by {self.name} of {self.grouping.key(pod)}"

    def refuses(self, candidate: Candidate) -> bool:
        """Return whether the victims of a candidate are more of a group than is allowed."""
        counts = Counter[str]()
        for pod in candidate.victims.pods:
            counts[self.grouping.key(pod)] += self.counted.at(pod, self.now_ns)
        return any(count > self.of(group) for group, count in counts.items())


def victim_cooldown(window_ns: int) -> AllowanceGuard:
    """Return a guard that protects owners of which a pod was preempted within a window."""

    def allowance(_: Pod, snapshot: Snapshot) -> Allowance:
        return Allowance({owner_of(each.victim): 0 for each in recent(snapshot, window_ns)})

    return AllowanceGuard("cooldown", OWNERS, allowance)


def window_limit(
    name: str, grouping: Grouping, at_most: int, window_ns: int, counted: PodCost = VICTIMS
) -> AllowanceGuard:
    """Return a guard that allows each group ``at_most`` of a cost of victims within any window.

    A past victim counts with its cost at the time of its preemption.
    """

    def allowance(_: Pod, snapshot: Snapshot) -> Allowance:
        counts = Counter[str]()
        for each in recent(snapshot, window_ns):
            counts[grouping.key(each.victim)] += counted.at(each.victim, each.at_ns)
        return Allowance({group: at_most - n for group, n in counts.items()}, others=at_most)

    return AllowanceGuard(name, grouping, allowance, counted=counted)


def loop_breaker(window_ns: int) -> AllowanceGuard:
    """Return a guard that protects the owners because of which the preemptor was preempted.

    These are the owners that preempted pods of the preemptor's owner within a window, those that
    preempted pods of these, and so on: so no owners preempt each other in turn.
    """

    def allowance(preemptor: Pod, snapshot: Snapshot) -> Allowance:
        preempted_by: dict[str, set[str]] = {}
        for each in recent(snapshot, window_ns):
            if each.preemptor is not None:
                owners = preempted_by.setdefault(owner_of(each.victim), set())
                owners.add(owner_of(each.preemptor))
        found, waiting = dict[str, int](), [owner_of(preemptor)]
        while waiting:
            for owner in sorted(preempted_by.get(waiting.pop(), ())):
                if owner not in found:
                    found[owner] = 0
                    waiting.append(owner)
        return Allowance(found)

    return AllowanceGuard("loopBreaker", OWNERS, allowance)


HEALTHY: Final = PodCost(
    "healthy pods", "pods", lambda pod: Cost(1) if pod.ready and not pod.departing else NO_COST
)


def min_available(name: str, selects: Callable[[Pod], bool], least: int) -> AllowanceGuard:
    """Return a guard that keeps ``least`` ready pods of each owner of the pods that it selects."""
    owners = Grouping(f"owners of {name}", lambda pod: owner_of(pod) if selects(pod) else ANY_GROUP)
    return AllowanceGuard(name, owners, lambda *_: Allowance(kept=(HEALTHY, least)))


def recent(snapshot: Snapshot, window_ns: int) -> Iterator[PastPreemption]:
    """Yield the preemptions within a window before the time of a decision."""
    since_ns = snapshot.now_ns - window_ns
    return (each for each in snapshot.preemptions if each.at_ns > since_ns)
