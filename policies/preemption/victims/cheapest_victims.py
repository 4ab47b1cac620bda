"""The cheapest victims: of all sets without which the preemptor fits, one of the least cost.

The search begins with the victims that are left on each node after the others were reprieved. It
replaces them only by cheaper ones. On one node it is a branch and bound over its victim units, the
dearest first, with the same filters: each unit is kept if the preemptor fits beside it, or else
evicted, and then the other way round. A lower bound of the cost (:mod:`cost_bound`) excludes
branches, and whole nodes.

The filters refuse no less when a pod is added, so that a unit beside which alone the preemptor does
not fit is a victim in any case. Where that may not hold, the bound of a node stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heapify, heappop, heappush
from math import floor
from typing import Final, NamedTuple

from policies.devices.extended_resources import delegated_resources, is_delegated
from policies.kubernetes.snapshot import NodeState
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
from policies.preemption.victims.cost_bound import (
    NO_VICTIMS,
    PricedUnit,
    PricedVictims,
    Prices,
    lower_bound,
)
from policies.preemption.victims.victim_selection import (
    EmptiedNode,
    NodeDryRun,
    empty_node,
    potential_units,
)

MOST_STEPS: Final = 20_000
"""The most steps of a decision, of about 50 µs each, on all nodes together: where bounds exclude
little, the search ends early, with the cheapest victims so far."""

_POD_SLOTS: Final = ""


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
        trial = self.trial.keeping(first.unit)
        return None if trial is None else Branch(trial, self.victims, tuple(others))


@dataclass(frozen=True, slots=True)
class NodeSearch:
    """The search on one node; ``missing`` is what all victims have to free, by shortage."""

    emptied: EmptiedNode
    units: Sequence[PricedUnit]
    missing: Sequence[int]
    limits: Sequence[Limit]

    def cheapest(self, below: int | None, steps: Steps) -> Candidate | None:
        """Return the cheapest victims of a cost ``below`` (None: any), or None if there are none.

        If the steps end, these are the cheapest so far. Victims that a limit refuses do not count,
        nor do more victims than these: no limit allows only the larger set.
        """
        best: Branch | None = None
        waiting = [self._root(steps)]
        while waiting and steps.take():
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

    def _root(self, steps: Steps) -> Branch:
        """Return the branch of all sets: with the units that cannot stay, the dearest first."""
        emptied, victims, undecided = self.emptied.trial, NO_VICTIMS, list[PricedUnit]()
        for each in self.units:
            if not steps.take():
                break
            if emptied.keeping(each.unit) is None:
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


@dataclass(slots=True)
class Steps:
    """The steps that are left to a search: up to MOST_STEPS, and no more after its time."""

    has_time_left: HasTimeLeft
    taken: int = 0

    def take(self) -> bool:
        """Take a step, and return whether there was one left."""
        self.taken += 1
        return self.are_left()

    def are_left(self) -> bool:
        """Return whether the search may go on."""
        return self.taken <= MOST_STEPS and self.has_time_left()


class KnownVictims(NamedTuple):
    """What is known of a node: the cost of its victims (None: refused by a limit), and a bound."""

    cost: int | None
    bound: float = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The cheaper victims that were found, by node, and how many nodes were searched.

    ``least`` is the least cost on all nodes. Victims may cost as little as ``bound`` on nodes that
    were not searched to the end; None if there are none of these. ``left_out`` counts those without
    any victims so far, if there are none on any node.
    """

    cheaper: Mapping[str, Candidate]
    searched: int
    least: int | None
    bound: int | None = None
    left_out: int = 0

    def summary(self, criterion: str, untried: int) -> VictimSearch | None:
        """Return how far victims were searched for; None if there are none."""
        if self.least is None:
            return None
        bound = self.least if self.bound is None else min(self.bound, self.least)
        return VictimSearch(criterion, self.least, 0 if untried else bound, self.searched)


@dataclass(frozen=True)
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
        rows: Mapping[str, KnownVictims],
        least: int | None,
        candidates: Mapping[str, Candidate],
        refused: Iterable[str],
        has_time_left: HasTimeLeft,
    ) -> SearchResult:
        """Search nodes for victims that are cheaper than those that are known.

        The nodes are ``rows``, those of ``candidates``, and those where a limit has ``refused`` the
        known victims. ``least`` is the least cost on rows, also on those that are not to be
        searched; None if there are none.

        The node of the least bound is the first. The search ends when the bound of the next one is
        not below the least cost, or early: see Steps.
        """
        known = {
            **rows,
            **dict.fromkeys(refused, KnownVictims(None)),
            **{node: KnownVictims(self.cost_of(each)) for node, each in candidates.items()},
        }
        costs = (least, *(known[node].cost for node in candidates))
        least = min((each for each in costs if each is not None), default=None)
        # A bound that was given is not above that of a node, which is computed when it is the next.
        waiting = [(known[node].bound, False, node) for node in known]
        heapify(waiting)
        cheaper: dict[str, Candidate] = {}
        steps, searched, open_bounds = Steps(has_time_left), 0, list[float]()
        unfinished = False
        while waiting and is_below(waiting[0][0], least) and steps.are_left():
            bound, is_computed, node = heappop(waiting)
            if not is_computed:
                computed = self._bound_on(node)
                if is_below(computed, known[node].cost):
                    heappush(waiting, (computed, True, node))
                continue
            searched += 1
            best = self._search_on(node, least, steps)
            if best is not None:
                cheaper[node], least = best, self.cost_of(best)
            unfinished = not steps.are_left()
            if unfinished or self._may_miss_victims(node):
                open_bounds.append(bound)
        if waiting and is_below(waiting[0][0], least):
            open_bounds.append(waiting[0][0])
        left_out = 0 if least is not None else len(waiting) + unfinished
        bound_of_open = floor(min(open_bounds)) if open_bounds else None
        return SearchResult(cheaper, searched, least, bound_of_open, left_out)

    @cached_property
    def _delegated(self) -> frozenset[str]:
        """The requested resources that devices may back; they are the same for every node."""
        return frozenset(
            delegated_resources(self.pipeline.pod, self.units.snapshot, self.rules.release)
        )

    def _may_miss_victims(self, node: str) -> bool:
        """Return whether a filter may refuse a node because a pod has left.

        Topology spread may, if a unit has pods on other nodes; so may the limit of volumes, if a
        pod shares one with the preemptor.
        """
        state, own = self.units.snapshot.nodes[node], self.pipeline.pod.storage
        mounted = frozenset(own.volumes if own is not None else ())
        return any(unit.away_from(node) for unit in self.units.of(state.pods)) or any(
            not mounted.isdisjoint(pod.storage.volumes) for pod in state.pods if pod.storage
        )

    def _bound_on(self, node: str) -> int:
        """Return a cost that no victims on a node are below."""
        state = self.units.snapshot.nodes[node]
        potential = potential_units(
            self.pipeline.pod, state, self.units, self.rules.policy, self.allowances
        )
        missing = self._shortages(state)
        priced = [self._priced(unit, 0, node, missing) for unit in potential]
        return lower_bound(NO_VICTIMS, priced, list(missing.values())) or 0

    def _search_on(self, node: str, below: int | None, steps: Steps) -> Candidate | None:
        state = self.units.snapshot.nodes[node]
        emptied = empty_node(
            self.pipeline, state, self.units, self.coverage, self.rules.policy, self.allowances
        )
        if isinstance(emptied, Rejection):
            return None
        missing = self._shortages(state)
        priced = [self._priced(*each, node, missing) for each in emptied.potential]
        search = NodeSearch(emptied, priced, list(missing.values()), self.limits)
        return search.cheapest(below, steps)

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
        pod = self.pipeline.pod
        fits = (each for each in self.rules.filters if isinstance(each, NodeResourcesFit))
        fit = next(fits, None)
        if fit is None or pod.resize_deferred:
            return {}
        names = self.pipeline.scheduler_names
        beside = [each for each in state.nominated if has_to_fit_beside(each, pod, names)]
        missing = {_POD_SLOTS: len(state.pods) + len(beside) + 1 - state.node.allowed_pods}
        for name, amount in fit.counted(pod.requests):
            if not (name in self._delegated and is_delegated(name, state.node)):
                others = sum(amount_of(each.requests, name) for each in beside)
                taken = amount_of(state.requested, name) + others + amount
                missing[name] = taken - amount_of(state.node.allocatable, name)
        return {name: amount for name, amount in missing.items() if amount > 0}


def is_below(cost: float, other: int | None) -> bool:
    """Return whether a cost is below another; None is above any."""
    return other is None or cost < other
