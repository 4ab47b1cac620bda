"""Costs and guards that an expression computes, here a function of Python."""

from __future__ import annotations

from policies.kubernetes.snapshot import Pod
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.catalog import expression_cost
from policies.preemption.costs.pod_cost import MAX_COST, Cost, EvaluationError, Unreadable
from policies.preemption.guards.victim_guard import protected_by_expression, unreadable_cost
from policies.preemption.policy import Policy
from tests.builders import pod

KEYS = frozenset(["weight"])


def weight(pod: Pod) -> int:
    if "weight" not in pod.annotations:
        raise EvaluationError("no such key: weight")
    return int(pod.annotations["weight"])


WEIGHT = expression_cost("weight", weight, KEYS)
LIGHT, HEAVY = pod(annotations={"weight": "0"}), pod(annotations={"weight": str(2**60)})
UNKNOWN = pod()


def test_a_cost_is_clamped() -> None:
    assert [WEIGHT.of(each) for each in (LIGHT, HEAVY)] == [Cost(0), Cost(MAX_COST)]


def test_a_cost_that_cannot_be_evaluated_is_unreadable() -> None:
    assert WEIGHT.of(UNKNOWN) == Unreadable("no such key: weight")


def test_a_guard_protects_pods_for_which_its_expression_is_true_or_fails() -> None:
    guard = protected_by_expression("heavy pods", lambda pod: weight(pod) > 0, KEYS)
    policy = Policy("guarded", victim_guards=(guard,))
    found = [policy.protection_of(each, now_ns=0) for each in (LIGHT, HEAVY, UNKNOWN)]
    assert found == [None, guard, guard]
    assert guard.explain(HEAVY, now_ns=0) == "protected by heavy pods"
    assert guard.explain(UNKNOWN, now_ns=0) == "protected by heavy pods: no such key: weight"


def test_a_policy_names_the_annotations_of_its_costs_and_guards() -> None:
    guard = protected_by_expression("tagged pods", lambda pod: "tag" in pod.annotations, KEYS)
    criterion = CostCriterion("least weight", expression_cost("w", weight, frozenset("w")))
    policy = Policy("named", candidates=(criterion,), victim_guards=(guard,))
    assert policy.annotations == {"weight", "w"}
    assert Policy("guarded", victim_guards=(unreadable_cost(WEIGHT),)).annotations == KEYS
