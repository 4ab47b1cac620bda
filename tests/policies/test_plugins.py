"""Functions of plugins: their values as costs and guards, and what happens when they fail."""

from __future__ import annotations

from typing import Any, Final

import pytest

from policies.plugins import CostPlugin, EvaluationError, GuardPlugin, victim_cost, victim_guard
from policies.preemption.costs.candidate_criteria import CostCriterion
from policies.preemption.costs.pod_cost import MAX_COST, Cost, Unreadable
from policies.preemption.explanation import explain_decision
from policies.preemption.guards.victim_guard import unreadable_cost
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from policies.preemption.vectorized import VectorizedEngine
from tests.builders import node, pod, snapshot
from tests.properties.engines import assert_agreement

RATE: Final = "example.com/rate"


@victim_cost(unit="requests per second", annotations=(RATE,))
def most_idle(pod: Any) -> int:
    return int(pod.annotations[RATE])


@victim_guard(annotations=(RATE,))
def busy(pod: Any) -> bool:
    return most_idle(pod) > 100


class BrokenError(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


def failing(error: Exception) -> CostPlugin:
    @victim_cost(unit="any")
    def fails(_: Any) -> int:
        raise error

    return fails


def returning(value: Any) -> CostPlugin:
    return victim_cost(unit="any")(lambda _: value)


def serving(name: str, rate: str, on: str = "node-1") -> Any:
    return pod(name, on=on, cpu="1", annotations={RATE: rate})


def test_a_declared_function_is_a_function() -> None:
    assert (most_idle(serving("a", "7")), busy(serving("a", "7"))) == (7, False)
    assert (most_idle.unit, most_idle.annotations) == ("requests per second", frozenset([RATE]))


def test_a_text_instead_of_annotations_is_an_error() -> None:
    for declare in (
        lambda: victim_cost(unit="", annotations=RATE),
        lambda: victim_guard(annotations=RATE),
    ):
        with pytest.raises(TypeError, match=f"'{RATE}' is a text; expected a tuple of keys"):
            declare()


@pytest.mark.parametrize(("value", "found"), [(7, 7), (-7, -7), (2**70, MAX_COST)])
def test_a_cost_is_clamped(value: int, found: int) -> None:
    cost = returning(value).cost("own")
    assert (cost.name, cost.unit, cost.of(pod())) == ("own", "any", Cost(found))


@pytest.mark.parametrize(
    ("plugin", "reason"),
    [
        (returning(None), "expected a result of type int, found NoneType"),
        (returning(1.0), "expected a result of type int, found float"),
        (returning(True), "expected a result of type int, found bool"),  # noqa: FBT003
        (failing(KeyError(RATE)), f"KeyError: '{RATE}'"),
        (failing(ValueError("two\nlines")), "ValueError: two lines"),
        (failing(EvaluationError("no\nrate")), "no rate"),
        (failing(ValueError("long" * 100)), "ValueError: " + "long" * 47 + "…"),
    ],
)
def test_the_cost_of_a_pod_for_which_the_function_fails_is_unknown(
    plugin: CostPlugin, reason: str
) -> None:
    assert plugin.cost("own").of(pod()) == Unreadable(reason)


def test_an_error_without_a_text_is_named() -> None:
    found = failing(BrokenError()).cost("own").of(pod())
    assert isinstance(found, Unreadable)
    assert "BrokenError" in found.reason


def test_a_guard_protects_pods_for_which_it_is_true_or_fails() -> None:
    policy = Policy("guarded", victim_guards=(busy.guard("busy"),))
    pods = [serving("idle", "1"), serving("busy", "101"), pod("unknown")]
    guards = [policy.protection_of(each, now_ns=0) for each in pods]
    reasons = [guard and guard.explain(each, 0) for guard, each in zip(guards, pods, strict=True)]
    assert reasons == [None, "protected by busy", f"protected by busy: KeyError: '{RATE}'"]
    number = victim_guard()(lambda _: 1)  # type: ignore[arg-type, return-value]
    assert isinstance(number, GuardPlugin)
    assert number.guard("n").because(pod()) == "expected a result of type bool, found int"


def test_the_candidate_that_costs_least_is_chosen_and_unknown_pods_are_protected() -> None:
    cost = most_idle.cost("most-idle")
    criterion = CostCriterion("most-idle", cost)
    policy = Policy("own", candidates=(criterion,), victim_guards=(unreadable_cost(cost),))
    rules = SchedulerRules(policy=policy)
    preemptor = pod("new", cpu="1", priority=9)
    cluster = snapshot(
        *(node(f"node-{n}", cpu="1") for n in (1, 2, 3)),
        serving("a", "50", "node-1"),
        serving("b", "20", "node-2"),
        serving("c", "many", "node-3"),
    )
    decision = assert_agreement(preemptor, cluster, rules)
    assert decision == preempt(preemptor, cluster, rules)
    assert (decision.chosen and decision.chosen.node) == "node-2"
    assert decision.decided_by == "most-idle"
    protected = explain_decision(decision, cluster, rules).protected
    assert [each.because for each in protected] == [
        "protected by most-idle: ValueError: invalid literal for int() with base 10: 'many'"
    ]


def test_a_pod_is_evaluated_when_it_changes_or_is_a_victim_of_the_best_two_candidates() -> None:
    evaluated: list[str] = []

    @victim_cost(unit="any")
    def recorded(pod: Any) -> int:
        evaluated.append(pod.name)
        return int(pod.name)

    cost = recorded.cost("recorded")
    guards = (unreadable_cost(cost),)
    criteria = (CostCriterion("recorded", cost),)
    policy = Policy("own", candidates=criteria, victim_guards=guards)
    engine = VectorizedEngine(SchedulerRules(policy=policy))
    nodes = [node(f"node-{n}", cpu="1") for n in range(6)]
    pods = [pod(f"{n}", on=f"node-{n}", cpu="1") for n in range(6)]
    cluster = snapshot(*nodes, *pods)
    engine.follow(cluster)
    assert set(evaluated) == {each.name for each in pods}
    changed = snapshot(*nodes, *pods[:5], pod("7", on="node-5", cpu="1"))
    evaluated.clear()
    engine.follow(changed, {"node-5"})
    assert set(evaluated) == {"7"}
    evaluated.clear()
    assert engine.preempt(pod("new", cpu="1", priority=9), changed).decided_by == "recorded"
    assert set(evaluated) <= {"0", "1"}
