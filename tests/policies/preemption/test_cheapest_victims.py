"""The cheapest victims are those that brute force finds, on every node together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, cycle

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from policies.kubernetes.default_selector import PodOwner
from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Pod, Snapshot
from policies.preemption.costs.candidate_criteria import (
    CostCriterion,
    GroupCriterion,
    count_totals,
)
from policies.preemption.costs.catalog import cheapest_criteria, lost_work
from policies.preemption.decision import Candidate
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.filtering.status import Code, Rejection
from policies.preemption.guards.candidate_limit import CandidateLimit, within
from policies.preemption.policy import KUBE_SCHEDULER, Policy, SchedulerRules
from policies.preemption.reference_engine import filter_nodes, post_filter, preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.preemption.victim_units import VictimUnit, victim_units
from policies.preemption.victims.cost_bound import prices_by
from policies.preemption.victims.victim_selection import empty_node
from policies.testing.full_clusters import full_clusters
from policies.testing.strategies import Cluster, clusters, rich_clusters
from policies.testing.worked_clusters import worked_snapshots
from tests.builders import SECOND, node, pod, snapshot
from tests.properties.policies import CHEAPEST, shaped_policies

CRITERIA = cheapest_criteria(lost_work({"cpu": 1000}))
MOST_UNITS = 6
GROWING = frozenset(
    ["fewest victims", "least lost work", "fewest owners", "fewest gangs", "fewest namespaces"]
)
"""Criteria whose keys more victims do not reduce, as those of the limits that a policy file has."""

Counted = tuple[VictimUnit, int]


def cheapest(by: CostCriterion | GroupCriterion, policy: Policy) -> Policy:
    """Return a policy that finds the cheapest victims, with those limits that a file may have."""
    limits = tuple(each for each in policy.candidate_limits if each.criterion.name in GROWING)
    candidates = (by, *policy.candidates)
    return replace(policy, cheapest_by=by, candidates=candidates, candidate_limits=limits)


FOUR = (
    # name, CPUs, priority, time of the start
    ("web", 4, 3, 0),
    ("long", 6, 1, 0),
    ("job-1", 3, 2, 8),
    ("job-2", 3, 2, 9),
)


def four_pods() -> Snapshot:
    """Build a full node; by default long would be the victim, as the pod of the least priority."""
    jobs = PodOwner("Job", "job")
    pods = (
        pod(
            name,
            on="node-1",
            cpu=str(cpu),
            priority=priority,
            started=started,
            owner=jobs if name.startswith("job") else None,
        )
        for name, cpu, priority, started in FOUR
    )
    return replace(snapshot(node(cpu="16"), *pods), now_ns=10 * SECOND)


@pytest.mark.parametrize(
    ("by", "victims"),
    [
        ("fewest victims", ["long"]),
        ("least lost work", ["job-1", "job-2"]),
        ("least lost work of gangs", ["job-1", "job-2"]),
        ("least run time", ["job-1", "job-2"]),
        ("fewest gangs", ["long"]),
    ],
)
def test_the_victims_of_the_least_cost(by: str, victims: list[str]) -> None:
    rules = SchedulerRules(policy=cheapest(CRITERIA[by], KUBE_SCHEDULER))
    found = preempt(pod("p", cpu="6", priority=5), four_pods(), rules).chosen
    assert found is not None
    assert [each.name for each in found.victims.pods] == victims


def test_a_search_that_ends_early_has_the_victims_so_far_and_a_bound() -> None:
    rules = SchedulerRules(policy=cheapest(CRITERIA["least lost work"], KUBE_SCHEDULER))
    preemptor, cluster = pod("p", cpu="6", priority=5), four_pods()
    filtering = filter_nodes(preemptor, cluster, rules)
    found = []
    for calls in range(2, 30):
        has_time_left = chain([True] * calls, cycle([False])).__next__
        decision = post_filter(filtering, cluster, rules, has_time_left=has_time_left)
        assert decision.chosen is not None
        found.append(([each.name for each in decision.chosen.victims.pods], str(decision.search)))
    by = "cheaper by least lost work"
    assert found[0] == (["long"], f"victims may be up to 85% {by}")
    assert found[-1] == (["job-1", "job-2"], f"no victims are {by}; nodes searched: 1")


def test_nodes_that_a_limit_refuses_are_untried_if_the_search_ends_early() -> None:
    few = CandidateLimit("maxLostWork", CRITERIA["least lost work"], 20_000)
    rules = SchedulerRules(
        policy=replace(
            cheapest(CRITERIA["fewest victims"], KUBE_SCHEDULER), candidate_limits=(few,)
        )
    )
    preemptor, cluster = pod("p", cpu="6", priority=5), four_pods()
    filtering = filter_nodes(preemptor, cluster, rules)
    untried = []
    for calls in (2, 3, 100):
        has_time_left = chain([True] * calls, cycle([False])).__next__
        decision = post_filter(filtering, cluster, rules, has_time_left=has_time_left)
        untried.append((decision.untried, decision.chosen is None))
    assert untried == [(1, True), (1, True), (0, False)]


def costs_of_all_sets(cluster: Snapshot, preemptor: Pod, policy: Policy) -> Iterator[int]:
    """Yield the cost of each set of victims that is within the limits and lets the pod fit."""
    assert policy.cheapest_by is not None
    view = policy.view_of(cluster)
    units, pipeline = victim_units(view, NEWEST), run_pre_filters(preemptor, view, NEWEST, IN_TREE)
    allowances, coverage = policy.allowances(preemptor, view), BudgetCoverage(view.budgets, NEWEST)
    limits = policy.limits(preemptor, view, allowances)
    prices = prices_by(policy.cheapest_by, view, partial(count_totals, view))
    for name in tried(cluster, preemptor, policy):
        emptied = empty_node(pipeline, view.nodes[name], units, coverage, policy, allowances)
        assert not isinstance(emptied, Rejection)
        assume(len(emptied.potential) <= MOST_UNITS)
        for victims in subsets(emptied.potential):
            evicted = [unit for unit, _ in victims]
            trial = emptied.trial
            for unit, _ in emptied.potential:
                for each in () if unit in evicted else unit.pods:
                    trial = trial.adding(each)
            candidate = emptied.candidate(victims, trial)
            fits = trial.rejection() is None
            if fits and victims and isinstance(within(candidate, limits), Candidate):
                yield sum(each.price for each in set(map(prices, candidate.victims.pods)))


def tried(cluster: Snapshot, preemptor: Pod, policy: Policy) -> Iterator[str]:
    """Yield the nodes where the pod fits without its potential victims, and not with all."""
    rules = SchedulerRules(policy=replace(policy, cheapest_by=None))
    decision = preempt(preemptor, cluster, rules)
    yield from decision.candidates
    for name, rejection in decision.rejected.items():
        if rejection.reasons[0].code is Code.POLICY_LIMIT:
            yield name


def subsets(items: Sequence[Counted]) -> Iterator[tuple[Counted, ...]]:
    return chain.from_iterable(combinations(items, n) for n in range(len(items) + 1))


def assert_cheapest(cluster: Snapshot, preemptor: Pod, policy: Policy) -> None:
    rules = SchedulerRules(policy=policy)
    decision = preempt(preemptor, cluster, rules)
    assert VectorizedEngine(rules).preempt(preemptor, cluster) == decision
    costs = list(costs_of_all_sets(cluster, preemptor, policy)) if decision.eligible else []
    event("searched" if decision.search and decision.search.searched else "not searched")
    if not costs:
        assert decision.chosen is None
        assert decision.search is None
    else:
        assert decision.search is not None
        assert decision.search.bound <= min(costs) <= decision.search.cost
        if not cluster.pod_groups.groups:
            assert decision.search.bound == decision.search.cost


@given(full_clusters(), st.sampled_from(CHEAPEST))
def test_no_victims_on_full_nodes_cost_less(
    cluster: Cluster, by: CostCriterion | GroupCriterion
) -> None:
    later = replace(cluster.snapshot, now_ns=20 * SECOND)
    assert_cheapest(later, cluster.preemptor, cheapest(by, KUBE_SCHEDULER))


@given(
    st.one_of(full_clusters(), clusters(), rich_clusters()),
    *(shaped_policies(), st.sampled_from(CHEAPEST), st.data()),
)
def test_no_victims_that_a_policy_allows_cost_less(
    cluster: Cluster,
    policy: Policy,
    by: CostCriterion | GroupCriterion,
    data: st.DataObject,
) -> None:
    world = data.draw(worked_snapshots(cluster))
    assert_cheapest(world, cluster.preemptor, cheapest(by, policy))
