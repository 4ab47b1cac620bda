"""The checks of plugins and policies accept pure functions, and name what is wrong with others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

import pytest

from policies.plugins import CostPlugin, EvaluationError, GuardPlugin, victim_cost, victim_guard
from policies.preemption.guards.victim_guard import ALWAYS, UNPROTECTED, VictimGuard
from policies.preemption.policy import KUBE_SCHEDULER, Policy
from policies.testing import check_plugin, check_policy
from policies.testing.checks import plugin_violations
from tests.builders import pod
from tests.properties.policies import ATTEMPTS, CRITERIA

FEW: Final = 10
KEY: Final = "example.com/rate"
PODS: Final = (pod("a", annotations={KEY: "7"}), pod("b", annotations={KEY: "x"}), pod("c"))


@victim_cost(unit="requests per second", annotations=(KEY,))
def rate(pod: Any) -> int:
    if not pod.annotations.get(KEY, "0").isdecimal():
        raise EvaluationError("no number")
    return int(pod.annotations.get(KEY, "0"))


@victim_guard(annotations=(KEY,))
def busy(pod: Any) -> bool:
    return rate(pod) > 5


@pytest.mark.parametrize("plugin", [rate, busy], ids=lambda plugin: plugin.function.__name__)
def test_pure_functions_obey_the_laws(plugin: CostPlugin | GuardPlugin) -> None:
    check_plugin(plugin, PODS, FEW)


def test_policies_obey_the_laws() -> None:
    check_policy(Policy("own", candidates=CRITERIA, attempt_guards=ATTEMPTS), examples=FEW)


def counting() -> CostPlugin:
    numbers = count()
    return victim_cost(unit="calls")(lambda _: next(numbers))


def half(_: Any) -> Any:
    return 0.5


def marking(pod: Any) -> int:
    pod.labels["seen"] = "yes"
    return 0


@pytest.mark.parametrize(
    ("plugin", "violation"),
    [
        (counting(), "default/a: 0, then 1; expected the same value for the same pod"),
        (victim_cost(unit="")(marking), "default/a: the plugin changes the pod"),
        (CostPlugin(half, ""), "default/a: expected a result of type int, found f"),
        (
            victim_guard()(lambda pod: KEY in pod.annotations),
            f"default/a: False without {KEY}; expected declared annotations",
        ),
    ],
)
def test_other_functions_are_named(plugin: CostPlugin | GuardPlugin, violation: str) -> None:
    example = pod("a", annotations={KEY: "7"}, labels={})
    [found] = plugin_violations(plugin, example)
    assert found.startswith(violation)


def test_a_failure_for_a_drawn_pod_is_an_error() -> None:
    @victim_cost(unit="any")
    def fails_for_web(pod: Any) -> int:
        return int(pod.labels.get("app", "0"))

    with pytest.raises(AssertionError, match="ValueError: invalid literal for int"):
        check_plugin(fails_for_web, examples=FEW)


def test_a_policy_that_protects_other_pods_each_time_breaks_a_law() -> None:
    numbers: Iterator[int] = count()
    guard = VictimGuard("odd", lambda _: ALWAYS if next(numbers) % 2 else UNPROTECTED)
    policy = Policy("odd", KUBE_SCHEDULER.victims, victim_guards=(guard,))
    with pytest.raises(AssertionError):
        check_policy(policy, examples=FEW)
