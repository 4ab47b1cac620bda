"""The cheapest victims: of all sets without which the preemptor fits, one of the least cost.

The search begins with the victims that are left on each node after the others were reprieved. It
replaces them only by cheaper ones. On one node it is a branch and bound over its victim units, the
dearest first, with the same filters: each unit is kept if the preemptor fits beside it, or else
evicted, and then the other way round. A lower bound of the cost excludes branches, and whole nodes:
what the requests of the preemptor lack has to be freed, and each unit frees a part of that for its
price. The bound is that of the knapsack problem, in which parts of units can be evicted.

The filters refuse no less when a pod is added, so that a unit beside which alone the preemptor does
not fit is a victim in any case. This holds where no unit has pods on several nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, NamedTuple

from policies.devices.extended_resources import delegated_resources, is_delegated
from policies.kubernetes.snapshot import NodeState, Pod, Snapshot
from policies.preemption.costs.candidate_criteria import CostCriterion, GroupCriterion, GroupTotals
from policies.preemption.decision import Candidate, VictimSearch
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import NodeResourcesFit, Pipeline
from policies.preemption.filtering.framework import has_to_fit_beside
from policies.preemption.filtering.node_resources_fit import amount_of
from policies.preemption.filtering.status import Rejection
from policies.preemption.guards.allowance import BoundAllowance
from policies.preemption.guards.candidate_limit import Limit, within
from policies.preemption.policy import SchedulerRules
from policies.preemption.time_limit import HasTimeLeft
from policies.preemption.victim_units import VictimUnit, VictimUnits
from policies.preemption.victims.victim_selection import (
    EmptiedNode,
    NodeDryRun,
    empty_node,
    potential_units,
)

MOST_STEPS: Final = 20_000
"""The most steps of a decision, of about 50 µs each: where bounds exclude little, the search ends
early, with the cheapest victims so far."""

_POD_SLOTS: Final = ""


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


@dataclass(frozen=True, slots=True)
class Branch:
    """Some victims of a node, and the sets that also have some of the ``undecided`` units.

    ``trial`` is the node without both. The preemptor fits it.
    """

    trial: NodeDryRun
    victims: PricedVictims
    undecided: tuple[PricedUnit, ...]

    def evicting(self) -> Branch:
        """Return the branch in which the first undecided unit is a victim."""
        first, *others = self.undecided
        return Branch(self.trial, self.victims.adding(first), tuple(others))

    def keeping(self) -> Branch | None:
        """Return the branch in which that unit stays; None if the preemptor does not fit then."""
        first, *others = self.undecided
        trial = self.trial
        for pod in first.unit.pods:
            trial = trial.adding(pod)
        if trial.rejection() is not None:
            return None
        return Branch(trial, self.victims, tuple(others))


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """The search on one node; ``missing`` is what all victims have to free, by shortage."""

    emptied: EmptiedNode
    units: Sequence[PricedUnit]
    missing: Sequence[int]
    limits: Sequence[Limit]

    def cheapest(self, below: int | None, may_go_on: HasTimeLeft) -> Candidate | None:
        """Return the cheapest victims of a cost ``below`` (None: any), or None if there are none.

        When ``may_go_on`` returns false, these are the cheapest so far. Victims that a limit
        refuses do not count, nor do more victims than these: no limit allows only the larger set.
        """
        best: Branch | None = None
        waiting = [self._root()]
        while waiting and may_go_on():
            branch = waiting.pop()
            bound = lower_bound(branch.victims, branch.undecided, self.missing)
            if bound is None or not is_below(bound, below) or self._is_refused(branch):
                continue
            if not branch.undecided:
                best, below = branch, branch.victims.cost
                continue
            waiting.append(branch.evicting())
            kept = branch.keeping()
            if kept is not None:
                waiting.append(kept)
        return None if best is None else self._candidate(best)

    def _root(self) -> Branch:
        """Return the branch of all sets: with the units that cannot stay, the dearest first."""
        emptied, victims, undecided = self.emptied.trial, NO_VICTIMS, list[PricedUnit]()
        for each in self.units:
            if Branch(emptied, NO_VICTIMS, (each,)).keeping() is None:
                victims = victims.adding(each)
            else:
                undecided.append(each)
        undecided.sort(key=lambda each: -each.price)
        return Branch(emptied, victims, tuple(undecided))

    def _is_refused(self, branch: Branch) -> bool:
        if not self.limits or not branch.victims.units:
            return False
        return isinstance(within(self._candidate(branch), self.limits), Rejection)

    def _candidate(self, branch: Branch) -> Candidate:
        victims = [(each.unit, each.violations) for each in branch.victims.units]
        return self.emptied.candidate(victims, branch.trial)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheaper victims that were found, by node, and how many nodes were searched.

    ``least`` is the least cost on all nodes. ``bound`` is that of the first node that was not
    searched to the end because the search ended early; None if there is none.
    """

    cheaper: Mapping[str, Candidate]
    searched: int
    least: int | None
    bound: int | None = None

    def summary(self, criterion: str, untried: int) -> VictimSearch | None:
        """Return how far victims were searched for; None if there are none."""
        if self.least is None:
            return None
        bound = self.least if self.bound is None else min(self.bound, self.least)
        return VictimSearch(criterion, self.least, 0 if untried else bound, self.searched)


@dataclass(frozen=True, slots=True)
class CheapestVictims:
    """The search for the cheapest victims of one preemptor."""

    pipeline: Pipeline
    units: VictimUnits
    coverage: BudgetCoverage
    rules: SchedulerRules
    allowances: Sequence[BoundAllowance]
    limits: Sequence[Limit]
    prices: Prices

    def cost_of(self, candidate: Candidate) -> int:
        """Return the cost of the victims of a candidate."""
        return sum(each.price for each in set(map(self.prices, candidate.victims.pods)))

    def search(
        self,
        costs: Mapping[str, int | None],
        least: int | None,
        candidates: Mapping[str, Candidate],
        refused: Iterable[str],
        has_time_left: HasTimeLeft,
    ) -> SearchResult:
        """Search nodes for victims that are cheaper than those that are known.

        The nodes are those with ``costs``, of candidates, and those where a limit has ``refused``
        the known victims (cost None). ``least`` is the least of all costs but those of
        ``candidates``, also of nodes that are not to be searched; None if there are none.

        The node of the least bound is the first. The search ends when the bound of the next one is
        not below the least cost, or early: see MOST_STEPS.
        """
        of_candidates = {node: self.cost_of(each) for node, each in candidates.items()}
        known = {**costs, **dict.fromkeys(refused), **of_candidates}
        least = min((least, *of_candidates.values()), key=_none_last)
        bounds = ((self.bound_on(node), node) for node in known)
        waiting = sorted(each for each in bounds if is_below(each[0], known[each[1]]))
        cheaper: dict[str, Candidate] = {}
        steps = count()

        def may_go_on() -> bool:
            return next(steps) < MOST_STEPS and has_time_left()

        for searched, (bound, node) in enumerate(waiting):
            if not is_below(bound, least):
                return SearchResult(cheaper, searched, least)
            best = self._search_on(node, least, may_go_on)
            if best is not None:
                cheaper[node], least = best, self.cost_of(best)
            if not may_go_on():
                return SearchResult(cheaper, searched + 1, least, bound)
        return SearchResult(cheaper, len(waiting), least)

    def bound_on(self, node: str) -> int:
        """Return a cost that no victims on a node are below."""
        state = self.units.snapshot.nodes[node]
        potential = potential_units(
            self.pipeline.pod, state, self.units, self.rules.policy, self.allowances
        )
        missing = self._shortages(state)
        priced = [self._priced(unit, 0, node, missing) for unit in potential]
        return lower_bound(NO_VICTIMS, priced, list(missing.values())) or 0

    def _search_on(self, node: str, below: int | None, may_go_on: HasTimeLeft) -> Candidate | None:
        state = self.units.snapshot.nodes[node]
        emptied = empty_node(
            self.pipeline, state, self.units, self.coverage, self.rules.policy, self.allowances
        )
        if isinstance(emptied, Rejection):
            return None
        missing = self._shortages(state)
        priced = [self._priced(*each, node, missing) for each in emptied.potential]
        search = NodeSearch(emptied, priced, list(missing.values()), self.limits)
        return search.cheapest(below, may_go_on)

    def _priced(
        self, unit: VictimUnit, violations: int, node: str, missing: Mapping[str, int]
    ) -> PricedUnit:
        groups = tuple(dict.fromkeys(map(self.prices, unit.pods)))
        freeing = [pod for pod in unit.pods if pod.node_name == node]
        frees = tuple(
            len(freeing)
            if name == _POD_SLOTS
            else sum(amount_of(pod.requests, name) for pod in freeing)
            for name in missing
        )
        return PricedUnit(unit, violations, groups, frees)

    def _shortages(self, state: NodeState) -> Mapping[str, int]:
        """Return what the preemptor lacks on a node by NodeResourcesFit, by resource."""
        pod, snapshot = self.pipeline.pod, self.units.snapshot
        fits = (each for each in self.rules.filters if isinstance(each, NodeResourcesFit))
        fit = next(fits, None)
        if fit is None or pod.resize_deferred:
            return {}
        names = self.pipeline.scheduler_names
        beside = [each for each in state.nominated if has_to_fit_beside(each, pod, names)]
        delegated = delegated_resources(pod, snapshot, self.rules.release)
        missing = {_POD_SLOTS: len(state.pods) + len(beside) + 1 - state.node.allowed_pods}
        for name, amount in fit.counted(pod.requests):
            if not (name in delegated and is_delegated(name, state.node)):
                others = sum(amount_of(each.requests, name) for each in beside)
                taken = amount_of(state.requested, name) + others + amount
                missing[name] = taken - amount_of(state.node.allocatable, name)
        return {name: amount for name, amount in missing.items() if amount > 0}


def is_below(cost: int, other: int | None) -> bool:
    """Return whether a cost is below another; None is above any."""
    return other is None or cost < other


def _none_last(cost: int | None) -> tuple[bool, int]:
    return cost is None, cost or 0
