"""The cost of victims in prices of their groups, and a lower bound of it.

The bound is that of the knapsack problem in which parts of pods can be evicted: what the requests
of the preemptor lack has to be freed, and each unit frees a part of that for its price.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.candidate_criteria import CostCriterion, GroupCriterion, GroupTotals
from policies.preemption.victim_units import VictimUnit


class GroupPrice(NamedTuple):
    """The group of a pod, and its price: it counts once, however many of its pods are victims."""

    group: str
    price: int


Prices = Callable[[Pod], GroupPrice]
"""Return the group of a pod, which may be the pod alone, and what that costs."""


def prices_by(
    criterion: CostCriterion | GroupCriterion, snapshot: Snapshot, totals: GroupTotals
) -> Prices:
    """Return the prices whose sum is the key of a criterion; the criterion has none below 0."""
    now_ns = snapshot.now_ns
    if isinstance(criterion, GroupCriterion):
        return lambda pod: GroupPrice(criterion.grouping.key(pod), 1)
    cost, grouping = criterion.cost, criterion.grouping
    if grouping is None:
        return lambda pod: GroupPrice(pod.uid, cost.at(pod, now_ns))
    total, group_of = totals(cost, grouping), grouping.key
    return lambda pod: GroupPrice(group_of(pod), total(group_of(pod)))


@dataclass(frozen=True, slots=True)
class PricedUnit:
    """A victim unit, its PDB violations, the groups of its pods, and what it frees by shortage."""

    unit: VictimUnit
    violations: int
    groups: tuple[GroupPrice, ...]
    frees: tuple[int, ...]

    @property
    def price(self) -> int:
        """The price of all groups of the unit."""
        return sum(each.price for each in self.groups)


@dataclass(frozen=True, slots=True)
class PricedVictims:
    """Victims, with their groups, and the cost of these."""

    units: tuple[PricedUnit, ...] = ()
    groups: frozenset[str] = frozenset()
    cost: int = 0

    def adding(self, priced: PricedUnit) -> PricedVictims:
        """Return the victims with one more."""
        new = [each for each in priced.groups if each.group not in self.groups]
        return PricedVictims(
            (*self.units, priced),
            self.groups.union(each.group for each in new),
            self.cost + sum(each.price for each in new),
        )


NO_VICTIMS: Final = PricedVictims()


def lower_bound(
    victims: PricedVictims, undecided: Sequence[PricedUnit], missing: Sequence[int]
) -> int | None:
    """Return a cost that ``victims`` with some of the undecided units are not below.

    Return None if all of them do not free what is ``missing``, by shortage, or are none.
    """
    least = NO_VICTIMS.cost
    if not victims.units:
        if not undecided:
            return None
        least = min(group.price for each in undecided for group in each.groups)
    for place, amount in enumerate(missing):
        left = amount - sum(each.frees[place] for each in victims.units)
        if left > 0:
            cost = _covering_cost(_offers(victims, undecided, place), left)
            if cost is None:
                return None
            least = max(least, cost)
    return victims.cost + least


def _offers(
    victims: PricedVictims, undecided: Iterable[PricedUnit], place: int
) -> Collection[tuple[int, int]]:
    """Return the price of each group of undecided units, and what all of them free.

    A unit counts for its first group only: with all of its groups it costs no less.
    """
    offers: dict[str, tuple[int, int]] = {}
    for each in undecided:
        freed = each.frees[place]
        if freed > 0:
            group, price = each.groups[0]
            paid = 0 if group in victims.groups else price
            offers[group] = (paid, offers.get(group, (0, 0))[1] + freed)
    return offers.values()


def _covering_cost(offers: Collection[tuple[int, int]], amount: int) -> int | None:
    """Return the least cost of parts of offers that free an amount, rounded up.

    For any price of one unit, the amount at that price is a lower bound, less what the offers that
    are cheaper save. The bound is highest at the price of the offer that completes the amount.
    """
    left = amount
    for price, freed in sorted(offers, key=lambda each: each[0] / each[1]):
        left -= freed
        if left <= 0:
            saved = sum(max(0, price * most - paid * freed) for paid, most in offers)
            return -((saved - price * amount) // freed)
    return None
