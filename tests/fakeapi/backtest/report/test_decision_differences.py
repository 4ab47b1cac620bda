"""The decisions in which policies differ most: which they are, and what is said about them."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fakeapi.backtest.report.decision_differences import PreemptionDifference, differing_decisions
from fakeapi.backtest.statistics import RunStatistics, SimulatedDecision
from tests.builders.backtests import GPU, decided, decision, results, victim

CHEAP = decision("serve", "n1", victim("train-1", gpu_hours=2))
DEAR = decision("serve", "n2", victim("train-2", gpu_hours=5), victim("train-3", cpu_hours=3))


def differences(*pairs: tuple[RunStatistics, RunStatistics]) -> tuple[PreemptionDifference, ...]:
    """Return the differences of policies ``a`` and ``b``, from their runs by seed."""
    runs = {"a": [one for one, _ in pairs], "b": [two for _, two in pairs]}
    return differing_decisions(results(runs))


def test_two_decisions_for_one_pod_are_explained() -> None:
    (found,) = differences((decided(DEAR), decided(replace(CHEAP, reason="lowest lost work"))))
    assert (found.policy, found.device_hours, found.cpu_hours) == ("b", -3, -3)
    assert found.heading == "serve (team, priority 1,000), seed 0, segment 0"
    assert found.explanation == (
        (
            "a: train-2 (team, priority 10) and train-3 (team, priority 10) were preempted on n2 "
            f"after 1 h; 5 GPU-hours ({GPU}) and 3 CPU-hours were lost."
        ),
        (
            "b: train-1 (team, priority 10) was preempted on n1 after 1 h, decided by lowest lost "
            f"work; 2 GPU-hours ({GPU}) were lost."
        ),
    )


def test_a_decision_that_one_policy_does_not_make() -> None:
    (found,) = differences((decided(CHEAP), decided()))
    assert (found.first, found.other, found.device_hours) == (CHEAP, None, -2)
    assert found.explanation[1] == "b: no pod was preempted for this one."


def test_a_decision_that_may_be_missing_because_only_the_costliest_are_kept() -> None:
    other = decision("batch", "n3", victim("x", gpu_hours=9))
    found = differences((decided(CHEAP), decided(other, made=1_500)))
    assert [each.preemptor for each in found] == ["batch", "serve"]
    assert found[1].explanation[1] == (
        "b: there is none for this pod among the 1 of its 1,500 preemptions that cost the most."
    )


def test_equal_decisions_are_no_difference() -> None:
    assert differences((decided(CHEAP), decided(replace(CHEAP, at_ns=5)))) == ()


def test_further_victims_are_counted_and_violations_named() -> None:
    victims = (victim(f"train-{number}") for number in range(5))
    many = replace(decision("serve", "n1", *victims), violations=2)
    (found,) = differences((decided(many), decided()))
    assert found.explanation[0] == (
        "a: train-0 (team, priority 10), train-1 (team, priority 10), train-2 (team, priority 10) "
        "and 2 more pods were preempted on n1 after 1 h, with 2 PDB violations; no work was lost."
    )


def lone(name: str, gpu_hours: int, cpu_hours: int) -> SimulatedDecision:
    return decision(name, "n1", victim(f"of-{name}", gpu_hours, cpu_hours))


def test_devices_count_before_cpu_and_cpu_before_the_number_of_victims() -> None:
    crowd = decision("crowd", "n1", victim("v"), victim("w"))
    run = decided(crowd, lone("few", 0, 0), lone("cpu", 0, 900), lone("gpu", 1, 0))
    found = differences((run, decided()))
    assert [each.preemptor for each in found] == ["gpu", "cpu", "crowd", "few"]


def test_the_decisions_for_a_pod_are_paired_in_their_order() -> None:
    later = replace(DEAR, at_ns=CHEAP.at_ns + 1)
    assert differences((decided(CHEAP, later), decided(later, CHEAP))) == ()
    (found,) = differences((decided(later, CHEAP), decided(CHEAP)))
    assert (found.occurrence, found.first, found.other) == (1, later, None)


def test_of_a_pod_the_seed_that_differs_most_is_kept() -> None:
    (found,) = differences(
        (decided(CHEAP), decided()), (decided(), decided(DEAR)), (decided(DEAR), decided())
    )
    assert (found.seed, found.device_hours) == (1, 5)


@pytest.mark.parametrize("policies", [1, 2, 3])
def test_each_further_policy_has_at_most_ten(policies: int) -> None:
    run = decided(*(lone(f"pod-{number}", number, 0) for number in range(20)))
    runs = {"first": [run], **{f"policy-{place}": [decided()] for place in range(1, policies)}}
    found = differing_decisions(results(runs))
    assert len(found) == 10 * (policies - 1)
    assert [each.preemptor for each in found[:2]] == ["pod-19", "pod-18"][: len(found)]


def test_units_of_only_one_policy_are_not_compared() -> None:
    assert differing_decisions(results({"a": [decided(CHEAP)], "b": []})) == ()


def test_decisions_of_a_ledger_are_compared_by_attempt() -> None:
    """The second policy named no victims in the first attempt, and the same ones in the second."""
    first, second = replace(DEAR, attempt=0), replace(CHEAP, at_ns=5 * 3600 * 10**9, attempt=1)
    (found,) = differences((decided(first, second), decided(second)))
    assert (found.occurrence, found.first, found.other) == (0, first, None)
