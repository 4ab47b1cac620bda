"""Pods whose cost cannot be read: which are logged, and how many there are."""

from __future__ import annotations

from typing import Final

from structlog.testing import capture_logs

from extender.observability.unreadable_costs import MOST_LOGGED, UnreadableCosts
from policies.kubernetes.snapshot import Node, Pod, Snapshot
from policies.preemption.costs.catalog import DELETION_COST, deletion_cost
from policies.preemption.costs.pod_cost import EvaluationError
from policies.preemption.guards.victim_guard import (
    protected_by_expression,
    protected_pods,
    unreadable_cost,
)
from policies.preemption.policy import DEFAULT_RULES, Policy, PolicyRule, SchedulerRules
from tests.builders import node, pod, snapshot


def is_small(pod: Pod) -> bool:
    if pod.name == "huge":
        raise EvaluationError("overflow")
    return False


CHEAP: Final = Policy(
    "cheap",
    victim_guards=(
        unreadable_cost(deletion_cost()),
        protected_pods("kept", lambda each: each.name == "kept"),
        protected_by_expression("small", is_small, frozenset()),
    ),
)
RULES: Final = SchedulerRules(policy_rules=(PolicyRule("all", lambda _: True, CHEAP),))
NODES: Final = node("node-1"), node("node-2")


def costing(name: str, cost: str, on: str = "node-1") -> Pod:
    return pod(name, on=on, annotations={DELETION_COST: cost})


def cluster(*things: Node | Pod) -> Snapshot:
    return snapshot(*NODES, *things)


def test_each_pod_is_logged_once_and_again_with_another_reason() -> None:
    costs = UnreadableCosts(RULES)
    for things, changed, logged, count in (
        ([costing("a", "much"), costing("b", "5"), pod("c", on="node-1")], "1", ["a"], 1),
        ([costing("a", "much"), costing("b", "6")], "1", [], 1),
        ([costing("a", "much"), costing("d", "x", "node-2")], "2", ["d"], 2),
        ([costing("a", "more"), costing("d", "x", "node-2")], "1", ["a"], 2),
        ([costing("a", "7"), costing("d", "x", "node-2")], "1", [], 1),
        ([], "2", [], 0),
    ):
        with capture_logs() as lines:
            costs.follow(cluster(*things), [f"node-{changed}"])
        assert [line["pod"] for line in lines] == [f"default/{name}" for name in logged]
        assert costs.count == count


def test_each_reason_names_its_guard_and_other_guards_are_silent() -> None:
    with capture_logs() as lines:
        pods = costing("huge", "x"), pod("kept", on="node-1")
        UnreadableCosts(RULES).follow(cluster(*pods), ["node-1"])
    assert [(line["pod"], line["problem"]) for line in lines] == [
        (
            "default/huge",
            f"deletion cost: annotation {DELETION_COST}: 'x' is no integer; small: overflow",
        )
    ]


def test_pods_that_stay_are_not_evaluated_again() -> None:
    evaluated: list[str] = []

    def note(each: Pod) -> bool:
        evaluated.append(each.name)
        return False

    guards = (protected_by_expression("noted", note, frozenset()),)
    costs = UnreadableCosts(SchedulerRules(policy=Policy("noting", victim_guards=guards)))
    one, two, three = (pod(name, on="node-1") for name in ("one", "two", "three"))
    for pods in ([one, two], [two, three], [two, three]):
        costs.follow(cluster(*pods), ["node-1"])
    assert evaluated == ["one", "two", "three"]


def test_the_pods_of_a_removed_node_are_forgotten() -> None:
    costs = UnreadableCosts(RULES)
    costs.follow(cluster(costing("a", "much")), ["node-1"])
    costs.follow(Snapshot(), ["node-1"])
    assert costs.count == 0


def test_other_rules_read_all_pods_anew() -> None:
    costs, everything = UnreadableCosts(DEFAULT_RULES), cluster(costing("a", "much"))
    for rules, logged, count in (
        (DEFAULT_RULES, 0, 0),
        (RULES, 1, 1),
        (RULES, 0, 1),
        (DEFAULT_RULES, 0, 0),
    ):
        with capture_logs() as lines:
            costs.use(rules, everything)
        assert (len(lines), costs.count) == (logged, count)


def test_of_many_pods_the_first_are_logged() -> None:
    costs = UnreadableCosts(RULES)
    many = [costing(f"p{number}", "much", "node-2") for number in range(MOST_LOGGED)]
    everything = cluster(*many, costing("late", "much"))
    with capture_logs() as lines:
        costs.follow(everything, ["node-2", "node-1"])
    assert (len(lines), costs.count) == (MOST_LOGGED, MOST_LOGGED + 1)


def test_a_long_annotation_is_shortened() -> None:
    with capture_logs() as lines:
        UnreadableCosts(RULES).follow(cluster(costing("a", "x" * 10_000)), ["node-1"])
    assert (
        lines[0]["problem"]
        == f"deletion cost: annotation {DELETION_COST}: '{'x' * 40}…' is no integer"
    )
