"""Strict budgets are not exceeded, whatever their status shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policies.kubernetes.snapshot import Snapshot
from policies.preemption.guards.candidate_limit import with_strict_budgets
from policies.preemption.policy import Policy, SchedulerRules
from policies.preemption.reference_engine import preempt
from tests.builders import budget, node, pod, snapshot

WEB = {"app": "web"}
STRICT = SchedulerRules(policy=Policy("strict", strict_budgets=True))


def cluster(allowed: int, desired: int, *states: dict[str, Any]) -> Snapshot:
    """Return nodes with a pod each, and a budget of these."""
    pods = [
        pod(f"web-{n}", on=f"n{n}", cpu="1", labels=WEB, **{"ready": True, **state})
        for n, state in enumerate(states)
    ]
    covered = replace(budget("web", match=WEB, allowed=allowed), desired_healthy=desired)
    return snapshot(*(node(f"n{n}", cpu="1") for n in range(len(pods))), *pods, covered)


@pytest.mark.parametrize(
    ("allowed", "desired", "states", "left"),
    [
        (1, 1, ({}, {}), 1),
        (2, 1, ({}, {}), 1),
        (1, 1, ({}, {"terminating": True}), 0),
        (1, 1, ({}, {"assumed_victim": True}), 0),
        (1, 1, ({}, {"ready": False}), 0),
        (0, 0, ({}, {}), 0),
        (1, 3, ({}, {}), 0),
    ],
    ids=[
        "as the status says",
        "a status that is too high",
        "a victim terminates",
        "a victim is promised",
        "a pod is not ready",
        "a status that is lower",
        "too few pods",
    ],
)
def test_a_budget_allows_what_is_healthy_beyond_need(
    allowed: int, desired: int, states: tuple[dict[str, Any], ...], left: int
) -> None:
    found = with_strict_budgets(cluster(allowed, desired, *states))
    assert [each.allowed for each in found.budgets] == [left]


def test_no_node_is_chosen_that_would_exceed_a_budget() -> None:
    decision = preempt(pod("p", cpu="1", priority=5), cluster(0, 2, {}, {}), STRICT)
    assert decision.chosen is None
    assert {str(each) for each in decision.rejected.values()} == {
        "node(s) exceeded the policy's pdb: strict"
    }


def test_a_reprieved_pod_does_not_count_against_a_budget() -> None:
    """The second pod is a PDB violation by order, but the first one stays."""
    moment = snapshot(
        node("n", cpu="3"),
        pod("kept", on="n", cpu="1", priority=2, labels=WEB, ready=True),
        pod("goes", on="n", cpu="2", priority=1, labels=WEB, ready=True),
        replace(budget("web", match=WEB, allowed=1), desired_healthy=1),
    )
    decision = preempt(pod("p", cpu="2", priority=5), moment, STRICT)
    assert decision.chosen is not None
    assert [each.name for each in decision.chosen.victims.pods] == ["goes"]
    assert decision.chosen.victims.violations == 1
