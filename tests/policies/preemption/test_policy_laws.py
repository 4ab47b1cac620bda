"""Laws of decisions by any policy: guards protect victims, and limits hold for candidates."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from policies.kubernetes.releases import NEWEST
from policies.kubernetes.snapshot import Snapshot
from policies.preemption.disruption_budgets import BudgetCoverage
from policies.preemption.filtering import IN_TREE, run_pre_filters
from policies.preemption.guards.candidate_limit import with_strict_budgets
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.victim_selection import NodeDryRun
from policies.testing.strategies import Cluster, clusters, rich_clusters
from tests.properties.policies import full_clusters, shaped_policies, worked_snapshots


def shuffled(snapshot: Snapshot, data: st.DataObject) -> Snapshot:
    names = data.draw(st.permutations(list(snapshot.nodes)), label="order of nodes")
    past = data.draw(st.permutations(snapshot.preemptions), label="order of preemptions")
    return replace(
        snapshot,
        nodes={name: snapshot.nodes[name] for name in names},
        preemptions=tuple(past),
    )


@given(rich_clusters(), shaped_policies(), st.data())
def test_victims_are_below_the_gap_and_nobody_protected_is_named(
    cluster: Cluster, policy: Policy, data: st.DataObject
) -> None:
    snapshot = data.draw(worked_snapshots(cluster))
    preemptor = cluster.preemptor
    allowances = policy.allowances(preemptor, snapshot)
    for candidate in preempt(
        preemptor, snapshot, SchedulerRules(policy=policy)
    ).candidates.values():
        for pod in candidate.victims.pods:
            assert pod.priority <= preemptor.priority - policy.priority_gap
            assert policy.protection_of(pod, snapshot.now_ns) is None
            assert not any(each.protects(pod) for each in allowances)


@given(rich_clusters(), shaped_policies(), st.data())
def test_no_candidate_exceeds_a_limit_an_allowance_or_a_strict_budget(
    cluster: Cluster, policy: Policy, data: st.DataObject
) -> None:
    snapshot = data.draw(worked_snapshots(cluster))
    decision = preempt(cluster.preemptor, snapshot, SchedulerRules(policy=policy))
    allowances = policy.allowances(cluster.preemptor, snapshot)
    strict = with_strict_budgets(snapshot)
    coverage = BudgetCoverage(strict.budgets, NEWEST)
    for candidate in decision.candidates.values():
        victims = candidate.victims.pods
        assert not any(each.refuses(candidate) for each in policy.limits(strict, ()))
        for each in allowances:
            groups = Counter(map(each.grouping.key, victims))
            assert all(count <= each.of(group) for group, count in groups.items())
        if policy.strict_budgets:
            evicted = Counter(
                budget.key
                for pod in victims
                for budget in coverage.of(pod)
                if pod.name not in budget.disrupted
            )
            assert all(evicted[each.key] <= max(0, each.allowed) for each in strict.budgets)


@given(st.one_of(clusters(), full_clusters()), shaped_policies(), st.data())
def test_the_pod_does_not_fit_if_any_victim_stays(
    cluster: Cluster, policy: Policy, data: st.DataObject
) -> None:
    snapshot = data.draw(worked_snapshots(cluster))
    pipeline = run_pre_filters(cluster.preemptor, snapshot, NEWEST, IN_TREE)
    decision = preempt(cluster.preemptor, snapshot, SchedulerRules(policy=policy))
    for name, candidate in decision.candidates.items():
        dry_run = NodeDryRun(pipeline, snapshot.nodes[name])
        for pod in candidate.victims.pods:
            dry_run = dry_run.removing(pod)
        assert dry_run.rejection() is None
        assert all(dry_run.adding(pod).rejection() is not None for pod in candidate.victims.pods)


@given(rich_clusters(), shaped_policies(), st.data())
def test_the_order_of_the_input_does_not_matter(
    cluster: Cluster, policy: Policy, data: st.DataObject
) -> None:
    snapshot, rules = data.draw(worked_snapshots(cluster)), SchedulerRules(policy=policy)
    expected = preempt(cluster.preemptor, snapshot, rules)
    assert preempt(cluster.preemptor, shuffled(snapshot, data), rules) == expected


@given(rich_clusters(), shaped_policies(), st.data())
def test_the_chosen_candidate_is_the_best_by_the_criteria(
    cluster: Cluster, policy: Policy, data: st.DataObject
) -> None:
    snapshot = data.draw(worked_snapshots(cluster))
    decision = preempt(cluster.preemptor, snapshot, SchedulerRules(policy=policy))
    order = policy.order_of_candidates(policy.view_of(snapshot))
    ranked = order.sort(decision.candidates.values())
    assert decision.chosen == (ranked[0] if ranked else None)
    assert decision.decided_by == (
        order.deciding_criterion(*ranked[:2]) if len(ranked) > 1 else None
    )
