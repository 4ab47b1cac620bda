"""Eligibility for preemption, and violations of budgets."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from policies.kubernetes.releases import NEWEST, RELEASES
from policies.kubernetes.selectors import LabelSelector, Requirement
from policies.kubernetes.snapshot import DisruptionBudget, Pod, Snapshot
from policies.preemption.disruption_budgets import (
    BudgetCoverage,
    PodsByPdbViolation,
    covers,
    split_by_pdb_violation,
)
from policies.preemption.filtering.status import Code, Rejection, refused, unresolvable
from policies.preemption.victim_units import victim_units
from policies.preemption.victims.victim_selection import ineligibility, is_terminating_by_preemption
from tests.builders import budget, node, pod, snapshot

WEB = {"app": "web"}

# Who may preempt


def leaving(priority: int, *, terminating: bool = True, preempted: bool = True) -> Pod:
    """Build a victim of an earlier preemption that still runs on node-1."""
    return pod(
        "leaving", on="node-1", priority=priority, terminating=terminating, preempted=preempted
    )


def nominated(priority: int = 100) -> Pod:
    return pod("preemptor", priority=priority, nominated_node="node-1")


def why_not(preemptor: Pod, cluster: Snapshot, status: Rejection | None) -> str | None:
    return ineligibility(preemptor, victim_units(cluster, NEWEST), status)


def test_a_pod_that_must_not_preempt_may_not() -> None:
    reason = why_not(pod(preempts=False), snapshot(), None)
    assert reason == "not eligible due to preemptionPolicy=Never."


def test_the_policy_never_comes_before_all_other_rules() -> None:
    cluster = snapshot(node("node-1"), leaving(0))
    asking = pod(preempts=False, priority=100, nominated_node="node-1")
    assert why_not(asking, cluster, unresolvable(Code.UNSCHEDULABLE)) is not None


def test_a_pod_that_is_not_nominated_may_preempt() -> None:
    cluster = snapshot(node("node-1"), leaving(0))
    assert why_not(pod(priority=100), cluster, None) is None


@pytest.mark.parametrize(
    ("status", "waits"),
    [(None, True), (refused(Code.TOO_MANY_PODS), True), (unresolvable(Code.UNSCHEDULABLE), False)],
)
def test_a_nominated_pod_waits_for_its_victims_unless_the_node_is_unresolvable(
    status: Rejection | None, *, waits: bool
) -> None:
    cluster = snapshot(node("node-1"), leaving(0))
    reason = why_not(nominated(), cluster, status)
    message = "not eligible due to a terminating pod on the nominated node."
    assert reason == (message if waits else None)


@pytest.mark.parametrize(
    ("resident", "waits"),
    [
        (leaving(99), True),
        (leaving(100), False),
        (leaving(0, terminating=False), False),
        (leaving(0, preempted=False), False),
    ],
)
def test_only_terminating_victims_of_lower_priority_are_waited_for(
    resident: Pod, *, waits: bool
) -> None:
    cluster = snapshot(node("node-1"), resident)
    assert (why_not(nominated(100), cluster, None) is not None) is waits


def test_a_nomination_to_a_deleted_node_does_not_count() -> None:
    assert why_not(nominated(), snapshot(node("node-2")), None) is None


@pytest.mark.parametrize("terminating", [True, False])
@pytest.mark.parametrize("preempted", [True, False])
def test_a_pod_ends_by_preemption_if_it_both_ends_and_was_preempted(
    *, terminating: bool, preempted: bool
) -> None:
    each = pod(terminating=terminating, preempted=preempted)
    assert is_terminating_by_preemption(each) is (terminating and preempted)


# Which budgets evicting pods would break


def grouped(
    pods: Iterable[Pod], *budgets: DisruptionBudget, release: str = NEWEST.name
) -> tuple[list[str], list[str]]:
    groups: PodsByPdbViolation = split_by_pdb_violation(
        pods, BudgetCoverage(budgets, RELEASES[release])
    )
    return [each.name for each in groups.violating], [each.name for each in groups.others]


def web(name: str, **labels: str) -> Pod:
    return pod(name, labels=WEB | labels)


def test_a_budget_is_charged_in_the_order_of_the_pods() -> None:
    pods = [web("a"), web("b"), web("c")]
    assert grouped(pods, budget(match=WEB, allowed=2)) == (["c"], ["a", "b"])
    assert grouped(reversed(pods), budget(match=WEB, allowed=2)) == (["a"], ["c", "b"])


def test_a_negative_budget_is_violated_by_every_pod() -> None:
    assert grouped([web("a")], budget(match=WEB, allowed=-1)) == (["a"], [])


def test_pods_without_budgets_violate_none() -> None:
    other = budget(match={"app": "db"})
    elsewhere = budget(match=WEB, namespace="blue")
    assert grouped([web("a")], other, elsewhere) == ([], ["a"])


def test_a_pod_whose_eviction_was_charged_already_is_not_charged_again() -> None:
    charged = budget(match=WEB, allowed=1, disrupted=["a"])
    assert grouped([web("a"), web("b")], charged) == ([], ["a", "b"])
    assert grouped([web("b"), web("c"), web("a")], charged) == (["c"], ["b", "a"])


FRONT, TIER = budget("front", match={"tier": "front"}), budget("web", match=WEB, allowed=1)


@pytest.mark.parametrize(
    ("release", "budgets", "violating"),
    [
        ("1.36", (FRONT, TIER), ["both", "one"]),
        ("1.37", (FRONT, TIER), ["both"]),
        ("1.36", (TIER, FRONT), ["both", "one"]),
        ("1.37", (TIER, FRONT), ["both", "one"]),
    ],
)
def test_budgets_after_a_violated_one_are_charged_by_the_release(
    release: str, budgets: tuple[DisruptionBudget, ...], violating: list[str]
) -> None:
    """Since 1.37 a pod that violates one budget is not charged to those after it."""
    pods = [web("both", tier="front"), web("one")]
    assert grouped(pods, *budgets, release=release)[0] == violating


@pytest.mark.parametrize(
    ("release", "match", "labels", "covered"),
    [
        ("1.37", {}, WEB, False),
        ("1.38", {}, WEB, True),
        ("1.37", {}, {}, False),
        ("1.38", {}, {}, True),
        ("1.37", None, WEB, False),
        ("1.38", None, WEB, False),
        ("1.37", WEB, WEB, True),
        ("1.38", WEB, {}, False),
    ],
)
def test_an_empty_selector_covers_all_pods_and_an_absent_one_none(
    release: str, match: dict[str, str] | None, labels: dict[str, str], *, covered: bool
) -> None:
    assert covers(budget(match=match), pod(labels=labels), RELEASES[release]) is covered


def test_a_negative_selector_covers_a_pod_without_labels_since_1_38() -> None:
    not_web = LabelSelector((Requirement("app", "NotIn", ("web",)),))
    covering = DisruptionBudget("default", "rest", not_web, 0)
    assert not covers(covering, pod(), RELEASES["1.37"])
    assert covers(covering, pod(), RELEASES["1.38"])
