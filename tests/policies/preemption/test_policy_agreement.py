"""Both engines make the same decisions by any policy: guards, limits, costs, groups, budgets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from msgspec import structs

from policies.kubernetes.snapshot import Node, Pod
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.catalog import run_time
from policies.preemption.guards.attempt_guard import preemption_delay
from policies.preemption.guards.candidate_limit import CandidateLimit
from policies.preemption.guards.victim_guard import min_runtime, protected_pods
from policies.preemption.policy import (
    CANDIDATE_CRITERIA,
    KUBE_SCHEDULER,
    Policy,
    PolicyRule,
    SchedulerRules,
)
from policies.preemption.reference_engine import ReferenceEngine, preempt
from policies.preemption.vectorized import VectorizedEngine
from policies.testing.full_clusters import full_clusters
from policies.testing.laws import Case, the_engines_agree
from policies.testing.strategies import DEVICE, Cluster, grouped_clusters, rich_clusters
from policies.testing.worked_clusters import cases, worked_snapshots
from tests.builders import SECOND, node, pod, snapshot
from tests.properties.engines import assert_agreement
from tests.properties.policies import shaped_policies, shaped_rules

any_clusters = st.one_of(rich_clusters(), grouped_clusters(), full_clusters())


@given(cases(any_clusters, shaped_rules()))
def test_any_policy(case: Case) -> None:
    event(f"{len(case.decision.candidates)} candidate(s)")
    assert list(the_engines_agree(case)) == []


@given(st.lists(rich_clusters(), min_size=2, max_size=3), shaped_policies(), st.data())
def test_columns_that_have_followed_one_cluster_after_another(
    history: list[Cluster], policy: Policy, data: st.DataObject
) -> None:
    rules = SchedulerRules(policy=policy)
    engine = VectorizedEngine(rules)
    for cluster in history:
        snapshot = data.draw(worked_snapshots(cluster))
        assert engine.preempt(cluster.preemptor, snapshot) == preempt(
            cluster.preemptor, snapshot, rules
        )


sizes = st.sampled_from([0, 1, 2**52, 3 * 2**51, 2**53, 2**60, 2**63 - 1, -1, -(2**52)])
sizes |= st.sampled_from([2**63, 2**70, -(2**52) - 1, -(2**63), -(2**70)])  # not in the columns
shares = st.sampled_from([0, 0, 1, 2**51, 2**52])


@given(rich_clusters(), shaped_rules(), st.data())
def test_nodes_of_any_size(cluster: Cluster, rules: SchedulerRules, data: st.DataObject) -> None:
    """Draw amounts of nodes to 64 bits and beyond; a pod requests at most what can be summed."""
    fields = data.draw(st.sets(st.sampled_from(["milli_cpu", "memory", DEVICE]), min_size=1))

    def resized(node: Node) -> Node:
        drawn = {name: data.draw(sizes) for name in sorted(fields)}
        scalars = {DEVICE: drawn.pop(DEVICE, 0)}
        allocatable = structs.replace(node.allocatable, scalars=scalars, **drawn)
        return structs.replace(node, allocatable=allocatable)

    def requesting(pod: Pod) -> Pod:
        requests = structs.replace(pod.requests, memory=data.draw(shares))
        return structs.replace(pod, requests=requests)

    resized_cluster = replace(
        cluster,
        nodes=tuple(map(resized, cluster.nodes)),
        pods=tuple(map(requesting, cluster.pods)),
    )
    assert_agreement(requesting(cluster.preemptor), resized_cluster.snapshot, rules)


def test_the_first_rule_that_applies_to_a_preemptor_has_its_policy() -> None:
    guard = protected_pods("web", lambda each: each.name == "web")
    strict = Policy("strict", victim_guards=(guard,))
    rules = SchedulerRules(
        policy_rules=(
            PolicyRule("batch", lambda each: each.namespace == "batch", strict),
            PolicyRule("also batch", lambda each: each.namespace == "batch", Policy("unused")),
        )
    )
    cluster = snapshot(node(cpu="1"), pod("web", on="node-1", cpu="1"))
    engines = VectorizedEngine(rules), ReferenceEngine(rules)
    for namespace, chosen in (("batch", None), ("other", "node-1")):
        preemptor = pod("p", cpu="1", priority=5, namespace=namespace)
        for engine in engines:
            found = engine.preempt(preemptor, cluster).chosen
            assert (found and found.node) == chosen
            assert engine.for_preemptor(preemptor).rules.policy.name in ("strict", "kube-scheduler")


def test_a_limit_on_a_cluster_without_pods() -> None:
    limit = CandidateLimit("limit", CANDIDATE_CRITERIA["lowest priority of the first victim"], 1)
    rules = SchedulerRules(policy=Policy("limited", candidate_limits=(limit,)))
    assert_agreement(pod("p", cpu="2", priority=5), snapshot(node(cpu="1")), rules)


def test_the_columns_follow_the_cluster_between_decisions_at_different_times() -> None:
    young = min_runtime("young", lambda _: True, 10 * SECOND)
    rules = SchedulerRules(policy=Policy("patient", victim_guards=(young,)))
    engine = VectorizedEngine(rules)
    preemptor, old = pod("p", cpu="1", priority=5), pod("old", on="node-1", cpu="1", started=0)
    first = snapshot(node(cpu="1"), old)
    second = snapshot(
        node(cpu="1"), structs.replace(old, name="new", uid="new", started_ns=8 * SECOND)
    )
    for cluster, changed, victims in (
        (first, None, {5: None, 10: "old", 20: "old"}),
        (second, {"node-1"}, {17: None, 18: "new"}),
    ):
        engine.follow(cluster, changed)
        for seconds, victim in victims.items():
            timed = replace(cluster, now_ns=seconds * SECOND)
            found = engine.preempt(preemptor, timed)
            assert found == preempt(preemptor, timed, rules)
            assert (found.chosen and found.chosen.victims.pods[0].name) == victim


def reads_time(policy: Policy) -> tuple[bool, bool]:
    """Return whether a policy reads the time, and whether rules with it do."""
    rule = PolicyRule("all", lambda _: True, policy)
    return policy.reads_time, SchedulerRules(policy_rules=(rule,)).reads_time


@pytest.mark.parametrize(
    "policy",
    [
        Policy("guarded", victim_guards=(protected_pods("web", lambda _: True),)),
        Policy("patient", attempt_guards=(preemption_delay(SECOND),)),
        Policy("cheap", candidates=(CostCriterion("run time", run_time()),)),
    ],
    ids=lambda policy: policy.name,
)
def test_guards_and_costs_read_the_time(policy: Policy) -> None:
    assert reads_time(policy) == (True, True)


@pytest.mark.parametrize(
    "policy",
    [KUBE_SCHEDULER, Policy("strict", strict_budgets=True, priority_gap=2)],
    ids=lambda policy: policy.name,
)
def test_other_policies_do_not_read_the_time(policy: Policy) -> None:
    assert reads_time(policy) == (False, False)
